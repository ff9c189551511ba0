"""The durable event log: one SQLite file, many sessions, append-only, hash-chained.

`append` returns only when the event would survive a power loss. If it raises, the event is not
acknowledged, and repeating it with the same key is always safe. Writers in several threads or
processes queue on SQLite's own lock, so the file has one writer at a time. Keep it off network
file systems: their locks and syncs cannot be trusted.

    with Log.open("study.db") as log:
        event = log.append("s1", "asked", {"policy": [0.2, 0.7]}, key="ask-0", expected=1)
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sfihilo.experiment.files import create_empty
from sfihilo.experiment.forks import LOG, ForkLock
from sfihilo.experiment.log import identity, recovery, rows, schema
from sfihilo.experiment.log.audit import audit, verify
from sfihilo.experiment.log.chain import Verdict
from sfihilo.experiment.log.errors import (
    DamagedError,
    ReadOnlyError,
    ReplacedError,
)
from sfihilo.experiment.log.event import (
    JSON,
    Event,
    canonical,
    check_name,
)
from sfihilo.experiment.log.schema import FAULTS

__all__ = ["Event", "Log", "Verdict", "verify"]

Result = TypeVar("Result")
BATCH = 500  # rows read at once: no reader holds a lock while its caller works


class Log:
    """An open log file. Make one with `Log.open`; threads may share it."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self._file = path.absolute()  # stays the same file where the process changes its folder
        self._opened: tuple[int, int] | None = None  # which file the connection reads
        self.newer = False
        self._asked_read_only = read_only
        self._lock = ForkLock(LOG)
        self._closed = False
        self._seen = False
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._abandoned: list[sqlite3.Connection] = []

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False) -> Log:
        """Open a log, or create one if there is no file; an older format is upgraded.

        A file of a newer format opens for reading only.
        """
        log = cls(Path(path), read_only=read_only)
        if read_only and not log.path.exists():
            raise FileNotFoundError(f"there is no log at {log.path}")
        if not log.path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {log.path.parent} for the log")
        with log._lock:
            log._alive()
        return log

    @property
    def read_only(self) -> bool:
        """Whether `append` would refuse."""
        return self._asked_read_only or self.newer

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        with self._lock:
            self._closed = True
            self._drop()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(
        self,
        session: str,
        kind: str,
        body: Mapping[str, JSON],
        *,
        key: str | None = None,
        expected: int | None = None,
        expected_hash: str | None = None,
        actor: str | None = None,
        begins: bool = False,
    ) -> Event:
        """Add one event to a session; it is on the disk when this returns.

        key       the same key with the same content returns the stored event and writes nothing;
                  with another content it raises KeyConflictError. Keys belong to their session.
        expected  number of events that the writer has read of the session; StaleError if it differs
        expected_hash  hash of the last of them; ReplacedError if the session has another history
        begins    the event begins a session; KeyConflictError if its key began another one
        """
        if not isinstance(body, Mapping):
            raise ValueError(f"body: expected a mapping, got {type(body).__name__}")
        content = {
            "session": check_name(session, "session"),
            "kind": check_name(kind, "kind"),
            "body": canonical(body),
            "key": None if key is None else check_name(key, "key"),
            "actor": None if actor is None else check_name(actor, "actor"),
        }
        self._require_writable()

        def work(connection: sqlite3.Connection) -> Event:
            if begins and key is not None:
                rows.require_unused(connection, session, key)
            event = rows.append(connection, content, expected, expected_hash)
            if event is None:
                raise ReplacedError(self.path, session)
            return event

        return self._run(work, "BEGIN IMMEDIATE")

    def snapshot(self) -> tuple[Event, ...]:
        """All events of the file as they are at one moment, read in one transaction."""
        query = f"SELECT {rows.COLUMNS} FROM events ORDER BY seq"
        events = tuple(rows.event_of(row) for row in self._run(partial(rows.fetch, query=query)))
        for place, event in enumerate(events, start=1):
            if event.seq != place:
                raise DamagedError(f"{self.path}: an event before event {event.seq} is missing")
        return events

    def events(self, session: str | None = None, after: int = 0) -> Iterator[Event]:
        """Events in order, of one session or all, whose seq is beyond `after`.

        Before an event is returned, its hash is checked, and that no event before it is missing;
        DamagedError otherwise.
        """
        last = after if session is None else (None if after else 0)
        where, values = ("", ()) if session is None else ("AND session = ?", (session,))
        query = (
            f"SELECT {rows.COLUMNS} FROM events WHERE seq > ? {where} ORDER BY seq LIMIT {BATCH}"
        )
        event: Event | None = None
        while True:
            found = self._run(partial(_following, event=event, query=query, at=(after, *values)))
            if found is None:
                raise ReplacedError(self.path, session or str(event and event.session))
            for row in found:
                event = rows.event_of(row)
                place = event.seq if session is None else event.number
                if last is not None and place != last + 1:
                    raise DamagedError(f"{self.path}: an event before event {event.seq} is missing")
                last = place
                yield event
            if len(found) < BATCH:
                return
            after = found[-1][0]

    def find(self, session: str, key: str) -> Event | None:
        """The event that was stored under a key of a session, if there is one."""
        check_name(key, "key")
        return self._run(lambda c: rows.by_key(c, session, key))

    def begun(self, key: str) -> Event | None:
        """The first event of the session that was created under a key, if there is one."""
        check_name(key, "key")
        return self._run(lambda c: rows.begun(c, key))

    def sessions(self) -> list[str]:
        """Names of all sessions, in the order of their first event."""
        query = "SELECT session FROM events WHERE number = 1 ORDER BY seq"
        return [str(row[0]) for row in self._run(lambda c: rows.fetch(c, query))]

    def count(self, session: str) -> int:
        """How many events a session has: what `append` takes as `expected`."""
        return self._run(lambda c: rows.count_of(c, session))

    def head(self) -> tuple[int, str]:
        """Number of events in the file and the hash of the last one.

        Note the hash outside of the file (print it, send it to a colleague): `verify(head=...)`
        then shows whether the record was rewritten since.
        """
        return self._run(rows.head_of)

    def verify(self, head: str | None = None) -> Verdict:
        """Check everything: the chain, its head, SQLite's own structure, the definitions.

        With `head`, a hash that `head()` returned earlier, the chain must contain that event.
        """
        return self._run(lambda c: audit(c, head))

    @staticmethod
    def recover(path: str | Path, out: str | Path) -> int:
        """Save the events before the first damaged one to a new log; returns their number."""
        return recovery.recover(path, out)

    def set_identity(self, participant: str, fields: Mapping[str, JSON]) -> None:
        """Store the person behind a participant code, apart from the record, or replace it."""
        check_name(participant, "participant")
        text = canonical(fields)
        self._require_writable()
        self._run(lambda c: identity.put(c, participant, text), "BEGIN IMMEDIATE")

    def get_identity(self, participant: str) -> dict[str, Any] | None:
        """The person behind a participant code, or None if never stored or erased."""
        return self._run(lambda c: identity.get(c, participant))

    def erase_identity(self, participant: str) -> bool:
        """Remove a person's identity and every trace of its bytes from the file; False if none.

        The record keeps the code only. Backups, and blocks that the file system freed, cannot be
        reached from here: erase those too.
        """
        self._require_writable()
        found = self._run(lambda c: identity.erase(c, participant), "BEGIN IMMEDIATE")
        self._run(lambda c: c.execute("VACUUM") and None, begin=None)  # rewrites every page
        return found

    def _require_writable(self) -> None:
        if self.newer:
            raise ReadOnlyError(
                f"{self.path} was written by a newer SFIHILO (this one knows format "
                f"{schema.FORMAT}): it can be read and exported; upgrade SFIHILO to write to it"
            )
        if self._asked_read_only:
            raise ReadOnlyError(f"{self.path} was opened for reading only")

    def _run(
        self, work: Callable[[sqlite3.Connection], Result], begin: str | None = "BEGIN"
    ) -> Result:
        """Run `work` in one transaction; if any part fails, nothing of it is stored."""
        with self._lock:
            connection = self._alive()
            try:
                # A restored backup may have the same change counter: SQLite would trust its cache.
                connection.execute("PRAGMA shrink_memory")
                if begin:
                    connection.execute(begin)
                result = work(connection)
                if begin:
                    connection.execute("COMMIT")
                return result
            except BaseException as error:
                schema.undo(connection)
                if connection.in_transaction or isinstance(error, FAULTS):
                    self._drop()  # a connection that saw an error is not trusted again
                if isinstance(error, FAULTS):
                    raise schema.translated(error, self.path) from error
                raise

    def _alive(self) -> sqlite3.Connection:
        if self._closed:
            raise ValueError(f"the log {self.path} is closed")
        if self._connection is not None and self._process != os.getpid():
            # SQLite forbids to use, and even to close, a connection in a forked child.
            self._abandoned.append(self._connection)
            self._connection = None
        if self._connection is not None and self._opened != _identity(self._file):
            self._drop()  # replaced or gone: the old file, without a name, must not be believed
        if self._connection is None:
            try:
                self._connection = self._connect()
                self._process = os.getpid()
            except FAULTS as error:
                raise schema.translated(error, self.path) from error
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        # A log that was there once and is gone must be missed, not silently begun anew.
        create = not self._asked_read_only and not self._seen
        if create:
            create_empty(self._file)
        self._opened = _identity(self._file)  # before: a file that comes in between is noticed
        connection = schema.connect(self._file, create=create)
        try:
            version = schema.prepare(
                connection, self.path, create=create, write=not self._asked_read_only
            )
            self.newer = version > schema.FORMAT
            if self.read_only:
                connection.execute("PRAGMA query_only = ON")
            rows.check_end(connection, self.path)
            self._seen = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            connection.close()
        elif connection is not None:
            self._abandoned.append(connection)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands under a name now; None if there is none, or it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _following(
    connection: sqlite3.Connection, event: Event | None, query: str, at: tuple[Any, ...]
) -> list[Any] | None:
    """The rows of a query, if `event`, which was read before them, is still what it was."""
    if event is not None:
        same = "SELECT hash FROM events WHERE seq = ?"
        if rows.fetch(connection, same, (event.seq,)) != [(event.hash,)]:
            return None
    return rows.fetch(connection, query, at)
