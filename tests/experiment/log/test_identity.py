"""Who a participant code is: beside the record, and gone when erased."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfihilo.experiment.log.errors import DamagedError
from sfihilo.experiment.log.store import Log, verify


def test_stored_replaced_and_listed(tmp_path: Path) -> None:
    with Log.open(tmp_path / "study.db") as log:
        assert log.get_identity("P07") is None
        log.set_identity("P07", {"name": "Ada", "born": 1815})
        log.set_identity("P08", {"name": "Grace"})
        log.set_identity("P07", {"name": "Ada Lovelace"})
        assert log.get_identity("P07") == {"name": "Ada Lovelace"}
        assert list(log.events()) == []


@pytest.mark.parametrize("length", [10, 3000, 50_000])
def test_erased_bytes_are_gone_and_the_record_is_untouched(tmp_path: Path, length: int) -> None:
    path = tmp_path / "study.db"
    secret = "LOVELACE" * (length // 8 + 1)
    with Log.open(path) as log:
        for i in range(8):
            log.append("s", "note", {"participant": "P07", "i": i})
            log.set_identity(f"P{i:02}", {"name": f"{secret} {i}"})
        for i in range(8):  # replaced ones must leave nothing either
            log.set_identity(f"P{i:02}", {"name": f"{secret} again {i}"})
        before, head = list(log.events()), log.head()
        assert b"LOVELACE" in path.read_bytes()
        for i in range(8):
            assert log.erase_identity(f"P{i:02}") is True
        assert log.erase_identity("P07") is False
        assert log.get_identity("P07") is None
        assert list(log.events()) == before
        assert log.head() == head
        assert log.verify().ok
    files = list(tmp_path.iterdir())
    assert files == [path]
    assert b"LOVELACE" not in path.read_bytes()


def test_one_persons_bytes_go_and_the_neighbours_stay(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Log.open(path) as log:
        log.set_identity("P07", {"name": "LOVELACE"})
        log.set_identity("P08", {"name": "HOPPER"})
        log.erase_identity("P07")
        assert log.get_identity("P08") == {"name": "HOPPER"}
    assert b"LOVELACE" not in path.read_bytes()


def test_a_changed_identity_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Log.open(path) as log:
        log.set_identity("P07", {"name": "Ada"})
    with closing(sqlite3.connect(path)) as other:
        other.execute("""UPDATE identity SET fields = '{"name":"Eve"}'""")
        other.commit()
    verdict = verify(path)
    assert not verdict.ok
    assert "'P07'" in verdict.reason
    with Log.open(path) as log, pytest.raises(DamagedError, match="P07"):
        log.get_identity("P07")
