"""Data that are true: retries, exchanged files, failing devices, comparisons, pain."""

import multiprocessing
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfihilo.experiment import (
    Choice,
    Interval,
    Lab,
    LogError,
    Outcome,
    Parameter,
    Plan,
    Protocol,
    ReplacedError,
    Session,
    Space,
    Trial,
    UnsafePolicyError,
)
from sfihilo.experiment.record.fold import fold
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import EXOSKELETON, LEAN, Person, finish, good, memory_folder

SETTINGS = replace(LEAN, average=None)
LINE = Space({"x": Parameter(0, 10, max_step=2, start=5)}, {"o": Outcome(0, 1)})


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def lab(folder: Path) -> Iterator[Lab]:
    with Lab(folder / "lab.db") as opened:
        yield opened


@pytest.fixture
def session(lab: Lab) -> Session:
    return lab.create(EXOSKELETON, "P07", 7, settings=SETTINGS)


# Point 4


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


# Point 5


def two_histories(folder: Path) -> tuple[Path, Path]:
    """The same file with one more event each, at the same place, with another content."""
    with Lab(folder / "a.db") as lab:
        finish(lab.create(EXOSKELETON, "P1", 1, settings=SETTINGS))
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
        with pytest.raises(LogError):
            session.ask()
        with pytest.raises(ReplacedError, match="another history"):
            session.note("still here")
    with Lab(mine) as lab:
        assert lab.verify().ok
        assert [event.kind for event in lab.open("P1-1").events] == [
            "opened", "asked", "measured", "note",
        ]  # fmt: skip


def test_append_expects_the_hash_of_the_last_event(lab: Lab, session: Session) -> None:
    last = session.events[-1]
    with pytest.raises(ReplacedError):
        lab.log.append(session.id, "note", {"text": "x"}, expected=1, expected_hash="0" * 64)
    lab.log.append(session.id, "note", {"text": "x"}, expected=1, expected_hash=last.hash)


# Point 10


class Bench:
    """A device with the lab's three functions; it knows what was really set."""

    def __init__(self) -> None:
        self.at: dict[str, float] | None = None
        self.person = Person(EXOSKELETON, 1)

    def apply(self, policy: Mapping[str, float]) -> None:
        self.at = dict(policy)

    def measure(self, trial: Trial) -> Mapping[str, float]:
        assert self.at == dict(trial.policy), "measured a policy that was never applied"
        return self.person.measure(trial)

    def run(self, session: Session, trials: int) -> None:
        session.run(
            apply=self.apply, measure=self.measure, choose=lambda trial: "new", trials=trials
        )


def test_policy_is_applied_again_after_apply_failed(session: Session) -> None:
    bench = Bench()
    bench.run(session, 2)

    def broken(_: object) -> None:
        raise OSError("no connection to the device")

    with pytest.raises(OSError, match="no connection"):
        session.run(apply=broken, measure=bench.measure, choose=lambda _: "new", trials=1)
    assert session.trials[-1].started
    bench.run(session, 2)
    assert [trial.status for trial in session.trials] == ["complete"] * 4


def die_before_applying(path: str) -> None:
    with Lab(path) as lab:
        lab.open("P07-1").run(
            apply=lambda _: os._exit(9), measure=lambda _: None, choose=lambda _: None, trials=1
        )


def test_policy_is_applied_by_the_process_that_continues(folder: Path, session: Session) -> None:
    bench = Bench()
    bench.run(session, 1)
    child = multiprocessing.get_context("spawn").Process(
        target=die_before_applying, args=(str(folder / "lab.db"),)
    )
    child.start()
    child.join()
    assert child.exitcode == 9
    assert [trial.started for trial in session.trials] == [True, True]
    bench.run(session, 1)
    assert [trial.status for trial in session.trials] == ["complete", "complete"]


# Point 12


