"""Starting the writing child, under strace or bare, and judging the file that it left behind."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfihilo.experiment.log.store import Log
from tests.experiment.torture.writer import Step, plan

WRITER = Path(__file__).with_name("writer.py")
CALLS = ("openat", "pwrite64", "write", "fdatasync", "fsync", "ftruncate", "unlink", "close")
OPENING_LIMIT = 2.0  # seconds of work: a machine busy with other things is no fault

needs_strace = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("strace") is None, reason="strace cannot be had here"
)


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing that way either."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def command(log: Path, *options: str) -> list[str]:
    spec = importlib.util.find_spec("sfihilo")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = spec.submodule_search_locations[0]
    return [sys.executable, "-I", "-S", "-B", str(WRITER), package, str(log), *options]


def traced(log: Path, *options: str, strace: tuple[str, ...] = ()) -> list[str]:
    """Run the writer to its end (or its killing) under strace; the lines that it said."""
    full = ["strace", "-f", "-qq", *strace, *command(log, *options)]
    result = subprocess.run(full, capture_output=True, text=True, timeout=120, check=False)
    return result.stdout.splitlines()


def acknowledged(lines: list[str]) -> dict[str, str]:
    """Hash by key of every acknowledged event; a line cut short acknowledges nothing."""
    words = [line.split() for line in lines if re.fullmatch(r"ack \S+ [0-9a-f]{64}", line)]
    return {key: digest for _, key, digest in words}


def count_calls(folder: Path, *options: str) -> Counter[str]:
    """How often the writer makes each system call from its first look at the log to its end."""
    trace = folder / "calls"
    log = folder / "counted.db"
    traced(log, *options, strace=("-e", f"trace={','.join(CALLS)}", "-o", str(trace)))
    names = re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.MULTILINE)
    return Counter(names)


def first_own_calls(folder: Path, *options: str) -> dict[str, int]:
    """The number of each call with which the writer's own work begins (before: Python's start)."""
    trace = folder / "calls-before"
    log = folder / "counted-before.db"
    traced(log, *options, strace=("-e", f"trace={','.join(CALLS)}", "-o", str(trace)))
    before = trace.read_text(errors="replace").split(f'"{log}"')[0]
    counts = Counter(re.findall(r"^\d+ +(\w+)\(", before, re.MULTILINE))
    return {name: max(1, counts[name]) for name in CALLS}


def judge(path: Path, acks: dict[str, str], queries: int) -> None:
    """Nothing acknowledged lost, nothing doubled, nothing corrupt, open again fast; then go on."""
    steps = plan(queries)
    started = time.process_time()
    with Log.open(path) as log:
        assert time.process_time() - started < OPENING_LIMIT
        verdict = log.verify()
        assert verdict.ok, verdict
        events = list(log.events())
        keys = [event.key for event in events]
        assert keys == [step.key for step in steps[: len(keys)]], "not a prefix of the plan"
        stored = {event.key: event.hash for event in events}
        assert {key: stored.get(key) for key in acks} == acks, "an acknowledged event was lost"
        assert len(events) <= len(acks) + 1, "more than the one event in flight was not told"
        resume(log, steps)
        assert [event.key for event in log.events()] == [step.key for step in steps]
        assert log.verify().ok


def resume(log: Log, steps: list[Step]) -> None:
    """Repeat the whole session with the same keys, as a client that lost its memory would."""
    for step in steps:
        log.append("s", step.kind, step.body, key=step.key, actor="operator")
