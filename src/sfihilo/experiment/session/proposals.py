"""The next policy of a session: from a record to the learner's proposal.

A proposal is a function of the record. That is why preparing ahead cannot change a query: it only
computes it sooner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import sfihilo
from sfihilo.experiment import forks
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.allowed import feasible_now, recent_vetoes, way_out
from sfihilo.experiment.session.requirements import Refusal, require_allowed
from sfihilo.experiment.session.snapshots import Course, Snapshots, StateCache
from sfihilo.experiment.space.parameter import FloatArray
from sfihilo.experiment.space.space import Policy
from sfihilo.history import Query

if TYPE_CHECKING:
    from sfihilo import State

Result = TypeVar("Result")


@dataclass(frozen=True)
class Proposal:
    """The next policy of the learner, and what it believed when it proposed it."""

    round: int
    unit: tuple[float, ...]
    policy: Policy
    anchor: tuple[float, ...] | None
    model: Mapping[str, Any]


class Proposer:
    """The proposals of one session, computed when needed or ahead of need."""

    def __init__(self, session: str, snapshots: Snapshots) -> None:
        self._states = StateCache(session, snapshots)
        self._ahead: dict[str, Future[Proposal]] = {}
        self._worker: ThreadPoolExecutor | None = None
        self._at_work = forks.ForkLock(forks.WORK)  # held by the worker during each of its tasks
        forks.watch(self)

    def after_fork(self) -> None:
        """Forget what a thread of the parent process was preparing."""
        self._ahead = {}
        self._worker = None

    def state(self, record: Record) -> State:
        """The learner after every round of the record."""
        return self._states.state(self._states.course(record))

    def propose(self, record: Record) -> Proposal:
        """The next policy; at once if it was prepared."""
        course = self._states.course(record)
        future = self._ahead.get(_situation(course))
        if future is None or future.cancel() or future.exception() is not None:
            self._forget_ahead()
            made = self._compute(course)  # what failed ahead fails again, where it can be seen
        else:
            made = future.result()
            self._forget_ahead()  # the other answers were not given: leave the processor to others
        if self._states.remember(course):
            self._in_background(self._states.save)
        return made

    def suggested(self, record: Record, policy: Policy) -> Proposal:
        """The operator's own policy."""
        made = proposal(record, self.state(record), record.space.to_unit(policy))
        return replace(made, policy=policy)

    def repeated(self, record: Record, earlier: Trial) -> Proposal:
        """The policy of an earlier trial; raises Refusal if it is not allowed now."""
        policy = dict(earlier.policy)
        require_allowed(record, policy)
        unit = np.array(earlier.unit)
        return replace(proposal(record, self.state(record), unit), policy=policy)

    def anchor_again(self, record: Record) -> Proposal | None:
        """The anchor's policy once more, if that is due and allowed from where the device is."""
        anchor = record.anchor_trial if record.reanchor_due else None
        try:
            return None if anchor is None else self.repeated(record, anchor)
        except Refusal:  # too far away, or painful: any safe policy will do
            return None

    def prepare(self, records: Iterable[Record]) -> None:
        """Begin to compute the proposals of records that may come next, the likeliest first."""
        self._forget_ahead()
        courses = [self._states.course(record) for record in records]
        self._ahead = {
            _situation(course): self._in_background(partial(self._compute, course))
            for course in courses
        }

    def prepared(self) -> bool:
        """Whether everything that was begun is done."""
        return all(future.done() for future in self._ahead.values())

    def close(self) -> None:
        """Stop preparing, and leave a snapshot for whoever opens the session next."""
        self._forget_ahead()
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        self._states.save()

    def _in_background(self, task: Callable[[], Result]) -> Future[Result]:
        """Do a task in the worker's thread, after those before it."""

        def at_work() -> Result:
            with self._at_work:
                return task()

        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="sfihilo-ahead")
        return self._worker.submit(at_work)

    def _forget_ahead(self) -> None:
        for future in self._ahead.values():
            future.cancel()
        self._ahead = {}

    def _compute(self, course: Course) -> Proposal:
        state = self._states.state(course)
        query = _query(course.record, state)
        unit = course.record.space.on_grid(query.policy)
        return proposal(course.record, state, unit)


def _situation(course: Course) -> str:
    """A digest of everything that a proposal depends on."""
    record = course.record
    vetoes = [[veto.round, veto.unit, veto.pain, veto.lifted] for veto in record.vetoes]
    text = json.dumps([course.names[-1], record.goal_set, record.positions, vetoes], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def proposal(record: Record, state: State, unit: FloatArray) -> Proposal:
    """A policy, whoever chose it, with what the learner believes about it."""
    anchor = state.history.anchor
    return Proposal(
        round=state.round,
        unit=tuple(float(value) for value in unit),
        policy=record.space.to_policy(unit),
        anchor=None if anchor is None else tuple(anchor.tolist()),
        model=belief(record, state, unit),
    )


def belief(record: Record, state: State, unit: FloatArray) -> dict[str, Any]:
    """The model's fingerprint, and what it predicts for a policy before it is tried."""
    fingerprint = hashlib.sha256(sfihilo.save(state).encode()).hexdigest()
    anchor = state.history.anchor
    if anchor is None:
        return {"fingerprint": fingerprint, "outcome": None, "deviation": None, "chance_new": None}
    predicted = state.forward.predict(unit[None])
    mean = np.clip(predicted.mean[0], 0.0, 1.0)
    deviation = np.sqrt(predicted.epistemic[0] + predicted.observation[0])
    ranges = [outcome.high - outcome.low for outcome in record.space.outcomes.values()]
    names = list(record.space.outcomes)
    physical = record.space.physical_outcomes(mean)
    return {
        "fingerprint": fingerprint,
        "outcome": {name: float(physical[name]) for name in names},
        "deviation": {
            name: float(value * width)
            for name, value, width in zip(names, deviation, ranges, strict=True)
        },
        "chance_new": preference_for_new(state, mean, anchor),
    }


def preference_for_new(state: State, outcome: FloatArray, anchor: FloatArray) -> float:
    """The probability that the person prefers an outcome to the anchor."""
    return float(state.posterior().preference(outcome[None], anchor[None])[0])


def _query(record: Record, state: State) -> Query:
    """The learner's query; vetoes that expire yield, the oldest first, where nothing else is left.

    Vetoes because of pain never yield.
    """
    recent = recent_vetoes(record, state.round)
    while True:
        try:
            return sfihilo.ask(state, feasible_now(record, recent))
        except ValueError as error:
            if recent:
                recent = recent[1:]
                continue
            raise ValueError(f"no policy can be proposed: {error}{way_out(record)}") from error
