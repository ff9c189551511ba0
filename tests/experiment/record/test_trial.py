"""One trial's life: either order, missing parts, early ends."""

from collections.abc import Callable, Iterator

import pytest

from sfihilo.experiment import BadMeasurementError, Lab, Outcome, Parameter, Session, Space
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import EXOSKELETON, LEAN, finish, good, memory_folder


@pytest.fixture
def session() -> Iterator[Session]:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        yield lab.create(EXOSKELETON, "P07", 7, settings=LEAN)


def test_the_first_trial_only_gives_the_anchor(session: Session) -> None:
    trial = session.ask()
    assert (trial.number, trial.round, trial.compare_with, trial.asks_choice) == (1, 0, None, False)
    assert session.measure(trial, good(session)).status == "complete"
    second = session.ask()
    assert (second.number, second.compare_with, second.asks_choice) == (2, 1, True)


def test_answer_that_was_not_asked_for_is_refused_with_the_reason(session: Session) -> None:
    first = session.ask()
    with pytest.raises(ValueError, match=r"no answer is expected: there is nothing to compare"):
        session.choose(first, "new")
    session.measure(first, good(session))
    with pytest.raises(ValueError, match=r"it is over.*no answer is expected"):
        session.choose(first, "new")
    assert not session.trials[0].answered
    session.ask()
    with pytest.raises(ValueError, match="it is over"):
        session.choose(first, "new")


def test_asking_twice_gives_the_same_trial_and_one_event(session: Session) -> None:
    assert session.ask() == session.ask()
    assert [event.kind for event in session.events] == ["opened", "asked"]


def test_statuses_in_the_usual_order(session: Session) -> None:
    finish(session)
    trial = session.ask()
    statuses = [trial.status]
    statuses.append(session.start(trial).status)
    statuses.append(session.measure(trial, good(session)).status)
    statuses.append(session.choose(trial, "previous").status)
    assert statuses == ["asked", "started", "measured", "complete"]


def test_the_answer_may_come_first_and_from_somebody_else(session: Session) -> None:
    finish(session)
    trial = session.ask(actor="operator")
    assert session.choose(trial, "same", actor="participant").status == "chosen"
    assert session.measure(trial, good(session), actor="cart").status == "complete"
    assert [event.actor for event in session.events[-3:]] == ["operator", "participant", "cart"]


def test_a_missing_outcome_is_recorded_and_keeps_the_anchor(session: Session) -> None:
    finish(session)
    trial = session.measure(session.ask(), None)
    assert session.choose(trial, "new").status == "complete"
    third = session.ask()
    assert third.compare_with == 1
    told = rounds_of(session.record)
    assert told[1].outcome is None
    assert session.state.history.anchor is not None
    assert len(session.state.history.preference_data().labels) == 0


def test_a_partly_missing_outcome_keeps_what_was_measured(session: Session) -> None:
    trial = session.measure(session.ask(), {"metabolic_rate": 4.0, "comfort": None})
    assert trial.outcome == {"metabolic_rate": 4.0, "comfort": None}
    assert trial.whole_outcome is None
    assert session.ask().compare_with is None


@pytest.mark.parametrize("choice", ["new", "previous", "same", None])
def test_every_answer_is_told_as_it_was_given(session: Session, choice: object) -> None:
    finish(session)
    finish(session, choice, 0.2)  # type: ignore[arg-type]
    assert session.record.trials[-1].answered
    assert rounds_of(session.record)[-1].choice == choice


@pytest.mark.parametrize("choice", ["NEW", "", 1, True, "old", ["new"], float("nan")])
def test_other_answers_are_refused(session: Session, choice: object) -> None:
    finish(session)
    trial = session.ask()
    with pytest.raises(ValueError, match="choice: expected one of"):
        session.choose(trial, choice)  # type: ignore[arg-type]
    assert not session.trials[-1].answered


