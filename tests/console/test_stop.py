"""Stop works whatever else is refused."""

import threading
import time
from pathlib import Path

import httpx
import pytest

from sfihilo.console.access.auth import Role
from sfihilo.experiment import Lab
from tests.console.running import Running, act, create, kinds, measured, serving, until, view


def stop(client: httpx.Client, role: Role, session: str) -> dict[str, object]:
    path = "/api/participant/stop" if role == "participant" else f"/api/sessions/{session}/stop"
    done = client.post(path, json={})
    assert done.status_code == 200
    found: dict[str, object] = done.json()
    return found


@pytest.mark.parametrize("role", ["operator", "participant", "device"])
def test_stop_aborts_the_walk_and_holds_the_session(
    running: Running, operator: httpx.Client, session: str, role: Role
) -> None:
    number = act(operator, session, "ask")["trial"]["trial"]
    act(operator, session, "start", trial=number)
    client = running.client(role, None if role == "operator" else session)
    assert stop(client, role, session) == {"stopped": True, "recorded": True, "why": None}
    shown = view(operator, session)
    assert (shown["status"], shown["next"]) == ("interrupted", "resume")
    assert shown["trials"][0]["status"] == "aborted"
    assert kinds(operator, session)[-2:] == ["aborted", "interrupted"]
    log = operator.get(f"/api/sessions/{session}/log").json()["events"]
    assert log[-1]["actor"] == role


def test_stop_keeps_an_outcome_that_was_measured(operator: httpx.Client, session: str) -> None:
    measured(operator, session)
    measured(operator, session)
    stop(operator, "operator", session)
    assert kinds(operator, session)[-2:] == ["measured", "interrupted"]


def test_stop_is_answered_when_it_is_repeated_and_when_the_session_is_closed(
    running: Running, operator: httpx.Client, session: str
) -> None:
    page = running.client("participant", session)
    for _ in range(3):
        assert stop(page, "participant", session)["stopped"] is True
    assert kinds(operator, session) == ["opened", "interrupted"]
    act(operator, session, "close")
    found = stop(page, "participant", session)
    assert (found["stopped"], found["recorded"]) == (True, False)
    assert "closed" in str(found["why"])


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"why": 5, "x": 1}', b'{"expected": 0}'])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_stop_reads_any_body(operator: httpx.Client, session: str, body: bytes, kind: str) -> None:
    done = operator.post(
        f"/api/sessions/{session}/stop", content=body, headers={"content-type": kind}
    )
    assert (done.status_code, done.json()["recorded"]) == (200, True)


def test_stop_does_not_wait_for_a_query_that_is_computed(
    running: Running, operator: httpx.Client, session: str
) -> None:
    writer = running.console.sessions.get(session).writer
    answers: list[httpx.Response] = []
    with writer.expecting():  # as while the learner computes
        waiting = threading.Thread(
            target=lambda: answers.append(
                running.client().post(f"/api/sessions/{session}/ask", json={"expected": 1})
            )
        )
        waiting.start()
        assert stop(operator, "operator", session)["recorded"] is True
        assert view(operator, session)["status"] == "interrupted"  # reads do not wait either
    waiting.join(120)
    assert answers[0].status_code == 409
    assert "asked" not in kinds(operator, session)


def test_stop_works_while_every_thread_is_busy(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator)
        writer = running.console.sessions.get(session).writer
        with writer.expecting():
            blocked = [
                threading.Thread(
                    target=lambda: running.client().post(
                        f"/api/sessions/{session}/note", json={"text": "x"}
                    )
                )
                for _ in range(90)
            ]
            for thread in blocked:
                thread.start()
            until(lambda: running.console.grants.all().__len__() > 80)
            time.sleep(0.5)
            assert stop(operator, "operator", session)["recorded"] is True
        for thread in blocked:
            thread.join(120)
        assert "interrupted" in kinds(operator, session)


def test_stop_is_answered_while_another_process_holds_the_file(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        operator = running.client()
        session = create(operator)
        with Lab(db) as other:
            connection = other.log._alive()
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = stop(operator, "operator", session)
                assert running.console.unrecorded[session]["recorded"] is False
            finally:
                connection.execute("ROLLBACK")
        assert found["stopped"] is True
        assert found["recorded"] is False
        until(lambda: kinds(operator, session) == ["opened", "interrupted"])  # it was tried again
        assert view(operator, session)["stopped"]["recorded"] is True


def test_the_participant_asks_to_feel_it_again_and_the_operator_sees_it(
    running: Running, operator: httpx.Client, session: str
) -> None:
    measured(operator, session)
    number = measured(operator, session)
    page = running.client("participant", session)
    for key in ("again-1", "again-1", "an impatient click"):
        done = page.post("/api/participant/again", json={"key": key})
        assert done.status_code == 200
    assert kinds(operator, session).count("note") == 1
    shown = view(operator, session)
    assert [wish["text"] for wish in shown["requests"]] == ["again"]
    assert page.get("/api/participant").json()["requested"] is True
    act(operator, session, "seen")
    assert view(operator, session)["requests"] == []
    page.post("/api/participant/again", json={"key": "again-2"})
    page.post("/api/participant/choose", json={"trial": number, "choice": "same", "key": "c"})
    assert view(operator, session)["requests"] == []
