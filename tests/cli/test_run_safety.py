"""`session run` beside another terminal: nothing unsafe is shown, no key goes to another trial."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfihilo.cli.interactive.screens import screen
from sfihilo.cli.session.steps import change, require_applicable
from sfihilo.experiment import Lab, Record, UnsafePolicyError
from sfihilo.experiment.record.protocol import Veto
from tests.cli.calls import run
from tests.cli.test_run import ANSWER, READY, WALKING, Operator, recorded

pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

SPACE = """
[policy.torque]
low = 0
high = 60
unit = "Nm"
max_step = 15
start = 0
[outcomes.effort]
low = 2
high = 8
unit = "W/kg"
[outcomes.comfort]
low = 0
high = 10
[session]
rule = "random"
"""
UNFINISHED = r"\[w\] walk again"
BREAK = r"\[Enter\] the person is back"
MEASURED = ("measure", "effort=4", "comfort=5")


@pytest.fixture
def stepped(folder: Path) -> Path:
    """A session whose device moves by at most 15 Nm; trial 1 was walked at 10 Nm."""
    (folder / "space.toml").write_text(SPACE)
    run("new", "space.toml", "-p", "P01", "--seed", "7")
    run("suggest", "torque=10")
    run("start")
    run(*MEASURED)
    return folder


@pytest.fixture
def operator(stepped: Path) -> Iterator[Operator]:
    """At the settings of trial 2, 20 Nm."""
    run("suggest", "torque=20")
    person = Operator()
    person.see(READY)
    yield person
    person.child.close(force=True)


def test_walk_again_after_the_device_was_moved_is_refused(
    operator: Operator, stepped: Path
) -> None:
    operator.press("\r", WALKING)
    operator.press("b", "How many minutes")
    operator.press("\r", BREAK)
    operator.press("d", "torque, 0 to 60 Nm.*: ")  # taken down for the break
    operator.press("0\r", "The place of the device is recorded")
    operator.see(BREAK)
    shown = operator.press("\r", UNFINISHED)
    assert "DO NOT APPLY" in shown
    assert "w to walk it again" not in shown
    assert "+20 from where the device is" in shown
    operator.press("w", "error: trial 2: it must not be applied from where the device may be")
    operator.press("d", "torque, 0 to 60 Nm.*: ")  # moved up by hand, within a step
    operator.press("10\r", UNFINISHED)
    operator.press("w", WALKING)
    kinds = recorded(stepped)[1]  # the start from before the break is not that of this walk
    assert kinds.count("started") == 3


def test_pain_told_after_the_answer_is_recorded(operator: Operator, stepped: Path) -> None:
    operator.press("v", "Why are these settings refused")
    operator.press("too hard\r", "Because of pain")
    operator.press("n\r", "it hurt")
    # Trial 2 was never applied: what may hurt is the walk before it.
    operator.press("x", r"Did trial 1 \(torque 10 Nm\) cause pain\? \(y/n\) ")
    operator.press("n\r", "Nothing is recorded")
    assert not recorded(stepped)[0].painful
    run("suggest", "torque=12")
    run("start")
    run(*MEASURED)
    run("choose", "n")
    operator.press("x", "changed elsewhere")
    operator.see("it hurt")
    operator.press("x", r"Did trial 3 \(torque 12 Nm\) cause pain")
    operator.press("y\r", "Where, and how much")
    operator.press("left knee\r", "neither asked nor recommended")
    (veto,) = recorded(stepped)[0].painful
    assert (veto.trial, veto.why) == (3, "left knee")


def test_pain_of_a_trial_that_was_undone_can_be_told(operator: Operator, stepped: Path) -> None:
    """Trial 2 was walked before it was undone; both walks are asked about, the last one first."""
    operator.press("\r", WALKING)
    operator.press("u", "Undone: started")
    operator.see(READY)
    operator.press("u", "Undone: suggested")
    operator.see("it hurt")
    operator.press("x", "Did trial 2 .*cause pain")
    operator.press("n\r", "Did trial 1 .*cause pain")
    operator.press("n\r", "Nothing is recorded")
    operator.press("x", "Did trial 2 .*cause pain")
    operator.press("y\r", "Where, and how much")
    operator.press("left knee\r", "settings near trial 2 are neither")
    (veto,) = recorded(stepped)[0].painful
    assert veto.trial == 2


def test_run_is_entered_where_the_open_trial_cannot_be_reached(
    operator: Operator, stepped: Path
) -> None:
    operator.leave()
    run("place", "torque=60")
    operator.open()
    operator.see("error: trial 2: it must not be applied")
    assert "DO NOT APPLY" in operator.see(READY)
    operator.press("\r", "error: trial 2: it must not be applied")
    operator.press("v", "Why are these settings refused")
    operator.press("too far\r", "Because of pain")
    operator.press("n\r", "next settings")
    record, _ = recorded(stepped)
    assert record.trials[1].status == "vetoed"
    assert not record.trials[1].started


def test_enter_for_a_trial_that_was_replaced_elsewhere_starts_nothing(
    operator: Operator, stepped: Path
) -> None:
    run("veto", "--why", "too hard")
    run("suggest", "torque=5")
    operator.press("\r", "changed elsewhere: trial 2 was vetoed, trial 3 was suggested")
    operator.see(READY)
    assert [trial.status for trial in recorded(stepped)[0].trials] == [
        "complete",
        "vetoed",
        "asked",
    ]
    operator.press("\r", WALKING)  # now it is on the screen
    assert recorded(stepped)[0].trials[2].started


def test_outcomes_of_a_trial_that_was_replaced_elsewhere_are_not_stored(
    operator: Operator, stepped: Path
) -> None:
    operator.to_outcomes()
    operator.press("4.4\r", "comfort, 0 to 10 .*: ")
    run("abort", "--why", "stumbled")
    run("suggest", "torque=12")
    operator.press("9\r", "Not stored: effort=4.4, comfort=9")
    operator.see("changed elsewhere: trial 2 was aborted")
    operator.see(READY)
    assert not any(trial.measured for trial in recorded(stepped)[0].trials[1:])


def test_answer_to_a_trial_that_was_answered_elsewhere_changes_nothing(
    operator: Operator, stepped: Path
) -> None:
    operator.to_outcomes()
    operator.enter(ANSWER)
    run("choose", "p")
    run("suggest", "torque=30")
    run("start")
    run(*MEASURED)
    operator.press("n", "changed elsewhere: trial 2 was answered")
    operator.see("Which was better: this one .trial 3")
    assert [trial.choice for trial in recorded(stepped)[0].trials] == [None, "previous", None]


def test_walk_that_was_ended_elsewhere_is_noticed_without_a_key(
    operator: Operator, stepped: Path
) -> None:
    operator.press("\r", WALKING)
    run("abort", "--why", "stumbled")
    operator.see("changed elsewhere: trial 2 was aborted")
    operator.see("next settings")


def test_note_elsewhere_does_not_disturb_the_walk(operator: Operator, stepped: Path) -> None:
    operator.press("\r", WALKING)
    run("note", "a dog barked")
    operator.press("\r", "effort, 2 to 8 W/kg .*: ")
    operator.enter(ANSWER)


def test_change_is_counted_from_where_the_device_is(stepped: Path) -> None:
    def seen() -> tuple[Record, str]:
        with Lab(stepped / "sfihilo.db") as lab:
            record = lab.open("P01-1").record
        assert record.current is not None
        return record, change(record, record.current, "torque")

    run("suggest", "torque=20")
    assert seen()[1] == "+10 from trial 1"
    run("place", "torque=15")
    assert seen()[1] == "+5 from where the device is"
    run("place", "torque=20")
    assert seen()[1] == "unchanged"
    run("place", "torque=50")
    record, step = seen()
    assert step == "-30 from where the device is"
    assert any("DO NOT APPLY" in line for line in screen(record, "ready"))
    run("place", "torque=10")
    run("start")
    run("abort", "--why", "stumbled")  # on the way from 10 to 20
    run("suggest", "torque=15")
    assert seen()[1] == "-5 to +5, place unsure"


def test_open_trial_near_settings_that_caused_pain_is_not_applied(stepped: Path) -> None:
    run("suggest", "torque=20")
    record, _ = recorded(stepped)
    trial = record.trials[1]
    require_applicable(record, trial)
    veto = Veto(trial.round, trial.unit, 1, "knee", pain=True)
    with pytest.raises(UnsafePolicyError, match=r"caused pain.*`lift`"):
        require_applicable(replace(record, vetoes=(veto,)), trial)
