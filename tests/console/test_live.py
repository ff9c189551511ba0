"""Notices of changes, also those of other processes; what a restart keeps."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.console.running import Running, act, create, kinds, measured, serving, until, view


class Stream:
    """The notices that one page received."""

    def __init__(self) -> None:
        self.notices: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.over = threading.Event()


@contextmanager
def listening(client: httpx.Client, path: str) -> Iterator[Stream]:
    stream, ready = Stream(), threading.Event()

    def read() -> None:
        try:
            with client.stream("GET", path, timeout=120) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                for line in answer.iter_lines():
                    if line.startswith("event: "):
                        stream.names.append(line.removeprefix("event: "))
                    if line.startswith("data: "):
                        stream.notices.append(json.loads(line.removeprefix("data: ")))
                        ready.set()
        except httpx.TransportError:
            pass
        finally:
            stream.over.set()
            ready.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert ready.wait(120)
    yield stream


def test_every_page_is_told_of_a_change(
    running: Running, operator: httpx.Client, session: str
) -> None:
    path = f"/api/sessions/{session}/events"
    with (
        listening(running.client(), path) as one,
        listening(running.client("auditor"), path) as two,
        listening(running.client("participant", session), "/api/participant/events") as three,
        listening(running.client(), "/api/events") as everything,
    ):
        assert one.notices[0] == {"session": session, "last": 1}
        act(operator, session, "note", text="x")
        wanted = {"session": session, "last": 2}
        until(lambda: all(wanted in s.notices for s in (one, two, everything)), 30)
        nameless = {"session": "", "last": 2}  # a participant sees no names
        until(lambda: nameless in three.notices, 30)
        assert view(operator, session)["participant_pages"] == 1


def test_a_page_is_not_told_of_other_sessions(running: Running, operator: httpx.Client) -> None:
    own, other = create(operator, "A1"), create(operator, "A2")
    page = running.client("participant", own)
    with listening(page, "/api/participant/events") as stream:
        for _ in range(5):
            act(operator, other, "note", text="x")
        act(operator, own, "note", text="y")
        until(lambda: {"session": "", "last": 2} in stream.notices, 30)
        assert {notice["last"] for notice in stream.notices} == {1, 2}


def test_a_change_by_the_command_line_is_noticed(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        operator = running.client()
        session = create(operator)
        with listening(operator, f"/api/sessions/{session}/events") as stream:
            script = "from sfihilo.cli.main import main; main()"
            words = ["session", "note", "typed in a shell", "--db", str(db)]
            subprocess.run([sys.executable, "-c", script, *words], check=True, capture_output=True)
            until(lambda: {"session": session, "last": 2} in stream.notices)
        assert view(operator, session)["notes"][-1]["text"] == "typed in a shell"
        stale = operator.post(f"/api/sessions/{session}/ask", json={"expected": 1})
        assert stale.json()["error"] == "stale"


def test_streams_end_when_the_server_leaves(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        reader = running.client()
        running.clients.remove(reader)
        with listening(reader, "/api/events") as stream:
            running.server.handle_exit(15, None)
            running.thread.join(120)
            assert stream.over.wait(120)
            assert stream.names[-1] == "bye"
    reader.close()


def test_pages_go_on_after_a_restart_and_a_click_is_stored_once(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        port = running.config.port
        operator = running.client()
        session = create(operator)
        measured(operator, session)
        number = measured(operator, session)
        page = running.client("participant", session)
        click = {"trial": number, "choice": "new", "key": "click-1", "expected": 7}
        assert page.post("/api/participant/choose", json=click).status_code == 200
        running.clients = []
    with serving(db, port=port) as running:
        again = page.post("/api/participant/choose", json=click)
        assert again.json() == {"stored": True, "last": 8, "repeated": True}
        assert page.get("/api/participant").json()["state"] == "answered"
        assert kinds(operator, session).count("chosen") == 1
        act(operator, session, "ask", expected=8)
    page.close()
    operator.close()


def test_the_next_query_is_prepared_while_the_person_decides(
    running: Running, operator: httpx.Client, session: str
) -> None:
    measured(operator, session)
    measured(operator, session)
    writer = running.console.sessions.get(session).writer
    until(lambda: len(writer._proposer._ahead) == 4 and writer.prepared)
    assert view(operator, session)["preparing"] is False


def test_a_stream_ends_when_its_page_is_revoked(running: Running, session: str) -> None:
    page = running.client("participant", session)
    with listening(page, "/api/participant/events") as stream:
        own = [grant for grant in running.console.grants.all() if grant.session == session]
        for grant in own:
            running.console.grants.revoke(grant.id)
        running.console.live.touch(session)
        assert stream.over.wait(120)
