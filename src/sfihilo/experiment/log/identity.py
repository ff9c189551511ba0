"""The person behind a participant code: personal data beside the record, never in it, erasable.

The chain holds codes only, so that erasing a person changes no hash. A digest goes with each row,
because the chain does not cover this table.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import Any

from sfihilo.experiment.log.errors import DamagedError

ALL = "SELECT participant, fields, digest FROM identity"


def digest(participant: str, text: str) -> str:
    """Checksum of a row."""
    content = f"{participant}\n{text}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(content).hexdigest()


def put(connection: sqlite3.Connection, participant: str, text: str) -> None:
    """Store the canonical text of a person's fields."""
    row = (participant, text, digest(participant, text))
    connection.execute("INSERT OR REPLACE INTO identity VALUES (?, ?, ?)", row)


def get(connection: sqlite3.Connection, participant: str) -> dict[str, Any] | None:
    """The fields of a person; raises DamagedError if the row is not what was stored."""
    query = "SELECT fields, digest FROM identity WHERE participant = ?"
    row = connection.execute(query, (participant,)).fetchone()
    if row is None:
        return None
    if row[1] != digest(participant, str(row[0])):
        raise DamagedError(f"the identity of {participant!r} was changed")
    fields: dict[str, Any] = json.loads(row[0])
    return fields


def erase(connection: sqlite3.Connection, participant: str) -> bool:
    """Delete a row (`secure_delete` overwrites it); whether there was one."""
    query = "DELETE FROM identity WHERE participant = ?"
    return connection.execute(query, (participant,)).rowcount > 0


def first_bad(connection: sqlite3.Connection) -> str | None:
    """The first participant whose row is not what was stored."""
    for participant, text, stored in connection.execute(ALL):
        if stored != digest(str(participant), str(text)):
            return str(participant)
    return None
