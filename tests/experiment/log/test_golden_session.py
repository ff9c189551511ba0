"""A lab's file of every released version still opens, tells the same, and goes on.

`golden/session-N.db` was written by the version that introduced format N of the events' bodies
(`python -m tests.experiment.log.test_golden_session` makes the one of the present version).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sfihilo.experiment import BadMeasurementError, Lab, Protocol, Session
from sfihilo.experiment.session.lab import FORMAT
from tests.experiment.torture.children import fast_folder
from tests.experiment.torture.scripted import SPACE, measured, settle

GOLDEN = Path(__file__).with_name("golden")
# What trials tell since then, with the values that mean "as before".
LATER = {"strength": None, "goal": "understand"}
ENDED = {3: "sensor fell off", 4: "too early a peak", 6: "tired"}


def write_golden() -> None:
    """A short session in which everything that can happen happens once."""
    path = GOLDEN / f"session-{FORMAT}.db"
    with (
        patch("platform.platform", return_value="Linux"),  # the writing machine is nobody's concern
        fast_folder() as folder,
        Lab(folder / path.name, actor="operator") as lab,
    ):
        # Its file will be old when it is opened: a pause must not count as a break.
        protocol = Protocol(break_minutes=None)
        session = lab.create(SPACE, "P07", seed=7, session="s", protocol=protocol)
        for _ in range(3):
            settle(session, session.ask())
        session.note("a stone in the shoe")
        session.amend(2, outcome={"metabolic_rate": 4.0, "comfort": 5.0}, why="typing error")
        session.undo("pressed too early")
        session.redo()
        session.veto(session.ask(), "too early a peak")
        own = session.suggest({"peak_torque": 40, "peak_time": 50}, why="as last year")
        settle(session, own)
        session.withdraw(3, "sensor fell off")
        session.abort(session.start(session.ask()), "tired")
        session.interrupt("lunch")
        session.resume()
        settle(session, session.ask())
        settle(session, session.repeat(own))
        with pytest.raises(BadMeasurementError):
            session.measure(session.ask(), {"metabolic_rate": 4000.0, "comfort": 5.0})
        session.measure(session.start(session.ask()), None)
        lab.identify("P07", {"name": "Ada Lovelace"})
        path.with_suffix(".json").write_text(json.dumps(told(session), indent=1) + "\n")
        shutil.copyfile(lab.log.path, path)


def told(session: Session) -> dict[str, Any]:
    """What the record says, as plain JSON."""
    record = session.record
    current = record.current
    return {
        "kinds": [event.kind for event in session.events],
        "trials": [trial.to_dict() for trial in record.trials],
        "participant": record.participant,
        "seed": record.seed,
        "positions": [dict(position) for position in record.positions],
        "current": None if current is None else current.number,
    }


def _as_before(now: dict[str, Any]) -> dict[str, Any]:
    """What was told when the file was written: without what trials tell since then."""
    for trial in now["trials"]:
        assert {name: trial.pop(name) for name in LATER} == LATER
        assert trial.pop("why") == ENDED.get(trial["trial"], "")
    # The last trial was started, and nothing was measured: that proved its place then.
    before, last = now["positions"]
    assert before != last
    return {**now, "positions": [last]}


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
def test_every_session_ever_written_opens_and_goes_on(version: int, tmp_path: Path) -> None:
    source = GOLDEN / f"session-{version}.db"
    path = tmp_path / "study.db"
    shutil.copyfile(source, path)
    with Lab(path) as lab:
        assert lab.verify().ok
        session = lab.open("s")
        assert _as_before(told(session)) == json.loads(source.with_suffix(".json").read_text())
        trial = session.ask()
        assert trial.number == told(session)["current"]
        session.choose(trial, None)
        following = session.ask()
        assert following.number == trial.number + 1
        session.measure(session.start(following), measured(following))
        assert lab.identity("P07") == {"name": "Ada Lovelace"}
        assert lab.verify().ok


if __name__ == "__main__":
    write_golden()
