"""A real session that was killed goes on with byte-identical queries.

What a kill leaves is always a beginning of the log (`test_kill`, `test_power`), so a session is
continued from every beginning that there is; some are also really killed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sfihilo.experiment import Lab
from sfihilo.experiment.log import schema
from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.log.store import Log
from tests.experiment.torture import scripted
from tests.experiment.torture.children import fast_folder


def reference(folder: Path, queries: int) -> list[Event]:
    """The events of a session that nothing disturbed."""
    path = folder / "reference.db"
    scripted.run(path, queries)
    with Log.open(path) as log:
        return list(log.events())


def write_beginning(path: Path, events: list[Event]) -> None:
    with Log.open(path) as log:
        connection = log._alive()
        connection.execute("BEGIN IMMEDIATE")
        for event in events:
            schema.insert(connection, {**event.to_dict(), "body": canonical(event.body)})
        connection.execute("COMMIT")
        assert log.verify().ok


def queries_of(events: list[Event]) -> list[str]:
    """What was asked, to the last bit: policy, anchor and fingerprint of the model."""
    return [canonical(event.body) for event in events if event.kind == "asked"]


def continue_from(path: Path, more: int) -> list[Event]:
    """Settle what is open, then ask so many times more."""
    with Lab(path) as lab:
        session = scripted.open_session(lab)
        if session.record.current is not None:
            scripted.settle(session, session.record.current)
        for _ in range(more):
            scripted.settle(session, session.ask())
        return list(lab.log.events())


def check_beginnings(queries: int, step: int) -> int:
    checked = 0
    with fast_folder() as folder:
        events = reference(folder, queries)
        wanted = queries_of(events)
        for length in range(0, len(events), step):
            path = folder / f"{length}.db"
            write_beginning(path, events[:length])
            found = queries_of(continue_from(path, more=1))
            assert len(found) > len(queries_of(events[:length])) or len(found) == queries
            assert found[:queries] == wanted[: len(found)], f"killed after event {length}"
            checked += 1
    return checked


def test_next_query_is_identical_from_some_beginnings() -> None:
    assert check_beginnings(queries=4, step=3) == 6


@pytest.mark.slow
def test_next_query_is_identical_from_every_beginning() -> None:
    assert check_beginnings(queries=20, step=1) >= 80


def test_a_stale_or_damaged_snapshot_changes_nothing() -> None:
    """Snapshots beside the log may be from a later or broken time than what the log kept."""
    with fast_folder() as folder:
        events = reference(folder, 10)
        wanted = queries_of(events)
        cut = next(event.seq for event in events if event.body.get("trial") == 10) - 1
        (snapshot,) = Path(f"{folder / 'reference.db'}.snapshots").iterdir()
        text = snapshot.read_text()
        state = json.loads(text)
        spoilt = [text, text[: len(text) // 2], "", json.dumps({**state, "sha256": "0" * 64})]
        for number, content in enumerate(spoilt):
            path = folder / f"{number}.db"
            write_beginning(path, events[:cut])
            beside = Path(f"{path}.snapshots")
            beside.mkdir()
            (beside / snapshot.name).write_text(content)
            assert queries_of(continue_from(path, more=1)) == wanted


def run_until_killed(path: Path, queries: int, delay: float) -> list[str]:
    words = [sys.executable, str(Path(scripted.__file__)), str(path), str(queries)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(delay)
    child.kill()
    lines = child.stdout.read().splitlines()
    child.wait()
    child.stdout.close()
    return lines


@pytest.mark.slow
def test_a_session_killed_again_and_again_asks_the_same() -> None:
    """Every process is killed at a random moment; the next one goes on where it was."""
    queries, rng = 20, random.Random(9)
    with fast_folder() as folder:
        wanted = queries_of(reference(folder, queries))
        shown: dict[str, str] = {}
        kills = 0
        lines: list[str] = []
        while "done" not in lines:
            # Short at first, so that a fast machine is interrupted often; at last long enough for
            # a slow one.
            delay = rng.uniform(0, 0.02 + kills / 100)
            lines = run_until_killed(folder / "killed.db", queries, delay)
            kills += "done" not in lines
            for line in lines:
                if line.startswith("shown"):
                    _, number, policy = line.split(" ", 2)
                    assert shown.setdefault(number, policy) == policy, "shown, then another one"
            assert kills < 200
        with Lab(folder / "killed.db") as lab:
            assert lab.verify().ok
            assert queries_of(list(lab.log.events())) == wanted
            policies: Mapping[str, Any] = {
                str(trial.number): repr(dict(trial.policy)) for trial in lab.open("s").trials
            }
        assert shown == {number: policies[number] for number in shown}, "shown before stored"
        print(f"{kills} kills")
        assert kills >= 5
