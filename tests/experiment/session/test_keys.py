"""A request that is repeated under its key does nothing twice, whatever it is."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfihilo.cli.session.app import app
from sfihilo.experiment import KeyConflictError, Lab, Session, UnsafePolicyError
from sfihilo.experiment.session import lab as lab_module
from sfihilo.experiment.space.measurement import BadMeasurementError
from tests.experiment.people import EXOSKELETON, LEAN, finish, memory_folder

TOML = """
[policy.x]
low = 0
high = 10
[outcomes.effort]
low = 2
high = 8
[session]
rule = "random"
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with memory_folder() as made:
        (made / "space.toml").write_text(TOML)
        monkeypatch.chdir(made)
        yield made


@pytest.fixture
def session(lab: Lab) -> Session:
    """The first session of P1, whom other tests here begin again."""
    return lab.create(EXOSKELETON, "P1", 1, settings=LEAN)


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_marks_are_made_once(session: Session) -> None:
    finish(session)
    for _ in range(3):
        session.note("loose strap", key="n")
        session.interrupt("lunch", key="i")
        session.resume(key="r")
    session.note("loose strap")  # without a key it is another note
    for _ in range(3):
        assert session.close("done", key="c").closed
    kinds = [event.kind for event in session.events[3:]]
    assert kinds == ["note", "interrupted", "resumed", "note", "closed"]


def test_a_key_of_a_mark_stands_for_nothing_else(session: Session) -> None:
    finish(session)
    session.note("loose strap", key="k")
    calls: list[Callable[[], object]] = [
        lambda: session.note("tight strap", key="k"),
        lambda: session.interrupt("loose strap", key="k"),
        lambda: session.resume(key="k"),
        lambda: session.close(key="k"),
        lambda: session.undo(key="k"),
        lambda: session.redo(key="k"),
        lambda: session.ask(key="k"),
    ]
    count = len(session.events)
    for call in calls:
        with pytest.raises(KeyConflictError):
            call()
    session.withdraw(1, "sensor", key="w")  # the same kind of event as an undo has
    with pytest.raises(KeyConflictError):
        session.undo(key="w")
    assert len(session.events) == count + 1


def test_a_session_is_begun_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new")
    finish(first)
    monkeypatch.setattr(lab_module, "_versions", lambda: {"sfihilo": "later"})
    again = lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new")
    assert again.id == first.id
    assert len(again.trials) == 1
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="P1-1", key="new").id == first.id
    calls: list[Callable[[], object]] = [
        lambda: lab.create(EXOSKELETON, "P2", 1, settings=LEAN, key="new"),
        lambda: lab.create(EXOSKELETON, "P1", 2, settings=LEAN, key="new"),
        lambda: lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new", session="other"),
        lambda: lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new", actor="somebody"),
        lambda: first.ask(key="new"),
        lambda: first.undo(key="new"),
    ]
    for call in calls:
        with pytest.raises(KeyConflictError):
            call()
    assert lab.sessions() == ["P1-1"]
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="next").id == "P1-2"
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="own", key="3").id == "own"
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="own", key="3").id == "own"
    assert lab.verify().ok


def test_a_key_within_a_session_begins_none(lab: Lab, session: Session) -> None:
    session.ask(key="a")
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="a").id == "P1-2"


