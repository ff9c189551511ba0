"""A program that is a device over HTTP: which walks it is told to apply, and its silence."""

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.console.running import Running, act, create, serving, until, view
from tests.console.test_device_link import begun


class Program:
    """A device's program: it asks what to do."""

    def __init__(self, running: Running, session: str) -> None:
        self.client = running.client("device", session)
        self.path = f"/api/device/{session}"

    def beat(self) -> dict[str, Any]:
        done = self.client.post(f"{self.path}/heartbeat", json={})
        assert done.status_code == 200, done.text
        found: dict[str, Any] = done.json()
        return found

    def told(self) -> tuple[bool, bool]:
        """Whether it is to apply the trial, and whether to rest."""
        found = self.beat()
        assert self.client.get(self.path).json() == found
        return found["apply"], found["stop"]


@pytest.mark.parametrize("by", ["stop", "interrupt", "undo"])
def test_a_walk_that_was_stopped_is_applied_again_only_when_the_operator_says_so(
    running: Running, operator: httpx.Client, session: str, by: str
) -> None:
    program = Program(running, session)
    assert program.told() == (False, False)
    number = begun(operator, session)
    assert program.told() == (True, False)
    act(operator, session, by)
    assert program.told() == (False, True)
    refused = operator.post(f"/api/sessions/{session}/apply", json={})
    assert refused.status_code == 409  # it is on hold, or not started
    if by == "stop":
        act(operator, session, "undo")
        assert program.told() == (False, True)
    if by == "undo":
        act(operator, session, "redo")
    else:
        act(operator, session, "resume")
    assert view(operator, session)["trial"]["status"] == "started"
    assert program.told() == (False, True)
    refused = program.client.post(f"{program.path}/applied", json={"trial": number})
    assert refused.json()["apply"] is False
    act(operator, session, "apply")
    assert program.told() == (True, False)
    act(operator, session, "stop")
    assert program.told() == (False, True)
    act(operator, session, "undo")
    act(operator, session, "resume")
    assert program.told() == (False, True)


def test_a_measurement_that_is_undone_leaves_the_walk_to_the_program(
    running: Running, operator: httpx.Client, session: str
) -> None:
    program = Program(running, session)
    program.beat()
    number = begun(operator, session)
    act(operator, session, "measure", trial=number, outcome={"effort": 5, "comfort": 5})
    act(operator, session, "undo")
    assert program.told() == (True, False)


def test_a_program_that_joins_during_a_walk_waits_for_the_next_one(
    running: Running, operator: httpx.Client, session: str
) -> None:
    number = begun(operator, session)
    program = Program(running, session)
    assert program.told() == (False, False)  # neither the setting nor a stop
    shown = view(operator, session)["device"]
    assert (shown["name"], shown["state"]) == ("HTTP", "idle")
    act(operator, session, "measure", trial=number, outcome={"effort": 5, "comfort": 5})
    begun(operator, session)
    assert program.told() == (True, False)
    assert view(operator, session)["device"]["state"] == "running"


def test_the_operator_can_let_a_program_join_a_walk(
    running: Running, operator: httpx.Client, session: str
) -> None:
    begun(operator, session)
    program = Program(running, session)
    assert program.told() == (False, False)
    act(operator, session, "apply")
    assert program.told() == (True, False)


def test_a_program_that_was_away_joins_anew(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator)
        program = Program(running, session)
        program.beat()
        running.console.devices.silent_after = 0.5
        until(lambda: view(operator, session)["status"] == "interrupted", 20)
        act(operator, session, "resume")
        begun(operator, session)  # by hand
        running.console.devices.silent_after = 60.0
        assert program.told() == (False, False)


def test_a_silence_holds_the_session_however_late_it_is_noticed(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator)
        program = Program(running, session)
        program.beat()
        begun(operator, session)
        running.console.devices.silent_after = -1.0  # any silence is too long
        assert program.beat()["stop"] is True
        assert view(operator, session)["status"] == "interrupted"


def test_a_silence_holds_the_session_after_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        operator = running.client()
        session = create(operator)
        Program(running, session).beat()
        begun(operator, session)
    with serving(db, heartbeat_limit=1.5) as running:  # the program never comes back
        operator = running.client()
        assert view(operator, session)["device"]["name"] == "HTTP"
        until(lambda: view(operator, session)["status"] == "interrupted", 20)
        assert "nothing heard" in view(operator, session)["stopped"]["why"]


def test_a_walk_goes_on_after_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        operator = running.client()
        session = create(operator)
        Program(running, session).beat()
        begun(operator, session)
    with serving(db) as running:
        assert Program(running, session).told() == (True, False)


def test_the_watch_survives_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "study.db", heartbeat_limit=1.0) as running:
        operator = running.client()
        session = create(operator)
        hold, failed = running.console.sessions.hold, threading.Event()

        def once(*given: str) -> str | None:
            if not failed.is_set():
                failed.set()
                raise RuntimeError("something that nobody thought of")
            return hold(*given)

        monkeypatch.setattr(running.console.sessions, "hold", once)
        Program(running, session).beat()
        until(lambda: view(operator, session)["status"] == "interrupted", 20)
        assert failed.is_set()
