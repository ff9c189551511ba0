"""The simulated exoskeleton and its person, driven as the console drives them."""

import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sfihilo.console.devices import Device, DeviceError, DeviceStoppedError, Limits, Supervisor
from sfihilo.console.devices.simulated import (
    Demo,
    SimulatedDevice,
    SimulatedPerson,
    demo_space,
    demo_toml,
)
from sfihilo.experiment import Lab, Session
from sfihilo.settings import Settings
from tests.experiment.people import LEAN, memory_folder

FAST = 20_000.0
MIDDLE = {"peak_torque": 20.0, "peak_time": 50.0, "rise_time": 25.0, "fall_time": 10.0}


@pytest.fixture(scope="module")
def person() -> SimulatedPerson:
    return SimulatedPerson(3)


def conduct(session: Session, supervisor: Supervisor, person: SimulatedPerson) -> None:
    trial = session.start(session.ask())
    supervisor.apply(session)
    trial = session.measure(trial, supervisor.measure(session))
    if trial.asks_choice:
        session.choose(trial, *person.answer(session.record))


def test_session_of_twelve_trials_runs_and_the_person_answers_in_grades() -> None:
    demo = Demo(seed=2, speed=FAST)
    assert isinstance(demo.device, Device)
    with memory_folder() as folder, Lab(Path(folder) / "lab.db") as lab:
        session = lab.create(demo.space, "P1", seed=2, settings=Settings(rule="random", grades=5))
        with Supervisor(demo.device) as supervisor:
            for _ in range(12):
                conduct(session, supervisor, demo.person)
        record = session.record
    assert [trial.status for trial in record.trials] == ["complete"] * 12
    answers = Counter(trial.choice for trial in record.trials[1:])
    assert {"new", "previous"} <= set(answers)
    assert {trial.strength for trial in record.trials[1:]} >= {1, 2}
    outcomes = [trial.whole_outcome for trial in record.trials]
    assert all(outcome is not None for outcome in outcomes)
    for name in demo.space.outcomes:
        assert np.std([outcome[name] for outcome in outcomes if outcome]) > 0


def test_same_trial_gets_the_same_answer_after_a_restart(person: SimulatedPerson) -> None:
    with memory_folder() as folder, Lab(Path(folder) / "lab.db") as lab:
        session = lab.create(demo_space(), "P1", seed=2, settings=LEAN)
        with Supervisor(SimulatedDevice(speed=FAST, person=person)) as supervisor:
            conduct(session, supervisor, person)
            trial = session.start(session.ask())
            supervisor.apply(session)
            session.measure(trial, supervisor.measure(session))
        assert SimulatedPerson(3).answer(session.record) == person.answer(session.record)
        assert person.answer(session.record)[0] in ("new", "previous")


def test_metabolic_rate_of_a_walk_is_near_its_steady_state(person: SimulatedPerson) -> None:
    device = SimulatedDevice(speed=FAST, person=person)
    errors = []
    for number in range(1, 41):
        policy = {**MIDDLE, "peak_torque": number}
        device.apply(policy)
        measured = device.measure()
        assert measured is not None
        value = measured["metabolic_rate"]
        if value is not None:
            errors.append(value - person.outcomes(number, policy)["metabolic_rate"])
    assert len(errors) >= 38
    assert np.std(errors) < 0.4
    assert abs(np.mean(errors)) < 0.2


def test_walk_that_is_too_short_has_no_metabolic_rate(person: SimulatedPerson) -> None:
    device = SimulatedDevice(speed=FAST, seconds=45, person=person)
    device.apply(MIDDLE)
    measured = device.measure()
    assert measured is not None
    assert measured["metabolic_rate"] is None
    assert "expected at least" in device.problem
    assert measured["comfort"] is not None


def test_sensors_drop_out_as_often_as_asked(person: SimulatedPerson) -> None:
    device = SimulatedDevice(speed=FAST, dropouts=0.3, person=person)
    missing = 0
    for torque in range(40):
        device.apply({**MIDDLE, "peak_torque": torque})
        missing += sum(value is None for value in (device.measure() or {}).values())
    assert 0.2 < missing / 200 < 0.4


def test_walk_takes_its_time_divided_by_speed(person: SimulatedPerson) -> None:
    device = SimulatedDevice(speed=400, person=person)
    begun = time.monotonic()
    device.apply(MIDDLE)
    device.apply(MIDDLE)  # again: the walk does not begin anew
    device.measure()
    assert 0.3 <= time.monotonic() - begun < 3


@pytest.mark.parametrize("end", ["stop", "unplug", "close"])
def test_measurement_ends_with_the_walk(person: SimulatedPerson, end: str) -> None:
    device = SimulatedDevice(person=person)
    device.apply(MIDDLE)
    threading.Timer(0.1, getattr(device, end)).start()
    with pytest.raises(DeviceError):
        device.measure()
    if end == "stop":
        with pytest.raises(DeviceStoppedError, match="expected a walk, got none"):
            device.measure()


def test_next_walk_ends_a_measurement_that_waits(person: SimulatedPerson) -> None:
    device = SimulatedDevice(person=person)
    device.apply(MIDDLE)
    threading.Timer(0.1, device.apply, ({**MIDDLE, "peak_torque": 21.0},)).start()
    with pytest.raises(DeviceStoppedError, match="the walk was stopped"):
        device.measure()


@pytest.mark.parametrize(
    "policy",
    [{**MIDDLE, "peak_torque": 51}, {**MIDDLE, "gain": 1}, {"peak_torque": 3}, {}],
)
def test_policy_outside_its_own_limits_is_refused(
    person: SimulatedPerson, policy: dict[str, float]
) -> None:
    with pytest.raises(DeviceError, match="expected"):
        SimulatedDevice(person=person).apply(policy)


def test_unplugged_device_holds_the_session(person: SimulatedPerson) -> None:
    device = SimulatedDevice(person=person)
    with memory_folder() as folder, Lab(Path(folder) / "lab.db") as lab:
        session = lab.create(demo_space(), "P1", seed=2, settings=LEAN)
        session.start(session.ask())
        held = threading.Event()

        def hold(why: str) -> None:
            session.interrupt(why)
            held.set()

        with Supervisor(device, hold, Limits(beat_every=0.02, silent_after=0.1)) as supervisor:
            supervisor.apply(session)
            device.unplug()
            assert held.wait(5)
        assert session.record.interrupted


def test_demo_file_is_a_space_with_four_settings_and_five_outcomes() -> None:
    assert (len(demo_space().free), len(demo_space().outcomes)) == (4, 5)
    assert "[session]" in demo_toml()


@pytest.mark.parametrize("options", [{"speed": 0}, {"dropouts": 2}, {"seconds": -1}])
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        SimulatedDevice(**options)  # type: ignore[arg-type]
