"""Flipped bytes and cut files: what was acknowledged never reads differently without being told.

A flip is either detected, or it fell on bytes that hold nothing (free space within pages, counters
that SQLite keeps for itself): then every event and every identity still reads as it was written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfihilo.experiment.log.recovery import carve
from sfihilo.experiment.log.store import Log, verify
from tests.experiment.torture.children import fast_folder, resume
from tests.experiment.torture.writer import plan

PERSON: dict[str, str | int] = {"name": "Ada Lovelace", "born": 1815}


class Specimen:
    """An intact log, what it holds, and where the unmistakable bytes of each event stand."""

    def __init__(self, folder: Path, queries: int) -> None:
        self.path = folder / "specimen.db"
        with Log.open(self.path) as log:
            resume(log, plan(queries))
            log.set_identity("P07", PERSON)
            self.events = list(log.events())
        self.data = self.path.read_bytes()
        self.owner: dict[int, int] = {}
        for event in self.events:
            mark = (event.previous + event.hash).encode()
            if self.data.count(mark) == 1:  # page splits leave stale copies of some
                place = self.data.index(mark)
                self.owner.update(dict.fromkeys(range(place, place + len(mark)), event.seq))

    def write(self, data: bytes) -> Path:
        self.path.write_bytes(data)
        return self.path

    def flipped(self, place: int, mask: int) -> bytes:
        return self.data[:place] + bytes([self.data[place] ^ mask]) + self.data[place + 1 :]


@pytest.fixture
def specimen(request: pytest.FixtureRequest) -> Iterator[Specimen]:
    with fast_folder() as folder:
        yield Specimen(folder, request.param)


def check_prefix(specimen: Specimen, data: bytes, at_least: int) -> int:
    """What is carved out is exactly the beginning of the record, and all of it that stands."""
    rows, _ = carve(data)
    assert [row["hash"] for row in rows] == [event.hash for event in specimen.events[: len(rows)]]
    assert len(rows) >= at_least
    return len(rows)


def check_flip(specimen: Specimen, place: int, mask: int) -> str:
    data = specimen.flipped(place, mask)
    verdict = verify(specimen.write(data))
    if verdict.ok:
        assert place not in specimen.owner
        with Log.open(specimen.path, read_only=True) as log:
            assert list(log.events()) == specimen.events, "a change that nobody noticed"
            assert log.get_identity("P07") == PERSON
        check_prefix(specimen, data, len(specimen.events))
        return "nothing changed"
    saved = check_prefix(specimen, data, verdict.count if verdict.first_bad else 0)
    if place in specimen.owner:
        assert saved == specimen.owner[place] - 1, "the intact prefix ends where the damage is"
        assert verdict.first_bad == specimen.owner[place]
    return "an event, named" if verdict.first_bad else "around the events"


def check_flips(specimen: Specimen, count: int, seed: int) -> Counter[str]:
    rng = random.Random(seed)
    tally = Counter(
        check_flip(specimen, rng.randrange(len(specimen.data)), rng.randint(1, 255))
        for _ in range(count)
    )
    print(dict(tally))
    return tally


@pytest.mark.parametrize("specimen", [4], indirect=True)
def test_some_flipped_bytes(specimen: Specimen) -> None:
    assert verify(specimen.path).ok
    tally = check_flips(specimen, 250, seed=4)
    assert tally["an event, named"] > 25
    assert tally["around the events"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("specimen", [20], indirect=True)
def test_10000_flipped_bytes(specimen: Specimen, part: int) -> None:
    tally = check_flips(specimen, 2500, seed=part)
    assert tally["an event, named"] > 1000


@pytest.mark.parametrize("specimen", [4], indirect=True)
def test_every_byte_of_an_event_counts(specimen: Specimen) -> None:
    """Of each event some bytes of hash, body and time: always detected, always named."""
    rng = random.Random(5)
    for event in specimen.events[::3]:
        for text in (event.hash, event.wall):
            place = specimen.data.rindex(text.encode()) + rng.randrange(len(text))
            verdict = verify(specimen.write(specimen.flipped(place, 1)))
            assert not verdict.ok
    for place in rng.sample(sorted(specimen.owner), 40):
        assert check_flip(specimen, place, 0x20) == "an event, named"


def check_cuts(specimen: Specimen, lengths: list[int]) -> None:
    most = 0
    for length in sorted(lengths):
        data = specimen.data[:length]
        verdict = verify(specimen.write(data))
        assert not verdict.ok, f"cut to {length} of {len(specimen.data)} bytes, and not noticed"
        most = check_prefix(specimen, data, most)


@pytest.mark.parametrize("specimen", [4], indirect=True)
def test_some_cut_files(specimen: Specimen) -> None:
    rng = random.Random(6)
    size = len(specimen.data)
    check_cuts(specimen, [0, 1, 99, 4096, size - 4096, size - 1, *rng.sample(range(size), 30)])


@pytest.mark.slow
@pytest.mark.parametrize("specimen", [20], indirect=True)
def test_many_cut_files(specimen: Specimen) -> None:
    rng = random.Random(7)
    size = len(specimen.data)
    check_cuts(specimen, [*range(0, size, 512), *rng.sample(range(size), 1000)])


@pytest.mark.parametrize("specimen", [4], indirect=True)
def test_recovered_log_goes_on(specimen: Specimen, tmp_path: Path) -> None:
    place = max(place for place, seq in specimen.owner.items() if seq == 9)
    damaged = specimen.write(specimen.flipped(place, 4))
    before = damaged.read_bytes()
    saved = tmp_path / "saved.db"
    assert Log.recover(damaged, saved) == 8
    assert damaged.read_bytes() == before
    with Log.open(saved) as log:
        assert list(log.events()) == specimen.events[:8]
        assert log.get_identity("P07") == PERSON
        resume(log, plan(4))
        assert log.verify().ok
    with pytest.raises(ValueError, match="new file"):
        Log.recover(damaged, saved)


@pytest.mark.parametrize("specimen", [4], indirect=True)
def test_recovery_without_the_first_page_returns_every_event(
    specimen: Specimen, tmp_path: Path
) -> None:
    """Even a file that SQLite no longer recognises gives all its events back."""
    damaged = specimen.write(bytes(4096) + specimen.data[4096:])
    assert Log.recover(damaged, tmp_path / "saved.db") == len(specimen.events)
