"""A screen or a text of yesterday: nothing is applied before the break is noticed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sfihilo.cli.interactive.dialogue import Dialogue
from sfihilo.cli.interactive.terminal import Terminal
from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space
from tests.cli.calls import run
from tests.experiment.clock import LabClock
from tests.experiment.people import PLAIN

SPACE = Space({"torque": Parameter(0, 60, unit="Nm", max_step=15, start=0)}, {"o": Outcome(0, 1)})
NIGHT = 14 * 60.0


class Keys(Terminal):
    """A terminal whose keys are given; a function among them is called, as if time passed."""

    def __init__(self, *keys: str | Callable[[], object] | None) -> None:
        self.interactive = False
        self.keys = list(keys)
        self.shown: list[str] = []

    def show(self, *lines: str) -> None:
        self.shown += lines

    def heading(self, line: str) -> None:
        self.shown.append(line)

    def key(self, timeout: float | None = None) -> str | None:
        key = self.keys.pop(0)
        if callable(key):
            key()
            return self.key(timeout)
        return key


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LabClock:
    return LabClock(monkeypatch)


@pytest.fixture
def session(folder: Path, clock: LabClock) -> Session:
    """The device is at 20 Nm, and trial 3 at 30 Nm is asked."""
    lab = Lab(folder / "sfihilo.db")
    made = lab.create(SPACE, "P01", 1, settings=PLAIN)
    for torque in (10.0, 20.0):
        trial = made.measure(made.start(made.suggest({"torque": torque})), {"o": 0.5})
        if trial.asks_choice:
            made.choose(trial, "new")
    made.suggest({"torque": 30.0})
    return made


@pytest.mark.parametrize(("started", "key"), [(True, "w"), (False, "\n")])
def test_settings_on_a_screen_of_yesterday_are_not_applied(
    session: Session, clock: LabClock, started: bool, key: str
) -> None:
    """The device may have been switched off since, and be at 0."""
    if started:
        session.start(3)
    before = session.record.number
    terminal = Keys(lambda: clock.passes(NIGHT), key, "\n", key, "q")
    Dialogue(session, terminal, 0).run()
    warned, *errors = (line for line in terminal.shown if "APPLY settings" in line or "err" in line)
    assert "DO NOT APPLY settings that were shown before" in warned
    assert [error[:38] for error in errors] == ["error: trial 3: it must not be applied"] * 2
    assert [event.kind for event in session.events[before:]] == ["interrupted", "resumed"]


def test_screen_that_nobody_touches_says_that_it_is_of_yesterday(
    session: Session, clock: LabClock
) -> None:
    terminal = Keys(None, lambda: clock.passes(NIGHT), None, "q")
    Dialogue(session, terminal, 0).run()
    assert [line for line in terminal.shown if "DO NOT APPLY" in line]


def test_walk_again_within_the_same_hour_is_allowed(session: Session, clock: LabClock) -> None:
    session.start(3)
    terminal = Keys(lambda: clock.passes(5), "w", "q")
    Dialogue(session, terminal, 0).run()
    assert "walked again" in session.record.notes[-1][2]


@pytest.mark.parametrize("words", [["show"], ["note", "good morning"], ["goal", "best"]])
@pytest.mark.parametrize("stage", ["asked", "started", "measured"])
def test_next_step_after_a_night_is_to_ask(
    session: Session, clock: LabClock, words: list[str], stage: str
) -> None:
    if stage != "asked":
        session.start(3)
    if stage == "measured":
        session.measure(3, {"o": 0.4})
    assert "Next: session ask" not in run(*words)
    clock.passes(NIGHT)
    said = run(*words)
    assert "Next: session ask, before anything is set" in said
    assert "session start" not in said


def test_advice_after_a_night_counts_its_steps_from_where_the_device_may_be(
    session: Session, clock: LabClock
) -> None:
    near = {"torque": (28.0, 32.0)}
    assert session.recommend(near).one_step
    clock.passes(NIGHT)
    assert not session.recommend(near).one_step  # it may have been switched off, and be at 0
    session.place({"torque": 25.0})
    assert session.recommend(near).one_step


def test_place_asked_for_yesterday_is_not_recorded(session: Session, clock: LabClock) -> None:
    """Enter means where the device was yesterday, and it may have been switched off since."""
    session.measure(session.start(3), {"o": 0.5})
    session.choose(3, "new")

    class Overnight(Keys):
        def line(self, prompt: str) -> str:
            assert "Enter: 30" in prompt
            clock.passes(NIGHT)
            return ""

    terminal = Overnight("d", "q")
    Dialogue(session, terminal, 0).run()
    assert [line for line in terminal.shown if "error: place: begun a long time ago" in line]
    assert "placed" not in [event.kind for event in session.events]


@pytest.mark.parametrize("minutes", ["-3", "nan"])
def test_break_of_impossible_length_is_not_recorded(session: Session, minutes: str) -> None:
    class Typed(Keys):
        def line(self, prompt: str) -> str:
            return minutes

    before = session.record.number
    terminal = Typed("b", "q")
    Dialogue(session, terminal, 0).run()
    assert f"error: minutes: expected 0 or more, got {minutes}" in terminal.shown
    assert session.record.number == before


def test_enter_behind_a_number_that_comes_too_late_does_not_begin_a_walk(session: Session) -> None:
    """The operator types an outcome one screen too late; the trial is not started by it."""
    before = session.record.number
    terminal = Keys("8", "5", "\n", "q")
    Dialogue(session, terminal, 0).run()
    assert session.record.number == before
    assert [line for line in terminal.shown if "Enter behind a number is not taken" in line]
    Dialogue(session, Keys("\n", "q"), 0).run()
    assert session.record.number > before


def test_pain_of_a_veto_is_confirmed(session: Session) -> None:
    class Typed(Keys):
        def line(self, prompt: str) -> str:
            return "y" if "pain" in prompt else "knee"

    terminal = Typed("v", "y", "q")
    Dialogue(session, terminal, 0).run()
    assert [line for line in terminal.shown if "Pain is recorded" in line]
