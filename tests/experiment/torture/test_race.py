"""Several writers: one wins each race, and sessions side by side do not disturb each other."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from sfihilo.experiment.log import schema
from sfihilo.experiment.log.errors import StaleError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.log.store import Log
from tests.experiment.torture.children import acknowledged, command, fast_folder
from tests.experiment.torture.writer import plan

RACERS = 3


def start_racer(path: Path, name: str) -> subprocess.Popen[str]:
    words = command(path, "--race", name)
    racer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert racer.stdout is not None
    assert racer.stdout.readline() == "ready\n"
    return racer


def run_round(racers: list[subprocess.Popen[str]], expected: int) -> list[list[str]]:
    instant = time.time() + 0.002
    for racer in racers:
        assert racer.stdin is not None
        print(expected, instant, file=racer.stdin, flush=True)
    return [racer.stdout.readline().split() for racer in racers if racer.stdout is not None]


def race(rounds: int) -> Counter[str]:
    wins: Counter[str] = Counter()
    with fast_folder() as folder:
        path = folder / "race.db"
        Log.open(path).close()
        racers = [start_racer(path, f"racer-{i}") for i in range(RACERS)]
        try:
            for number in range(rounds):
                answers = run_round(racers, number)
                outcomes = sorted(answer[0] for answer in answers)
                assert outcomes == ["stale"] * (RACERS - 1) + ["won"], answers
                assert {answer[1] for answer in answers} == {str(number + 1)}, "told the state"
        finally:
            for racer in racers:
                racer.communicate()
        with Log.open(path) as log:
            events = list(log.events())
            assert log.verify().ok
        assert [event.number for event in events] == list(range(1, rounds + 1))
        wins.update(str(event.actor) for event in events)
    return wins


def test_one_winner_in_some_races() -> None:
    race(40)


@pytest.mark.slow
def test_one_winner_in_500_races() -> None:
    wins = race(500)
    print(dict(wins))
    assert len(wins) > 1, "the racers did not really race"


def test_threads_that_share_a_log_race_too() -> None:
    outcomes: Counter[str] = Counter()

    def attempt(log: Log, barrier: threading.Barrier, expected: int) -> None:
        barrier.wait()
        try:
            log.append("s", "asked", {}, expected=expected)
            outcomes["won"] += 1
        except StaleError:
            outcomes["stale"] += 1

    with fast_folder() as folder, Log.open(folder / "threads.db") as log:
        for number in range(20):
            barrier = threading.Barrier(4)
            threads = [
                threading.Thread(target=attempt, args=(log, barrier, number)) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert outcomes == {"won": 20, "stale": 60}
        assert log.verify().ok


def essence(event: Event) -> tuple[object, ...]:
    """What an event says, without where and when it was stored."""
    return event.session, event.number, event.kind, event.body, event.key, event.actor


def test_16_sessions_interleaved_equal_solo_runs() -> None:
    rng = random.Random(16)
    names = [f"session-{i}" for i in range(16)]
    steps = {name: plan(rng.randint(1, 6), name) for name in names}
    turns = [name for name in names for _ in steps[name]]
    rng.shuffle(turns)
    done: Counter[str] = Counter()
    with fast_folder() as folder, Log.open(folder / "all.db") as together:
        for name in turns:
            step = steps[name][done[name]]
            together.append(name, step.kind, step.body, key=step.key, expected=done[name])
            done[name] += 1
        assert sorted(together.sessions()) == sorted(names)
        for name in names:
            with Log.open(folder / f"{name}.db") as alone:
                for number, step in enumerate(steps[name]):
                    alone.append(name, step.kind, step.body, key=step.key, expected=number)
                solo = [essence(event) for event in alone.events()]
            assert [essence(event) for event in together.events(name)] == solo
        assert together.verify().ok
        assert together.head()[0] == len(turns)


def test_processes_write_their_sessions_side_by_side() -> None:
    with fast_folder() as folder:
        path = folder / "shared.db"
        children = {
            name: subprocess.Popen(
                command(path, "--queries", "5", "--session", name),
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("a", "b", "c")
        }
        said = {name: child.communicate()[0].splitlines() for name, child in children.items()}
        with Log.open(path) as log:
            assert log.verify().ok
            for name, lines in said.items():
                stored = {event.key: event.hash for event in log.events(name)}
                assert stored == acknowledged(lines)
                assert [event.key for event in log.events(name)] == [s.key for s in plan(5)]


def test_another_process_makes_the_tables_between_two_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second process saw no log, then tables: they are the first one's, not a stranger's."""
    with fast_folder() as folder:
        path, look = folder / "shared.db", schema.is_blank

        def made_meanwhile(connection: sqlite3.Connection) -> bool:
            monkeypatch.setattr(schema, "is_blank", look)
            Log.open(path).close()
            return look(connection)

        monkeypatch.setattr(schema, "is_blank", made_meanwhile)
        with Log.open(path) as log:
            assert log.verify().ok
