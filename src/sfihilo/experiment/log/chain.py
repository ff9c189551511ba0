"""One event of the record, its canonical form, and the hash chain that ties it to all before it.

The record of a session with a person will be shown to a reviewer: every event carries the SHA-256
of its own content *and* of the event before it, so that a changed, removed, inserted or reordered
event breaks the chain at a place that `check` can name. Nothing here touches a file.

    seq        place in the file, 1, 2, 3, ...; the only order there is (clocks may jump)
    number     place within its session, 1, 2, 3, ...
    wall       ISO 8601 UTC, what the clock on the wall said; informative only
    monotonic  nanoseconds of the machine's monotonic clock; differences hold within one boot
    previous   hash of event seq - 1; GENESIS for the first
    hash       SHA-256 of the canonical JSON of all other fields
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True)
class Event:
    """One fact of a session, as it stands in the record for ever."""

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
        """All fields as plain JSON types; `from_dict` gives the same event back."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Event:
        """The event that `to_dict` described; its hash is not checked here."""
        missing = [name for name in FIELDS if name not in fields]
        if missing:
            raise ValueError(f"an event needs the fields {', '.join(FIELDS)}; missing: {missing}")
        return cls(**{name: fields[name] for name in FIELDS})


@dataclass(frozen=True)
class Verdict:
    """What a check found; `first_bad` is the seq of the first bad event, if it is an event."""

    ok: bool
    count: int
    first_bad: int | None
    reason: str


def canonical(value: JSON) -> str:
    """The one text of a JSON value: sorted keys, no blanks, ASCII, shortest float digits."""
    return _compact(_plain(value, "body", 0))


def _plain(value: object, where: str, depth: int) -> object:
    """Refuse what JSON would silently change (NaN, int keys, NumPy arrays, ...)."""
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
    """A session, kind, key or actor: short text that prints on one line."""
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME:
        raise ValueError(f"{what}: expected 1 to {LONGEST_NAME} characters of text, got {value!r}")
    if not value.isprintable():
        raise ValueError(f"{what}: expected printable characters only, got {value!r}")
    return value


def fingerprint(fields: Mapping[str, Any], body: str) -> str:
    """Hash of an event from its fields and the canonical text of its body.

    The same as hashing `canonical` of all fields but the hash, so anyone can recompute it from an
    exported line; the stored text of the body is used as it is, so no byte of it can change unseen.
    """
    head = {name: fields[name] for name in ("actor",)}
    tail = {name: fields[name] for name in FIELDS if name not in ("actor", "body", "hash")}
    text = f'{_compact(head)[:-1]},"body":{body},{_compact(tail)[1:]}'
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def is_intact(fields: Mapping[str, Any], body: object) -> bool:
    """Whether an event's content gives its hash."""
    try:
        return isinstance(body, str) and bool(fields["hash"] == fingerprint(fields, body))
    except (UnicodeError, TypeError, ValueError):  # bytes that are no text
        return False


def check(events: Iterable[Event]) -> Verdict:
    """Follow the chain from its first event, as for an exported copy of the whole record."""
    chain = Chain()
    for event in events:
        try:
            body = canonical(event.body)
        except (ValueError, RecursionError) as error:
            return Verdict(False, chain.count, chain.count + 1, str(error))
        reason = chain.follow(event.to_dict(), body)
        if reason:
            return Verdict(False, chain.count, chain.count + 1, reason)
    return Verdict(True, chain.count, None, "intact")


class Chain:
    """Where a walk along the record stands: how many events were good, and what must come next."""

    def __init__(self) -> None:
        self.count = 0
        self.hash = GENESIS
        self.numbers: dict[str, int] = {}

    def follow(self, fields: Mapping[str, Any], body: object) -> str | None:
        """Step to the next event; the reason when it is not the one that belongs here."""
        seq, session = self.count + 1, fields["session"]
        if fields["seq"] != seq:
            return f"event {seq} is missing; event {fields['seq']!r} stands in its place"
        if fields["previous"] != self.hash:
            return f"event {seq} does not continue the chain: it names another event before it"
        number = self.numbers.get(session, 0) + 1
        if fields["number"] != number:
            return f"event {seq} is number {fields['number']!r} of its session, expected {number}"
        if not is_intact(fields, body):
            return f"event {seq} was changed: its content does not give its hash"
        self.count, self.hash = seq, fields["hash"]
        self.numbers[session] = number
        return None
