"""An operator with a physical device, as an oracle for sessions.

The device is a position and nothing else. It moves when the operator applies a policy that the
session commanded (returned by ask, suggest, repeat or start, or handed to `apply` by run), or when
the operator moves it by hand and says so. The oracle never looks at the session's own idea of where
the device is: it compares each command with where the device truly is.

The operator makes mistakes (presses start too early, applies without saying so, undoes what was
right, corrects old trials, works in two processes), but does not lie: a veto is only given where
the device was not moved silently, outcomes and answers only for trials that were applied, `place`
only states the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space, Trial
from tests.experiment.people import PLAIN

SPACE = Space(
    {
        "torque": Parameter(0, 60, max_step=6, start=30),
        "level": Parameter(0, 20, integer=True, max_step=3, start=10),
        "timing": Parameter(0, 1),
    },
    {"effort": Outcome(0, 1)},
)
LIMITS = {"torque": 6.0, "level": 3.0}
ROUNDING = 1e-6


class UnsafeCommandError(AssertionError):
    """The session commanded a policy that is too far from where the device truly is."""


class FaultError(Exception):
    """A function of the lab failed."""


class Operator:
    """Does random things with one session until told to stop; raises on an unsafe command."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.path = folder / f"{seed}.db"
        self.labs = [Lab(self.path), Lab(self.path)]
        name = self.labs[0].create(SPACE, "P1", seed, settings=PLAIN).id
        self.name = name
        self.sessions = [lab.open(name) for lab in self.labs]
        self.where = {"torque": 30.0, "level": 10.0}
        self.applied: set[int] = set()  # trials to which the device was moved
        self.silent: set[int] = set()  # of these, the ones of which the record knows nothing
        self.command: Trial | None = None  # what the operator may apply without asking again
        self.early_start = False  # start was pressed, the device has not moved
        self.redo_would_lie = False
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.story: list[str] = []

    def close(self) -> None:
        for lab in self.labs:
            lab.close()

    @property
    def session(self) -> Session:
        """One of two sessions on the same file, as in two processes."""
        return self.sessions[self.rng.integers(2)]

    @property
    def current(self) -> Trial | None:
        return self.session.record.current

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def commanded(self, trial: Trial) -> None:
        """The session says: this policy may be applied now."""
        for name, limit in LIMITS.items():
            step = abs(trial.policy[name] - self.where[name])
            if step > limit + ROUNDING:
                raise UnsafeCommandError(
                    f"{name}: trial {trial.number} commands a step of {step:.3f}, "
                    f"more than {limit}, after: {' | '.join(self.story)}"
                )
        self.command = trial

    def apply(self, trial: Trial, *, silently: bool = False) -> None:
        self.where = {name: trial.policy[name] for name in LIMITS}
        if silently and trial.number not in self.applied:
            self.silent.add(trial.number)
        if not silently:
            self.silent.discard(trial.number)
        self.applied.add(trial.number)

    # What an operator does

    def ask(self) -> None:
        trial = self.session.ask()
        if trial.measured:
            return
        self.commanded(trial)
        if self.chance(0.4):
            self.apply(trial, silently=True)

    def suggest(self) -> None:
        policy = {
            "torque": float(np.clip(self.where["torque"] + self.rng.uniform(-9, 9), 0, 60)),
            "level": float(np.clip(round(self.where["level"] + self.rng.uniform(-4, 4)), 0, 20)),
            "timing": float(self.rng.random()),
        }
        self.commanded(self.session.suggest(policy))

    def repeat(self) -> None:
        trials = self.session.trials
        if trials:
            self.commanded(self.session.repeat(int(self.rng.integers(1, len(trials) + 1))))

    def apply_late(self) -> None:
        """Apply what was commanded before, and tell nobody."""
        if self.command is not None and not self.early_start:
            self.apply(self.command, silently=True)

    def start(self) -> None:
        trial = self.current
        if trial is None:
            return
        self.commanded(self.session.start(trial))
        if self.chance(0.1):
            self.early_start = True
        else:
            self.apply(trial)

    def measure(self) -> None:
        trial = self.current
        if trial is None:
            return
        if self.chance(0.2):
            self.session.measure(trial, None)
        elif trial.number in self.applied:
            self.session.measure(trial, {"effort": float(self.rng.random())})
            self.silent.discard(trial.number)

    def choose(self) -> None:
        trial = self.current
        if trial is not None and (trial.number in self.applied or self.chance(0.2)):
            felt = trial.number in self.applied
            self.session.choose(trial, "new" if felt else None)

    def finish(self) -> None:
        """What happens most of the time: everything in order."""
        trial = self.session.ask()
        if not trial.measured:
            self.commanded(trial)
            if not trial.started and self.chance(0.5):
                trial = self.session.start(trial)
            self.apply(trial)
            trial = self.session.measure(trial, {"effort": float(self.rng.random())})
        if trial.asks_choice and not trial.answered:
            self.session.choose(trial, "previous")

    def run(self) -> None:
        """The loop with the lab's functions, which fail now and then."""

        def apply(policy: Mapping[str, float]) -> None:
            if self.chance(0.2):
                raise FaultError
            current = self.sessions[0].record.current
            assert current is not None
            assert dict(current.policy) == dict(policy)
            self.commanded(current)
            self.apply(current)
            if self.chance(0.1):
                raise FaultError

        def measure(trial: Trial) -> dict[str, float | None]:
            if self.chance(0.2):
                raise FaultError
            assert {name: trial.policy[name] for name in LIMITS} == self.where, "data of no walk"
            return {"effort": float(self.rng.random())}

        try:
            self.sessions[0].run(apply=apply, measure=measure, choose=lambda _: "same", trials=1)
        except FaultError:
            return

    def abort(self) -> None:
        if (trial := self.current) is not None:
            self.session.abort(trial, "enough")

    def veto(self) -> None:
        trial = self.current
        if trial is not None and trial.number not in self.silent:
            self.session.veto(trial, "no")

    def withdraw(self) -> None:
        if (trial := self.any_trial()) is not None:
            self.session.withdraw(trial, "sensor")

    def amend(self) -> None:
        trial = self.any_trial()
        if trial is not None:
            walked = trial.number in self.applied
            outcome = {"effort": float(self.rng.random())} if walked else None
            self.session.amend(trial, why="late", outcome=outcome)

    def any_trial(self) -> Trial | None:
        trials = self.session.trials
        current = self.current
        if current is not None and self.chance(0.5):
            return current
        return trials[self.rng.integers(len(trials))] if trials else None

    def undo(self) -> None:
        for _ in range(int(self.rng.integers(1, 4))):
            self.session.undo("oops")
            self.command = None

    def undo_far(self) -> None:
        for _ in range(int(self.rng.integers(4, 12))):
            self.session.undo("oops")
            self.command = None

    def redo(self) -> None:
        if not self.redo_would_lie:
            self.session.redo()
            self.command = None

    def interrupt(self) -> None:
        self.session.interrupt()

    def resume(self) -> None:
        self.session.resume()

    def note(self) -> None:
        self.session.note("warm")

    def place(self) -> None:
        """Say where the device is; sometimes move it by hand first."""
        if not hasattr(self.session, "place"):
            return  # sessions of before could not be told
        if self.chance(0.5):
            self.where = {
                "torque": float(self.rng.uniform(0, 60)),
                "level": float(self.rng.integers(0, 21)),
            }
        self.command = None
        self.session.place({**self.where, "timing": 0.5}, why="looked at it")

    def reopen(self) -> None:
        place = int(self.rng.integers(2))
        self.labs[place].close()
        self.labs[place] = Lab(self.path)
        self.sessions[place] = self.labs[place].open(self.name)

    WEIGHTS: Mapping[str, float] = {
        "ask": 12, "suggest": 5, "repeat": 2, "apply_late": 4, "start": 10, "measure": 10,
        "choose": 5, "finish": 8, "run": 4, "abort": 4, "veto": 6, "withdraw": 2, "amend": 3,
        "undo": 9, "undo_far": 0.7, "redo": 6, "interrupt": 2, "resume": 2, "note": 1,
        "place": 1.2, "reopen": 1,
    }  # fmt: skip

    def step(self) -> None:
        """One operation; what the session refuses is counted."""
        names = list(self.WEIGHTS)
        weights = np.array(list(self.WEIGHTS.values()))
        name = str(self.rng.choice(names, p=weights / weights.sum()))
        if self.early_start:  # noticed at once: it is taken back before anything else
            self.early_start, self.redo_would_lie = False, True
            self.command = None
            self.session.undo("pressed too early")
            self.story.append("undo early start")
            return
        operation: Callable[[], Any] = getattr(self, name)
        before = len(self.session.events)
        try:
            self.story.append(name)
            operation()
        except ValueError as error:
            self.refused[name] += 1
            self.story[-1] = f"({name} refused)"
            if "the device may be at" in str(error):
                self.done["asked where the device is"] += 1
        else:
            self.done[name] += 1
        current = self.current
        if self.command is not None and (
            current is None or current.measured or current.number != self.command.number
        ):
            self.command = None
        if len(self.session.events) > before and name not in (
            "undo", "undo_far", "redo", "note", "interrupt", "resume", "place",
        ):  # fmt: skip
            self.redo_would_lie = False


def operate(folder: Path, operations: int, per_session: int, seed: int = 1) -> Counter[str]:
    """Random operators, one session after another; returns what was done how often."""
    total: Counter[str] = Counter()
    for number in range(-(-operations // per_session)):
        operator = Operator(folder, seed + number)
        for _ in range(per_session):
            operator.step()
        total += operator.done
        total["refused"] += sum(operator.refused.values())
        total["trials"] += len(operator.session.trials)
        assert operator.labs[0].verify().ok
        operator.close()
    return total
