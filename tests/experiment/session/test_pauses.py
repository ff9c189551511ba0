"""After a pause: the device may be at its start again, and no walk of before is compared."""

from collections.abc import Callable

import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Protocol, Session, Space, Trial
from sfihilo.experiment.record.fold import fold
from tests.experiment.clock import LabClock
from tests.experiment.people import PLAIN

SPACE = Space({"x": Parameter(0, 60, max_step=15, start=0)}, {"o": Outcome(0, 1)})
NIGHT = 14 * 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LabClock:
    return LabClock(monkeypatch)


@pytest.fixture
def session(lab: Lab, clock: LabClock) -> Session:
    """Two walks, to x = 20."""
    return walked(lab.create(SPACE, "P1", 1, settings=PLAIN), clock)


def walked(session: Session, clock: LabClock) -> Session:
    for x in (10.0, 20.0):
        walk(session, clock, session.suggest({"x": x}))
    return session


def walk(session: Session, clock: LabClock, trial: Trial) -> Trial:
    trial = session.start(trial)
    clock.passes(2)
    trial = session.measure(trial, {"o": 0.5})
    return session.choose(trial, "new") if trial.asks_choice else trial


def possible(session: Session) -> list[float]:
    return sorted(place["x"] for place in session.record.positions)


ENDINGS: dict[str, Callable[[Session, Trial], object]] = {
    "veto": lambda session, trial: session.veto(trial, "not today"),
    "abort": lambda session, trial: session.abort(trial, "not done yesterday"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("said", [True, False])
def test_old_trial_ended_from_the_desk_does_not_hide_the_night(
    session: Session, clock: LabClock, ending: str, said: bool
) -> None:
    """The last trial of yesterday is ended this morning, while the device was switched off."""
    trial = session.suggest({"x": 30.0})
    if said:
        session.interrupt("end of the day")
    clock.passes(NIGHT)
    ENDINGS[ending](session, trial)
    clock.passes(1)
    with pytest.raises(ValueError, match=r"say where it is with `place`"):
        session.suggest({"x": 32.0})
    assert 0.0 in possible(session)
    session.place({"x": 20.0})
    assert not session.suggest({"x": 25.0}).asks_choice


def test_switched_off_device_counts_without_reanchor_too(lab: Lab, clock: LabClock) -> None:
    """`reanchor` is about what a person remembers, not about where a device is."""
    protocol = Protocol(reanchor=False)
    session = walked(lab.create(SPACE, "P1", 1, settings=PLAIN, protocol=protocol), clock)
    clock.passes(59)
    assert session.suggest({"x": 22.0}).asks_choice
    session.undo()
    session.interrupt("end of the day")
    clock.passes(NIGHT)
    session.resume()
    assert 0.0 in possible(session)


def test_clock_set_back_hides_no_pause(session: Session, clock: LabClock) -> None:
    clock.passes(NIGHT, set_back=NIGHT + 60)
    assert not session.ask().asks_choice
    assert 0.0 in possible(session)


def test_computer_started_anew_is_a_pause_of_unknown_length(
    session: Session, clock: LabClock
) -> None:
    """After a power cut of three minutes the device has lost its power too."""
    clock.restart(3)
    trial = session.ask()
    assert not trial.asks_choice
    assert 0.0 in possible(session)
    assert [e.body["why"] for e in session.events if e.kind == "interrupted"] == [
        "the computer was started anew"
    ]


def test_short_pause_changes_nothing(session: Session, clock: LabClock) -> None:
    clock.passes(59, set_back=30)
    assert session.suggest({"x": 25.0}).asks_choice
    assert possible(session) == [20.0, 25.0]


@pytest.mark.parametrize("started", [True, False])
def test_outcome_that_comes_after_a_break_is_walked_again_before_it_is_compared_with(
    session: Session, clock: LabClock, started: bool
) -> None:
    """The metabolic rate of the last walk was computed over night."""
    trial = session.suggest({"x": 14.0})
    if started:
        session.start(trial)
    clock.passes(NIGHT)
    session.place({"x": 14.0})
    trial = session.measure(trial, {"o": 0.4})
    assert "not started after the break" in trial.warnings[-1]
    again = session.ask()
    assert (again.source, again.policy, again.asks_choice) == ("anchor", trial.policy, False)
    walk(session, clock, again)
    assert session.ask().compare_with == again.number


def test_trial_left_open_in_a_break_can_be_started_again_and_is_the_anchor(
    session: Session, clock: LabClock
) -> None:
    trial = session.start(session.suggest({"x": 14.0}))
    session.interrupt("lunch")
    session.resume()
    walk(session, clock, trial)
    assert not session.trials[-1].warnings
    following = session.ask()
    assert (following.compare_with, following.asks_choice) == (trial.number, True)
    with pytest.raises(ValueError, match="started already"):
        session.start(session.start(following))


def test_run_after_a_failure_walks_the_open_trial_once_and_compares_with_it(
    session: Session,
) -> None:
    def broken(trial: Trial) -> dict[str, float]:
        raise OSError("the sensor fell off")

    applied: list[float] = []

    def go(measure: Callable[[Trial], dict[str, float]], trials: int) -> None:
        session.run(
            apply=lambda policy: applied.append(policy["x"]),
            measure=measure,
            choose=lambda trial: "new",
            trials=trials,
        )

    with pytest.raises(OSError, match="fell off"):
        go(broken, 1)
    go(lambda trial: {"o": 0.3}, 2)
    third, fourth = session.trials[2:]
    assert applied == [third.policy["x"]] * 2 + [fourth.policy["x"]]
    assert (fourth.source, fourth.compare_with, fourth.choice) == ("learner", 3, "new")


def test_outcome_that_arrives_late_for_a_walk_before_a_break_is_not_compared_with(
    lab: Lab, clock: LabClock
) -> None:
    """There was no anchor when the break ended; there is one after `amend`."""
    session = lab.create(SPACE, "P1", 1, settings=PLAIN)
    session.measure(session.start(session.suggest({"x": 10.0})), None)
    session.interrupt("end of the day")
    session.resume()
    session.amend(1, why="late data of the cart", outcome={"o": 0.5})
    trial = session.suggest({"x": 12.0})
    assert (trial.compare_with, trial.asks_choice) == (1, False)


def test_trial_walked_again_after_a_later_one_is_not_compared(
    session: Session, clock: LabClock
) -> None:
    """Walked: 1, 2, 3, then 2 again, because everything about it was undone."""
    later = session.start(session.suggest({"x": 25.0}))
    while session.record.trial(2).started:
        session.undo()
    trial = walk(session, clock, session.ask())
    assert (trial.number, trial.status, trial.choice) == (2, "complete", None)
    assert f"may have walked trial {later.number} before it" in trial.warnings[-1]
    assert fold(session.events).trial(2) == trial


def test_answer_corrected_after_the_next_question_was_seen_is_kept(session: Session) -> None:
    """The usual mistake: the wrong key, noticed when the next settings are shown."""
    session.suggest({"x": 25.0})
    session.undo()
    session.undo()
    assert session.choose(2, "previous").choice == "previous"


def test_trial_vetoed_after_its_start_was_undone_may_have_been_felt(session: Session) -> None:
    trial = session.start(session.suggest({"x": 25.0}))
    session.undo()
    session.veto(trial, "too strong")
    assert not session.suggest({"x": 22.0}).asks_choice


def test_trial_vetoed_before_its_start_was_not_felt(session: Session) -> None:
    session.veto(session.suggest({"x": 25.0}), "too strong")
    assert session.suggest({"x": 22.0}).asks_choice
