"""Vetoes, and those because of pain: they hold until they are lifted."""

from typing import Any

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
from tests.experiment.people import LEAN, LINE, PLAIN, stepping


def near(session: Session, x: float, centre: float) -> bool:
    """Within 0.15 of the 4 units that one step around the vetoed policy reaches."""
    return abs(x - centre) < session.record.protocol.veto_radius * 4 - 1e-9


def painful_line(lab: Lab, seed: int = 3, **veto: Any) -> tuple[Session, Trial]:
    """A line along which the person prefers the middle, which was vetoed."""
    protocol = Protocol(veto_rounds=1)
    session = lab.create(LINE, "P1", seed, settings=PLAIN, protocol=protocol)
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
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    anchor = session.suggest({"x": 5.0})
    session.measure(anchor, {"o": 0.5})
    session.veto(session.suggest({"x": 5.1}), "hurts", pain=True)
    session.interrupt()
    trial = session.ask()
    assert trial.source == "learner"
    assert abs(trial.policy["x"] - 5.1) >= 1.5 - 1e-9
    assert not trial.asks_choice


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


def test_pain_is_true_or_false(session: Session) -> None:
    with pytest.raises(ValueError, match="pain: expected True or False"):
        session.veto(session.ask(), "x", pain="yes")  # type: ignore[arg-type]