def test_trial_after_one_without_outcome_is_not_compared(session: Session) -> None:
    finish(session)
    missing = session.measure(session.ask(), None)
    assert any("next trial is not compared" in warning for warning in missing.warnings)
    session.choose(missing, "new")
    third = session.ask()
    assert not third.asks_choice
    assert third.warnings == (
        "no comparison is asked: the person walked trial 2 last, which has no usable outcome",
    )
    with pytest.raises(ValueError, match="trial 3: no answer is expected"):
        session.choose(third, "previous")
    session.measure(third, good(session, 0.2))
    fourth = session.ask()
    assert (fourth.asks_choice, fourth.compare_with) == (True, 3)
    assert [told.choice for told in rounds_of(session.record)] == [None, "new", None]


@pytest.mark.parametrize("how", ["aborted", "withdrawn", "undone"])
def test_trial_after_a_walk_that_does_not_count_is_not_compared(session: Session, how: str) -> None:
    finish(session)
    second = session.start(session.ask())
    if how == "aborted":
        session.abort(second, "tired")
    elif how == "withdrawn":
        session.measure(second, good(session, 0.1))
        session.withdraw(second, "sensor")
    else:
        session.undo()
        session.undo()
    third = session.ask()
    assert (third.number, third.compare_with, third.asks_choice) == (3, 1, False)


def test_trial_after_a_veto_is_compared_with_the_last_walk(session: Session) -> None:
    finish(session)
    session.veto(session.ask(), "no")
    assert (session.ask().compare_with, session.ask().asks_choice) == (1, True)


def test_answer_to_a_trial_without_outcome_is_used_once_the_outcome_came(
    session: Session,
) -> None:
    finish(session)
    trial = session.measure(session.ask(), None)
    assert any("the answer to this trial is not used" in text for text in trial.warnings)
    session.choose(trial, "new")
    assert rounds_of(session.record)[1].outcome is None
    session.amend(trial, why="form found", outcome={"metabolic_rate": 4.0, "comfort": 6.0})
    assert rounds_of(session.record)[1].choice == "new"
    assert session.ask().asks_choice


# Point 21


def near(session: Session, x: float, centre: float) -> bool:
    """Within 0.15 of the 4 units that one step around the vetoed policy reaches."""
    return abs(x - centre) < session.record.protocol.veto_radius * 4 - 1e-9


def painful_line(lab: Lab, seed: int = 3, **veto: Any) -> tuple[Session, Trial]:
    """A line along which the person prefers the middle, which was vetoed."""
    protocol = Protocol(veto_rounds=1)
    session = lab.create(LINE, "P1", seed, settings=SETTINGS, protocol=protocol)
    trial = session.veto(session.suggest({"x": 5.0}), "knee hurts", **veto)
    for _ in range(12):
        trial_now = session.ask()
        session.measure(trial_now, {"o": 1 - abs(trial_now.policy["x"] - 5) / 10})
        if trial_now.asks_choice:
            session.choose(trial_now, "same")
    return session, trial


def test_veto_because_of_pain_holds_for_ask_and_recommend_until_lifted(lab: Lab) -> None:
    session, vetoed = painful_line(lab, pain=True)
    # 15 % of the declared range of 10, although one step reaches only 4.
    assert all(abs(trial.policy["x"] - 5.0) >= 1.5 - 1e-9 for trial in session.trials[1:])
    assert abs(session.recommend({"x": (3.0, 7.0)}).policy["x"] - 5.0) >= 1.5 - 1e-9
    with pytest.raises(ValueError, match=r"no policy can be recommended.*`lift`"):
        session.recommend({"x": (4.9, 5.1)})
    session.place({"x": 5.0})
    with pytest.raises(ValueError, match=r"near one that caused pain.*`lift`"):
        session.suggest({"x": 5.2})
    session.lift(vetoed, "new cuff")
    assert 4.9 <= session.recommend({"x": (4.9, 5.1)}).policy["x"] <= 5.1
    assert session.suggest({"x": 5.2}).policy == {"x": 5.2}