def test_second_start_outcome_or_answer_of_a_trial_is_refused(session: Session) -> None:
    finish(session)
    trial = session.start(session.ask())
    with pytest.raises(ValueError, match="started already"):
        session.start(trial)
    session.measure(trial, good(session))
    with pytest.raises(ValueError, match="measured already"):
        session.measure(trial, good(session, 0.1))
    session.choose(trial, "new")
    calls: list[Callable[[], object]] = [
        lambda: session.choose(trial, "new"),
        lambda: session.measure(trial, good(session)),
        lambda: session.start(trial),
        lambda: session.abort(trial, "late"),
        lambda: session.veto(trial, "late"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="trial 2"):
            call()


def test_aborting_keeps_what_was_measured(session: Session) -> None:
    finish(session)
    trial = session.measure(session.start(session.ask()), good(session, 0.2))
    assert session.abort(trial, "tired").status == "aborted"
    told = rounds_of(session.record)[-1]
    assert told.outcome is not None
    assert told.choice is None
    assert session.ask().compare_with == 2


def test_aborting_before_anything(session: Session) -> None:
    finish(session)
    before = session.ask()
    session.abort(before, "strap broke")
    after = session.ask()
    assert (after.number, after.round) == (before.number + 1, before.round + 1)
    assert after.policy != before.policy


def test_a_veto_keeps_the_neighbourhood_free(session: Session) -> None:
    finish(session)
    vetoed = [session.veto(session.ask(), "looks painful") for _ in range(3)]
    assert {trial.status for trial in vetoed} == {"vetoed"}
    lower, upper = EXOSKELETON.box(session.record.positions)
    after = session.ask()
    for trial in vetoed:
        gaps = [
            abs(a - b) / (high - low)
            for a, b, low, high in zip(after.unit, trial.unit, lower, upper, strict=True)
        ]
        assert max(gaps) >= session.record.protocol.veto_radius - 0.03  # the grid may round back
    with pytest.raises(ValueError, match="abort it instead"):
        session.veto(session.start(after), "too late")


def test_vetoes_never_leave_nothing_to_ask() -> None:
    """One parameter and many vetoes: the oldest yields rather than stopping the session."""
    space = Space({"x": Parameter(0, 1, max_step=0.1, start=0.5)}, {"o": Outcome(0, 1)})
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(space, "P1", 3, settings=LEAN)
        finish(session)
        for _ in range(7):
            session.veto(session.ask(), "no")
        assert session.ask().status == "asked"


def test_an_own_suggestion_is_learned_from(session: Session) -> None:
    first = finish(session)
    wanted = {**first.policy, "peak_time": 42.0}
    trial = session.suggest(wanted, why="ask the physio")
    assert trial.source == "operator"
    assert trial.policy == wanted
    session.measure(trial, good(session, 0.1))
    session.choose(trial, "new")
    told = rounds_of(session.record)
    assert told[-1].choice == "new"
    assert told[-1].policy == pytest.approx(EXOSKELETON.to_unit(wanted).tolist())


def test_an_unsafe_suggestion_is_refused_and_recorded(session: Session) -> None:
    first = finish(session)
    torque = first.policy["peak_torque"]
    far = torque + (20 if torque < 40 else -20)
    for policy in (
        {**first.policy, "peak_torque": far},
        {**first.policy, "peak_torque": 61.0},
        {**first.policy, "peak_torque": float("nan")},
        {**first.policy, "offset": 0.0},
        {"peak_torque": 30.0},
        {**first.policy, "knob": 1.0},
    ):
        before = len(session.trials)
        with pytest.raises(ValueError, match=r"peak_torque|offset|knob|missing"):
            session.suggest(policy)
        assert len(session.trials) == before
        assert session.events[-1].kind == "refused"


def test_a_repeat_probes_consistency(session: Session) -> None:
    first = finish(session)
    second = finish(session, "new", 0.1)
    again = session.repeat(first)
    assert (again.source, again.repeats, again.policy) == ("repeat", 1, first.policy)
    assert again.asks_choice
    session.measure(again, good(session, 0.2))
    session.choose(again, "previous")
    probe = session.repeat(second)
    assert (probe.policy, probe.compare_with) == (second.policy, again.number)


def test_new_trial_while_one_is_open_is_refused(session: Session) -> None:
    first = session.ask()
    with pytest.raises(ValueError, match="finish, abort or veto"):
        session.suggest(first.policy)
    with pytest.raises(ValueError, match="finish, abort or veto"):
        session.repeat(first)


@pytest.mark.parametrize("trial", [0, -1, 99, True, 1.0, "1", None])
def test_unknown_trials_are_refused(session: Session, trial: object) -> None:
    session.ask()
    with pytest.raises(ValueError, match="trial: expected"):
        session.start(trial)  # type: ignore[arg-type]


def test_a_refused_measurement_leaves_the_model_untouched(session: Session) -> None:
    finish(session)
    trial = session.ask()
    before = rounds_of(session.record)
    with pytest.raises(BadMeasurementError, match=r"another unit\? 4100 / 1000 = 4.1 would fit"):
        session.measure(trial, {"metabolic_rate": 4100, "comfort": 6})
    assert session.trials[-1].status == "asked"
    assert rounds_of(session.record) == before
    refused = session.events[-1]
    assert (refused.kind, refused.body["trial"]) == ("refused", 2)
    assert "4100" in str(refused.body["given"])
    assert session.measure(trial, {"metabolic_rate": 4.1, "comfort": 6}).measured


def test_a_soft_limit_warns(session: Session) -> None:
    trial = session.measure(session.ask(), {"metabolic_rate": 7.9, "comfort": 5})
    assert trial.warnings == ("metabolic_rate: 7.9 W/kg is outside the usual 2.5 to 7.5",)
