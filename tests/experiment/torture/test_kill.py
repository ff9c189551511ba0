"""kill -9 at every system call that has to do with writing, and at random moments."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.experiment.torture.children import (
    CALLS,
    acknowledged,
    command,
    count_calls,
    fast_folder,
    first_own_calls,
    judge,
    needs_strace,
    traced,
)


def kill_at(folder: Path, call: str, number: int, queries: int) -> bool:
    """Kill the writer as it enters its number-th such call; whether it came that far."""
    path = folder / f"{call}-{number}.db"
    inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
    lines = traced(path, "--queries", str(queries), strace=(*inject, "-o", "/dev/null"))
    judge(path, acknowledged(lines), queries)
    path.unlink()
    return "done" not in lines


def kill_points(folder: Path, queries: int) -> list[tuple[str, int]]:
    options = ("--queries", str(queries))
    first, total = first_own_calls(folder, *options), count_calls(folder, *options)
    return [(call, n) for call in CALLS for n in range(first[call], total[call] + 1)]


def check_points(points: list[tuple[str, int]], folder: Path, queries: int) -> int:
    return sum(kill_at(folder, call, number, queries) for call, number in points)


@needs_strace
def test_killed_at_some_system_calls() -> None:
    with fast_folder() as folder:
        points = kill_points(folder, 1)
        assert {"pwrite64", "fdatasync", "unlink", "openat", "write"} <= {c for c, _ in points}
        some = random.Random(1).sample(points, 16)
        assert check_points(some, folder, 1) >= 15


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize("part", range(8))
def test_killed_at_every_system_call(part: int) -> None:
    with fast_folder() as folder:
        points = kill_points(folder, 20)
        assert len(points) > 2000
        mine = points[part::8]
        killed = check_points(mine, folder, 20)
        print(f"{killed} of {len(mine)} kill points reached")
        assert killed >= len(mine) - 8  # the very last calls of a kind may fall to Python's exit


def check_moments(count: int, seed: int, queries: int) -> int:
    """Kill at moments drawn over the whole time that a run takes; how many fell within it."""
    rng = random.Random(seed)
    within = 0
    with fast_folder() as folder:
        duration = 0.0
        for number in range(count + 1):
            path = folder / f"{number}.db"
            child = subprocess.Popen(
                command(path, "--queries", str(queries)), stdout=subprocess.PIPE, text=True
            )
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            started = time.perf_counter()
            if number:  # the first is left to finish: it is the clock
                time.sleep(rng.uniform(0, duration))
                child.kill()
            lines = child.stdout.read().splitlines()
            child.wait()
            child.stdout.close()
            duration = duration or time.perf_counter() - started
            judge(path, acknowledged(lines), queries)
            late = "done" in lines
            within += not late
            duration *= 0.9 if late and number else 1.02  # follow how busy the machine is
            path.unlink()
    return within


def test_killed_at_some_moments() -> None:
    assert check_moments(8, seed=2, queries=10) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_killed_at_1000_moments(part: int) -> None:
    assert check_moments(250, seed=part, queries=20) >= 100
