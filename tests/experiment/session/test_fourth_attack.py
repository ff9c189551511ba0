"""What a fourth attack on sessions found: answers about other walks, and unusable questions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sfihilo.experiment import (
    Lab,
    Outcome,
    Parameter,
    Protocol,
    Session,
    Space,
    Trial,
    UnsafePolicyError,
)
from sfihilo.experiment.log.event import GENESIS, canonical, fingerprint
from sfihilo.experiment.output.export import restore
from sfihilo.experiment.record.kept import kept_settings
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import LINE, PLAIN, stepping


def walk(session: Session, trial: Trial, value: float = 0.5) -> Trial:
    trial = session.measure(session.start(trial), {"o": value})
    return session.choose(trial, "new") if trial.asks_choice else trial


def walked(lab: Lab, recall: int = 1, walks: int = 2) -> Session:
    session = lab.create(LINE, "P1", 1, settings=replace(PLAIN, recall=recall))
    for number in range(walks):
        walk(session, session.suggest({"x": 5 + number % 2}), 0.2 + 0.1 * number)
    return session


@pytest.mark.parametrize("answer_first", [False, True])
def test_trial_walked_again_after_a_later_one_is_not_compared(lab: Lab, answer_first: bool) -> None:
    """Trial 2 is opened again behind trial 3: the person then comes from trial 3, not from 1."""
    session = walked(lab, walks=1)
    second = session.start(session.suggest({"x": 6}))
    if answer_first:
        session.choose(second, "new")
        session.amend(second, why="late", outcome={"o": 0.3})
    else:
        session.choose(session.measure(second, {"o": 0.3}), "new")
    walk(session, session.suggest({"x": 7}))
    while session.record.trial(2).measured or session.record.trial(2).answered:
        session.undo("the settings were wrong")
    session.run(
        apply=lambda _: None, measure=lambda _: {"o": 0.4}, choose=lambda _: "previous", trials=1
    )
    again = session.record.trial(2)
    assert (again.outcome, again.answered) == ({"o": 0.4}, False)
    assert "may have walked trial 3 before it" in again.warnings[-1]
    assert [told.choice for told in rounds_of(session.record)] == [None, None]


def test_answer_whose_outcome_stands_is_typed_again(lab: Lab) -> None:
    session = walked(lab)
    session.undo("wrong key")
    assert session.choose(2, "previous").choice == "previous"
    assert rounds_of(session.record)[1].choice == "previous"


@pytest.mark.parametrize("recall", [1, 3])
@pytest.mark.parametrize("how", ["withdrawn", "amended"])
@pytest.mark.parametrize("measured", [True, False])
def test_comparison_with_a_trial_that_was_taken_out_is_not_asked(
    lab: Lab, recall: int, how: str, measured: bool
) -> None:
    session = walked(lab, recall, walks=1)
    trial = session.start(session.suggest({"x": 6}))
    if measured:
        trial = session.measure(trial, {"o": 0.4})
        assert (trial.asks_choice, trial.compare_with) == (True, 1)
    if how == "withdrawn":
        session.withdraw(1, "loose sensor")
    else:
        session.amend(1, why="loose sensor", outcome=None)
    if not measured:
        session.measure(2, {"o": 0.4})
    trial = session.record.trial(2)
    assert (trial.asks_choice, trial.status) == (False, "complete")
    with pytest.raises(ValueError, match=r"no answer is expected: .*(no longer counts|outcome)"):
        session.choose(2, "new")
    if measured:
        session.undo()  # it counts again, and the person still knows
        assert session.record.trial(2).asks_choice


@pytest.mark.parametrize("how", ["device failed", "nothing measured"])
def test_walk_that_may_not_have_happened_hides_those_before_it(lab: Lab, how: str) -> None:
    """Nobody could say how many walks ago the ones before it were."""
    session = walked(lab, recall=3, walks=3)
    if how == "device failed":
        session.abort(session.start(session.suggest({"x": 6.5})), "it did not move")
    else:
        trial = session.measure(session.suggest({"x": 6.5}), None)
        session.choose(trial, None)
    fifth = walk(session, session.suggest({"x": 6}))
    assert not fifth.asks_choice
    named = session.measure(session.start(session.suggest({"x": 5.5})), {"o": 0.9})
    assert (named.compare_with, named.ago) == (5, 1)


def test_break_limit_of_any_length_can_be_used(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN, protocol=Protocol(break_minutes=1e13))
    session.interrupt()
    session.resume()
    assert walk(session, session.ask()).status == "complete"


@pytest.mark.parametrize("wall", ["2026-01-01T00:00:00", "yesterday"])
def test_time_of_a_foreign_log_that_cannot_be_compared_counts_as_a_break(
    folder: Path, wall: str
) -> None:
    with Lab(folder / "own.db") as lab:
        session = stepping(lab)
        walk(session, session.suggest({"x": 60}))
        session.start(session.suggest({"x": 75}))
        lab.export(folder / "out", formats=["jsonl"])
    foreign, previous = [], GENESIS
    for line in (folder / "out" / "log.jsonl").read_text().splitlines():
        event = {**json.loads(line), "wall": wall, "previous": previous}
        event["hash"] = previous = fingerprint(event, canonical(event["body"]))
        foreign.append(canonical(event))
    (folder / "foreign.jsonl").write_text("\n".join(foreign) + "\n")
    restore(folder / "foreign.jsonl", folder / "foreign.db")
    with Lab(folder / "foreign.db") as lab:
        session = lab.open("P1-1")
        with pytest.raises(UnsafePolicyError, match="from 50"):  # it may have been switched off
            session.ask()
        session.place({"x": 70})
        assert session.ask().number == 2


def test_impossible_value_of_a_logarithmic_parameter_is_refused_in_words(lab: Lab) -> None:
    space = Space({"g": Parameter(1, 100, log=True, max_step=30, start=10)}, {"o": Outcome(0, 1)})
    session = lab.create(space, "P1", 1, settings=PLAIN)
    with pytest.raises(UnsafePolicyError, match="g: expected 1 to 100, got -5"):
        session.suggest({"g": -5.0})


def test_settings_that_are_not_named_are_kept_from_the_stated_place(lab: Lab) -> None:
    space = Space({"x": Parameter(0, 10), "y": Parameter(0, 10)}, {"o": Outcome(0, 1)})
    session = lab.create(space, "P1", 1, settings=PLAIN)
    session.place({"x": 1.0, "y": 7.0})
    assert kept_settings(session.record, {"x": 2.0}) == ("the stated place", {"y": 7.0})
    walk(session, session.suggest({"x": 1.0, "y": 7.0}))
    walk(session, session.suggest({"x": 4.0, "y": 2.0}))
    assert kept_settings(session.record, {"x": 2.0}) == ("trial 2", {"y": 2.0})
    session.place({"x": 1.0, "y": 7.0})  # where trial 1 was
    assert kept_settings(session.record, {"x": 2.0}) == ("the stated place", {"y": 7.0})
