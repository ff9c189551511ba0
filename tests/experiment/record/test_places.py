"""Where the device may be: no command is ever more than one step from where it truly is."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sfihilo.experiment import (
    Lab,
    Outcome,
    Parameter,
    Session,
    Space,
    Trial,
    UnsafePolicyError,
)
from sfihilo.experiment.record.fold import fold
from sfihilo.experiment.record.places import places
from tests.experiment.device import Operator, operate
from tests.experiment.people import PLAIN

ONE = Space({"x": Parameter(0, 10, max_step=1, start=5)}, {"o": Outcome(0, 1)})


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    with Lab(folder / "lab.db") as lab:
        yield lab.create(ONE, "P1", 1, settings=PLAIN)


def at(*values: float) -> list[dict[str, float]]:
    return [{"x": value} for value in values]


def possible(session: Session) -> list[dict[str, float]]:
    return sorted((dict(place) for place in session.record.positions), key=lambda p: p["x"])


def walk(session: Session, x: float) -> Trial:
    """A trial with everything recorded."""
    trial = session.start(session.suggest({"x": x}))
    trial = session.measure(trial, {"o": 0.5})
    return session.choose(trial, "new") if trial.asks_choice else trial


def require_next_is_one_step_from(session: Session, true: float) -> None:
    """Suggestions beyond one step are refused, and so is the next question far away."""
    for far in (true + 1.5, true - 1.5):
        with pytest.raises(UnsafePolicyError):
            session.suggest({"x": far})
    assert abs(session.ask().policy["x"] - true) <= 1 + 1e-9


def test_trial_reopened_by_undo_moves_the_device_when_it_is_started(session: Session) -> None:
    """Point 1: suggest, veto, suggest, undo, undo; then the first one is really walked."""
    session.veto(session.suggest({"x": 6.0}), "no")
    session.suggest({"x": 5.5})
    session.undo()
    session.undo()
    trial = session.start(session.ask())
    assert (trial.number, trial.policy) == (1, {"x": 6.0})
    session.measure(trial, {"o": 0.5})
    assert {"x": 6.0} in possible(session)
    require_next_is_one_step_from(session, 6.0)


def test_started_trial_may_have_failed_to_move_the_device(session: Session) -> None:
    session.abort(session.start(session.suggest({"x": 6.0})), "no connection")
    assert possible(session) == at(5.0, 6.0)
    session.measure(session.start(session.suggest({"x": 5.5})), {"o": 0.5})
    assert possible(session) == at(5.5)


def test_started_trial_without_any_outcome_does_not_prove_its_place(session: Session) -> None:
    session.measure(session.start(session.suggest({"x": 6.0})), None)  # the device failed
    assert possible(session) == at(5.0, 6.0)
    with pytest.raises(UnsafePolicyError):
        session.suggest({"x": 7.0})


@pytest.mark.parametrize("mistake", ["measure", "choose"])
@pytest.mark.parametrize("end", ["abort", "withdraw", "amend"])
def test_data_typed_by_mistake_and_taken_out_bring_the_earlier_places_back(
    session: Session, mistake: str, end: str
) -> None:
    walk(session, 5.5)
    trial = session.suggest({"x": 6.5})
    if mistake == "measure":
        session.measure(trial, {"o": 0.5})
    else:
        session.choose(trial, "new")
    if end == "amend":
        session.amend(trial, why="never walked", outcome=None)
    else:
        getattr(session, end)(trial, "never walked")
    assert possible(session) == at(5.5, 6.5)
    if end != "amend":
        session.undo()  # the places from before stay possible
        assert possible(session) == at(5.5, 6.5)


def test_trial_taken_out_after_the_next_was_shown_brings_the_earlier_places_back(
    session: Session,
) -> None:
    walk(session, 5.5)
    mistaken = session.measure(session.suggest({"x": 6.5}), {"o": 0.5})
    session.choose(mistaken, "new")
    following = session.suggest({"x": 7.5})
    session.withdraw(mistaken, "never walked")
    assert possible(session) == at(5.5, 6.5, 7.5)
    with pytest.raises(UnsafePolicyError):
        session.start(following)


def test_amending_an_open_trial_adds_its_place(session: Session) -> None:
    """Point 2: the outcome of an open trial comes as an amendment and ends it."""
    session.amend(session.suggest({"x": 6.0}), why="by paper", outcome={"o": 0.5})
    assert session.record.current is None
    assert {"x": 6.0} in possible(session)
    with pytest.raises(UnsafePolicyError):
        session.suggest({"x": 4.5})


def test_trial_started_after_its_outcome_was_amended_adds_its_place(session: Session) -> None:
    """Found by the oracle: the outcome was missing, the device placed, then moved."""
    walk(session, 5.5)
    trial = session.suggest({"x": 6.0})
    session.amend(trial, why="late", outcome=None)
    session.place({"x": 5.0})
    session.abort(session.start(trial), "enough")
    assert possible(session) == at(5.0, 6.0)


def test_abort_and_two_undos_keep_the_place(session: Session) -> None:
    """Point 3: nobody pressed start, but the device may have moved before the abort."""
    session.abort(session.suggest({"x": 6.0}), "fell")
    session.undo()
    session.undo()
    assert possible(session) == at(5.0, 6.0)
    with pytest.raises(UnsafePolicyError):
        session.suggest({"x": 4.5})


def test_withdrawing_an_open_trial_adds_its_place(session: Session) -> None:
    """Point 3, second half."""
    session.withdraw(session.suggest({"x": 6.0}), "sensor")
    assert possible(session) == at(5.0, 6.0)
    with pytest.raises(UnsafePolicyError):
        session.suggest({"x": 4.5})


def test_measurement_entered_again_after_undo_does_not_prove_the_place(session: Session) -> None:
    """The device went on to trial 2 before trial 1 was corrected, and is still there."""
    session.measure(session.suggest({"x": 6.0}), {"o": 0.5})
    session.start(session.suggest({"x": 7.0}))
    for _ in range(3):
        session.undo()
    session.measure(1, {"o": 0.6})
    assert {"x": 7.0} in possible(session)


def test_old_trials_do_not_move_the_device(session: Session) -> None:
    for x in (6.0, 7.0, 8.0):
        walk(session, x)
    session.amend(1, why="typo", outcome={"o": 0.1})
    session.withdraw(2, "sensor")
    session.undo()
    session.undo()
    session.redo()
    assert possible(session) == at(8.0)


def test_undo_over_several_trials_is_ended_by_place(session: Session) -> None:
    """Point 6: every policy is unsafe, the error names the way out, and it works."""
    for x in (6.0, 7.0, 8.0):
        walk(session, x)
    while session.record.newest is not None:
        session.undo()
    assert possible(session) == at(5.0, 6.0, 7.0, 8.0)
    with pytest.raises(ValueError, match=r"the device may be at .* say where it is with `place`"):
        session.ask()
    with pytest.raises(UnsafePolicyError, match="`place`"):
        session.suggest({"x": 6.5})
    session.place({"x": 8.0}, why="read from the display")
    assert session.events[-1].kind == "placed"
    assert possible(session) == at(8.0)
    require_next_is_one_step_from(session, 8.0)


def test_place_is_within_the_bounds(session: Session) -> None:
    for policy in ({"x": 11.0}, {"x": float("nan")}, {}, {"y": 1.0}, None):
        with pytest.raises(ValueError, match=r"x: expected|policy: expected"):
            session.place(policy)  # type: ignore[arg-type]
    assert [event.kind for event in session.events] == ["opened"]


def test_place_with_the_same_key_is_stated_once(session: Session) -> None:
    for _ in range(3):
        session.place({"x": 2.0}, key="p")
    assert [event.kind for event in session.events] == ["opened", "placed"]


def test_open_trial_that_is_out_of_reach_is_not_commanded(session: Session) -> None:
    """The device was moved by hand after the trial was shown."""
    trial = session.suggest({"x": 6.0})
    session.place({"x": 1.0})
    with pytest.raises(UnsafePolicyError, match="must not be applied"):
        session.ask()
    with pytest.raises(UnsafePolicyError, match="must not be applied"):
        session.start(trial)
    with pytest.raises(UnsafePolicyError, match="must not be applied"):
        session.measure(trial, {"o": 0.5})
    session.veto(trial, "too far now")
    assert abs(session.ask().policy["x"] - 1.0) <= 1 + 1e-9


def test_start_and_measure_are_refused_during_a_break(session: Session) -> None:
    """Point 9."""
    trial = session.suggest({"x": 6.0})
    session.interrupt("lunch")
    with pytest.raises(ValueError, match="interrupted: resume it before you start"):
        session.start(trial)
    with pytest.raises(ValueError, match="interrupted: resume it before you measure"):
        session.measure(trial, {"o": 0.5})
    session.resume()
    assert session.measure(session.start(trial), {"o": 0.5}).measured


def after_long_breaks(session: Session) -> list[dict[str, float]]:
    """The possible places if every interruption had taken two hours."""
    hours, events = 0, []
    for event in session.events:
        hours += 2 * (event.kind == "resumed")
        wall = datetime.fromisoformat(event.wall) + timedelta(hours=hours)
        events.append(replace(event, wall=wall.isoformat()))
    return sorted((dict(place) for place in fold(events).positions), key=lambda p: p["x"])


def test_device_after_a_long_break_may_be_at_its_start_again(session: Session) -> None:
    """It may have been switched off; after a short one it is where it was."""
    for x in (6.0, 7.0, 8.0):
        walk(session, x)
    session.interrupt("end of the day")
    session.resume()
    assert possible(session) == at(8.0)
    assert after_long_breaks(session) == at(5.0, 8.0)
    session.place({"x": 8.0})
    assert after_long_breaks(session) == at(8.0)


def test_trial_left_open_in_a_long_break_proves_its_place_only_if_started_after(
    session: Session,
) -> None:
    started = session.start(session.suggest({"x": 6.0}))
    session.interrupt("lunch")
    session.resume()
    session.measure(started, {"o": 0.5})  # of before lunch
    assert possible(session) == at(6.0)
    assert after_long_breaks(session) == at(5.0, 6.0)
    shown = session.suggest({"x": 5.5})
    session.interrupt("phone")
    session.resume()
    session.measure(session.start(shown), {"o": 0.5})
    assert after_long_breaks(session) == at(5.5)


def test_trial_that_undo_opened_before_a_long_break_does_not_prove_its_place(
    session: Session,
) -> None:
    trial = session.suggest({"x": 6.0})
    session.veto(trial, "no")
    session.undo()  # it may be applied again, and be walked before lunch
    session.interrupt("lunch")
    session.resume()
    session.measure(trial, {"o": 0.5})
    assert after_long_breaks(session) == at(5.0, 6.0)


def test_undo_never_removes_a_possible_place(folder: Path) -> None:
    """On every prefix of a random history: one more undo gives at least the same places."""
    undos = 0
    for seed in range(6):
        operator = Operator(folder, 500 + seed)
        for _ in range(40):
            operator.step()
        events = operator.session.events
        start = fold(events[:1]).space.start
        for number, event in enumerate(events):
            if event.kind == "withdrawn" and "event" in event.body:
                undos += 1
                before, after = places(events[:number], start), places(events[: number + 1], start)
                assert all(place in after for place in before)
        operator.close()
    assert undos > 20


def test_random_operators_never_get_an_unsafe_command(folder: Path) -> None:
    # At 729d09a, 13 of 120 such sessions failed; among them, of these ten, 45, 48 and 50.
    done = operate(folder, operations=600, per_session=60, seed=45)
    assert done["trials"] > 60
    assert done["undo"] > 30


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10))
def test_random_operators_never_get_an_unsafe_command_in_twenty_thousand_operations(
    folder: Path, tenth: int
) -> None:
    done = operate(folder, operations=2_000, per_session=100, seed=10_000 + 100 * tenth)
    print(dict(done))
    assert done["trials"] > 200
    assert done["asked where the device is"] > 5
    assert min(done[name] for name in ("place", "redo", "withdraw", "amend", "reopen", "run")) > 5
