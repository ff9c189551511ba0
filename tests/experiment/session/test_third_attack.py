"""Histories that the third attack on sessions found: places, answers and retries."""

from dataclasses import replace

import pytest

from sfihilo.experiment import Lab, Protocol, Session, UnsafePolicyError
from sfihilo.experiment.session.rounds import used_answers
from tests.experiment.clock import LabClock
from tests.experiment.people import LINE, PLAIN


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LabClock:
    return LabClock(monkeypatch)


def begun(lab: Lab, recall: int = 1, *, reanchor: bool = True) -> Session:
    settings, protocol = replace(PLAIN, recall=recall), Protocol(reanchor=reanchor)
    return lab.create(LINE, "P1", 1, settings=settings, protocol=protocol)


def walk(session: Session, x: float, outcome: float = 0.5) -> None:
    trial = session.start(session.suggest({"x": x}))
    trial = session.measure(trial, {"o": outcome})
    if trial.asks_choice:
        session.choose(trial, "new")


def test_device_placed_before_the_first_trial_may_be_at_its_start_after_a_pause(
    lab: Lab, clock: LabClock
) -> None:
    session = begun(lab)
    session.place({"x": 9})
    clock.passes(300)
    assert abs(session.ask().policy["x"] - 5) <= 2.00001


@pytest.mark.parametrize("recall", [1, 3])
@pytest.mark.parametrize("ending", ["vetoed", "aborted"])
def test_trial_reopened_after_a_later_one_was_shown_is_not_compared(
    lab: Lab, recall: int, ending: str
) -> None:
    session = begun(lab, recall)
    walk(session, 5)
    second = session.suggest({"x": 6})
    if ending == "vetoed":
        session.veto(second, "no")
    else:
        session.measure(second, {"o": 0.4})
        session.abort(second, "no")
    session.suggest({"x": 7})
    session.undo()
    session.undo()
    if ending == "vetoed":
        session.measure(2, {"o": 0.4})
    with pytest.raises(ValueError, match="no answer is expected"):
        session.choose(2, "new")
    assert not used_answers(session.record)


def test_first_answer_is_not_taken_as_an_amendment(lab: Lab, clock: LabClock) -> None:
    session = begun(lab)
    walk(session, 5)
    session.measure(session.suggest({"x": 6}), {"o": 0.3})
    clock.passes(300)
    with pytest.raises(ValueError, match="use choose"):
        session.amend(2, why="late", choice="new")


def test_older_walk_is_not_compared_over_a_break_without_reanchoring(lab: Lab) -> None:
    session = begun(lab, 3, reanchor=False)
    for step in range(20):
        trial = session.suggest({"x": 5 + step / 10})
        trial = session.measure(trial, {"o": 0.13 * step % 1})
        if trial.ago is not None and trial.ago > 1:
            break
        if trial.asks_choice:
            session.choose(trial, "new")
    assert trial.ago is not None
    assert trial.ago > 1
    session.interrupt("lunch")
    session.resume()
    with pytest.raises(ValueError, match="no answer is expected"):
        session.choose(trial, "new")


@pytest.mark.parametrize("call", ["ask", "start"])
def test_repeated_request_after_a_pause_gives_no_unreachable_trial(
    lab: Lab, clock: LabClock, call: str
) -> None:
    session = begun(lab)
    walk(session, 6)
    walk(session, 8)
    if call == "ask":
        session.place({"x": 10})
        trial = session.ask(key="a")
        assert trial.policy["x"] > 7
    else:
        session.start(session.suggest({"x": 9}), key="s")
    clock.passes(300)
    with pytest.raises(UnsafePolicyError):
        session.ask(key="a") if call == "ask" else session.start(3, key="s")


def test_stated_place_holds_after_a_trial_that_was_measured_before_its_start(lab: Lab) -> None:
    session = begun(lab)
    walk(session, 6)
    trial = session.suggest({"x": 8})
    session.measure(trial, {"o": 0.5})
    session.start(trial)
    session.choose(trial, "new")
    session.place({"x": 1})
    assert session.record.positions == ({"x": 1.0},)
    assert session.ask().policy["x"] <= 3.00001


def test_undone_lift_does_not_show_a_vetoed_trial_again(lab: Lab) -> None:
    session = begun(lab)
    session.veto(session.suggest({"x": 7}), "hurts", pain=True)
    assert list(session.record.positions) == [{"x": 5.0}, {"x": 7.0}]  # who felt it was there
    session.place({"x": 5})
    session.lift(1, "better")
    session.undo()
    assert session.record.positions == ({"x": 5.0},)
