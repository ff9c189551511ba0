"""What a sixth attack on sessions found: a second start of the computer, digits that hide steps."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from sfihilo.cli.interactive.screens import typed
from sfihilo.cli.session.values import parse_number
from sfihilo.experiment import (
    KeyConflictError,
    Lab,
    Outcome,
    Parameter,
    Session,
    Space,
)
from sfihilo.experiment.output.digits import physical
from tests.experiment.clock import MINUTE, LabClock
from tests.experiment.people import LINE, PLAIN

EXO = Space({"torque": Parameter(0, 60, max_step=15, start=0)}, {"o": Outcome(0, 1)})


def walked(session: Session, torque: float) -> None:
    trial = session.start(session.suggest({"torque": torque}))
    trial = session.measure(trial, {"o": 0.5})
    if trial.asks_choice:
        session.choose(trial, "new")


def at_twenty(lab: Lab) -> Session:
    """After two walks, the second at 20."""
    session = lab.create(EXO, "P1", 1, settings=PLAIN)
    for torque in (10.0, 20.0):
        walked(session, torque)
    return session


@pytest.fixture
def morning(monkeypatch: pytest.MonkeyPatch) -> LabClock:
    """A computer that was switched on four minutes ago."""
    clock = LabClock(monkeypatch)
    clock.monotonic = 4 * MINUTE
    return clock


def test_power_cut_soon_after_the_computer_was_started_is_a_break(
    lab: Lab, morning: LabClock
) -> None:
    """The monotonic clock of the second start may be beyond that of the first one."""
    session = lab.create(EXO, "P1", 1, settings=PLAIN)
    for torque in (15.0, 30.0, 45.0):
        walked(session, torque)
    morning.wall += timedelta(minutes=8)
    morning.monotonic = 6 * MINUTE  # the computer was started 6 minutes ago, the walk was 8 ago
    with pytest.raises(ValueError, match=r"at torque=45\.0 or torque=0\.0"):
        session.ask()
    session.place({"torque": 0.0})
    assert session.ask().policy["torque"] <= 15


def test_short_pause_soon_after_the_computer_was_started_is_none(
    lab: Lab, morning: LabClock
) -> None:
    session = lab.create(EXO, "P1", 1, settings=PLAIN)
    walked(session, 15.0)
    morning.passes(8)
    walked(session, 30.0)
    assert "interrupted" not in [event.kind for event in session.events]


@pytest.mark.parametrize(
    ("values", "knob"),
    [
        ((10.4, 10.6), Parameter(0, 10_000, max_step=0.5, start=0)),
        ((54_321.2, 54_321.6), Parameter(1, 100_000, log=True, max_step=0.5, start=1)),
        ((1e-7, 4e-7, 9e-7), Parameter(1e-7, 9e-7)),
        ((2e-7, 3e-7), Parameter(1e-7, 1e-6, step=1e-7)),
        ((-3.3e-10, 0.0), Parameter(-1e-9, 1e-9)),
    ],
)
def test_shown_settings_are_those_of_the_record(values: tuple[float, ...], knob: Parameter) -> None:
    """The operator sets what is shown: it must keep the bounds and the steps of the record."""
    assert [float(physical(value, knob)) for value in values] == pytest.approx(values, rel=1e-9)


def test_outcomes_that_were_not_stored_are_shown_with_all_digits() -> None:
    assert typed({"a": 1234567.25, "b": 4.0, "c": None}) == "a=1234567.25, b=4, c=none"


def test_key_of_a_repeat_is_not_taken_for_an_ask(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    session.measure(session.ask(key="first"), {"o": 0.5})
    session.repeat(1, key="again")
    with pytest.raises(KeyConflictError):
        session.ask(key="again")
    assert session.ask(key="first").number == 1


@pytest.mark.parametrize("key", ["", 5, "a\nb"])
def test_bad_key_is_refused_whatever_the_session_waits_for(lab: Lab, key: object) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    session.ask()
    with pytest.raises(ValueError, match="key: expected"):
        session.ask(key=key)  # type: ignore[arg-type]


def test_reason_that_is_no_text_is_named(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    trial = session.ask()
    with pytest.raises(ValueError, match="why: expected a text, got NoneType"):
        session.abort(trial, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="note: expected at most 2000 characters, got 3000"):
        session.note("x" * 3000)


def test_error_of_the_lab_is_not_hidden_by_a_closed_session(lab: Lab) -> None:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)

    def broken(policy: Mapping[str, float]) -> None:
        session.close("the motor burns")
        raise RuntimeError("the motor burns")

    with pytest.raises(RuntimeError, match="the motor burns"):
        session.run(apply=broken, measure=lambda _: None, choose=lambda _: None, trials=1)


def test_exported_columns_of_odd_names_do_not_hide_each_other(lab: Lab, folder: Path) -> None:
    """A parameter `goal` has the column `policy_goal`, and one of that name another column."""
    space = Space(
        {"goal": Parameter(0, 1), "policy_goal": Parameter(5, 6)},
        {"pain": Outcome(0, 1), "outcome_pain": Outcome(2, 3), "policy_strength": Outcome(4, 5)},
    )
    session = lab.create(space, "P1", 1, settings=PLAIN)
    outcome = {"pain": 0.5, "outcome_pain": 2.5, "policy_strength": 4.5}
    trial = session.measure(session.ask(), outcome)
    written = lab.export(folder / "out", formats=("csv", "bids"))
    for path in (each for each in written if each.name.endswith(("trials.csv", "_beh.tsv"))):
        names, row = (line.split("\t" if path.suffix == ".tsv" else ",") for line in read(path))
        assert len(set(names)) == len(names)
        values = {float(cell) for cell in row if cell.replace(".", "").isdigit()}
        told = {*trial.policy.values(), *(outcome.values() if path.suffix == ".tsv" else ())}
        assert told <= values


def read(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_comma_of_a_number_with_an_exponent_is_understood() -> None:
    assert parse_number("4,1e-7", "x") == 4.1e-7
    with pytest.raises(ValueError, match="could mean"):
        parse_number("4,098e-7", "x")


def test_veto_because_of_pain_means_that_the_device_may_be_there(lab: Lab) -> None:
    """Settings that hurt were applied, although nobody recorded a start."""
    session = at_twenty(lab)
    session.veto(session.suggest({"torque": 35}), "hurts", pain=True)
    assert session.record.positions == ({"torque": 20.0}, {"torque": 35.0})
    following = session.ask()
    assert all(abs(following.policy["torque"] - at) <= 15 for at in (20, 35))
    assert not session.measure(following, {"o": 0.4}).asks_choice  # felt last: what hurt


def test_pain_that_is_recorded_after_a_veto_counts_the_same(lab: Lab) -> None:
    session = at_twenty(lab)
    trial = session.suggest({"torque": 35})
    session.veto(trial, "wrong button")
    assert list(session.record.positions) == [{"torque": 20.0}]
    session.veto(trial, "it hurt, in fact", pain=True)
    assert session.record.positions == ({"torque": 20.0}, {"torque": 35.0})


def test_pain_that_is_told_after_the_next_proposals_counts_the_same(lab: Lab) -> None:
    session = at_twenty(lab)
    refused = session.suggest({"torque": 35})
    session.veto(refused, "wrong button")
    session.veto(session.suggest({"torque": 5}), "no")
    session.veto(refused, "it hurt, in fact", pain=True)
    assert list(session.record.positions) == [{"torque": 20.0}, {"torque": 35.0}]
    with pytest.raises(ValueError, match="29"):
        session.suggest({"torque": 6})


def test_pain_that_is_told_while_the_next_trial_is_open_stops_it(lab: Lab) -> None:
    session = at_twenty(lab)
    refused = session.suggest({"torque": 35})
    session.veto(refused, "wrong button")
    following = session.suggest({"torque": 5})
    session.veto(refused, "it hurt, in fact", pain=True)
    with pytest.raises(ValueError, match="35"):
        session.start(following)
    session.place({"torque": 20})
    assert not session.start(following).asks_choice  # the person felt trial 3 in between


def test_stated_place_holds_although_an_earlier_refusal_hurt(lab: Lab) -> None:
    session = at_twenty(lab)
    refused = session.suggest({"torque": 35})
    session.veto(refused, "wrong button")
    session.place({"torque": 20})
    session.veto(refused, "it hurt, in fact", pain=True)
    assert list(session.record.positions) == [{"torque": 20.0}]
