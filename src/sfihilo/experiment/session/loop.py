"""Trials one after another with the lab's own functions, for labs with everything in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from sfihilo.checks import checked_whole
from sfihilo.experiment.log.errors import LogError
from sfihilo.experiment.record.answers import Answer
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.space.measurement import BadMeasurementError
from sfihilo.history import Choice

Apply = Callable[[Mapping[str, float]], object]
Measure = Callable[[Trial], Mapping[str, float | None] | None]
Choose = Callable[[Trial], Choice | Answer | None]
MEASURING_ATTEMPTS = 3


class Steps(Protocol):
    """What the loop needs of a session."""

    @property
    def record(self) -> Record: ...
    def ask(self) -> Trial: ...
    def start(self, trial: Trial, /) -> Trial: ...
    def measure(self, trial: Trial, outcome: Mapping[str, float | None] | None, /) -> Trial: ...
    def choose(
        self, trial: Trial, choice: Choice | None, /, strength: int | None = None
    ) -> Trial: ...
    def interrupt(self, why: str, /) -> Record: ...
    def prepare(self) -> None: ...


def run(session: Steps, apply: Apply, measure: Measure, choose: Choose, trials: int) -> Record:
    """Do `trials` trials, beginning with the one that was left open.

    `apply` is called before every measurement, also for a trial that was started before: the
    process that started it may have died before it applied the policy. Applying a policy twice must
    do no harm. `choose` returns the answer, or the answer and its strength. A measurement that is
    refused is asked for again, and recorded as missing when the device keeps giving it; a person is
    not asked about a trial of which nothing was measured. When a
    function of the lab fails (or Ctrl-C is pressed) the session is interrupted and the error goes
    on to the caller; `run` again continues.
    """
    for _ in range(checked_whole(trials, "trials", 0)):
        trial = session.ask()
        try:
            _conduct(session, trial, apply, measure, choose)
        except BaseException as error:
            _interrupt(session, error)
            raise
    return session.record


def _interrupt(session: Steps, error: BaseException) -> None:
    """Record that a function of the lab failed; its error is not hidden if that fails as well."""
    try:
        record = session.record
        if not record.interrupted and not record.closed:
            session.interrupt(f"{type(error).__name__}: {error}"[:500])
    except (ValueError, LogError) as problem:
        error.add_note(f"The interruption was not recorded: {problem}")


def _conduct(session: Steps, trial: Trial, apply: Apply, measure: Measure, choose: Choose) -> None:
    if not trial.measured:
        if not trial.started or session.record.left_open == trial.number:
            trial = session.start(trial)  # first: if the next line dies, the device may be there
        apply(trial.policy)
        trial = _measured(session, trial, measure)
    if trial.asks_choice and not trial.answered:
        if not trial.known_outcome:  # nothing was measured: the answer could not be used
            session.choose(trial, None)
            return
        session.prepare()
        given = choose(trial)
        choice, strength = given if isinstance(given, tuple) else (given, None)
        session.choose(trial, choice, strength)


def _measured(session: Steps, trial: Trial, measure: Measure) -> Trial:
    for _ in range(MEASURING_ATTEMPTS):
        try:
            return session.measure(trial, measure(trial))
        except BadMeasurementError:
            continue  # it is in the record
    return session.measure(trial, None)
