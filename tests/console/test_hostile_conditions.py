"""Stops and devices under hostile conditions: cut requests, a locked file, undo."""

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sfihilo.console.access import auth
from sfihilo.console.app_state import Console
from sfihilo.console.config import Config
from sfihilo.console.live import MOST_OF_ONE
from sfihilo.experiment import Lab
from tests.console.running import Running, act, create, measured, serving, until, view
from tests.console.test_device_link import Bench, attached, begun


def walking(running: Running, operator: httpx.Client) -> tuple[str, Bench, int]:
    """A session whose device is in the middle of a walk."""
    device = Bench()
    device.walking.clear()
    session = create(operator)
    name = f"bench-{session}"
    running.console.devices.offer(name, lambda: device)
    attached(operator, session, name)
    number = begun(operator, session)
    until(lambda: view(operator, session)["device"]["state"] == "measuring")
    return session, device, number


@contextmanager
def locked(running: Running, how: str = "IMMEDIATE") -> Iterator[None]:
    """Another process holds the file; EXCLUSIVE: it cannot even be read."""
    other = sqlite3.connect(running.config.db, isolation_level=None)
    other.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("cut", [True, False])
def test_a_stop_whose_body_never_arrives_stops_the_device(
    running: Running, operator: httpx.Client, cut: bool
) -> None:
    session, device, _ = walking(running, operator)
    cookie = "; ".join(f"{each.name}={each.value}" for each in operator.cookies.jar)
    head = (
        f"POST /api/sessions/{session}/stop HTTP/1.1\r\nHost: 127.0.0.1:{running.config.port}\r\n"
        f"Origin: {running.address}\r\nCookie: {cookie}\r\nContent-Length: 50\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", running.config.port)) as sent:
        sent.sendall(head.encode() + b'{"why"')
        if cut:
            sent.close()
        until(lambda: device.stops > 0, 20)
        until(lambda: view(operator, session)["status"] == "interrupted", 20)


def test_a_stop_with_a_body_that_is_too_large_stops_the_device(
    running: Running, operator: httpx.Client
) -> None:
    session, device, _ = walking(running, operator)
    done = operator.post(f"/api/sessions/{session}/stop", content=b"x" * 300_000)
    assert done.status_code == 200
    assert device.stops > 0


def test_a_stop_that_cannot_be_recorded_holds_every_device_and_page(
    running: Running, operator: httpx.Client
) -> None:
    session, device, _ = walking(running, operator)
    remote = running.client("device", session)
    person = running.client("participant", session)
    with locked(running):
        assert person.post("/api/participant/stop").json()["recorded"] is False
        wanted = remote.get(f"/api/device/{session}").json()
        shown = person.get("/api/participant").json()
        again = operator.post(f"/api/sessions/{session}/apply", json={})
        time.sleep(0.5)
        assert (wanted["apply"], wanted["stop"]) == (False, True)
        assert (shown["state"], shown["stopped"]) == ("paused", True)
        assert again.status_code == 409
        assert len(device.applied) == 1


def test_a_stop_reaches_programs_and_people_while_the_record_cannot_be_read(
    running: Running, operator: httpx.Client
) -> None:
    session, _, _ = walking(running, operator)
    remote = running.client("device", session)
    person = running.client("participant", session)
    heartbeat = f"/api/device/{session}/heartbeat"
    assert remote.post(heartbeat, json={}).json()["stop"] is False
    with locked(running, "EXCLUSIVE"):
        sent = threading.Thread(target=lambda: person.post("/api/participant/stop"))
        sent.start()
        until(lambda: session in running.console.unrecorded, 20)
        begin = time.monotonic()
        for wanted in (remote.post(heartbeat, json={}), remote.get(f"/api/device/{session}")):
            told = wanted.json()
            assert (wanted.status_code, told["apply"], told["stop"]) == (200, False, True)
        shown = person.get("/api/participant").json()
        assert (shown["state"], shown["stopped"], shown["answers"]) == ("paused", True, [])
        assert time.monotonic() - begin < 4  # whoever reads the file waits for longer
        sent.join()
    until(lambda: session not in running.console.unrecorded, 60)
    assert view(operator, session)["stopped"]["by"] == "participant"


def test_the_operator_learns_of_a_stop_while_the_record_cannot_be_read(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator)
        view(operator, session)
        files = [path for path in tmp_path.iterdir() if path.name in ("study.db", "study.db-wal")]
        for path in files:
            path.rename(path.with_name(f"away-{path.name}"))
        act(operator, session, "stop")
        unread = operator.get(f"/api/sessions/{session}")
        assert (unread.status_code, unread.json()["stopped"]["by"]) == (503, "operator")
        for path in files:
            path.with_name(f"away-{path.name}").rename(path)
        until(lambda: session not in running.console.unrecorded, 30)
        assert view(operator, session)["stopped"]["recorded"] is True


