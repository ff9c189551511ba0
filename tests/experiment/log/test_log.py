"""The event log: what it takes, what it refuses, and what it says."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfihilo.experiment.log import chain, schema
from sfihilo.experiment.log import store as module
from sfihilo.experiment.log.errors import (
    BusyError,
    DamagedError,
    DiskFailureError,
    KeyConflictError,
    NotALogError,
    ReadOnlyError,
    StaleError,
)
from sfihilo.experiment.log.event import GENESIS, Event
from sfihilo.experiment.log.store import Log, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    with Log.open(path) as opened:
        yield opened


def test_what_is_appended_is_read_back(log: Log) -> None:
    body: dict[str, Any] = {
        "policy": [0.1, 1 / 3, 1e-300, -0.0],
        "deep": {"ok": True, "none": None},
        "é": "ü\0\ud800",
    }
    event = log.append("s1", "asked", body, key="k", expected=0, actor="Zoë")
    assert (event.seq, event.session, event.number, event.kind) == (1, "s1", 1, "asked")
    assert (event.body, event.key, event.actor) == (body, "k", "Zoë")
    assert event.previous == GENESIS
    assert event.wall.endswith("+00:00")
    assert list(log.events()) == [event]
    assert math.copysign(1, event.body["policy"][3]) == -1


def test_order_numbers_and_filters(log: Log) -> None:
    for name in ("b", "a", "b", "a", "a"):
        log.append(name, "note", {"in": name})
    assert [event.seq for event in log.events()] == [1, 2, 3, 4, 5]
    assert [(event.seq, event.number) for event in log.events("a")] == [(2, 1), (4, 2), (5, 3)]
    assert [event.seq for event in log.events("a", after=2)] == [4, 5]
    assert [event.seq for event in log.events(after=3)] == [4, 5]
    assert log.sessions() == ["b", "a"]
    assert (log.count("a"), log.count("b"), log.count("unknown")) == (3, 2, 0)


def test_many_events_are_read_in_batches(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    written = [log.append(f"s{i % 2}", "note", {"i": i}) for i in range(9)]
    assert list(log.events()) == written
    assert list(log.events("s1")) == written[1::2]


def test_order_is_by_sequence_not_by_clock(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([500, 400, 300])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(ticks))
    for i in range(3):
        log.append("s", "note", {"i": i})
    assert [event.body["i"] for event in log.events()] == [0, 1, 2]
    assert [event.monotonic for event in log.events()] == [500, 400, 300]
    assert log.verify().ok


BAD_BODIES: tuple[Any, ...] = (
    {"x": math.nan},
    {"x": [1.0, math.inf]},
    {"x": {"y": -math.inf}},
    {"x": np.float64("nan")},
    {1: "number as key"},
    {"x": {None: 1}},
    {"x": np.zeros(2)},
    {"x": np.int64(3)},
    {"x": {1, 2}},
    {"x": b"bytes"},
    {"x": math.sin},
    [1, 2],
    "text",
    None,
)


@pytest.mark.parametrize("body", BAD_BODIES, ids=repr)
def test_what_json_would_change_is_refused(log: Log, body: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        log.append("s", "note", body)
    assert list(log.events()) == []


def test_a_body_that_is_too_deep_is_refused(log: Log) -> None:
    body: dict[str, Any] = {}
    for _ in range(2000):
        body = {"x": body}
    with pytest.raises(ValueError, match="deeper"):
        log.append("s", "note", body)


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 201, "\ud800", 7, None])
def test_names_must_be_short_printable_text(log: Log, name: Any) -> None:
    with pytest.raises(ValueError, match="session"):
        log.append(name, "note", {})
    with pytest.raises(ValueError, match="kind"):
        log.append("s", name, {})
    if name is not None:
        with pytest.raises(ValueError, match="key"):
            log.append("s", "note", {}, key=name)
        with pytest.raises(ValueError, match="actor"):
            log.append("s", "note", {}, actor=name)


def test_the_same_key_writes_once(log: Log) -> None:
    first = log.append("s", "measured", {"x": 1, "y": (2, 3)}, key="k", actor="a", expected=0)
    again = log.append("s", "measured", {"y": [2, 3], "x": 1}, key="k", actor="a", expected=0)
    assert again == first
    assert log.find("s", "k") == first
    assert log.find("s", "other") is None
    other = log.append("t", "measured", {"x": 2}, key="k")  # keys belong to their session
    assert list(log.events()) == [first, other]


@pytest.mark.parametrize(
    ("kind", "body", "actor"),
    [("chosen", {"x": 1}, "a"), ("measured", {"x": 1.5}, "a"), ("measured", {"x": 1}, None)],
)
def test_the_same_key_with_other_content_is_refused(
    log: Log, kind: str, body: dict[str, Any], actor: str | None
) -> None:
    first = log.append("s", "measured", {"x": 1}, key="k", actor="a")
    with pytest.raises(KeyConflictError, match="another content"):
        log.append("s", kind, body, key="k", actor=actor)
    assert list(log.events()) == [first]


def test_a_stale_writer_is_told_the_current_count(log: Log) -> None:
    log.append("s", "note", {}, expected=0)
    for wrong in (0, 2):
        with pytest.raises(StaleError) as caught:
            log.append("s", "note", {}, expected=wrong)
        assert (caught.value.current, caught.value.expected) == (1, wrong)
    assert log.append("s", "note", {}, expected=1).number == 2


def test_a_second_writer_gets_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "PATIENCE", 0.05)
    with Log.open(path) as log, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError, match="another writer"):
            log.append("s", "note", {})
        assert list(log.events()) == []
        other.execute("ROLLBACK")
        assert log.append("s", "note", {}).seq == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'x'",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 1",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 1",
        "REPLACE INTO events SELECT 1, previous, hash, 'x', 9, kind, body, NULL, NULL, wall, 0"
        " FROM events WHERE seq = 1",
        "INSERT INTO events SELECT 5, previous, hash, 'x', 9, kind, body, NULL, NULL, wall, 0"
        " FROM events WHERE seq = 1",
        "UPDATE head SET count = 0",
        "DELETE FROM head",
    ],
)
def test_events_cannot_be_changed_by_sql(path: Path, log: Log, statement: str) -> None:
    written = [log.append("s", "note", {"i": i}) for i in range(3)]
    with closing(sqlite3.connect(path)) as other:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
        other.rollback()
    assert list(log.events()) == written
    assert log.verify().ok


TAMPERING = {
    "body": ("UPDATE events SET body = '{\"i\":7}' WHERE seq = 2", 2),
    "actor": ("UPDATE events SET actor = 'someone' WHERE seq = 3", 3),
    "wall": ("UPDATE events SET wall = '2020-01-01T00:00:00+00:00' WHERE seq = 1", 1),
    "key": ("UPDATE events SET key = 'k' WHERE seq = 2", 2),
    "removed": ("DELETE FROM events WHERE seq = 2", 2),
    "end removed": ("DELETE FROM events WHERE seq = 4", 4),
    "type": ("UPDATE events SET body = x'7b7d' WHERE seq = 2", 2),
    "number": ("UPDATE events SET number = 9 WHERE seq = 4", 4),
    "blank before": ("UPDATE events SET body = ' ' || body WHERE seq = 3", 3),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_a_tampered_event_is_named(path: Path, what: str) -> None:
    statement, seq = TAMPERING[what]
    with Log.open(path) as log:
        for i in range(4):
            log.append("s", "note", {"i": i})
    triggers = ["events_insert", "events_update", "events_delete", "head_update"]
    with closing(sqlite3.connect(path)) as other:
        definitions = [
            other.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
            for name in triggers
        ]
        for name in triggers:
            other.execute(f"DROP TRIGGER {name}")
        other.execute(statement)
        for definition in definitions:
            other.execute(definition)
        other.commit()
    verdict = verify(path)
    assert (verdict.ok, verdict.first_bad, verdict.count) == (False, seq, seq - 1)
    if what == "end removed":
        with pytest.raises(DamagedError, match="head"):
            Log.open(path)
    else:
        with Log.open(path) as log, pytest.raises(DamagedError, match=r"changed|missing"):
            list(log.events("s"))


def test_a_removed_trigger_is_seen(path: Path) -> None:
    with Log.open(path) as log:
        log.append("s", "note", {})
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TRIGGER events_delete")
        other.commit()
    verdict = verify(path)
    assert not verdict.ok
    assert (verdict.count, verdict.first_bad) == (1, None)
    assert "triggers were changed" in verdict.reason


def test_an_exported_chain_can_be_checked_by_anyone(log: Log) -> None:
    for i in range(5):
        log.append(f"s{i % 2}", "note", {"i": i / 3, "é": "ü"}, actor="Zoë" if i else None)
    lines = [json.dumps(event.to_dict()) for event in log.events()]
    events = [Event.from_dict(json.loads(line)) for line in lines]
    assert events == list(log.events())
    assert chain.check(events).ok
    changed = [*events[:3], replace(events[3], actor="other"), events[4]]
    assert chain.check(changed) == chain.Verdict(
        False, 3, 4, "event 4 was changed: its content does not give its hash"
    )
    assert chain.check([*events[:2], *events[3:]]).first_bad == 3
    assert chain.check(events[1:]).first_bad == 1
    assert chain.check([replace(events[0], body={"x": math.nan})]).first_bad == 1
    with pytest.raises(ValueError, match="missing"):
        Event.from_dict({"seq": 1})


def test_the_hash_is_that_of_the_canonical_json_of_the_other_fields(log: Log) -> None:
    import hashlib

    event = log.append("s", "note", {"b": [1, 2.5], "a": "ü"}, key="k")
    fields = event.to_dict()
    del fields["hash"]
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert event.hash == hashlib.sha256(text.encode()).hexdigest()


def test_reading_only(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Log.open(path, read_only=True)
    with Log.open(path) as log:
        written = log.append("s", "note", {})
    before = path.read_bytes()
    with Log.open(path, read_only=True) as log:
        assert log.read_only
        assert list(log.events()) == [written]
        assert log.verify().ok
        for write in (
            lambda: log.append("s", "note", {}),
            lambda: log.set_identity("P", {}),
            lambda: log.erase_identity("P"),
        ):
            with pytest.raises(ReadOnlyError, match="reading only"):
                write()
    assert path.read_bytes() == before


def test_another_programs_file_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(NotALogError, match="another program"):
        Log.open(path)
    assert path.read_bytes() == before
    path.write_text("a text file that is long enough to be read as a header " * 20)
    with pytest.raises(DamagedError, match="not a database"):
        Log.open(path)
    with pytest.raises(FileNotFoundError, match="folder"):
        Log.open(path / "deeper" / "study.db")


def test_an_empty_file_becomes_a_log_but_never_verifies(path: Path) -> None:
    path.touch()
    assert not verify(path).ok
    with Log.open(path) as log:
        assert log.verify() == chain.Verdict(True, 0, None, "intact")


def test_a_closed_log_says_so(path: Path) -> None:
    log = Log.open(path)
    log.close()
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.append("s", "note", {})


def test_connection_has_the_durable_sqlite_settings(path: Path, log: Log) -> None:
    connection = log._alive()
    values = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "secure_delete", "fullfsync", "page_size")
    }
    assert values == {
        "journal_mode": "delete",
        "synchronous": 3,  # EXTRA
        "secure_delete": 1,
        "fullfsync": 1,
        "page_size": 4096,
    }


def test_a_file_turned_to_wal_is_turned_back(path: Path) -> None:
    with Log.open(path) as log:
        log.append("s", "note", {})
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
    with Log.open(path) as log:
        log.append("s", "note", {})
        assert log._alive().execute("PRAGMA journal_mode").fetchone()[0] == "delete"


def test_a_log_that_vanished_is_missed(path: Path, tmp_path: Path) -> None:
    with Log.open(path) as log:
        log.append("s", "note", {})
        path.rename(tmp_path / "elsewhere.db")
        for _ in range(2):  # neither the old connection nor a new one may acknowledge anything
            with pytest.raises((ReadOnlyError, DiskFailureError)):
                log.append("s", "note", {})
        assert not path.exists()
    assert verify(tmp_path / "elsewhere.db").count == 1


def test_a_log_emptied_under_way_is_not_begun_anew(path: Path) -> None:
    with Log.open(path) as log:
        log.append("s", "note", {})
        path.write_bytes(b"")
        for _ in range(2):
            with pytest.raises((DamagedError, NotALogError)):
                log.append("s", "note", {})
        assert path.read_bytes() == b""


@pytest.mark.parametrize("old", ["Damaged", "Busy", "Stale", "NotALog", "ReadOnly", "LogProblem"])
def test_a_former_error_name_still_works_with_a_warning(old: str) -> None:
    import sfihilo.experiment
    from sfihilo.experiment.log import errors

    for place in (errors, sfihilo.experiment):
        with pytest.warns(DeprecationWarning, match=f"{old} is now"):
            assert issubclass(getattr(place, old), errors.LogError)
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = errors.Nonsense
