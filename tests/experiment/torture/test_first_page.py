"""Systematic damage of a log's first page, under a memory limit: every event is recovered.

SQLite reads sizes from that page; a damaged one may ask for gigabytes. The child process has a
limit on its memory, so that an unbounded allocation fails the test instead of the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sfihilo.experiment.log.errors import DamagedError, LogError
from sfihilo.experiment.log.recovery import carve
from sfihilo.experiment.log.schema import PAGE
from sfihilo.experiment.log.store import Log, verify
from tests.experiment.torture.children import fast_folder
from tests.experiment.torture.test_damage import PERSON, Specimen

MEMORY = 2**30
FILLS = (0xFF, 0x00, 0x80)


def damages(width: int, stride: int) -> Iterator[tuple[int, int, int]]:
    for start in range(0, PAGE, stride):
        for fill in FILLS:
            yield start, min(width, PAGE - start), fill


def check(folder: Path, width: int, stride: int) -> None:
    """Damage the first page in all these places; nothing but the log's own errors may come out."""
    specimen = Specimen(folder, 4)
    for start, length, fill in damages(width, stride):
        data = bytearray(specimen.data)
        data[start : start + length] = bytes([fill]) * length
        damaged = specimen.write(bytes(data))
        where = f"{length} bytes of {fill:#x} at {start}"
        verify(damaged)
        with suppress(LogError):
            Log.open(damaged).close()
        saved = folder / "saved.db"
        assert Log.recover(specimen.write(bytes(data)), saved) == len(specimen.events), where
        with Log.open(saved) as log:
            assert log.get_identity("P07") == PERSON, where
        saved.unlink()


def in_child(width: int, stride: int) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        "from tests.experiment.torture.test_first_page import check, fast_folder\n"
        "with fast_folder() as folder:\n"
        f"    check(folder, {width}, {stride})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(("width", "stride"), [(8, 128), (64, 64), (512, 512), (PAGE, PAGE)])
def test_damaged_first_page_costs_no_event_and_no_unbounded_memory(width: int, stride: int) -> None:
    in_child(width, stride)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 8, 64])
def test_first_page_damaged_everywhere_costs_no_event(width: int) -> None:
    in_child(width, 16)


def test_size_that_exceeds_the_file_is_not_followed() -> None:
    """Overflow pages that form a loop, and a damaged size: carving ends, with little memory."""
    with fast_folder() as folder:
        specimen = Specimen(folder, 4)
        data = bytearray(specimen.data)
        event = specimen.events[3]
        place = data.index((event.previous + event.hash).encode())
        header = data.rindex(b"\x00\x81\x0d\x81\x0d", 0, place)
        data[header + 5 : header + 7] = b"\xff\xff"  # the length of the session's name
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows, _ = carve(bytes(data))
        assert len(rows) <= 3
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("start", [2496, 3276, 3424])
def test_page_on_which_sqlite_runs_out_of_memory_is_named_as_damage(start: int) -> None:
    """Found by search: there SQLite 3.40 gives up with Python's MemoryError."""
    with fast_folder() as folder:
        specimen = Specimen(folder, 4)
        data = specimen.data[:start] + b"\xff" * 64 + specimen.data[start + 64 :]
        with pytest.raises(DamagedError, match=r"not an intact log: ."):
            Log.open(specimen.write(data))
        assert not verify(specimen.write(data)).ok
        assert Log.recover(specimen.path, folder / "saved.db") == len(specimen.events)