@pytest.mark.parametrize(("first", "then", "shown"), [
    ("console", "operator", "operator"),
    ("console", "participant", "participant"),
    ("operator", "participant", "participant"),
    ("participant", "operator", "participant"),
    ("participant", "console", "participant"),
])  # fmt: skip
def test_who_stopped_is_in_the_record_although_it_was_stopped_before(
    running: Running, operator: httpx.Client, session: str, first: str, then: str, shown: str
) -> None:
    for actor in (first, then):
        assert running.console.sessions.hold(session, f"by the {actor}", actor) is None
    stopped = view(operator, session)["stopped"]
    assert (stopped["by"], stopped["why"]) == (shown, f"by the {shown}")


@pytest.mark.parametrize("by", ["undo", "withdraw", "abort elsewhere", "interrupt elsewhere"])
def test_a_walk_that_ends_in_the_record_ends_on_the_device(
    running: Running, operator: httpx.Client, by: str
) -> None:
    session, device, number = walking(running, operator)
    remote = running.client("device", session)
    if by == "undo":
        act(operator, session, "undo")
    elif by == "withdraw":
        act(operator, session, "withdraw", trial=number, why="it hurts")
    else:
        with Lab(running.config.db) as lab:
            opened = lab.open(session)
            if by.startswith("abort"):
                opened.abort(number, "it hurts", pain=True)
            else:
                opened.interrupt("fire")
    until(lambda: device.stops > 0, 20)
    wanted = remote.get(f"/api/device/{session}").json()
    assert (wanted["apply"], wanted["stop"]) == (False, True)


def test_undo_of_a_stopped_walk_does_not_exceed_the_largest_step(
    running: Running, operator: httpx.Client
) -> None:
    session, device, _ = walking(running, operator)
    act(operator, session, "stop")
    torque = 0.0 if device.applied[0]["torque"] > 30 else 60.0
    act(operator, session, "place", policy={"torque": torque, "timing": 0.3}, why="at rest")
    act(operator, session, "undo")
    act(operator, session, "resume")
    done = operator.post(f"/api/sessions/{session}/apply", json={})
    assert (done.status_code, done.json()["error"]) == (409, "unsafe")
    wanted = running.client("device", session).get(f"/api/device/{session}").json()
    assert (wanted["apply"], wanted["stop"]) == (False, True)
    assert len(device.applied) == 1


def test_a_hanging_device_does_not_delay_the_stop_of_another(
    running: Running, operator: httpx.Client
) -> None:
    released = threading.Event()

    class Hanging(Bench):
        def stop(self) -> None:
            released.wait(30)

    running.console.devices.offer("hanging", Hanging)
    hanging = create(operator)
    attached(operator, hanging, "hanging")
    session, device, _ = walking(running, operator)
    try:
        for _ in range(200):
            running.console._halt(hanging)
        begin = time.monotonic()
        act(operator, session, "stop")
        assert time.monotonic() - begin < 4  # each stop of the other takes two seconds
        assert device.stops > 0
    finally:
        released.set()
        attached(operator, hanging, None)


def test_a_participant_learns_no_history_from_a_refusal(
    running: Running, operator: httpx.Client
) -> None:
    session = create(operator, "SECRET")
    number = measured(operator, session)
    person = running.client("participant", session)
    body = {"trial": number, "choice": "new", "expected": 0}
    refused = person.post("/api/participant/choose", json=body)
    assert refused.status_code == 409
    assert refused.json()["error"] == "stale"
    assert "changes" not in refused.json()
    assert "SECRET" not in refused.text


def test_one_page_cannot_take_every_stream(
    running: Running, operator: httpx.Client, session: str
) -> None:
    person = running.client("participant", session)
    cookie = "; ".join(f"{each.name}={each.value}" for each in person.cookies.jar)
    head = f"GET /api/participant/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n"
    opened = [socket.create_connection(("127.0.0.1", running.config.port)) for _ in range(60)]
    try:
        for each in opened:
            each.sendall(head.encode())
        until(lambda: running.console.live.connected(session, "participant") >= MOST_OF_ONE, 20)
        time.sleep(0.5)
        assert running.console.live.connected(session, "participant") == MOST_OF_ONE
    finally:
        for each in opened:
            each.close()


def test_a_file_has_one_console_under_every_name(running: Running, tmp_path: Path) -> None:
    alias = tmp_path / "alias.db"
    alias.symlink_to(running.config.db)
    with pytest.raises(ValueError, match="another console"):
        Console(Config(db=alias))


def test_a_code_survives_a_full_disk(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    code, _ = running.console.grants.pair("operator", None)
    with monkeypatch.context() as disk:
        disk.setattr(auth, "replacing", full)
        assert running.bare().post("/api/enter", json={"code": code}).status_code == 503
    assert running.bare().post("/api/enter", json={"code": code}).status_code == 200
