"""Undo and redo: the record goes back, the device does not."""

import pytest

from sfihilo.experiment import Lab, Session
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import (
    LEAN,
    finish,
    good,
    unit_space,
)


def test_undo_and_redo_walk_back_and_forth(session: Session) -> None:
    finish(session)
    trial = session.start(session.ask())
    session.measure(trial, good(session, 0.3))
    session.choose(trial, "new")
    before = rounds_of(session.record)
    undone = [session.undo("oops").kind for _ in range(4)]
    assert undone == ["chosen", "measured", "started", "asked"]
    assert session.trials[1].status == "undone"
    assert len(rounds_of(session.record)) == 1
    redone = [session.redo().kind for _ in range(4)]
    assert redone == undone[::-1]
    assert rounds_of(session.record) == before
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_an_undone_query_comes_again(lab: Lab) -> None:
    session = lab.create(unit_space(), "P1", 7, settings=LEAN)
    finish(session)
    first = session.ask()
    session.undo()
    again = session.ask()
    assert (again.number, again.round, again.unit) == (first.number + 1, first.round, first.unit)
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_undone_query_cannot_be_redone_after_another(session: Session) -> None:
    finish(session)
    session.ask()
    session.undo()
    session.ask()
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_undone_query_may_have_been_applied_so_the_next_is_one_step_from_it(
    session: Session,
) -> None:
    before = finish(session)
    shown = session.ask()
    session.undo()
    after = session.ask()
    for place in (before, shown):
        assert abs(after.policy["peak_torque"] - place.policy["peak_torque"]) <= 15 + 1e-6


def test_undoing_into_the_trial_before_opens_it_again(session: Session) -> None:
    finish(session)
    finish(session, "new", 0.1)
    session.ask()
    session.undo()
    session.undo()
    assert session.trials[1].status == "measured"
    assert session.ask().number == 2  # not a new one: the second waits for its answer
    session.prepare()
    session.choose(2, "previous")
    assert session.ask().number == 4
    assert [lesson.choice for lesson in rounds_of(session.record)] == [None, "previous"]


def test_undo_ends_at_the_beginning(session: Session) -> None:
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()


def test_undo_never_forgets_where_the_device_may_be(session: Session) -> None:
    first = finish(session)
    second = session.start(session.ask())
    session.undo("pressed by mistake")
    session.undo()
    positions = session.record.positions
    assert dict(first.policy) in positions
    assert dict(second.policy) in positions
    third = session.ask()
    for policy in positions:
        assert abs(third.policy["peak_torque"] - policy["peak_torque"]) <= 15 + 1e-6


def test_an_aborted_policy_may_have_reached_the_device(session: Session) -> None:
    first = finish(session)
    second = session.ask()
    session.abort(second, "fell out of the harness, nobody pressed start")
    assert session.record.positions == (dict(first.policy), dict(second.policy))
    third = session.ask()
    for policy in (first.policy, second.policy):
        assert abs(third.policy["peak_torque"] - policy["peak_torque"]) <= 15 + 1e-6
    session.veto(third, "never applied")
    assert len(session.record.positions) == 2
    last = session.start(session.ask())
    assert dict(last.policy) in session.record.positions  # but the device may have refused it
    session.measure(last, good(session, 0.1))
    assert list(session.record.positions) == [dict(last.policy)]


def test_undo_gives_the_learner_back(session: Session) -> None:
    finish(session)
    finish(session, "new", 0.1)
    before = session.ask()
    session.undo()
    session.undo("wrong button")
    session.choose(2, "previous")
    changed = session.ask()
    assert changed.model["fingerprint"] != before.model["fingerprint"]
    session.undo()
    session.undo()
    session.choose(2, "new")
    assert session.ask().model["fingerprint"] == before.model["fingerprint"]
