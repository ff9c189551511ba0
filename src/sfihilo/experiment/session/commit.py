"""The one place that reads and writes a session's events: read, recognise a retry, decide, write.

A decision is a pure function of the record (see `decide`). What it returns is appended only to the
history that it was decided on; the record is always what the log holds, in the order of the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sfihilo.experiment.forks import SESSION, ForkLock
from sfihilo.experiment.log.errors import KeyConflictError, ReplacedError, StaleError
from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.record.fold import advance, fold, redo_target, undo_target
from sfihilo.experiment.record.pauses import Moment
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session import decide
from sfihilo.experiment.session.requirements import (
    Draft,
    Refusal,
    require_no_break,
    require_none_open,
    require_open,
    require_reachable,
    require_to_do,
)

Decision = Callable[[Record], Draft]
Completion = Callable[[Record, Draft], Draft]
COMPLETED = ("compare_with", "chance_new")  # what a completion adds


def now() -> Moment:
    """The present moment on both clocks."""
    return Moment(datetime.now(UTC).isoformat(), time.monotonic_ns())


class OvertakenError(StaleError):
    """Another writer was first. Nothing was written; `record` is the state it left."""

    def __init__(self, problem: StaleError, record: Record) -> None:
        super().__init__(problem.session, problem.expected, problem.current)
        self.record = record
        last = record.trials[-1] if record.trials else None
        state = "no trial yet" if last is None else f"trial {last.number} is {last.status}"
        self.args = (f"{self.args[0]}; now: session {record.status}, {state}",)


class SessionLog:
    """The events of one session and their record. Hold `lock` from reading until writing."""

    def __init__(
        self,
        log: Log,
        session: str,
        actor: str | None = None,
        functions: Iterable[Callable[..., bool]] = (),
    ) -> None:
        self.lock = ForkLock(SESSION)
        self._log = log
        self._session = session
        self._actor = actor
        self.events: list[Event] = list(log.events(session))
        if not self.events:
            raise ValueError(f"session: expected one of {log.sessions()}, got {session!r}")
        self.record = fold(self.events, tuple(functions))
        self.last_expected: int | None = None  # number of the only event that may be continued

    def refresh(self) -> Record:
        """Read what other writers added, in the order of the log."""
        last = self.events[-1]
        found = list(self._log.events(self._session, after=last.seq - 1))
        if not found or found[0].hash != last.hash:
            raise ReplacedError(self._log.path, self._session)
        if len(found) > 1:
            events = [*self.events, *found[1:]]
            # First: if they cannot be read, the next call must not go on without them.
            self.record = advance(self.record, events, len(found) - 1)
            self.events = events
        return self.record

    def number_of(self, event: int | str) -> int:
        """The number of an event that is given by its number or its hash; 0 for an unknown hash."""
        if isinstance(event, str):
            return next((each.number for each in self.events if each.hash == event), 0)
        if isinstance(event, bool) or not isinstance(event, int):
            raise ValueError(f"expected: expected a number or a hash, got {event!r}")
        return event

    def knows(self, key: str | None) -> bool:
        """Whether the key identifies an event already."""
        return key is not None and self._log.find(self._session, key) is not None

    def stored(self, key: str | None, same: Callable[[Event], bool]) -> Event | None:
        """The event that this request wrote before; raises if the key identifies another one."""
        stored = None if key is None else self._log.find(self._session, key)
        self.refresh()
        if stored is not None and not same(stored):
            raise KeyConflictError(
                f"key {key!r} of session {self._session!r} already identifies event "
                f"{stored.number} ({stored.kind}), which has another content"
            )
        return stored

    def commit(
        self,
        decision: Decision,
        key: str | None,
        actor: str | None,
        complete: Completion | None = None,
    ) -> Event:
        """Write what is decided now, unless it is a retry.

        A retry is recognised by its key, and decided again on the record of its time: it must give
        the same event. `complete` adds what the learner computes; a retry keeps what was stored.
        """

        def same(stored: Event) -> bool:
            try:
                draft = decision(self._before(stored))
            except (ValueError, Refusal):
                return False
            added = COMPLETED if complete is not None else ()
            decided = {name: part for name, part in stored.body.items() if name not in added}
            wanted = (draft.kind, canonical(draft.body), actor or self._actor)
            return (stored.kind, canonical(decided), stored.actor) == wanted

        def completed(record: Record) -> Draft:
            draft = decision(record)
            return draft if complete is None else complete(record, draft)

        with self.lock:
            return self.stored(key, same) or self.write(completed, key, actor)

    def write(self, decision: Decision, key: str | None, actor: str | None) -> Event:
        """Write what is decided on the record as it was read; record what is refused."""
        try:
            draft = decision(self.record)
        except Refusal as refusal:
            require_open(self.record)
            self.append(refusal.draft, refusal.key(key, actor or self._actor), actor)
            raise refusal.error from refusal.__cause__
        return self.append(draft, key, actor)

    def append(self, draft: Draft, key: str | None, actor: str | None) -> Event:
        """Append one event to what was read; then read what the log holds, in its order.

        The record is never advanced by the event that the log returns: another process may have
        written other events before it. After a failed write the next call reads again.
        """
        last = self.events[-1]
        self.require_expected()
        try:
            event = self._log.append(
                self._session,
                draft.kind,
                draft.body,
                key=key,
                expected=last.number,
                expected_hash=last.hash,
                actor=actor or self._actor,
            )
        except StaleError as problem:
            raise OvertakenError(problem, self.refresh()) from problem
        if self.last_expected is not None:
            self.last_expected = event.number
        self.refresh()
        return event

    # What a call of the session writes, and what it returns

    def change_trial(
        self,
        decision: Decision,
        key: str | None,
        actor: str | None,
        complete: Completion | None = None,
    ) -> Trial:
        """Write an event about a trial; returns the trial after it."""
        with self.lock:
            return self.trial_of(self.commit(decision, key, actor, complete))

    def continue_trial(
        self,
        decision: Decision,
        key: str | None,
        actor: str | None,
        complete: Completion | None = None,
    ) -> Trial:
        """The next part of a trial; after a break that nobody recorded, it is not compared."""
        with self.lock:
            if not self.knows(key) and not self.refresh().interrupted:
                self.after_break(actor)
            return self.change_trial(decision, key, actor, complete)

    def change_session(self, decision: Decision, key: str | None, actor: str | None) -> Record:
        """Write an event about the session; returns the record after it."""
        with self.lock:
            self.commit(decision, key, actor)
            return self.record

    def correct(self, kind: str, why: str, key: str | None, actor: str | None) -> Event:
        """Undo or redo; returns the event that it concerns."""
        target = undo_target if kind == "withdrawn" else redo_target

        def decision(record: Record) -> Draft:
            return decide.corrected(record, kind, target(self.events[: record.number]), why)

        with self.lock:
            number: int = self.commit(decision, key, actor).body["event"]
            return self.events[number - 1]

    def new_trial(
        self,
        decision: Decision,
        same: Callable[[Event], bool],
        key: str | None,
        actor: str | None,
    ) -> Trial:
        """A trial that the operator wants."""
        with self.lock:
            stored = self.stored(key, same)
            if stored is not None:
                return self.made_before(stored, actor)
            require_open(self.record)
            require_none_open(self.record)
            self.after_break(actor)
            return self.trial_of(self.write(decision, key, actor))

    def made_before(self, event: Event, actor: str | None) -> Trial:
        """The trial of a request that is repeated, unless it must not be done any more.

        If it is still to be done, a break since then counts as in a new request.
        """
        trial = self.trial_of(event)
        if not trial.ended and not trial.measured:
            trial = self.after_break(actor).trial(trial.number)
        require_to_do(self.record, trial)
        return trial

    def start_trial(self, decision: Decision, key: str | None, actor: str | None) -> Trial:
        """A trial that is being applied; a repeated request applies it again, if it is safe."""
        with self.lock:
            repeated = self.knows(key)
            trial = self.continue_trial(decision, key, actor)
            if not repeated or trial.ended or trial.measured:
                return trial
            require_no_break(self.record, "start a trial")
            trial = self.after_break(actor).trial(trial.number)
            require_reachable(self.record, trial)
            return trial

    def trial_of(self, event: Event) -> Trial:
        """The trial that an event is about, as it is now."""
        return self.record.trial(event.body["trial"])

    def after_break(self, actor: str | None) -> Record:
        """Notice a break that nobody recorded, and end the one that there is."""
        require_open(self.record)
        unnoticed = decide.unnoticed_break(self.record, now())
        if unnoticed is not None:
            self.append(unnoticed, None, actor)
        if self.record.interrupted:
            self.append(decide.resumed(self.record), None, actor)
        return self.record

    @contextmanager
    def expecting(self, last: int | str | None, key: str | None) -> Iterator[Record]:
        """Hold the session: in the block, an event is written only after the event `last`.

        The block gets the record; for a retry the one of its time, so that it completes what was
        typed as it did then.
        """
        with self.lock:
            stored = None if key is None else self._log.find(self._session, key)
            record = self.refresh()
            self.last_expected = None if last is None else self.number_of(last)
            try:
                if stored is None:
                    self.require_expected()
                yield record if stored is None else self._before(stored)
            finally:
                self.last_expected = None

    def _before(self, event: Event) -> Record:
        """The record on which an event was decided."""
        return fold(self.events[: max(event.number - 1, 1)], self.record.space.functions)

    def require_expected(self) -> None:
        """Raise if the caller knows the session only up to an earlier event."""
        expected, last = self.last_expected, self.events[-1].number
        if expected is not None and expected != last:
            raise OvertakenError(StaleError(self._session, expected, last), self.record)
