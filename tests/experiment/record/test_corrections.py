"""Amended, late, missing and withdrawn data, and what the learner is told of them."""

import numpy as np
import pytest

from sfihilo.experiment import Session
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import (
    EXOSKELETON,
    finish,
    good,
)


def test_learner_is_told_the_amended_outcome_and_answer(session: Session) -> None:
    for step in range(4):
        finish(session, "new", 0.1 * step)
    wanted = {"metabolic_rate": 3.3, "comfort": 9.0}
    trial = session.amend(2, why="typo", outcome=wanted, choice="previous", actor="pi")
    assert (trial.outcome, trial.choice) == (wanted, "previous")
    state = session.state
    assert state.history.choices[1] == "previous"
    np.testing.assert_array_equal(
        state.history.outcomes[1], np.array(EXOSKELETON.unit_values(wanted))
    )
    np.testing.assert_array_equal(state.history.anchors[2], state.history.outcomes[1])
    assert [e.kind for e in session.events if e.body.get("trial") == 2].count("measured") == 1
    session.undo()
    assert session.trials[1].choice == "new"


def test_amending_to_missing_takes_the_next_comparison_along(session: Session) -> None:
    for step in range(4):
        finish(session, "new", 0.1 * step)
    session.amend(2, why="loose mask", outcome=None)
    told = rounds_of(session.record)
    assert told[1].outcome is None
    assert told[2].choice is None  # it was compared with an outcome that is gone
    assert told[3].choice == "new"
    assert session.state.round == 4


def test_partly_measured_outcome_reaches_the_learner_with_its_answer(session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    trial = session.ask()
    session.measure(trial, good(session, 0.2) | {"comfort": None})
    session.choose(trial, "previous")
    history = session.state.history
    assert np.isnan(history.outcomes[3]).tolist() == [False, True]
    assert len(session.state.inverse.labels) == 3
    assert session.record.anchor_trial == session.trials[3]
    following = session.ask()
    assert following.compare_with == 4
    assert following.asks_choice


def test_outcome_that_was_never_measured_leaves_nothing_to_compare_with(session: Session) -> None:
    for step in range(4):
        trial = session.ask()
        assert not trial.asks_choice
        session.measure(trial, good(session, 0.1 * step) | {"comfort": None})
    state = session.state
    assert state.forward.measurements.tolist() == [4, 0]
    assert state.history.anchor is None
    assert session.record.anchor_trial is None
    session.measure(session.ask(), good(session))
    assert session.ask().asks_choice


def test_a_late_outcome_comes_as_an_amendment(session: Session) -> None:
    finish(session)
    trial = session.measure(session.ask(), None)
    session.choose(trial, "new")
    session.amend(trial, why="analysed later", outcome=good(session, 0.2))
    assert rounds_of(session.record)[1].outcome is not None
    assert rounds_of(session.record)[1].choice == "new"


def test_withdrawing_takes_the_data_out(session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    session.withdraw(2, "sensor off")
    told = rounds_of(session.record)
    assert (told[1].outcome, told[1].choice) == (None, None)
    assert session.state.round == 3
    with pytest.raises(ValueError, match="withdrawn already"):
        session.withdraw(2, "again")
    with pytest.raises(ValueError, match="nothing to amend"):
        session.amend(2, why="x", choice="new")


def test_an_empty_amendment_is_refused(session: Session) -> None:
    finish(session)
    with pytest.raises(ValueError, match="neither"):
        session.amend(1, why="x")
