"""Time that is comparable: one thread, actions taken in turn, medians, and where the time went.

Seconds are processor seconds of this single-threaded process. On a quiet machine they equal wall
time; on a busy one they exclude the time during which other processes had the core.
"""

from __future__ import annotations

import cProfile
import inspect
import os
import platform
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

Action = Callable[[int], object]
ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def one_core() -> Iterator[None]:
    """Runs linear algebra in one thread."""
    with threadpool_limits(limits=1):
        yield


def in_turn(
    actions: Mapping[str, Action], repeats: int, fewer: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Seconds of every repeat. The actions alternate, so that a busy minute affects all of them.

    Each action runs twice and the second run is timed: in a session or a study, a round follows
    another one, with the processor's caches and the allocator's memory as that one left them.
    Slow actions may have `fewer` repeats than the others.
    """
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for repeat in range(repeats):
        for name, action in actions.items():
            if fewer is not None and repeat >= fewer.get(name, repeats):
                continue
            action(repeat)
            start = time.process_time()
            action(repeat)
            seconds[name].append(time.process_time() - start)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Median of every action."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def times_longer(longer: list[float], shorter: list[float]) -> float:
    """Median ratio within a turn; a slow minute of the machine affects both."""
    pairs = list(zip(longer, shorter, strict=False))  # one may have fewer repeats
    return statistics.median(one / other for one, other in pairs)


def parts(
    action: Action, repeats: int, functions: Mapping[str, Callable[..., object]]
) -> dict[str, float]:
    """Mean seconds per repeat inside each function, callees included.

    Raises ValueError if one of the functions is never called: its time would read 0.
    """
    profile = cProfile.Profile(time.process_time)
    for repeat in range(repeats):
        profile.enable()
        action(repeat)
        profile.disable()
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]]
    stats = vars(pstats.Stats(profile))["stats"]
    spent = {}
    for label, function in functions.items():
        code = inspect.unwrap(function).__code__
        called = stats.get((code.co_filename, code.co_firstlineno, code.co_name))
        if called is None:
            raise ValueError(f"{label}: expected a function that a repeat calls, got {function}")
        spent[label] = called[3] / repeats
    return spent


def environment(*packages: str) -> dict[str, Any]:
    """What a reader needs to judge the figures. Call it before measuring.

    A commit made meanwhile is not the code that is measured.
    """
    return {
        "commit": commit(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "packages": {name: version(name) for name in packages},
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(sys.argv[1:]),
    }


def ended(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment, completed after measuring."""
    return {**environment, "load_average_after": os.getloadavg()[0]}


def commit() -> str:
    """The short hash of the current commit."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
