"""A session against a simple model of it, step by random step.

The model keeps a plain list of what was done, with a mark on what was undone, and computes
everything anew from that list each time; nothing of it is shared with the session's code.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sfihilo.experiment import (
    BadMeasurementError,
    Lab,
    Outcome,
    Parameter,
    Space,
    UnsafePolicyError,
)
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import LEAN

SPACE = Space(
    {"x": Parameter(0, 10, max_step=4, start=5), "n": Parameter(0, 6, integer=True)},
    {"o": Outcome(0, 1)},
)
CHOICES = st.sampled_from(["new", "previous", "same", None])
OUTCOMES = st.one_of(st.none(), st.floats(0, 1))


def fresh(number: int, compare_with: int | None, wants: bool) -> dict[str, Any]:
    return {
        "number": number,
        "with": compare_with,
        "wants": wants,
        "measured": False,
        "outcome": None,
        "answered": False,
        "choice": None,
        "ending": None,
    }


def over(trial: dict[str, Any]) -> bool:
    answered = trial["answered"] or not trial["wants"]
    return trial["ending"] is not None or (trial["measured"] and answered)


def counts(trial: dict[str, Any]) -> bool:
    return trial["ending"] in (None, "aborted")


class Model:
    """What a session should be after a list of deeds."""

    def __init__(self, deeds: list[dict[str, Any]]) -> None:
        self.trials: list[dict[str, Any]] = []
        self.due = self.interrupted = False
        self.left_open: int | None = None  # in a break, and not started since
        for deed in deeds:
            if deed["undone"]:
                if deed["what"] == "ask":
                    self.trials.append(fresh(len(self.trials) + 1, None, False))
                    self.trials[-1]["ending"] = "undone"
                elif deed["what"] in ("start", "measure", "choose"):
                    self.trials[deed["number"] - 1]["felt"] = True  # perhaps: nobody knows
                continue
            getattr(self, deed["what"])(**deed["with"])

    @property
    def last(self) -> dict[str, Any]:
        """The last trial that counts as having been asked."""
        asked = [trial for trial in self.trials if trial["ending"] != "undone"]
        return asked[-1] if asked else {}

    def anchor(self) -> int | None:
        known = [
            trial["number"]
            for trial in self.trials
            if over(trial) and counts(trial) and trial["outcome"] is not None
        ]
        return known[-1] if known else None

    def felt_last(self) -> int | None:
        """The walk that the person remembers: any but one vetoed before anything of it began."""
        for trial in reversed(self.trials):
            if trial["ending"] != "vetoed" or trial.get("felt"):
                return int(trial["number"])
        return None

    def ask(self) -> None:
        anchor = self.anchor()
        wants = anchor is not None and not self.due and anchor == self.felt_last()
        self.trials.append(fresh(len(self.trials) + 1, anchor, wants))

    def start(self) -> None:
        self.last["started"] = True
        if self.left_open == self.last["number"]:
            self.left_open = None
        if not self.last["answered"] and self.felt_last() != self.last["number"]:
            self.last["wants"] = False  # a later one, undone since, may have been walked before

    def measure(self, value: float | None) -> None:
        self.last.update(measured=True, outcome=value)
        self.due = self.due and (value is None or self.left_open == self.last["number"])

    def choose(self, choice: str | None) -> None:
        self.last.update(answered=True, choice=choice)

    def end(self, how: str) -> None:
        self.last["ending"] = how

    def withdraw(self, number: int) -> None:
        self.trials[number - 1]["ending"] = "withdrawn"
        self.ask_only_what_can_be_used()

    def amend(self, number: int, value: float | None) -> None:
        self.trials[number - 1] |= {"measured": True, "outcome": value}
        self.ask_only_what_can_be_used()

    def ask_only_what_can_be_used(self) -> None:
        """The outcome that an open question is about may have been taken out."""
        if not over(self.last) and not self.last["answered"] and self.last["with"] != self.anchor():
            self.last["wants"] = False

    def interrupt(self) -> None:
        self.interrupted = True

    def resume(self) -> None:
        self.interrupted = False
        if self.last and not over(self.last) and not self.last["answered"]:
            self.last["wants"] = False
        open_now = self.last and not over(self.last) and not self.last["measured"]
        self.left_open = self.last["number"] if open_now else None
        self.due = self.felt_last() is not None

    def told(self) -> list[tuple[float | None, str | None]]:
        heard, anchor = [], None
        for trial in self.trials:
            if not over(trial) or trial["ending"] == "undone":
                continue
            outcome = trial["outcome"] if counts(trial) else None
            meant = trial["wants"] and counts(trial) and trial["with"] == anchor
            heard.append((outcome, trial["choice"] if meant else None))
            if outcome is not None:
                anchor = trial["number"]
        return heard


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        shared = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
        self.lab = Lab(self.folder / "lab.db")
        self.deeds: list[dict[str, Any]] = []
        self.redoable: list[dict[str, Any]] = []
        self.refused = 0

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.session = self.lab.create(SPACE, "P1", seed, settings=LEAN)

    @property
    def model(self) -> Model:
        return Model(self.deeds)

    @property
    def open_trial(self) -> dict[str, Any] | None:
        last = self.model.last
        return last if last and not over(last) else None

    def done(self, what: str, **given: Any) -> None:
        number = given.get("number") or self.model.last.get("number")
        deed = {"what": what, "with": given, "undone": False, "number": number}
        self.deeds.append(deed)
        if what not in ("interrupt", "resume"):
            self.redoable.clear()

    def after_break(self) -> None:
        if self.model.interrupted:
            self.done("resume")

    @rule()
    def ask(self) -> None:
        self.after_break()
        waiting = self.open_trial
        try:
            trial = self.session.ask()
        except ValueError:  # undo left places that no policy is one step from
            assert len(self.session.record.positions) > 1
            self.session.place(self.session.record.positions[-1], why="looked at it")
            return
        if waiting is None:
            self.done("ask")
        assert trial.number == self.model.last["number"]

    @precondition(lambda self: self.open_trial is None and self.model.trials)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(self.model.trials)))
        before = len(self.session.trials)
        self.after_break()
        try:
            self.session.repeat(number)
        except ValueError:  # too far away
            assert len(self.session.trials) == before
            self.refused += 1
        else:
            self.done("ask")

    @precondition(
        lambda self: (
            self.open_trial
            and (
                not self.open_trial.get("started")
                or self.model.left_open == self.open_trial["number"]
            )
        )
    )
    @rule()
    def start(self) -> None:
        number = self.model.last["number"]
        if self.refused_now(lambda: self.session.start(number)):
            return
        self.done("start")

    @precondition(lambda self: self.open_trial and not self.open_trial["measured"])
    @rule(value=OUTCOMES, retry=st.booleans())
    def measure(self, value: float | None, retry: bool) -> None:
        key = f"m{len(self.session.events)}" if retry else None
        outcome = None if value is None else {"o": value}
        number = self.model.last["number"]
        if self.refused_now(lambda: self.session.measure(number, outcome, key=key)):
            return
        if retry:
            self.session.measure(number, outcome, key=key)
        self.done("measure", value=value)

    def refused_now(self, call: Callable[[], object]) -> bool:
        """Whether a walk cannot go on now: there is a break, or the device may be too far away."""
        if self.model.interrupted:
            with pytest.raises(ValueError, match="resume it"):
                call()
            return True
        try:
            call()
        except UnsafePolicyError:
            assert len(self.session.record.positions) > 1
            return True
        return False

    @precondition(
        lambda self: (
            self.open_trial and not self.open_trial["measured"] and not self.model.interrupted
        )
    )
    @rule(value=st.sampled_from([float("nan"), 1.5, -0.1, "1", True, 1e309]))
    def measure_badly(self, value: Any) -> None:
        with pytest.raises((BadMeasurementError, UnsafePolicyError)) as refused:
            self.session.measure(self.model.last["number"], {"o": value})
        self.refused += refused.type is BadMeasurementError

    @precondition(lambda self: self.model.last)
    @rule(choice=CHOICES)
    def choose(self, choice: Any) -> None:
        last = self.model.last
        if last["answered"] or last["ending"]:
            with pytest.raises(ValueError, match=r"answered already|it is over"):
                self.session.choose(last["number"], choice)
        elif not last["wants"]:
            with pytest.raises(ValueError, match="no answer is expected"):
                self.session.choose(last["number"], choice)
        elif self.model.interrupted:
            with pytest.raises(ValueError, match="resume it before you answer"):
                self.session.choose(last["number"], choice)
        else:
            self.session.choose(last["number"], choice)
            self.done("choose", choice=choice)

    @precondition(lambda self: self.open_trial)
    @rule()
    def abort(self) -> None:
        self.session.abort(self.model.last["number"], "enough")
        self.done("end", how="aborted")

    @precondition(lambda self: self.open_trial)
    @rule()
    def veto(self) -> None:
        trial = self.open_trial
        assert trial
        if trial.get("started") or trial["measured"] or trial["answered"]:
            with pytest.raises(ValueError, match="abort it instead"):
                self.session.veto(trial["number"], "no")
        else:
            self.session.veto(trial["number"], "no")
            self.done("end", how="vetoed")

    @precondition(lambda self: self.model.trials)
    @rule(data=st.data(), value=OUTCOMES, whole=st.booleans())
    def correct(self, data: st.DataObject, value: float | None, whole: bool) -> None:
        number = data.draw(st.integers(1, len(self.model.trials)))
        outcome = None if value is None else {"o": value}
        if not counts(self.model.trials[number - 1]):
            with pytest.raises(ValueError, match=f"trial {number}"):
                self.session.withdraw(number, "x")
            with pytest.raises(ValueError, match=f"trial {number}"):
                self.session.amend(number, why="x", outcome=outcome)
        elif whole:
            self.session.withdraw(number, "x")
            self.done("withdraw", number=number)
        else:
            self.session.amend(number, why="x", outcome=outcome)
            self.done("amend", number=number, value=value)

    @rule()
    def undo(self) -> None:
        last = [
            deed
            for deed in self.deeds
            if not deed["undone"] and deed["what"] not in ("interrupt", "resume")
        ]
        if not last:
            with pytest.raises(ValueError, match="nothing to undo"):
                self.session.undo()
            return
        self.session.undo("x")
        last[-1]["undone"] = True
        self.redoable.append(last[-1])

    @rule()
    def redo(self) -> None:
        if not self.redoable:
            with pytest.raises(ValueError, match="nothing to redo"):
                self.session.redo()
            return
        self.session.redo("x")
        self.redoable.pop()["undone"] = False

    @precondition(lambda self: not self.model.interrupted)
    @rule()
    def interrupt(self) -> None:
        self.session.interrupt("x")
        self.done("interrupt")

    @precondition(lambda self: self.model.interrupted)
    @rule()
    def resume(self) -> None:
        self.session.resume()
        self.done("resume")

    @rule()
    def note(self) -> None:
        self.session.note("something")

    @rule(drop_cache=st.booleans())
    def reopen(self, drop_cache: bool) -> None:
        """As after a crash: nothing is kept but the file."""
        name = self.session.id
        self.lab.close()
        if drop_cache:
            shutil.rmtree(self.folder / "lab.db.snapshots", ignore_errors=True)
        self.lab = Lab(self.folder / "lab.db")
        self.session = self.lab.open(name)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "session"):
            return
        record, model = self.session.record, self.model
        assert record.refused == self.refused
        assert (record.interrupted, record.reanchor_due) == (model.interrupted, model.due)
        assert len(record.trials) == len(model.trials)
        for trial, expected in zip(record.trials, model.trials, strict=True):
            assert trial.ending == expected["ending"]
            if trial.ending == "undone":
                continue
            assert (trial.asks_choice, trial.ended) == (expected["wants"], over(expected))
            value = None if trial.outcome is None else trial.outcome["o"]
            assert (trial.measured, value) == (expected["measured"], expected["outcome"])
            assert (trial.answered, trial.choice) == (expected["answered"], expected["choice"])
        heard = [
            (None if lesson.outcome is None else lesson.outcome[0], lesson.choice)
            for lesson in rounds_of(record)
        ]
        assert heard == model.told()

    def teardown(self) -> None:
        assert self.lab.verify().ok
        self.lab.close()
        shutil.rmtree(self.folder)


def test_a_session_behaves_like_its_model() -> None:
    run_state_machine_as_test(
        SessionMachine, settings=settings(max_examples=10, stateful_step_count=40)
    )


@pytest.mark.slow
def test_a_session_behaves_like_its_model_for_ten_thousand_steps() -> None:
    run_state_machine_as_test(
        SessionMachine, settings=settings(max_examples=200, stateful_step_count=60)
    )