def test_veto_without_pain_expires(lab: Lab) -> None:
    walked = []
    for seed in range(4):
        session, _ = painful_line(lab, seed)
        walked += [trial.policy["x"] for trial in session.trials[1:]]
    assert any(near(session, x, 5.0) for x in walked)
    assert 4.9 <= session.recommend({"x": (4.9, 5.1)}).policy["x"] <= 5.1
    with pytest.raises(ValueError, match="no veto because of pain"):
        session.lift(1, "nothing to lift")


def test_reason_of_a_veto_is_on_the_record(session: Session) -> None:
    first = session.veto(session.ask(), "knee hurts", pain=True)
    second = session.abort(session.start(session.ask()), "hip hurts", pain=True)
    third = session.veto(session.ask(), "looks odd")
    record = session.record
    assert [(v.trial, v.why, v.pain, v.lifted) for v in record.vetoes] == [
        (first.number, "knee hurts", True, False),
        (second.number, "hip hurts", True, False),
        (third.number, "looks odd", False, False),
    ]
    assert [trial.why for trial in record.trials] == ["knee hurts", "hip hurts", "looks odd"]
    session.lift(second, "padding")
    assert [veto.trial for veto in session.record.painful] == [first.number]
    session.undo("too soon")
    assert [veto.trial for veto in session.record.painful] == [first.number, second.number]


def test_anchor_that_became_painful_is_not_walked_again_after_a_break(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=SETTINGS)
    anchor = session.suggest({"x": 5.0})
    session.measure(anchor, {"o": 0.5})
    session.veto(session.suggest({"x": 5.1}), "hurts", pain=True)
    session.interrupt()
    trial = session.ask()
    assert trial.source == "learner"
    assert abs(trial.policy["x"] - 5.1) >= 1.5 - 1e-9
    assert not trial.asks_choice


def stepping(lab: Lab, seed: int = 1) -> Session:
    """A session in one parameter with a step far below the range."""
    space = Space({"x": Parameter(0, 100, max_step=20, start=50)}, {"o": Outcome(0, 1)})
    return lab.create(space, "P1", seed, settings=LEAN)


@pytest.mark.parametrize("end", ["abort", "veto"])
def test_pain_that_was_undone_holds_until_lifted(lab: Lab, end: str) -> None:
    session = stepping(lab)
    trial = session.suggest({"x": 60})
    getattr(session, end)(trial, "it hurt", pain=True)
    session.undo()
    assert session.record.current is not None
    assert "avoided until `lift`" in session.record.current.warnings[-1]
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.ask()
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.start(trial)
    session.undo()  # the trial itself
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.suggest({"x": 60})
    session.lift(trial, "another shoe")
    assert session.suggest({"x": 60}).status == "asked"


def test_lifted_pain_of_a_reopened_trial_keeps_its_place_possible(lab: Lab) -> None:
    session = stepping(lab)
    trial = session.veto(session.suggest({"x": 60}), "it hurt", pain=True)
    session.undo()
    session.lift(trial, "a mistake")
    assert {"x": 60.0} in session.record.positions


def test_pain_of_a_trial_that_is_over_holds_and_keeps_its_data(lab: Lab) -> None:
    session = stepping(lab)
    trial = session.measure(session.start(session.suggest({"x": 60})), {"o": 0.5})
    places = session.record.positions
    after = session.veto(trial, "it hurt", pain=True)
    assert (after.status, after.outcome) == ("complete", {"o": 0.5})
    assert [veto.trial for veto in session.record.painful] == [trial.number]
    assert session.record.positions == places
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.repeat(trial)
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.suggest({"x": 61})
    assert abs(session.ask().policy["x"] - 60) >= 15
    with pytest.raises(ValueError, match="it is over"):
        session.veto(trial, "no pain")


def test_pain_zone_with_a_small_step_keeps_the_declared_radius(lab: Lab) -> None:
    space = Space(
        {"x": Parameter(0, 100, max_step=2, start=50), "y": Parameter(0, 1)}, {"o": Outcome(0, 1)}
    )
    session = lab.create(space, "P1", 1, settings=LEAN)
    session.abort(session.start(session.suggest({"x": 50, "y": 0.5})), "hurt", pain=True)
    with pytest.raises(UnsafePolicyError, match="near one that caused pain"):
        session.suggest({"x": 51.9, "y": 0.5})
    assert session.suggest({"x": 50, "y": 0.66}).status == "asked"