@pytest.mark.parametrize("round_", range(5))
def test_many_begin_at_once_and_one_session_is_begun(folder: Path, round_: int) -> None:
    Lab(folder / "race.db").close()
    names: list[str] = []
    barrier = threading.Barrier(4)

    def create() -> None:
        with Lab(folder / "race.db") as mine:
            barrier.wait()
            names.append(mine.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new").id)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["P1-1"] * 4


def test_create_with_a_key_that_another_process_just_used_returns_its_session(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment that threads meet rarely: nobody has begun yet when we look."""
    first = lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new")
    look, looks = lab.log.begun, iter([None])
    monkeypatch.setattr(lab.log, "begun", lambda key: next(looks, look(key)))
    assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, key="new").id == first.id
    looks = iter([None])
    with pytest.raises(KeyConflictError, match="another content"):
        lab.create(EXOSKELETON, "P1", 2, settings=LEAN, key="new")
    assert lab.sessions() == ["P1-1"]


def test_every_command_that_writes_takes_a_key(folder: Path) -> None:
    new = ("new", "space.toml", "-p", "P7", "--key", "n", "--json")
    assert json.loads(run(*new)) == json.loads(run(*new))  # the seed that was drawn as well
    run("ask")
    for _ in range(2):
        run("measure", "effort=4", "--key", "m")
        run("amend", "1", "effort=5", "--why", "typo", "--key", "a")
        run("note", "warm", "--key", "t")
        run("interrupt", "--key", "i")
        run("resume", "--key", "r")
    assert "--session" in CliRunner().invoke(app, ["close", "--key", "c"]).output
    run("new", "space.toml", "-p", "P8")
    for _ in range(2):
        run("close", "--session", "P7-1", "--key", "c")
    run("new", "space.toml", "-p", "P9", "--key", "n", code=2)
    with Lab("sfihilo.db") as lab:
        kinds = [event.kind for event in lab.open("P7-1").events]
        assert kinds == [
            "opened", "asked", "measured", "amended", "note", "interrupted", "resumed", "closed",
        ]  # fmt: skip
        assert lab.sessions() == ["P7-1", "P8-1"]
        assert lab.record("P8-1").status == "open"


def test_a_refused_measurement_that_is_retried_is_recorded_once(session: Session) -> None:
    trial = session.ask()
    bad, worse, good = ({"metabolic_rate": rate, "comfort": 5} for rate in (-1e9, 1e9, 4.0))
    for value in (bad, bad, worse, worse):
        with pytest.raises(BadMeasurementError):
            session.measure(trial, value, key="m")
    assert session.record.refused == 2
    assert session.measure(trial, good, key="m").measured  # the key was not spent on refusals
    with pytest.raises(KeyConflictError):
        session.measure(trial, bad, key="m")
    assert session.record.refused == 2


def test_a_refused_suggestion_that_is_retried_is_recorded_once(session: Session) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="missing peak_time"):
            session.suggest({"peak_torque": 1e9}, key="s")
    assert session.record.refused == 1


def test_keyed_request_repeated_after_its_trial_ended_early_is_refused(session: Session) -> None:
    policy = dict(session.veto(session.ask(key="a"), "hurts", pain=True).policy)
    with pytest.raises(ValueError, match=r"trial 1: it is over \(vetoed\)"):
        session.ask(key="a")
    session.lift(1, "padding")
    session.abort(session.suggest(policy, key="s"), "stumbled")
    with pytest.raises(ValueError, match=r"trial 2: it is over \(aborted\)"):
        session.suggest(policy, key="s")
    session.withdraw(session.repeat(1, key="r"), "no")
    with pytest.raises(ValueError, match=r"trial 3: it is over \(withdrawn\)"):
        session.repeat(1, key="r")


def test_keyed_request_repeated_when_its_trial_is_out_of_reach_is_refused(
    session: Session,
) -> None:
    trial = session.ask(key="a")
    assert session.ask(key="a") == trial
    far = 60.0 if trial.policy["peak_torque"] < 30 else 0.0
    session.place({**trial.policy, "peak_torque": far})
    with pytest.raises(UnsafePolicyError, match="must not be applied"):
        session.ask(key="a")


def test_suggestion_repeated_with_another_reason_is_another_content(session: Session) -> None:
    policy = session.ask().policy
    session.undo()
    wanted = {name: policy[name] for name in session.record.space.free}
    made = session.suggest(wanted, why="as last year", key="k")
    assert session.suggest(wanted, why="as last year", key="k") == made
    with pytest.raises(KeyConflictError):
        session.suggest(wanted, why="the person asked for it", key="k")
