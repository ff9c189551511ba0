"""Files of other versions: an older one opens after an upgrade, a newer one opens for reading.

`golden/format-N.db` was written by the version that introduced format N and is never written
again (`python -m tests.experiment.test_log_format` makes the one of the present format).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfihilo.experiment.log import schema
from sfihilo.experiment.log.errors import ReadOnlyError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.log.store import Log, verify

GOLDEN = Path(__file__).with_name("golden")
PERSON = {"name": "Ada Lovelace"}


def write_golden() -> None:
    path = GOLDEN / f"format-{schema.FORMAT}.db"
    with Log.open(path) as log:
        for session in ("P07-1", "P08-1"):
            log.append(session, "opened", {"seed": 7, "space": "s" * 5000}, key="open")
            for i in range(3):
                log.append(session, "asked", {"policy": [i / 7, 1e-9, 1.0]}, key=f"ask-{i}")
                log.append(session, "measured", {"ü": None, "ok": True}, actor="Zoë")
        log.set_identity("P07", PERSON)
        lines = [json.dumps(event.to_dict()) for event in log.events()]
    path.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(params=range(1, schema.FORMAT + 1))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Event]]:
    source = GOLDEN / f"format-{request.param}.db"
    lines = source.with_suffix(".jsonl").read_text().splitlines()
    path = tmp_path / "study.db"
    shutil.copyfile(source, path)
    return path, [Event.from_dict(json.loads(line)) for line in lines]


def test_every_format_ever_written_opens_and_goes_on(golden: tuple[Path, list[Event]]) -> None:
    path, events = golden
    assert verify(path).ok
    with Log.open(path, read_only=True) as log:
        assert list(log.events()) == events
    with Log.open(path) as log:
        assert list(log.events()) == events
        assert log.get_identity("P07") == PERSON
        log.append("P07-1", "note", {}, expected=7)
        assert log.verify().ok
        assert log.head()[0] == len(events) + 1


def upgrade(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Pretend that this is the version after the present one."""
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, schema.FORMAT: script})
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + 1)


MIGRATION = """
CREATE TABLE device (name TEXT PRIMARY KEY);
ALTER TABLE identity ADD COLUMN consent TEXT;
"""


def test_an_upgrade_migrates_and_keeps_every_event(
    golden: tuple[Path, list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, events = golden
    upgrade(monkeypatch, MIGRATION)
    with Log.open(path, read_only=True) as log:  # reading does not migrate
        assert list(log.events()) == events
        assert schema.number(log._alive(), "PRAGMA user_version") < schema.FORMAT
    with Log.open(path) as log:
        assert schema.number(log._alive(), "PRAGMA user_version") == schema.FORMAT
        assert schema.number(log._alive(), "SELECT count(*) FROM device") == 0
        assert list(log.events()) == events
        log.append("P07-1", "note", {})


def test_a_failed_upgrade_changes_nothing(
    golden: tuple[Path, list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, events = golden
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        upgrade(patch, MIGRATION + "CREATE TABLE events (again);\n")
        with pytest.raises(Exception, match="already exists"):
            Log.open(path)
    assert path.read_bytes() == before
    with Log.open(path) as log:
        assert list(log.events()) == events


def test_a_newer_file_opens_for_reading_only(golden: tuple[Path, list[Event]]) -> None:
    path, events = golden
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE device (name TEXT PRIMARY KEY)")
        other.execute("ALTER TABLE events ADD COLUMN device TEXT")
        other.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
        other.commit()
    before = path.read_bytes()
    with Log.open(path) as log:
        assert log.newer
        assert log.read_only
        assert list(log.events()) == events
        assert log.verify().ok
        with pytest.raises(ReadOnlyError, match=r"newer SFIHILO.*upgrade"):
            log.append("P07-1", "note", {})
        with pytest.raises(ReadOnlyError, match="newer"):
            log.erase_identity("P07")
    assert path.read_bytes() == before


def test_a_flipped_format_number_is_not_taken_for_a_newer_file(
    golden: tuple[Path, list[Event]],
) -> None:
    path, _ = golden
    with Log.open(path):
        pass
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {schema.FORMAT + 4}")
        other.commit()
    verdict = verify(path)
    assert not verdict.ok
    assert "format number" in verdict.reason


if __name__ == "__main__":
    write_golden()