@pytest.mark.parametrize("undos", [1, 2])
def test_trial_after_an_undone_one_is_not_compared_with_the_walk_before(
    lab: Lab, undos: int
) -> None:
    """The person may have felt what was shown; only a veto says that it was not applied."""
    session = stepping(lab)
    session.measure(session.start(session.suggest({"x": 60})), {"o": 0.5})
    shown = session.suggest({"x": 65})
    if undos == 2:
        session.abort(shown, "stumbled")
    for _ in range(undos):
        session.undo()
    following = session.suggest({"x": 62})
    assert not following.asks_choice
    assert "may have walked trial 2 last" in following.warnings[0]


def test_trial_after_a_vetoed_one_is_compared_with_the_walk_before(lab: Lab) -> None:
    session = stepping(lab)
    session.measure(session.start(session.suggest({"x": 60})), {"o": 0.5})
    session.veto(session.suggest({"x": 65}), "too strong")
    following = session.suggest({"x": 62})
    assert (following.asks_choice, following.compare_with) == (True, 1)


def test_pain_is_true_or_false(session: Session) -> None:
    with pytest.raises(ValueError, match="pain: expected True or False"):
        session.veto(session.ask(), "x", pain="yes")  # type: ignore[arg-type]


# Point 24, and the noun of Lab.create


def test_lab_and_session_show_themselves_in_one_line(folder: Path, session: Session) -> None:
    finish(session)
    assert repr(session) == "<Session P07-1: participant P07, open, 1 trial>"
    with Lab(folder / "lab.db") as lab:
        assert repr(lab) == f"<Lab {folder / 'lab.db'}: 1 session>"
    assert "closed" in repr(lab)


def test_seed_is_drawn_and_recorded(lab: Lab) -> None:
    drawn = [lab.create(LINE, f"P{n}", settings=SETTINGS).record.seed for n in range(3)]
    assert len(set(drawn)) == 3
    first = lab.create(LINE, "P9", settings=SETTINGS, key="k")
    again = lab.create(LINE, "P9", settings=SETTINGS, key="k")
    assert (again.id, again.record.seed) == (first.id, first.record.seed)


def test_plan_begins_the_same_session_as_its_parts(lab: Lab) -> None:
    protocol = Protocol(reanchor=False)
    plan = Plan(LINE, SETTINGS, protocol, seed=4)
    bodies = [
        dict(session.events[0].body)
        for session in (
            lab.create(plan, "P1"),
            lab.create(LINE, "P1", 4, settings=SETTINGS, protocol=protocol),
        )
    ]
    assert bodies[0] == bodies[1]
    with pytest.raises(ValueError, match="within the Plan"):
        lab.create(plan, "P1", 5)


def test_report_export_and_table_are_methods(folder: Path, lab: Lab, session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    assert session.report(folder / "report.html").read_text().startswith("<!")
    assert (folder / "out" / "P07-1" / "trials.csv") in lab.export(folder / "out", formats=["csv"])
    assert [row["trial"] for row in session.trials_table().rows] == [1, 2, 3]


def test_names_are_exported() -> None:
    answer: Choice = "new"
    assert answer == "new"
    assert Interval(1.0, 0.0, 2.0).high == 2.0


def test_run_without_any_outcome_does_not_ask_the_person(lab: Lab) -> None:
    session = stepping(lab)
    asked: list[int] = []
    outcomes: Iterator[dict[str, float | None] | None] = iter([{"o": 0.5}, None, {"o": 0.4}])

    def choose(trial: Trial) -> Choice:
        asked.append(trial.number)
        return "new"

    session.run(apply=lambda _: None, measure=lambda _: next(outcomes), choose=choose, trials=3)
    assert asked == []  # the third follows one without an outcome: it is not compared
    assert [trial.status for trial in session.trials] == ["complete"] * 3
