"""What a fifth attack on sessions found: trials of others, files swapped, stale warnings."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfihilo.experiment import (
    DiskFailureError,
    Lab,
    Outcome,
    Parameter,
    ReplacedError,
    Session,
    Space,
)
from sfihilo.experiment.log import store
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.output.report import report
from sfihilo.experiment.output.tables import outcomes_table
from tests.experiment.people import LINE, PLAIN

SOFT = Space(
    {"x": Parameter(0, 10, max_step=2, start=5)},
    {"o": Outcome(0, 1, soft=(0.2, 0.8)), "c": Outcome(0, 10)},
)


@pytest.mark.parametrize(
    "call", ["start", "measure", "choose", "abort", "veto", "withdraw", "amend", "repeat", "lift"]
)
def test_trial_of_another_session_is_not_taken_for_an_own_one(lab: Lab, call: str) -> None:
    """A script with two people: trial 1 of P1 must not become trial 1 of P2."""
    mine, other = (lab.create(LINE, code, 1, settings=PLAIN) for code in ("P1", "P2"))
    trial, own = mine.ask(), other.ask()
    given: dict[str, tuple[object, ...]] = {
        "measure": ({"o": 0.5},), "choose": ("new",), "abort": ("why",), "veto": ("why",),
        "withdraw": ("why",), "lift": ("why",),
    }  # fmt: skip
    more = {"why": "why", "outcome": {"o": 0.5}} if call == "amend" else {}
    before = len(other.events)
    with pytest.raises(ValueError, match="expected one of session P2-1, got trial 1 of P1-1"):
        getattr(other, call)(trial, *given.get(call, ()), **more)
    assert len(other.events) == before
    assert other.measure(own, {"o": 0.5}).session == "P2-1"


def test_answer_about_a_trial_that_is_no_longer_named_is_refused(lab: Lab) -> None:
    """Another process takes the outcome back and measures again: another walk may be named."""
    session = lab.create(LINE, "P1", 1, settings=replace(PLAIN, recall=3))
    for number, value in enumerate((0.1, 0.5, 0.9)):
        trial = session.measure(session.start(session.suggest({"x": 5 + number % 2})), {"o": value})
        if trial.asks_choice:
            session.choose(trial, "new")
    asked = session.measure(session.start(session.suggest({"x": 7})), {"o": 0.3})
    assert asked.compare_with is not None
    elsewhere = replace(asked, compare_with=1 + asked.compare_with % 3)
    with pytest.raises(ValueError, match=f"compared with trial {asked.compare_with} now"):
        session.choose(elsewhere, "new")
    assert not session.record.trial(4).answered
    assert session.choose(asked, "new", key="k").choice == "new"
    assert session.choose(asked, "new", key="k").choice == "new"


def swapped(folder: Path) -> tuple[Lab, Session]:
    """An open session whose file a sync tool replaced: elsewhere the device was moved to 0."""
    path, other = folder / "a.db", folder / "b.db"
    with Lab(path) as first:
        session = first.create(LINE, "P1", 1, settings=PLAIN)
        session.start(session.suggest({"x": 7}), key="k")
    shutil.copyfile(path, other)
    lab = Lab(path)
    session = lab.open("P1-1")
    assert session.ask().policy == {"x": 7}
    with Lab(other) as elsewhere:
        elsewhere.open("P1-1").place({"x": 0})
    os.replace(other, path)
    return lab, session


def test_run_does_not_apply_from_a_file_that_was_replaced(folder: Path) -> None:
    """The trial may be applied from 5, as the old file says, but not from 0, where the device is.

    No event is written before a started trial is applied again, so reading must notice it.
    """
    lab, session = swapped(folder)
    applied: list[object] = []
    with lab, pytest.raises(ValueError, match="must not be applied"):
        session.run(
            apply=applied.append,
            measure=lambda _: {"o": 0.5},
            choose=lambda _: "new",
            trials=1,
        )
    assert applied == []


def test_everything_that_is_read_is_of_the_file_that_is_there(folder: Path) -> None:
    lab, session = swapped(folder)
    with lab:
        assert [event.kind for event in session.events][-1] == "placed"
        assert lab.verify().count == lab.log.head()[0] == len(lab.log.snapshot()) == 4
        with pytest.raises(ValueError, match="must not be applied"):
            session.start(1, key="k")


def test_older_copy_under_an_open_session_is_noticed_when_read(folder: Path) -> None:
    path, backup = folder / "a.db", folder / "backup.db"
    with Lab(path) as lab:
        session = lab.create(LINE, "P1", 1, settings=PLAIN)
        shutil.copyfile(path, backup)
        session.start(session.suggest({"x": 7}))
        os.replace(backup, path)
        for read in (session.ask, session.reading, session.learned):
            with pytest.raises(ReplacedError):
                read()


def test_file_that_is_gone_is_missed_by_readers(folder: Path) -> None:
    with Lab(folder / "a.db") as lab:
        session = lab.create(LINE, "P1", 1, settings=PLAIN)
        (folder / "a.db").rename(folder / "moved.db")
        with pytest.raises(DiskFailureError, match=r"a\.db"):
            _ = session.record
        (folder / "moved.db").rename(folder / "a.db")
        assert session.record.session == "P1-1"


def test_log_is_found_after_the_process_changed_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    with Log.open("a.db") as log:
        log.append("s", "note", {})
        monkeypatch.chdir(folder / "elsewhere")
        log.append("s", "note", {})
        assert log.head()[0] == 2
    assert not (folder / "elsewhere" / "a.db").exists()


def test_histories_of_two_files_are_not_mixed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are read in batches; the file may be replaced between two of them."""
    monkeypatch.setattr(store, "BATCH", 2)
    for name in "ab":
        with Log.open(folder / f"{name}.db") as log:
            for number in range(5):
                log.append("s", "note", {"text": f"{name}{number}"})
    with Log.open(folder / "a.db") as log:
        events = log.events("s")
        assert next(events).body == {"text": "a0"}
        os.replace(folder / "b.db", folder / "a.db")
        with pytest.raises(ReplacedError):
            list(events)


