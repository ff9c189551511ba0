"""Saving the intact beginning of a damaged log.

SQLite refuses a file whose header, schema or inner pages are damaged, although most events in it
may be intact. So the events are read from the raw pages: each event's cell begins with the same
column types (an empty rowid alias and two texts of 64 characters), which is a mark that ASCII text
cannot imitate, and its hash shows whether it was read correctly. The chain then gives their order.
The layout is that of SQLite's "Database File Format", 1.6 and 2.1.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sfihilo.experiment.files import sync_folder
from sfihilo.experiment.log import identity, schema
from sfihilo.experiment.log.chain import Chain
from sfihilo.experiment.log.event import FIELDS, is_intact
from sfihilo.experiment.log.schema import PAGE

MARK = b"\x00\x81\x0d\x81\x0d"  # column types: NULL for seq, text of 64 for previous and for hash
LONGEST_LOCAL = PAGE - 35  # of a cell's bytes within its page; the rest goes to overflow pages
SHORTEST_LOCAL = (PAGE - 12) * 32 // 255 - 23
INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def recover(path: str | Path, out: str | Path) -> int:
    """Write the events before the first damaged one to a new log; returns their number.

    The damaged file stays as it is; close every log that has it open. Identities are saved too,
    as far as they can be read.
    """
    path, out = Path(path), Path(out)
    if out.exists():
        raise ValueError(f"expected the name of a new file to save to, but {out} exists")
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        copy = _undone_copy(path, Path(folder))
        rows, _ = carve(copy.read_bytes())
        saved = Path(folder) / "saved"
        with closing(schema.connect(saved, create=True)) as connection:
            schema.prepare(connection, saved, create=True, write=True)
            connection.execute("BEGIN IMMEDIATE")
            for fields in rows:
                schema.insert(connection, fields)
            for participant, text in _people(copy).items():
                identity.put(connection, participant, text)
            connection.execute("COMMIT")
        saved.rename(out)
        sync_folder(out.parent)
    return len(rows)


def carve(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The rows of the longest intact chain in a file's bytes, and the highest seq found."""
    found: dict[int, list[dict[str, Any]]] = {}
    for fields in cells(data):
        if is_intact(fields, fields["body"]):
            found.setdefault(fields["seq"], []).append(fields)
    chain = Chain()
    rows: list[dict[str, Any]] = []
    while True:
        candidates = found.get(chain.count + 1, [])
        fitting = next((row for row in candidates if not chain.follow(row, row["body"])), None)
        if fitting is None:
            return rows, max(found, default=0)
        rows.append(fitting)


def cells(data: bytes) -> Iterator[dict[str, Any]]:
    """All parts of these bytes that look like an event, whether its hash is right or not."""
    place = data.find(MARK)
    while place >= 0:
        fields = _cell(data, place)
        if fields is not None:
            yield fields
        place = data.find(MARK, place + 1)


def _cell(data: bytes, mark: int) -> dict[str, Any] | None:
    """Read the cell whose column types begin at `mark`: rowid, header size, types, values."""
    start = mark - 1  # the header's size, one byte, opens the payload
    types = _types(data, mark, start + data[start]) if start >= 2 else None
    if types is None or len(types) < len(FIELDS):
        return None
    sizes = [INTEGER_BYTES.get(t, 0) if t < 12 else (t - 12) // 2 for t in types]
    payload = _payload(data, start, data[start] + sum(sizes))
    if payload is None:
        return None
    values: list[Any] = []
    place = data[start]
    for kind, size in zip(types, sizes, strict=True):
        values.append(_value(kind, payload[place : place + size]))
        place += size
    fields = dict(zip(FIELDS, values, strict=False))
    fields["seq"] = _rowid(data, start)
    return fields


def _types(data: bytes, place: int, end: int) -> list[int] | None:
    types = []
    while place < min(end, len(data)):
        value = 0
        for _ in range(9):
            byte = data[place]
            place += 1
            value = value << 7 | byte & 0x7F
            if byte < 0x80 or place >= len(data):
                break
        types.append(value)
    return types if place == end else None


def _rowid(data: bytes, end: int) -> int:
    """The variable-length integer that ends before `end`, read backwards."""
    first = end - 1
    while first > 0 and data[first - 1] >= 0x80 and end - first < 9:
        first -= 1
    value = 0
    for byte in data[first:end]:
        value = value << 7 | byte & 0x7F
    return value


def _payload(data: bytes, start: int, size: int) -> bytes | None:
    """A cell's bytes, with those on its overflow pages; None if they cannot be in this file."""
    if size > len(data):  # a damaged size: overflow pages may form a loop
        return None
    local = size
    if size > LONGEST_LOCAL:
        local = SHORTEST_LOCAL + (size - SHORTEST_LOCAL) % (PAGE - 4)
        local = local if local <= LONGEST_LOCAL else SHORTEST_LOCAL
    parts, missing = [data[start : start + local]], size - local
    following = start + local
    while missing > 0:
        page = int.from_bytes(data[following : following + 4], "big")
        following = (page - 1) * PAGE
        if page < 1 or following + 4 > len(data):
            return None
        parts.append(data[following + 4 : following + 4 + min(missing, PAGE - 4)])
        missing -= PAGE - 4
    payload = b"".join(parts)
    return payload if len(payload) == size else None


def _value(kind: int, raw: bytes) -> str | int | None:
    if kind in (8, 9):
        return kind - 8
    if kind in INTEGER_BYTES:
        return int.from_bytes(raw, "big", signed=True)
    return raw.decode("utf-8", "surrogateescape") if kind >= 13 else None


def _undone_copy(path: Path, folder: Path) -> Path:
    """A copy in which SQLite has undone an unfinished transaction, if it still can."""
    copy = folder / "damaged"
    shutil.copyfile(path, copy)
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        shutil.copyfile(journal, folder / "damaged-journal")
    try:
        with closing(schema.connect(copy)) as connection:
            schema.is_blank(connection)
    except schema.FAULTS:
        pass
    return copy


def _people(path: Path) -> dict[str, str]:
    """The identities that can be read, also where only the first page is damaged.

    The first page holds the definitions, which are the same in every log: that of a new log serves
    as well. A digest goes with every identity, so that nothing wrong is read by this.
    """
    fresh, mended = path.with_name("fresh"), path.with_name("mended")
    with closing(schema.connect(fresh, create=True)) as connection:
        schema.build(connection)
    data = path.read_bytes()
    pages = (len(data) // PAGE).to_bytes(4, "big")
    first = fresh.read_bytes()[:PAGE]
    mended.write_bytes(first[:28] + pages + first[32:] + data[PAGE:])
    return {**_readable_people(mended), **_readable_people(path)}


def _readable_people(path: Path) -> dict[str, str]:
    people: dict[str, str] = {}
    try:
        with closing(schema.connect(path)) as connection:
            for participant, text, digest in connection.execute(identity.ALL):
                if digest == identity.digest(str(participant), str(text)):
                    people[str(participant)] = str(text)
    except schema.FAULTS:
        pass  # as many as could be read
    return people
