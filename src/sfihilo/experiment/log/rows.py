"""The rows of the events table, read and appended within the transaction of the caller.

Every row that is read becomes an `Event` only if its hash fits its content.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfihilo.experiment.log import schema
from sfihilo.experiment.log.errors import DamagedError, KeyConflictError, StaleError
from sfihilo.experiment.log.event import FIELDS, Event, canonical, fingerprint, is_intact

COLUMNS = ", ".join(FIELDS)


def append(
    connection: sqlite3.Connection,
    content: Mapping[str, Any],
    expected: int | None,
    expected_hash: str | None = None,
) -> Event | None:
    """Insert the event, or return the one stored under its key; None if the history is another."""
    session = content["session"]
    if content["key"] is not None:
        stored = by_key(connection, session, content["key"])
        if stored is not None:  # a retry is answered before `expected` is looked at
            return _same(stored, content)
    current = count_of(connection, session)
    if expected is not None and expected != current:
        raise StaleError(session, expected, current)
    if expected_hash is not None and _last_hash(connection, session) != expected_hash:
        return None
    count, last = head_of(connection)
    fields: dict[str, Any] = {
        **content,
        "seq": count + 1,
        "previous": last,
        "number": current + 1,
        "wall": datetime.now(UTC).isoformat(timespec="microseconds"),
        "monotonic": time.monotonic_ns(),
    }
    fields["hash"] = fingerprint(fields, content["body"])
    schema.insert(connection, fields)
    return Event.from_dict({**fields, "body": json.loads(content["body"])})


def _same(stored: Event, content: Mapping[str, Any]) -> Event:
    before = (stored.kind, canonical(stored.body), stored.actor)
    if before != (content["kind"], content["body"], content["actor"]):
        raise KeyConflictError(
            f"key {content['key']!r} of session {stored.session!r} already identifies event "
            f"{stored.number} ({stored.kind}), which has another content"
        )
    return stored


def require_unused(connection: sqlite3.Connection, session: str, key: str) -> None:
    """Raise if another session was begun under this key, also by somebody faster just now."""
    stored = begun(connection, key)
    if stored is not None and stored.session != session:
        raise KeyConflictError(f"key {key!r} already identifies session {stored.session!r}")


def begun(connection: sqlite3.Connection, key: str) -> Event | None:
    """The first event of the session that was created under a key."""
    query = f"SELECT {COLUMNS} FROM events WHERE number = 1 AND key = ? ORDER BY seq LIMIT 1"
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else event_of(row)


def by_key(connection: sqlite3.Connection, session: str, key: str) -> Event | None:
    """The event that was stored under a key of a session."""
    query = f"SELECT {COLUMNS} FROM events WHERE session = ? AND key = ?"
    row = connection.execute(query, (session, key)).fetchone()
    return None if row is None else event_of(row)


def count_of(connection: sqlite3.Connection, session: str) -> int:
    """How many events a session has."""
    query = "SELECT coalesce(max(number), 0) FROM events WHERE session = ?"
    count = connection.execute(query, (session,)).fetchone()[0]
    if not isinstance(count, int):
        raise DamagedError(f"session {session!r}: an event has {count!r} as its number")
    return count


def _last_hash(connection: sqlite3.Connection, session: str) -> str | None:
    query = "SELECT hash FROM events WHERE session = ? ORDER BY number DESC LIMIT 1"
    row = connection.execute(query, (session,)).fetchone()
    return None if row is None else str(row[0])


def head_of(connection: sqlite3.Connection) -> tuple[int, str]:
    """Number of events in the file and the hash of the last one, as the head row says."""
    row = connection.execute("SELECT count, hash FROM head").fetchone()
    if row is None or not isinstance(row[0], int) or not isinstance(row[1], str):
        raise DamagedError(f"the head of the log cannot be read, got {row!r}")
    return row[0], row[1]


def fetch(connection: sqlite3.Connection, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """All rows of a query."""
    return connection.execute(query, values).fetchall()


def event_of(row: tuple[Any, ...]) -> Event:
    """The event of a row; DamagedError if its hash does not fit."""
    fields = dict(zip(FIELDS, row, strict=True))
    if not is_intact(fields, fields["body"]):
        raise DamagedError(f"event {fields['seq']} was changed: its content does not give its hash")
    try:
        return Event.from_dict({**fields, "body": json.loads(fields["body"])})
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"event {fields['seq']} is not an event: {error}") from error


def check_end(connection: sqlite3.Connection, path: Path) -> None:
    """Check, at every opening, that the last event is the one that the head names."""
    # One statement reads one moment: between two, another process might write.
    row = connection.execute(
        "SELECT head.count, head.hash, coalesce(last.seq, 0), coalesce(last.hash, head.hash) "
        "FROM head LEFT JOIN (SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1) AS last"
    ).fetchone()
    if row is None or row[:2] != row[2:]:
        raise DamagedError(f"{path}: the last event is not the one its head names; run a verify")
