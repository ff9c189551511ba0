"""Verifying a log file: the chain of its events, and the SQLite file that holds them.

The chain shows which event was changed; the head row shows that the end was lost; SQLite's own
integrity check shows damaged pages and indexes; the comparison of definitions shows removed
triggers. A change in bytes that hold nothing remains unseen, and so does a chain that was computed
anew, unless the hash of an earlier `Log.head` is given.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sfihilo.experiment.log import identity, schema
from sfihilo.experiment.log.chain import Chain, Verdict
from sfihilo.experiment.log.errors import BusyError, NotALogError
from sfihilo.experiment.log.event import FIELDS, GENESIS
from sfihilo.experiment.log.recovery import carve


def audit(connection: sqlite3.Connection, head: str | None = None) -> Verdict:
    """Check everything that can be checked, within the transaction of the caller.

    `head` is the hash of an event that must be part of the chain.
    """
    chain = Chain()
    noted = {GENESIS}
    reason = _walk(connection, chain, noted)
    if reason is not None:
        return Verdict(False, chain.count, chain.count + 1, reason)
    try:
        count, last = connection.execute("SELECT count, hash FROM head").fetchone()
        if (count, last) != (chain.count, chain.hash):
            lost = chain.count + 1 if count > chain.count else None
            reason = f"the head names {count} events, {chain.count} are there"
            return Verdict(False, chain.count, lost, reason)
        reason = _container(connection) or _unknown(head, noted)
    except (TypeError, ValueError, *schema.FAULTS) as error:
        if schema.is_busy(error):
            raise
        reason = f"the file is damaged outside the events: {schema.words(error)}"
    return Verdict(reason is None, chain.count, None, reason or "intact")


def verify(path: str | Path, head: str | None = None) -> Verdict:
    """Check a file, also one that is too damaged to be opened as a log.

    With `head`, the hash that `Log.head` returned earlier, the chain must contain that event: this
    shows a log that was rewritten as a whole. A file that another process holds raises BusyError.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no log at {path}")
    try:
        with closing(schema.connect(path)) as connection:
            schema.prepare(connection, path)
            connection.execute("BEGIN")
            return audit(connection, head)
    except (NotALogError, *schema.FAULTS) as problem:
        if schema.is_busy(problem):
            raise BusyError(f"{path} is in use by another writer; try again") from problem
        rows, last = carve(path.read_bytes())
        first_bad = len(rows) + 1 if last > len(rows) else None
        reason = f"it cannot be opened: {schema.words(problem)}"
        return Verdict(False, len(rows), first_bad, reason)


def _walk(connection: sqlite3.Connection, chain: Chain, noted: set[str]) -> str | None:
    """Follow the chain through all events and note their hashes; the reason where it breaks."""
    try:
        query = f"SELECT {', '.join(FIELDS)} FROM events ORDER BY seq"
        for row in connection.execute(query):
            fields = dict(zip(FIELDS, row, strict=True))
            reason = chain.follow(fields, fields["body"])
            if reason is not None:
                return reason
            noted.add(chain.hash)
    except schema.FAULTS as error:
        if schema.is_busy(error):
            raise
        return f"event {chain.count + 1} cannot be read: {schema.words(error)}"
    return None


def _unknown(head: str | None, noted: set[str]) -> str | None:
    if head is None or head in noted:
        return None
    return f"the chain is intact, but no event in it has the hash {head}: it is another record"


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
