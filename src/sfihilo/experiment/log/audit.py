"""Checking a log file: the chain of its events, and the container that holds them.

The chain shows a changed event and names it; the head row shows a lost end; SQLite's own integrity
check shows damaged pages and indexes; the comparison of definitions shows removed triggers. What
remains unseen is a change in bytes that hold nothing.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sfihilo.experiment.log import identity, schema
from sfihilo.experiment.log.chain import Chain, Verdict
from sfihilo.experiment.log.errors import NotALogError
from sfihilo.experiment.log.event import FIELDS
from sfihilo.experiment.log.recovery import carve


def audit(connection: sqlite3.Connection) -> Verdict:
    """Everything that can be checked, within the transaction of the caller."""
    chain = Chain()
    reason = _walk(connection, chain)
    if reason is not None:
        return Verdict(False, chain.count, chain.count + 1, reason)
    try:
        count, last = connection.execute("SELECT count, hash FROM head").fetchone()
        if (count, last) != (chain.count, chain.hash):
            lost = chain.count + 1 if count > chain.count else None
            reason = f"the head names {count} events, {chain.count} are there"
            return Verdict(False, chain.count, lost, reason)
        reason = _container(connection)
    except (sqlite3.Error, TypeError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        reason = f"the file is damaged outside the events: {error}"
    return Verdict(reason is None, chain.count, None, reason or "intact")


def verify(path: str | Path) -> Verdict:
    """Check a file, also one that is too damaged to be opened as a log."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no log at {path}")
    try:
        with closing(schema.connect(path)) as connection:
            schema.prepare(connection, path)
            connection.execute("BEGIN")
            return audit(connection)
    except (NotALogError, *schema.FAULTS) as problem:
        rows, last = carve(path.read_bytes())
        first_bad = len(rows) + 1 if last > len(rows) else None
        return Verdict(False, len(rows), first_bad, f"{path} cannot be opened: {problem}")


def _walk(connection: sqlite3.Connection, chain: Chain) -> str | None:
    try:
        query = f"SELECT {', '.join(FIELDS)} FROM events ORDER BY seq"
        for row in connection.execute(query):
            fields = dict(zip(FIELDS, row, strict=True))
            reason = chain.follow(fields, fields["body"])
            if reason is not None:
                return reason
    except schema.FAULTS as error:
        return f"event {chain.count + 1} cannot be read: {error}"
    return None


def _container(connection: sqlite3.Connection) -> str | None:
    findings = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    if findings != ["ok"]:
        return f"the events are intact, but the file around them is damaged: {findings[0]}"
    version = schema.number(connection, "PRAGMA user_version")
    as_expected = schema.describe(connection) == schema.expected_description()
    if version == schema.FORMAT and not as_expected:
        return "the events are intact, but tables, indexes or triggers were changed"
    if version != schema.FORMAT and as_expected:  # another number means other tables
        return f"the events are intact, but the format number was changed to {version}"
    participant = identity.first_bad(connection)
    if participant is not None:
        return f"the events are intact, but the identity of {participant!r} was changed"
    return None
