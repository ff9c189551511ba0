"""Disk full and I/O errors at every write: no false acknowledgement, readable afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sfihilo.experiment.log.store import Log
from tests.experiment.torture.children import (
    acknowledged,
    count_calls,
    fast_folder,
    judge,
    needs_strace,
    resume,
    traced,
)
from tests.experiment.torture.writer import plan

pytestmark = needs_strace

FAULTS = (
    ("pwrite64", "ENOSPC"),
    ("pwrite64", "EIO"),
    ("fdatasync", "EIO"),
    ("fdatasync", "ENOSPC"),
    ("unlink", "EIO"),
    ("ftruncate", "EIO"),
)
Fault = tuple[str, str, int, bool]  # call, error, which, whether all later ones fail too


def fault_points(folder: Path, queries: int) -> list[Fault]:
    total = count_calls(folder, "--queries", str(queries))
    return [
        (call, error, number, lasting)
        for call, error in FAULTS
        for number in range(1, total[call] + 1)
        for lasting in (False, True)
    ]


def fail_at(folder: Path, fault: Fault, queries: int) -> bool:
    """Let one call (or it and all later ones) fail; whether the writer noticed."""
    call, error, number, lasting = fault
    path = folder / f"{call}-{error}-{number}-{lasting}.db"
    inject = f"inject={call}:error={error}:when={number}{'+' if lasting else ''}"
    strace = ("--seccomp-bpf", "-e", f"trace={call}", "-e", inject, "-o", "/dev/null")
    lines = traced(path, "--queries", str(queries), "--attempts", "2", strace=strace)
    assert lines[-1] == "done", "the writer did not survive the error"
    acks = acknowledged(lines)
    if lasting:
        judge_gaps(path, acks, queries)
    else:
        assert len(acks) == len(plan(queries)), "a second attempt with the same key must succeed"
        judge(path, acks, queries)
    path.unlink()
    return any(line.startswith("problem") for line in lines)


def judge_gaps(path: Path, acks: dict[str, str], queries: int) -> None:
    """As `judge`, where events in the middle may be missing since their attempts all failed."""
    with Log.open(path) as log:
        assert log.verify().ok
        events = list(log.events())
        stored = {event.key: event.hash for event in events}
        assert len(stored) == len(events), "an event is there twice"
        assert {key: stored.get(key) for key in acks} == acks, "a false acknowledgement"
        resume(log, plan(queries))
        assert {event.key for event in log.events()} == {step.key for step in plan(queries)}
        assert log.verify().ok


def test_some_failing_writes() -> None:
    with fast_folder() as folder:
        points = random.Random(3).sample(fault_points(folder, 1), 20)
        noticed = sum(fail_at(folder, fault, 1) for fault in points)
        assert noticed >= 15  # SQLite may shrug at a failed unlink of a journal it emptied


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_failing_write(part: int) -> None:
    with fast_folder() as folder:
        points = fault_points(folder, 5)[part::4]
        noticed = sum(fail_at(folder, fault, 5) for fault in points)
        print(f"{noticed} of {len(points)} faults were reported to the writer")
        assert noticed > 0.9 * len(points)
