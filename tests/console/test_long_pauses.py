"""A page left open over night: it shows no setting to apply and asks no question of yesterday."""

from pathlib import Path

import httpx
import pytest

from tests.console.running import act, create, kinds, measured, serving, view
from tests.experiment.clock import LabClock

NIGHT = 14 * 60.0


@pytest.mark.parametrize("begun", ["asked", "measured"])
def test_view_after_a_night_asks_for_the_break_and_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    clock = LabClock(monkeypatch)
    with serving(tmp_path / "lab.db") as running:
        operator = running.client()
        session = create(operator)
        measured(operator, session)
        if begun == "measured":
            measured(operator, session, effort=3.0)
        else:
            act(operator, session, "ask")
        participant = running.client("participant", session)
        before = {"asked": "start", "measured": "choose"}[begun]
        assert view(operator, session)["next"] == before
        clock.passes(NIGHT)
        assert view(operator, session)["next"] == "pause"
        assert participant.get("/api/participant").json()["state"] == "paused"
        act(operator, session, "interrupt", why="night")
        assert view(operator, session)["next"] == "resume"
        act(operator, session, "resume")
        assert view(operator, session)["next"] != "pause"
        assert kinds(operator, session)[-2:] == ["interrupted", "resumed"]


def test_view_of_a_long_walk_stays_a_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LabClock(monkeypatch)
    with serving(tmp_path / "lab.db") as running:
        operator: httpx.Client = running.client()
        session = create(operator)
        act(operator, session, "ask")
        act(operator, session, "start", trial=1)
        clock.passes(NIGHT)
        assert view(operator, session)["next"] == "measure"
