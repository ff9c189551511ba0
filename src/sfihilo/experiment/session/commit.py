"""The one place that reads and writes a session's events: read, recognise a retry, decide, write.

A decision is a pure function of the record (see `decide`). What it returns is appended only to the
history that it was decided on; the record is always what the log holds, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock

from sfihilo.experiment.log.errors import KeyConflictError, ReplacedError, StaleError
from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.session.decide import Draft, Refusal, require_open
from sfihilo.experiment.session.record import Record, advance, fold

Decision = Callable[[Record], Draft]


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
        self.lock = RLock()
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
            self.events += found[1:]
            self.record = advance(self.record, self.events, len(found) - 1)
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

    def commit(self, decision: Decision, key: str | None, actor: str | None) -> Event:
        """Write what is decided now, unless it is a retry.

        A retry is recognised by its key, and decided again on the record of its time: it must give
        the same event.
        """

        def same(stored: Event) -> bool:
            try:
                before = fold(self.events[: stored.number - 1], self.record.space.functions)
                draft = decision(before)
            except (ValueError, Refusal):
                return False
            wanted = (draft.kind, canonical(draft.body), actor or self._actor)
            return (stored.kind, canonical(stored.body), stored.actor) == wanted

        with self.lock:
            return self.stored(key, same) or self.decide(decision, key, actor)

    def decide(self, decision: Decision, key: str | None, actor: str | None) -> Event:
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

    def require_expected(self) -> None:
        """Raise if the caller knows the session only up to an earlier event."""
        expected, last = self.last_expected, self.events[-1].number
        if expected is not None and expected != last:
            raise OvertakenError(StaleError(self._session, expected, last), self.record)
