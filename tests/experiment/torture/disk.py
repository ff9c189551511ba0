"""A model of a disk with a cache, fed from a recording: what may stand on it after a power loss.

What a process wrote becomes durable only by a sync: of the file for its bytes, of the folder for
its names. Until then every sector of 512 bytes holds what some of the unsynced writes to it would
have left, each sector for itself (so writes are dropped, reordered and torn), a grown file may hold
zeros or rubbish where nothing arrived, and a created or removed name may be forgotten.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

SECTOR = 512
Manner = Literal["nothing", "everything", "prefix", "sectors", "subset", "rubbish"]
MANNERS: tuple[Manner, ...] = ("nothing", "everything", "prefix", "sectors", "subset", "rubbish")


class Operation(NamedTuple):
    """One recorded system call. `kind`: create, write, truncate, sync, unlink, sync-folder, ack."""

    kind: str
    name: str = ""
    data: bytes = b""
    offset: int = 0


class Change(NamedTuple):
    offset: int
    data: bytes | None  # None: cut the file at offset


@dataclass
class File:
    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.durable = apply(self.durable, self.pending)
        self.pending = []


def apply(content: bytes, changes: Iterable[Change]) -> bytes:
    data = bytearray(content)
    for offset, new in changes:
        if new is None:
            del data[offset:]
            continue
        data.extend(bytes(max(0, offset - len(data))))
        data[offset : offset + len(new)] = new
    return bytes(data)


@dataclass
class Disk:
    """Files by identity, since an unlinked one may come back; names as they are and as synced."""

    names: dict[str, File] = field(default_factory=dict)
    durable_names: dict[str, File] = field(default_factory=dict)
    pending_names: dict[str, list[File | None]] = field(default_factory=dict)
    acks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, acks: dict[str, str]) -> Disk:
        """A disk that holds the files of a folder, all synced."""
        files = {path.name: File(path.read_bytes()) for path in folder.iterdir()}
        return cls(names=files, durable_names=dict(files), acks=dict(acks))

    def step(self, operation: Operation) -> None:
        kind, name, data, offset = operation
        if kind == "create" and name not in self.names:
            self._rename(name, File())
        elif kind == "unlink":
            self._rename(name, None)
        elif kind == "write":
            self.names[name].pending.append(Change(offset, data))
        elif kind == "truncate":
            self.names[name].pending.append(Change(offset, None))
        elif kind == "sync":
            self.names[name].sync()
        elif kind == "sync-folder":
            self.durable_names = dict(self.names)
            self.pending_names = {}
        elif kind == "ack":
            _, key, digest = data.decode().split()
            self.acks[key] = digest

    def _rename(self, name: str, file: File | None) -> None:
        self.pending_names.setdefault(name, []).append(file)
        if file is None:
            del self.names[name]
        else:
            self.names[name] = file

    def after_power_loss(self, manner: Manner, rng: random.Random) -> dict[str, bytes]:
        """The files that one may find."""
        names: dict[str, File | None] = dict(self.durable_names)
        for name, versions in self.pending_names.items():
            kept = {"nothing": 0, "everything": len(versions)}.get(manner)
            kept = rng.randint(0, len(versions)) if kept is None else kept
            if kept:
                names[name] = versions[kept - 1]
        return {
            name: survive(file, manner, rng) for name, file in names.items() if file is not None
        }


def survive(file: File, manner: Manner, rng: random.Random) -> bytes:
    pending = file.pending
    if manner == "nothing" or not pending:
        return file.durable
    if manner == "everything":
        return apply(file.durable, pending)
    if manner == "prefix":
        return apply(file.durable, pending[: rng.randint(0, len(pending))])
    if manner == "subset":
        return apply(file.durable, [change for change in pending if rng.random() < 0.5])
    return sector_by_sector(file, rng, rubbish=manner == "rubbish")


def sector_by_sector(file: File, rng: random.Random, *, rubbish: bool) -> bytes:
    """Each sector as it was after some number of the pending writes, whatever its neighbours."""
    stages = sorted({0, len(file.pending), *(rng.randint(0, len(file.pending)) for _ in range(6))})
    versions = [apply(file.durable, file.pending[:stage]) for stage in stages]
    lengths = [len(version) for version in versions]  # a size once synced does not shrink by itself
    length = rng.choice((lengths[0], lengths[-1], rng.randint(min(lengths), max(lengths))))
    result = bytearray()
    for start in range(0, length, SECTOR):
        version = rng.choice(versions)
        sector = version[start : start + SECTOR]
        if rubbish and start >= len(file.durable) and rng.random() < 0.5:
            sector = rng.randbytes(SECTOR)  # grown, but the bytes never arrived
        result += sector.ljust(SECTOR, b"\0")
    return bytes(result[:length])


def put(files: dict[str, bytes], folder: Path, log: Path) -> None:
    """Lay the files out in a folder, under the log's new name."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name.replace("recorded.db", log.name)).write_bytes(content)


CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)", re.DOTALL)
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def text(arguments: str) -> bytes:
    found = TEXT.search(arguments)
    return bytes.fromhex(found.group(1).replace("\\x", "")) if found else b""


def read_recording(trace: Path, folder: Path) -> Iterator[Operation]:
    """The operations on files of `folder`, and the acknowledgements, of a strace -xx log."""
    opened: dict[int, str] = {}
    for line in trace.read_text().splitlines():
        call = CALL.match(line)
        if call is None or int(call.group(3)) < 0:
            continue
        name, arguments, result = call.group(1), call.group(2), int(call.group(3))
        if name == "openat":
            path = Path(os.fsdecode(text(arguments)))
            opened.pop(result, None)
            if path == folder or path.parent == folder:
                opened[result] = "" if path == folder else path.name
                if "O_CREAT" in arguments:
                    yield Operation("create", path.name)
        elif name == "unlink":
            path = Path(os.fsdecode(text(arguments)))
            if path.parent == folder:
                yield Operation("unlink", path.name)
        else:
            yield from on_descriptor(name, arguments, opened)


def on_descriptor(name: str, arguments: str, opened: dict[int, str]) -> Iterator[Operation]:
    number = int(arguments.split(",")[0])
    if name == "write" and number == 1:
        if text(arguments).startswith(b"ack "):
            yield Operation("ack", data=text(arguments))
    elif number in opened:
        file = opened[number]
        if name == "close":
            del opened[number]
        elif name == "pwrite64":
            yield Operation("write", file, text(arguments), int(arguments.rsplit(",", 1)[1]))
        elif name == "ftruncate":
            yield Operation("truncate", file, offset=int(arguments.rsplit(",", 1)[1]))
        elif name in ("fsync", "fdatasync"):
            yield Operation("sync", file) if file else Operation("sync-folder")
        else:
            raise AssertionError(f"unexpected {name} on {file}")
