"""Several writers of one session: retries, stale records, races, threads, exchanged files."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfihilo.experiment import (
    Lab,
    LogError,
    OvertakenError,
    ReplacedError,
    Session,
    Trial,
)
from sfihilo.experiment.log.errors import KeyConflictError
from sfihilo.experiment.record.fold import fold
from sfihilo.experiment.session.requirements import Draft
from sfihilo.history import Choice
from tests.experiment.people import (
    EXOSKELETON,
    LEAN,
    PLAIN,
    finish,
    good,
    memory_folder,
)


def test_the_same_key_does_nothing_twice(session: Session) -> None:
    first = session.ask(key="a1")
    session.measure(first, good(session), key="m1")
    second = session.ask(key="a2")
    values = good(session, 0.1)
    results = [
        (
            session.ask(key="a1").number,
            session.ask(key="a2").number,
            session.start(second, key="s2").number,
            session.measure(second, values, key="m2").number,
            session.choose(second, "same", key="c2").number,
            session.undo("x", key="u2").number,
            session.redo("x", key="r2").number,
        )
        for _ in range(3)
    ]
    assert results[0] == results[1] == results[2]
    kinds = [event.kind for event in session.events]
    assert kinds == [
        "opened", "asked", "measured", "asked", "started", "measured", "chosen", "withdrawn",
        "redone",
    ]  # fmt: skip


def test_the_same_key_with_another_content_is_refused(session: Session) -> None:
    finish(session)
    trial = session.ask()
    session.measure(trial, good(session), key="k")
    count = len(session.events)
    calls: list[Callable[[], object]] = [
        lambda: session.measure(trial, good(session, 0.1), key="k"),
        lambda: session.choose(trial, "new", key="k"),
        lambda: session.ask(key="k"),
        lambda: session.suggest(trial.policy, key="k"),
        lambda: session.repeat(1, key="k"),
    ]
    for call in calls:
        with pytest.raises(KeyConflictError):
            call()
    assert len(session.events) == count


def test_a_stale_writer_is_told_the_current_state(session: Session, lab: Lab) -> None:
    finish(session)
    trial = session.measure(session.ask(), good(session, 0.1))
    stale = lab.open(session.id)
    session.choose(trial, "new")
    with pytest.raises(
        OvertakenError, match="trial 2 is complete"
    ) as told:  # decided on an old record
        stale._log.append(Draft("chosen", {"trial": 2, "choice": "previous"}), None, None)
    assert told.value.record.trials[-1].choice == "new"
    assert session.trials[-1].choice == "new"


def both_answer(writers: list[Session], trial: Trial) -> list[str]:
    """Two people answer the same trial at the same moment; whose answers were taken."""
    gate = threading.Barrier(2)
    wins: list[str] = []

    def answer(who: Session, choice: Choice) -> None:
        gate.wait()
        try:
            who.choose(trial, choice)
        except (OvertakenError, ValueError):
            return
        wins.append(choice)

    choices: tuple[Choice, Choice] = ("new", "previous")
    threads = [
        threading.Thread(target=answer, args=pair) for pair in zip(writers, choices, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wins


def race(rounds: int) -> None:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        finish(session)
        with Lab(folder / "lab.db") as second, Lab(folder / "lab.db") as third:
            writers = [second.open(session.id), third.open(session.id)]
            for number in range(rounds):
                trial = session.measure(session.ask(), good(session, 0.07 * number))
                wins = both_answer(writers, trial)
                assert len(wins) == 1
                assert session.trials[-1].choice == wins[0]
        assert lab.verify().ok


def test_two_writers_race_and_one_wins() -> None:
    race(15)


@pytest.mark.slow
def test_two_writers_race_five_hundred_times() -> None:
    race(500)


def test_threads_may_share_a_session(session: Session) -> None:
    finish(session)
    seen: list[tuple[int, tuple[float, ...]]] = []
    threads = [
        threading.Thread(target=lambda: seen.append((session.ask().number, session.ask().unit)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
    assert len(session.trials) == 2


def test_event_written_between_reading_and_writing_is_not_lost(
    folder: Path, lab: Lab, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process starts the trial and sends the same request under the same key."""
    trial, values = session.ask(), good(session)
    append = lab.log.append

    def overtaken(*given: Any, **more: Any) -> object:
        monkeypatch.setattr(lab.log, "append", append)
        with Lab(folder / "lab.db") as elsewhere:
            other = elsewhere.open(session.id)
            other.start(trial)
            other.measure(trial, values, key="m")
        return append(*given, **more)

    monkeypatch.setattr(lab.log, "append", overtaken)
    session.measure(trial, values, key="m")
    assert session.record == fold(list(lab.log.events(session.id)))
    assert session.trials[0].started
    assert [event.kind for event in session.events] == ["opened", "asked", "started", "measured"]


def two_histories(folder: Path) -> tuple[Path, Path]:
    """The same file with one more event each, at the same place, with another content."""
    with Lab(folder / "a.db") as lab:
        finish(lab.create(EXOSKELETON, "P1", 1, settings=PLAIN))
    shutil.copyfile(folder / "a.db", folder / "b.db")
    for name in ("a", "b"):
        with Lab(folder / f"{name}.db") as lab:
            lab.open("P1-1").note(name)
    return folder / "a.db", folder / "b.db"


@pytest.mark.parametrize("by_rename", [False, True])
def test_file_replaced_under_an_open_session_is_noticed(folder: Path, by_rename: bool) -> None:
    mine, other = two_histories(folder)
    with Lab(mine) as lab:
        session = lab.open("P1-1")
        assert session.record.notes[-1][2] == "a"
        if by_rename:
            os.replace(other, mine)
        else:
            mine.write_bytes(other.read_bytes())
        with pytest.raises(ReplacedError, match="another history"):
            _ = session.record  # what is only read is not believed either
        with pytest.raises(LogError):
            session.ask()
        with pytest.raises(ReplacedError, match="another history"):
            session.note("still here")
    with Lab(mine) as lab:
        assert lab.verify().ok
        assert [event.kind for event in lab.open("P1-1").events] == [
            "opened", "asked", "measured", "note",
        ]  # fmt: skip


def test_file_replaced_between_reading_and_writing_gets_no_event(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = two_histories(folder)
    with Lab(mine) as lab:
        session = lab.open("P1-1")
        append = lab.log.append

        def replaced(*given: Any, **more: Any) -> object:
            mine.write_bytes(other.read_bytes())
            return append(*given, **more)

        monkeypatch.setattr(lab.log, "append", replaced)
        with pytest.raises(ReplacedError, match="another history"):
            session.note("still here")
    assert mine.read_bytes() == other.read_bytes()


def test_append_expects_the_hash_of_the_last_event(lab: Lab, session: Session) -> None:
    last = session.events[-1]
    with pytest.raises(ReplacedError):
        lab.log.append(session.id, "note", {"text": "x"}, expected=1, expected_hash="0" * 64)
    lab.log.append(session.id, "note", {"text": "x"}, expected=1, expected_hash=last.hash)
