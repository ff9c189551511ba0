"""Many sessions at once over HTTP; `benchmarks/console_load.py` measures it."""

from pathlib import Path

import pytest

from benchmarks import console_load


def test_sessions_at_the_same_time_equal_solo_runs(tmp_path: Path) -> None:
    db = tmp_path / "load.db"
    load = console_load.run(db, sessions=2, seconds=3.0, speed=200.0)
    assert sum(load.trials.values()) >= 4
    assert console_load.differing(db, load, tmp_path, most=1) == []


@pytest.mark.slow
def test_twenty_sessions_lose_nothing_and_wait_little(tmp_path: Path) -> None:
    db = tmp_path / "load.db"
    load = console_load.run(db, sessions=20, seconds=120.0, speed=20.0)
    found = load.summary()
    print(found)
    assert console_load.differing(db, load, tmp_path, most=20) == []
    assert found["sessions"] == 20
    assert found["answers"] >= 200
    assert found["p50_ms"] < 1000  # a busy machine; the benchmark is for the figure itself
