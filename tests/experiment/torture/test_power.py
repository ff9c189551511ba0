"""Power loss: recorded writes replayed with unsynced ones dropped, reordered, torn."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path

import pytest

from sfihilo.experiment.log.errors import LogError
from sfihilo.experiment.log.store import Log
from tests.experiment.torture.children import (
    CALLS,
    acknowledged,
    fast_folder,
    needs_strace,
    traced,
)
from tests.experiment.torture.disk import MANNERS, Disk, Operation, put, read_recording
from tests.experiment.torture.writer import plan

pytestmark = needs_strace

WEAK = {
    "Python's default": ("--journal", "DELETE", "--synchronous", "FULL"),
    "no sync": ("--journal", "DELETE", "--synchronous", "OFF"),
    "WAL normal": ("--journal", "WAL", "--synchronous", "NORMAL"),
}


def record(folder: Path, queries: int, options: tuple[str, ...] = ()) -> list[Operation]:
    trace = folder.parent / f"{folder.name}.trace"
    strace = ("-e", f"trace={','.join(CALLS)}", "-xx", "-s", "70000", "-o", str(trace))
    lines = traced(folder / "recorded.db", "--queries", str(queries), *options, strace=strace)
    assert lines[-1] == "done"
    operations = list(read_recording(trace, folder))
    trace.unlink()
    kinds = Counter(operation.kind for operation in operations)
    assert kinds["ack"] == len(plan(queries)), "the recording is not complete"
    assert kinds["write"] > 0
    return operations


def what_is_wrong(path: Path, acks: dict[str, str]) -> str | None:
    """Open what the power loss left, as the next start would."""
    try:
        with Log.open(path) as log:
            verdict = log.verify()
            stored = {event.key: event.hash for event in log.events()}
    except LogError as problem:
        return f"does not open: {problem}"
    if not verdict.ok:
        return verdict.reason
    lost = [key for key, digest in acks.items() if stored.get(key) != digest]
    if lost:
        return f"lost {lost}"
    return "more than one event in flight" if len(stored) > len(acks) + 1 else None


def digest(files: dict[str, bytes], acks: int) -> bytes:
    content = hashlib.sha256(f"{acks}".encode())
    for name in sorted(files):
        content.update(f"{name} {len(files[name])} ".encode() + files[name])
    return content.digest()


def interrupt(folder: Path, queries: int, number: int) -> dict[str, str]:
    """Leave a log whose writer was killed as it wrote, so that the next one must first undo."""
    kill = ("-e", "trace=pwrite64", "-e", f"inject=pwrite64:signal=KILL:when={number}")
    path = folder / "recorded.db"
    lines = traced(path, "--queries", str(queries), strace=(*kill, "-o", "/dev/null"))
    assert "done" not in lines
    assert path.with_name("recorded.db-journal").exists()
    return acknowledged(lines)


def lose_power(
    queries: int, per_point: int, options: tuple[str, ...] = (), interrupted: int = 0
) -> tuple[int, list[str]]:
    """Crash after every operation in several ways; distinct states tried and what was wrong."""
    rng = random.Random(6)
    seen: set[bytes] = set()
    wrong = []
    with fast_folder() as base:
        recorded, found = base / "recorded", base / "found"
        recorded.mkdir()
        found.mkdir()
        acks = interrupt(recorded, queries, interrupted) if interrupted else {}
        disk, path = Disk.of(recorded, acks), found / "log.db"
        for number, operation in enumerate(record(recorded, queries, options)):
            disk.step(operation)
            first = rng.randrange(len(MANNERS))
            for turn in range(per_point):
                manner = MANNERS[(first + turn) % len(MANNERS)]
                files = disk.after_power_loss(manner, rng)
                state = digest(files, len(disk.acks))
                if state in seen:
                    continue
                seen.add(state)
                put(files, found, path)
                fault = what_is_wrong(path, disk.acks)
                if fault is not None:
                    wrong.append(f"after operation {number} ({operation.kind}), {manner}: {fault}")
    return len(seen), wrong


def test_nothing_acknowledged_is_lost_in_some_states() -> None:
    states, wrong = lose_power(queries=1, per_point=2)
    assert wrong == []
    assert states > 150


def hot_moments(queries: int) -> list[int]:
    """Writes of pages to the log itself: a kill there leaves a journal to be undone."""
    with fast_folder() as folder:
        operations = record(folder, queries)
    writes = [operation for operation in operations if operation.kind == "write"]
    return [
        number
        for number, operation in enumerate(writes, start=1)
        if operation.name == "recorded.db" and number > 20
    ]


def test_power_lost_again_while_an_interrupted_write_is_undone() -> None:
    moment = hot_moments(1)[12]
    states, wrong = lose_power(queries=1, per_point=2, interrupted=moment)
    assert wrong == []
    assert states > 50


@pytest.mark.slow
def test_power_lost_again_after_many_interruptions() -> None:
    total = 0
    for moment in hot_moments(1)[::3]:
        states, wrong = lose_power(queries=1, per_point=6, interrupted=moment)
        assert wrong == [], f"first killed at write {moment}"
        total += states
    print(f"{total} states")
    assert total >= 1000


@pytest.mark.parametrize("setting", WEAK)
def test_power_loss_with_a_weak_sqlite_setting_is_found_to_lose_events(setting: str) -> None:
    states, wrong = lose_power(queries=1, per_point=1, options=WEAK[setting])
    assert any("lost" in fault for fault in wrong), f"{states} states, wrong: {wrong}"


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_5000_states() -> None:
    states, wrong = lose_power(queries=12, per_point=24)
    print(f"{states} distinct states")
    assert wrong == []
    assert states >= 5000
