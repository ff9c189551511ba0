"""One event of the record: its fields, its canonical text and its hash; no file is touched.

seq        position in the file, 1, 2, 3, ...; it alone gives the order (clocks may jump)
number     position within its session, 1, 2, 3, ...
wall       ISO 8601 UTC, the time of the system clock; informative only
monotonic  nanoseconds of the machine's monotonic clock; differences hold within one boot
previous   hash of event seq - 1; GENESIS for the first
hash       SHA-256 of the canonical JSON of all other fields
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

GENESIS = hashlib.sha256(b"sfihilo log 1").hexdigest()
LONGEST_NAME = 200
DEEPEST_BODY = 50
_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
FIELDS = (
    "seq", "previous", "hash", "session", "number", "kind", "body", "key", "actor", "wall",
    "monotonic",
)  # fmt: skip

TYPES: Mapping[str, Any] = {
    **dict.fromkeys(FIELDS, str),
    **dict.fromkeys(("seq", "number", "monotonic"), int),
    **dict.fromkeys(("key", "actor"), str | None),
    "body": Mapping,
}


@dataclass(frozen=True)
class Event:
    """One fact of a session, as it is stored; it never changes."""

    seq: int
    session: str
    number: int
    kind: str
    body: Mapping[str, Any]
    key: str | None
    actor: str | None
    wall: str
    monotonic: int
    previous: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain JSON types; `from_dict` returns the same event."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Event:
        """The event whose fields `to_dict` returned; its hash is not checked here."""
        missing = [name for name in FIELDS if name not in fields]
        if missing:
            raise ValueError(f"an event needs the fields {', '.join(FIELDS)}; missing: {missing}")
        for name, kind in TYPES.items():
            if not isinstance(fields[name], kind) or isinstance(fields[name], bool):
                raise ValueError(f"{name} of an event: got a {type(fields[name]).__name__}")
        return cls(**{name: fields[name] for name in FIELDS})


def canonical(value: JSON) -> str:
    """The one text of a JSON value: sorted keys, no blanks, ASCII, shortest float digits."""
    return _compact(_plain(value, "body", 0))


def _plain(value: object, where: str, depth: int) -> object:
    """The value in plain types; raises on what JSON would silently change (NaN, int keys, ...)."""
    if depth > DEEPEST_BODY:
        raise ValueError(f"{where}: nested deeper than {DEEPEST_BODY} levels")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where}: expected a finite number, got {value!r}")
        return float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"{where}: expected text keys, got {name!r}")
        return {k: _plain(v, f"{where}.{k}", depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ValueError(
        f"{where}: expected None, bool, int, float, str, list or dict, got {type(value).__name__}"
    )


def check_name(value: object, what: str) -> str:
    """Validates a session, kind, key or actor: short text that prints on one line."""
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME:
        raise ValueError(f"{what}: expected 1 to {LONGEST_NAME} characters of text, got {value!r}")
    if not value.isprintable():
        raise ValueError(f"{what}: expected printable characters only, got {value!r}")
    return value


def fingerprint(fields: Mapping[str, Any], body: str) -> str:
    """Hash of an event from its fields and the canonical text of its body.

    Equal to the hash of `canonical` of all fields but the hash, so that anyone can recompute it
    from an exported line. The stored text of the body enters as it is: a change of any byte shows.
    """
    head = {name: fields[name] for name in ("actor",)}
    tail = {name: fields[name] for name in FIELDS if name not in ("actor", "body", "hash")}
    text = f'{_compact(head)[:-1]},"body":{body},{_compact(tail)[1:]}'
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def is_intact(fields: Mapping[str, Any], body: object) -> bool:
    """Whether an event's content gives its hash."""
    try:
        return isinstance(body, str) and bool(fields["hash"] == fingerprint(fields, body))
    except (UnicodeError, TypeError, ValueError):  # the bytes are not text
        return False