def test_warning_about_an_outcome_goes_when_it_is_corrected(lab: Lab) -> None:
    session = lab.create(SOFT, "P1", 1, settings=PLAIN)
    session.measure(session.ask(), {"o": 0.95, "c": 5})
    assert session.amend(1, why="slip", outcome={"o": 0.5, "c": 5}).warnings == ()
    assert [row["warning"] for row in outcomes_table(session.record).rows] == [None, None]
    session.undo()
    assert "0.95 is outside" in session.record.trial(1).warnings[0]


def test_corrected_outcome_outside_its_usual_limits_warns(lab: Lab) -> None:
    session = lab.create(SOFT, "P1", 1, settings=PLAIN)
    session.measure(session.ask(), {"o": 0.5, "c": 5})
    amended = session.amend(1, why="slip", outcome={"o": 0.9, "c": 5}, key="k")
    assert amended.warnings == ("o: 0.9 is outside the usual 0.2 to 0.8",)
    assert session.amend(1, why="slip", outcome={"o": 0.9, "c": 5}, key="k") == amended
    assert "0.9 is outside" in outcomes_table(session.record).rows[0]["warning"]


def test_late_outcome_takes_back_that_nothing_was_measured(lab: Lab) -> None:
    session = lab.create(SOFT, "P1", 1, settings=PLAIN)
    assert "not measured" in session.measure(session.ask(), None).warnings[0]
    assert session.amend(1, why="late", outcome={"o": 0.5, "c": 5}).warnings == ()
    assert "not measured" in session.amend(1, why="lost", outcome=None).warnings[0]


def test_time_of_an_outcome_that_came_as_a_correction_is_in_the_table(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    session.amend(session.start(session.ask()), why="late", outcome={"o": 0.5})
    assert session.trials_table().rows[0]["measured_at"] == session.events[-1].wall


def test_report_has_no_trial_where_none_was_named(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=replace(PLAIN, recall=3))
    session.measure(session.ask(), {"o": 0.5})
    session.abort(session.start(session.ask()), "tired")
    assert session.record.trial(2).compare_with is None
    assert "<td>None</td>" not in report(session)
