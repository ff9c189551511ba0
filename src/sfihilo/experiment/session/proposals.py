"""The learner's side of a session: from a record to the learner's state and the next proposal.

Both are functions of the record; everything kept here is a cache under the name of what it was
computed from. That is why preparing ahead cannot change a query: it only fills the cache sooner.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from sfihilo.experiment.session import forks
from sfihilo.experiment.session.record import Record, Veto
from sfihilo.experiment.session.rounds import Digests, Lesson, lessons
from sfihilo.experiment.session.states import Snapshots
from sfihilo.experiment.space.parameter import FloatArray
from sfihilo.experiment.space.space import Policy
from sfihilo.feasible import Feasible
from sfihilo.history import BoolArray, Query, Response
from sfihilo.learner import State, ask, begin, tell
from sfihilo.saved import save
from sfihilo.settings import Settings

KEPT_STATES = 12
SNAPSHOT_EVERY = 8  # lessons: what a reopened session may have to be told again


@dataclass(frozen=True)
class Proposal:
    """The next policy of the learner, and what it believed when it proposed it."""

    round: int
    unit: tuple[float, ...]
    policy: Policy
    anchor: tuple[float, ...] | None
    model: Mapping[str, Any]


class Learning:
    """States and proposals of one session, computed when needed or ahead of need."""

    def __init__(self, session: str, snapshots: Snapshots) -> None:
        self._session = session
        self._snapshots = snapshots
        self._states: OrderedDict[str, State] = OrderedDict()
        self._saved = 0
        self._settled: tuple[int, str] | None = None
        self._digests = Digests()
        self._lock = Lock()
        self._ahead: dict[str, Future[Proposal]] = {}
        self._worker: ThreadPoolExecutor | None = None
        forks.watch(self)

    def after_fork(self) -> None:
        """Forget what a thread of the parent process was preparing."""
        self._lock = Lock()
        self._ahead = {}
        self._worker = None

    def state(self, record: Record) -> State:
        """The learner after every lesson of the record; told again only from what is known."""
        told = lessons(record)
        names = self._digests.names(record, told)
        known, state = self._nearest(record, told, names)
        for heard in range(known, len(told)):
            lesson = told[heard]
            query = Query(state.round, np.array(lesson.policy), state.history.anchor)
            outcome = None if lesson.outcome is None else np.array(lesson.outcome)
            state = tell(state, query, Response(outcome, lesson.choice))
            self._keep(names[heard + 1], state)
        return state

    def propose(self, record: Record) -> Proposal:
        """The next policy; at once if it was prepared."""
        future = self._ahead.get(self._situation(record))
        if future is None or future.cancel() or future.exception() is not None:
            self._forget_ahead()
            made = self._compute(record)  # what failed ahead fails again, where it can be seen
        else:
            made = future.result()
        self._settle(record)
        return made

    def prepare(self, records: Iterable[Record]) -> None:
        """Begin to compute the proposals of records that may come next, the likeliest first."""
        self._forget_ahead()
        self._ahead = {
            self._situation(record): self._background().submit(self._compute, record)
            for record in records
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
        if self._settled is not None and self._settled[0] > self._saved:
            self._save(*self._settled)

    def _background(self) -> ThreadPoolExecutor:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="sfihilo-ahead")
        return self._worker

    def _settle(self, record: Record) -> None:
        """Remember a state that really came about, unlike those of answers that may come."""
        told = lessons(record)
        self._settled = len(told), self._digests.names(record, told)[-1]
        if len(told) >= self._saved + SNAPSHOT_EVERY:
            self._background().submit(self._save, *self._settled)

    def _save(self, count: int, name: str) -> None:
        state = self._states.get(name)
        if state is not None:
            self._snapshots.write(self._session, name, state)
            self._saved = count

    def _situation(self, record: Record) -> str:
        """A name for everything that a proposal depends on."""
        name = self._digests.names(record, lessons(record))[-1]
        vetoes = [[veto.round, veto.unit] for veto in record.vetoes]
        text = json.dumps([name, record.positions, vetoes], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _forget_ahead(self) -> None:
        for future in self._ahead.values():
            future.cancel()
        self._ahead = {}

    def _nearest(
        self, record: Record, told: tuple[Lesson, ...], names: list[str]
    ) -> tuple[int, State]:
        with self._lock:
            for heard in range(len(names) - 1, -1, -1):
                if names[heard] in self._states:
                    self._states.move_to_end(names[heard])
                    return heard, self._states[names[heard]]
        found = self._snapshots.read(record, told, names)
        if found is None:
            found = 0, begin(Settings.from_dict(dict(record.settings)), record.seed)
        self._saved = found[0]
        self._keep(names[found[0]], found[1])
        return found

    def _keep(self, name: str, state: State) -> None:
        with self._lock:
            self._states[name] = state
            self._states.move_to_end(name)
            while len(self._states) > KEPT_STATES:
                self._states.popitem(last=False)

    def _compute(self, record: Record) -> Proposal:
        state = self.state(record)
        query = _asked(record, state)
        unit = record.space.on_grid(query.policy)
        return proposal(record, state, unit)


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
    fingerprint = hashlib.sha256(save(state).encode()).hexdigest()
    anchor = state.history.anchor
    if anchor is None:
        return {"fingerprint": fingerprint, "outcome": None, "deviation": None, "chance_new": None}
    predicted = state.forward.predict(unit[None])
    mean = np.clip(predicted.mean[0], 0.0, 1.0)
    deviation = np.sqrt(predicted.epistemic[0] + predicted.observation[0])
    chance = state.posterior().preference(mean[None], anchor[None])[0]
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
        "chance_new": float(chance),
    }


def feasible_now(record: Record, vetoes: Iterable[Veto]) -> Feasible | None:
    """What may be proposed next: one step from where the device may be, constraints, vetoes."""
    space = record.space
    lower, upper = space.box(record.positions)
    width = upper - lower
    avoided = [np.array(veto.unit) for veto in vetoes]
    radius = record.protocol.veto_radius

    def accepts(units: FloatArray) -> BoolArray:
        allowed = space.allows(units)
        for centre in avoided:
            gap = np.abs(units - centre)
            near = np.divide(gap, width, out=np.zeros_like(gap), where=width > 0) < radius
            allowed &= ~near.all(axis=1)
        return allowed

    restricted = bool(space.constraints or avoided)
    if not restricted and (lower == 0).all() and (upper == 1).all():
        return None  # the whole cube: the bare loop's own query, draw for draw
    return Feasible(lower=lower, upper=upper, accepts=accepts if restricted else None)


def _asked(record: Record, state: State) -> Query:
    recent = [
        veto for veto in record.vetoes if state.round - veto.round <= record.protocol.veto_rounds
    ]
    while True:
        try:
            return ask(state, feasible_now(record, recent))
        except ValueError:
            if not recent:
                raise
            recent = recent[1:]  # vetoes may cover all that one step reaches: the oldest yields
