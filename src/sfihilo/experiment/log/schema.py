"""The tables of a log file, its format number, and the settings of a connection to it.

Journal and sync settings: a rollback journal (DELETE) with synchronous EXTRA. Replaying recorded
writes with unsynced ones dropped, DELETE with FULL (Python's default) loses the last acknowledged
commit, because the removal of the journal may be forgotten and the journal then undoes it; EXTRA
syncs the directory as well and loses nothing. WAL with FULL would lose nothing either and is
faster, but SQLite before 3.51.3 can corrupt a WAL file written by several connections, and here a
console and a command line may race. The twenty milliseconds per commit are nothing beside the two
minutes of a query, and a log at rest stays one file that can be copied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfihilo.experiment.files import create_empty
from sfihilo.experiment.log.errors import (
    BusyError,
    DamagedError,
    DiskFailureError,
    LogError,
    NotALogError,
    ReadOnlyError,
)
from sfihilo.experiment.log.event import FIELDS, GENESIS

APPLICATION = 0x53464948  # "SFIH"
FORMAT = 1
PAGE = 4096  # fixed, so that events can be carved out of a file whose header is damaged
JOURNAL = "DELETE"
SYNCHRONOUS = "EXTRA"
# What SQLite raises on a damaged file: UnicodeDecodeError when a message quotes damaged bytes,
# MemoryError when a damaged size asks for more than there is.
FAULTS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
LARGEST_ROW = 64 * 2**20  # bytes: what a damaged size may make SQLite allocate; events are small
PATIENCE = 5.0  # seconds that a second writer, or a reader during a commit, waits

DAMAGE = (
    sqlite3.SQLITE_ERROR,  # a table is missing
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CONSTRAINT,  # the head is not where the events end
    sqlite3.SQLITE_TOOBIG,  # a damaged size
)

# previous and hash come first: their 64 characters each give a cell a mark that recovery looks for.
TABLES = f"""
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, previous TEXT NOT NULL, hash TEXT NOT NULL, session TEXT NOT NULL,
    number INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, key TEXT, actor TEXT,
    wall TEXT NOT NULL, monotonic INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_number ON events (session, number);
CREATE UNIQUE INDEX events_key ON events (session, key) WHERE key IS NOT NULL;
CREATE TABLE head (
    only INTEGER PRIMARY KEY CHECK (only = 1), count INTEGER NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE identity (
    participant TEXT PRIMARY KEY, fields TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO head VALUES (1, 0, '{GENESIS}');
CREATE TRIGGER events_insert BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT count + 1 FROM head) OR NEW.previous IS NOT (SELECT hash FROM head)
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: an event must continue the chain'); END;
CREATE TRIGGER events_head AFTER INSERT ON events
    BEGIN UPDATE head SET count = NEW.seq, hash = NEW.hash; END;
CREATE TRIGGER events_update BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: events cannot be changed'); END;
CREATE TRIGGER events_delete BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: events cannot be deleted'); END;
CREATE TRIGGER head_update BEFORE UPDATE ON head WHEN NEW.count IS NOT OLD.count + 1
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: the head only moves on'); END;
CREATE TRIGGER head_delete BEFORE DELETE ON head
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: the head stays'); END;
"""

# From format n to n + 1, as SQL. Events keep their bytes for ever; what is around may change.
MIGRATIONS: Mapping[int, str] = MappingProxyType({})


def connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection that loses nothing it acknowledged; transactions are begun explicitly.

    A file that does not exist is created for its owner only.
    """
    if create:
        create_empty(path)
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW)
    try:
        connection.executescript(
            f"PRAGMA page_size = {PAGE}; PRAGMA synchronous = {SYNCHRONOUS};"
            "PRAGMA fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;"
            "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
            "PRAGMA recursive_triggers = ON;"
        )
    except BaseException:
        connection.close()
        raise
    # DamagedError bytes must reach the check of hashes, not fail on the way there.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def is_busy(error: BaseException) -> bool:
    """Whether an error says that another process holds the file, and nothing about its content."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translated(error: Exception, path: Path) -> LogError:
    """The error for the caller that an error of SQLite amounts to."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if is_busy(error):
        return BusyError(f"{path} is in use by another writer; nothing was written, try again")
    if code == sqlite3.SQLITE_READONLY:
        return ReadOnlyError(f"{path} cannot be written, or was moved or deleted: {error}")
    if code in DAMAGE:
        return DamagedError(f"{path} is not an intact log: {words(error)}")
    return DiskFailureError(f"{path}: {error}; not acknowledged, repeat with the same key")


def words(error: BaseException) -> str:
    """The message of an error of SQLite; Python's MemoryError has none."""
    return str(error) or "out of memory, because a size in it is damaged"


def number(connection: sqlite3.Connection, query: str) -> int:
    """The one integer that a pragma or query returns."""
    return int(connection.execute(query).fetchone()[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether the file has no table: it is new, or a power loss ended its creation."""
    return number(connection, "SELECT count(*) FROM sqlite_master") == 0


def prepare(
    connection: sqlite3.Connection, path: Path, *, create: bool = False, write: bool = False
) -> int:
    """Validate that the file is a log; create or upgrade its tables if allowed; its format."""
    application = number(connection, "PRAGMA application_id")
    if create and application == 0:
        if is_blank(connection):
            build(connection)
        # Read again in either case: another process may have made the tables in between.
        application = number(connection, "PRAGMA application_id")
    version = number(connection, "PRAGMA user_version")
    if application != APPLICATION or version < 1:
        what = "is empty" if path.stat().st_size == 0 else "is another program's SQLite file"
        raise NotALogError(
            f"{path} is not an SFIHILO log: it {what} (or its first page is damaged)"
        )
    if write and version <= FORMAT:
        if connection.execute(f"PRAGMA journal_mode = {JOURNAL}").fetchone()[0] != JOURNAL.lower():
            raise NotALogError(f"{path}: cannot use the journal mode {JOURNAL}, is it in memory?")
        if version < FORMAT:
            migrate(connection)
    return version


def build(connection: sqlite3.Connection) -> None:
    """Create the tables in one transaction, unless another process was first."""
    connection.execute(f"PRAGMA journal_mode = {JOURNAL}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_blank(connection):
            run(connection, TABLES)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        undo(connection)
        raise


def migrate(connection: sqlite3.Connection) -> None:
    """Upgrade an older file to the present format, wholly or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(number(connection, "PRAGMA user_version"), FORMAT):
            run(connection, MIGRATIONS[version])
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")
    except BaseException:
        undo(connection)
        raise


def run(connection: sqlite3.Connection, script: str) -> None:
    """Execute each statement within the open transaction (`executescript` would commit it)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def insert(connection: sqlite3.Connection, fields: Mapping[str, Any]) -> None:
    """Write one event as it is; triggers refuse it unless it continues the chain."""
    places = ", ".join("?" for _ in FIELDS)
    values = [fields[name] for name in FIELDS]
    connection.execute(f"INSERT INTO events ({', '.join(FIELDS)}) VALUES ({places})", values)


def undo(connection: sqlite3.Connection) -> None:
    """Roll back if SQLite has not done so itself; its journal does it later when this fails."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except FAULTS:
        pass


def describe(connection: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    """Name and text of every table, index and trigger."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY type, name")
    return tuple((str(name), " ".join(str(sql).split())) for name, sql in rows)


@cache
def expected_description() -> tuple[tuple[str, str], ...]:
    """What `describe` returns for an undamaged file of the present format."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        run(connection, TABLES)
        return describe(connection)
    finally:
        connection.close()
