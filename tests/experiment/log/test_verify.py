"""What a reader of the log is told: locked is not damaged, a rewritten chain is another record."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sfihilo.experiment.files import replacing
from sfihilo.experiment.log import schema
from sfihilo.experiment.log.chain import check
from sfihilo.experiment.log.errors import BusyError, DamagedError
from sfihilo.experiment.log.event import Event, canonical, fingerprint
from sfihilo.experiment.log.store import Log, verify
from sfihilo.experiment.output.export import restore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "study.db"
    with Log.open(made) as log:
        for number in range(5):
            log.append("s", "note", {"text": str(number)})
    return made


@pytest.fixture
def locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(schema, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield path
        other.execute("ROLLBACK")


def test_verify_of_a_locked_file_says_busy_not_damaged(locked: Path) -> None:
    with pytest.raises(BusyError, match="in use"):
        verify(locked)


def test_file_locked_during_the_check_is_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "PATIENCE", 0.05)
    with Log.open(path, read_only=True) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(BusyError):
                log.verify()
        assert log.verify().ok


def rewritten(path: Path, out: Path) -> None:
    """The same log with one note changed and every hash computed anew, as a forger would."""
    lines = []
    with Log.open(path) as log:
        previous = None
        for event in log.events():
            fields = event.to_dict()
            if event.number == 2:
                fields["body"] = {"text": "forged"}
            fields["previous"] = previous or fields["previous"]
            fields["hash"] = previous = fingerprint(fields, canonical(fields["body"]))
            lines.append(canonical(fields))
    text = out.with_suffix(".jsonl")
    text.write_text("\n".join(lines) + "\n")
    restore(text, out)


def test_rewritten_record_is_found_by_a_noted_head_only(path: Path, tmp_path: Path) -> None:
    with Log.open(path) as log:
        _, head = log.head()
        first = next(iter(log.events())).hash
        assert log.verify(head).ok
        log.append("s", "note", {"text": "later"})
        assert log.verify(head).ok  # a head stays part of the record that goes on
    assert verify(path, head=head).ok
    forged = tmp_path / "forged.db"
    rewritten(path, forged)
    assert verify(forged).ok  # the chain has no key: this is what it does not promise
    assert verify(forged, head=first).ok
    verdict = verify(forged, head=head)
    assert not verdict.ok
    assert "another record" in verdict.reason
    assert verdict.first_bad is None


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_files_are_created_for_the_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "study.db"
        with Log.open(path) as log:
            log.append("s", "note", {})
        Log.recover(path, tmp_path / "saved.db")
        with replacing(tmp_path / "report.html", b"x") as partial:
            partial.write_text("x")
    finally:
        os.umask(before)
    for made in ("study.db", "saved.db", "report.html"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600, made


@pytest.mark.skipif(os.name != "posix", reason="other systems cannot sync a folder")
def test_new_name_of_a_file_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content is synced before the rename, the folder after it."""
    synced: list[tuple[bool, bool]] = []
    path = tmp_path / "report.html"

    def noted(handle: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(handle).st_mode), path.exists()))

    monkeypatch.setattr(os, "fsync", noted)
    with replacing(path, b"x") as partial:
        partial.write_text("x")
    assert synced == [(False, False), (True, True)]


def test_snapshot_of_the_log_is_one_moment(path: Path) -> None:
    with Log.open(path) as log:
        events = log.snapshot()
        log.append("s", "note", {"text": "later"})
        assert len(events) == 5
        assert check(events).ok


def test_event_with_a_valid_hash_and_no_sense_is_named(path: Path) -> None:
    """Somebody who writes to the file can give any text its hash; reading must not crash."""
    with Log.open(path) as log:
        count, head = log.head()
    body = "[" * 100_000 + "]" * 100_000
    fields = {
        "seq": count + 1, "previous": head, "session": "s", "number": count + 1, "kind": "note",
        "body": body, "key": None, "actor": None, "wall": "now", "monotonic": 1,
    }  # fmt: skip
    fields["hash"] = fingerprint(fields, body)
    with closing(schema.connect(path)) as connection:
        schema.insert(connection, fields)
    with Log.open(path) as log, pytest.raises(DamagedError, match="event 6 is not an event"):
        list(log.events())


@pytest.mark.parametrize("change", [{"session": []}, {"body": 3}, {"seq": "1"}, {"key": {}}])
def test_line_with_a_wrong_type_is_refused(
    path: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    with Log.open(path) as log:
        event = next(iter(log.events()))
    with pytest.raises(ValueError, match=next(iter(change))):
        Event.from_dict({**event.to_dict(), **change})
    lines = tmp_path / "log.jsonl"
    lines.write_text(canonical({**event.to_dict(), **change}) + "\n")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="line 1"):
        restore(lines, tmp_path / "out.db")
