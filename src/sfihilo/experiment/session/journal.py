"""A session's record and the log behind it: reading what is new, writing one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfihilo.experiment.log.errors import KeyConflictError, StaleError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.session.record import Record, apply, corrects, fold


class Overtaken(StaleError):  # noqa: N818
    """Another writer was first. Nothing was written; `record` is the state it left."""

    def __init__(self, problem: StaleError, record: Record) -> None:
        super().__init__(problem.session, problem.expected, problem.current)
        self.record = record
        last = record.trials[-1] if record.trials else None
        state = "no trial yet" if last is None else f"trial {last.number} is {last.status}"
        self.args = (f"{self.args[0]}; now: session {record.status}, {state}",)


class Journal:
    """The events of one session, folded; writes go on from what was read."""

    def __init__(
        self, log: Log, session: str, functions: Iterable[Callable[..., bool]] = ()
    ) -> None:
        self._log = log
        self._functions = tuple(functions)
        self.session = session
        self.events: list[Event] = list(log.events(session))
        if not self.events:
            raise ValueError(f"session: expected one of {log.sessions()}, got {session!r}")
        self.record = fold(self.events, self._functions)

    def refresh(self) -> Record:
        """Read what other writers added."""
        for event in self._log.events(self.session, after=self.events[-1].seq):
            self._absorb(event)
        return self.record

    def find(self, key: str | None) -> Event | None:
        """The event that was written under a key."""
        return None if key is None else self._log.find(self.session, key)

    def write(
        self, kind: str, body: Mapping[str, Any], key: str | None, actor: str | None
    ) -> Event:
        """Append an event that was decided on the record as it was read; on the disk on return."""
        try:
            event = self._log.append(
                self.session, kind, body, key=key, expected=self.record.number, actor=actor
            )
        except KeyConflictError:
            raise
        except StaleError as problem:
            raise Overtaken(problem, self.refresh()) from problem
        if event.number > self.record.number:
            self._absorb(event)
        return event

    def _absorb(self, event: Event) -> None:
        self.events.append(event)
        if corrects(event):
            self.record = fold(self.events, self._functions)
        else:
            self.record = apply(self.record, event)
