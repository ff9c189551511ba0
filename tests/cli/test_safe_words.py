"""What the shell tells an operator to do with the device, and what it lets the operator state."""

from pathlib import Path

import pytest

from sfihilo.experiment import Lab, Record
from tests.cli.calls import run

SPACE = """
[policy.torque]
low = 0
high = 60
unit = "Nm"
max_step = 15
start = 0
[policy.gain]
low = 0.1
high = 10
log = true
max_step = 2
start = 1
[policy.timing]
low = 0
high = 1
[outcomes.comfort]
low = 0
high = 10
[session]
rule = "random"
"""


@pytest.fixture(autouse=True)
def _walked(folder: Path) -> None:
    """Trial 1 was walked at 10 Nm."""
    (folder / "space.toml").write_text(SPACE)
    run("new", "space.toml", "-p", "P01", "--seed", "7")
    run("suggest", "torque=10", "gain=2", "timing=0.5")
    run("start")
    run("measure", "comfort=5")


def record() -> Record:
    with Lab("sfihilo.db") as lab:
        return lab.record("P01-1")


@pytest.mark.parametrize("words", [["place", "torque=60", "gain=2"], ["note", "look"], ["show"]])
def test_open_trial_that_the_device_cannot_reach_is_not_to_be_applied(words: list[str]) -> None:
    run("suggest", "torque=20")
    run("place", "torque=60", "gain=2")
    said = " ".join(run(*words).split())
    assert "DO NOT APPLY. trial 2: it must not be applied from where the device may be" in said
    assert "set the device" not in said


def test_redone_trial_that_the_device_cannot_reach_is_not_to_be_applied() -> None:
    run("suggest", "torque=20")
    run("undo")
    run("place", "torque=60", "gain=2")
    assert "DO NOT APPLY" in run("redo")


def test_reachable_trial_is_to_be_applied() -> None:
    assert "Next: set the device, session start" in run("suggest", "torque=20")


def test_started_trial_after_a_break_is_started_again_or_measured() -> None:
    run("suggest", "torque=20")
    run("start")
    run("interrupt")
    said = " ".join(run("resume").split())
    assert "session measure comfort=VALUE, if it was walked before the break" in said
    assert "To walk it again: set the device, session start" in said
    assert "Next: session measure" in run("start")


def test_place_keeps_no_setting_that_is_not_certain() -> None:
    """Trial 2 may have been applied: its gain is as possible as that of trial 1."""
    run("suggest", "torque=12", "gain=3")
    said = run("place", "torque=11", code=2)
    assert "place: expected gain=VALUE too" in said
    assert "gain=2.0" in said
    assert "gain=3.0" in said
    run("place", "torque=11", "gain=3")
    run("veto", "--why", "moved by hand")
    assert record().positions == ({"torque": 11.0, "gain": 3.0, "timing": 0.5},)


def test_place_keeps_what_is_certain_and_says_so() -> None:
    said = run("place", "torque=11")
    assert "Kept from trial 1: gain 2, timing 0.5." in said
    assert record().positions == ({"torque": 11.0, "gain": 2.0, "timing": 0.5},)


@pytest.mark.parametrize("command", ["abort", "veto"])
def test_pain_of_a_trial_that_is_over_is_recorded_and_confirmed(command: str) -> None:
    said = " ".join(run(command, "--why", "the knee, in the evening", "--pain").split())
    assert "Pain is recorded: settings near trial 1 are neither asked nor recommended" in said
    assert "until 'session lift 1 --why REASON'" in said
    (veto,) = record().painful
    assert (veto.trial, veto.why) == (1, "the knee, in the evening")
    assert record().trials[0].status == "complete"  # its data stay
    assert "Pain is recorded" not in run("lift", "1", "--why", "another shoe")


@pytest.mark.parametrize("command", ["abort", "veto"])
def test_pain_after_a_veto_is_of_the_last_walk(command: str) -> None:
    """Trial 2 was refused before it was applied: it cannot be what hurts."""
    run("suggest", "torque=12")
    run("veto", "--why", "too hard")
    assert "settings near trial 1" in " ".join(run(command, "--why", "knee", "--pain").split())
    assert [veto.trial for veto in record().painful] == [1]


def test_pain_after_an_undone_trial_needs_its_number() -> None:
    """The person may have walked trial 2 before it was undone: nobody guesses which one hurt."""
    run("suggest", "torque=12")
    run("start")
    run("undo")
    run("undo")
    said = " ".join(run("abort", "--why", "knee", "--pain", code=2).split())
    assert "expected the number of the trial that hurt" in said
    assert not record().painful
    run("abort", "2", "--why", "knee", "--pain")
    assert [veto.trial for veto in record().painful] == [2]


def test_abort_of_a_trial_that_is_over_without_pain_is_refused() -> None:
    assert "trial 1: it is over (complete)" in run("abort", "--why", "tired", code=2)
