"""Graded answers in sessions: stored, corrected, replayed and learned from; refused where wrong."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfihilo
from sfihilo.experiment import Lab, Session
from sfihilo.experiment.record.answers import STRENGTHS, all_answers, offered, strength_word
from sfihilo.experiment.session.rounds import rounds_of
from sfihilo.inverse.grading import CUTS
from tests.experiment.people import LEAN, finish, good, unit_space

SEVEN = replace(LEAN, grades=7, inverse=replace(LEAN.inverse, inference="variational"))


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    """A session with seven answers, after its first trial."""
    with Lab(folder / "lab.db") as lab:
        made = lab.create(unit_space(2, 2), "P1", 1, settings=SEVEN)
        finish(made)
        yield made


def graded(session: Session, choice: str, strength: int | None, step: float = 0.2) -> int:
    trial = session.ask()
    session.measure(trial, good(session, step))
    session.choose(trial, choice, strength)  # type: ignore[arg-type]
    return trial.number


def test_strength_words_are_as_many_as_the_learner_has_cuts() -> None:
    assert {grades: len(words) for grades, words in STRENGTHS.items()} == {
        grades: len(cuts) for grades, cuts in CUTS.items()
    }
    assert [offered(grades) for grades in CUTS] == ["two", "five", "seven"]
    assert [len(all_answers(grades)) for grades in CUTS] == [4, 6, 8]
    assert [strength_word(strength, 5) for strength in (None, 1, 2)] == [None, "better", "much"]


def test_strength_is_stored_in_its_event_and_told_to_the_learner(session: Session) -> None:
    number = graded(session, "new", 3)
    assert session.events[-1].body == {"trial": number, "choice": "new", "strength": 3}
    assert session.trials[-1].to_dict()["strength"] == 3
    assert rounds_of(session.record)[-1].strength == 3
    assert session.state.history.strengths == (None, 3)


def test_ungraded_answers_mix_with_graded_ones(session: Session) -> None:
    graded(session, "new", 2, 0.1)
    graded(session, "previous", None, 0.2)
    graded(session, "same", None, 0.3)
    assert session.state.history.strengths == (None, 2, None, None)
    assert session.events[-1].body == {"trial": 4, "choice": "same"}


def test_stronger_answer_moves_the_learner_further(folder: Path) -> None:
    """The same walks with "slightly" and with "much": the learned difference grows."""
    differences = []
    for strength in (1, 3):
        with Lab(folder / f"{strength}.db") as lab:
            session = lab.create(unit_space(2, 2), "P1", 1, settings=SEVEN)
            finish(session)
            graded(session, "new", strength)
            state = session.state
            old, new = state.history.outcomes
            rewards = state.posterior().mean_reward(np.stack([old, new]))
            differences.append(float(rewards[1] - rewards[0]))
    assert 0 < differences[0] < differences[1]


@pytest.mark.parametrize(
    ("choice", "strength", "said"),
    [
        ("new", 4, "expected 1 to 3 or None, got 4; this session grades its answers: 1 (slightly)"),
        ("new", 0, "expected 1 to 3 or None, got 0"),
        ("new", "much", "expected a whole number or None, got 'much'"),
        ("new", True, "expected a whole number or None, got True"),
        ("same", 1, "expected None with the choice 'same', got 1"),
        (None, 1, "expected None with the choice None, got 1"),
    ],
)
def test_wrong_strength_is_refused_with_what_is_expected(
    session: Session, choice: str, strength: object, said: str
) -> None:
    trial = session.ask()
    session.measure(trial, good(session, 0.1))
    before = len(session.events)
    with pytest.raises(ValueError, match=r"^strength: ") as raised:
        session.choose(trial, choice, strength)  # type: ignore[arg-type]
    assert said in str(raised.value)
    assert len(session.events) == before


def test_strength_in_a_session_with_two_answers_is_refused(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = lab.create(unit_space(2, 2), "P1", 1, settings=LEAN)
        assert "grades" not in session.record.settings  # stored as before there were grades
        finish(session)
        trial = session.ask()
        session.measure(trial, good(session, 0.1))
        with pytest.raises(ValueError, match="not graded, got 2; this session has two answers"):
            session.choose(trial, "new", 2)
        session.choose(trial, "new")
        assert session.events[-1].body == {"trial": 2, "choice": "new"}


def test_amended_answer_has_its_own_strength_and_undo_restores_the_former(
    session: Session,
) -> None:
    number = graded(session, "new", 3)
    session.amend(number, why="meant slightly", choice="new", strength=1)
    assert session.state.history.strengths[-1] == 1
    session.amend(number, why="the other one", choice="previous")
    assert (session.trials[-1].choice, session.trials[-1].strength) == ("previous", None)
    session.undo()
    assert session.state.history.strengths[-1] == 1
    session.undo()
    session.undo()
    assert not session.trials[-1].answered
    session.redo()
    assert session.state.history.strengths[-1] == 3
    with pytest.raises(ValueError, match="expected a choice together with the strength"):
        session.amend(number, why="stronger", strength=2)


def test_graded_session_reopened_gives_the_same_state_and_query(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = lab.create(unit_space(2, 2), "P1", 1, settings=SEVEN)
        finish(session)
        for step in range(9):
            graded(session, ("new", "previous")[step % 2], 1 + step % 3, 0.1 * step)
        text, asked = sfihilo.save(session.state), session.ask()
    for snapshots in (True, False):
        if not snapshots:
            for file in (folder / "lab.db.snapshots").iterdir():
                file.unlink()
        with Lab(folder / "lab.db") as lab:
            again = lab.open("P1-1")
            assert sfihilo.save(again.state) == text
            assert again.ask() == asked


def test_prepared_query_after_a_graded_answer_is_the_same_as_without(folder: Path) -> None:
    queries = []
    for ahead in (True, False):
        with Lab(folder / f"{ahead}.db") as lab:
            session = lab.create(unit_space(2, 2), "P1", 1, settings=SEVEN)
            finish(session)
            trial = session.ask()
            session.measure(trial, good(session, 0.2))
            if ahead:
                session.prepare()
            session.choose(trial, "previous", 2)
            queries.append(session.ask())
    assert queries[0].policy == queries[1].policy
    assert queries[0].model == queries[1].model


def test_run_takes_an_answer_with_its_strength(session: Session) -> None:
    session.run(
        apply=lambda _: None,
        measure=lambda trial: good(session, 0.1 * trial.number),
        choose=lambda trial: ("new", 2) if trial.number % 2 else "same",
        trials=3,
    )
    assert [trial.strength for trial in session.trials] == [None, None, 2, None]
