"""A person compares with the walk felt last, or is not asked."""

import pytest

from sfihilo.experiment import (
    Lab,
    Session,
)
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import finish, good, stepping


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
