"""What a device is told, and what happens when it is silent; real sessions, real threads."""

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sfihilo.console.devices import (
    Device,
    DeviceError,
    DeviceStoppedError,
    Limits,
    SilentDeviceError,
    Supervisor,
)
from sfihilo.experiment import Lab, Record, Session
from tests.console.devices.wires import wait_for
from tests.experiment.people import EXOSKELETON, LEAN, memory_folder

QUICK = Limits(
    beat_every=0.02, silent_after=0.3, apply_within=0.5, measure_within=0.5, stop_within=0.5
)


class Recorder:
    """A device that keeps what it was told; it can be muted, made to fail and made to hang."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.mute = False
        self.beat_fault: DeviceError = SilentDeviceError("cable out")
        self.fault: Exception | None = None
        self.hang = threading.Event()
        self.hang.set()
        self.measured: Mapping[str, float | None] | None = {"comfort": 6.0, "metabolic_rate": 4.0}

    def apply(self, policy: Mapping[str, float]) -> None:
        self.hang.wait()
        if self.fault is not None:
            raise self.fault
        self.told.append(dict(policy))

    def measure(self) -> Mapping[str, float | None] | None:
        self.hang.wait()
        return self.measured

    def stop(self) -> None:
        self.told.append("stop")

    def heartbeat(self) -> float | None:
        if self.mute:
            raise self.beat_fault
        return 0.0

    def close(self) -> None:
        self.told.append("close")

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        self.notes.append((kind, dict(body)))


@pytest.fixture
def session() -> Iterator[Session]:
    with memory_folder() as folder, Lab(Path(folder) / "lab.db") as lab:
        yield lab.create(EXOSKELETON, "P1", seed=1, settings=LEAN)


@pytest.fixture
def device() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.hang.set()


def test_recorder_is_a_device(device: Recorder) -> None:
    assert isinstance(device, Device)


def test_policy_reaches_the_device_only_from_a_started_trial(
    session: Session, device: Recorder
) -> None:
    with Supervisor(device, limits=QUICK) as supervisor:
        with pytest.raises(DeviceError, match="expected a started trial in the record, got no"):
            supervisor.apply(session)
        trial = session.ask()
        with pytest.raises(DeviceError, match="got trial 1, not started"):
            supervisor.apply(session)
        assert device.told == []
        session.start(trial)
        assert supervisor.apply(session).number == 1
        assert device.told == [dict(trial.policy)]
        session.measure(trial, None)
        with pytest.raises(DeviceError, match="got no open trial"):
            supervisor.apply(session)
    assert device.told == [dict(trial.policy), "close"]


def test_interrupted_session_applies_nothing(session: Session, device: Recorder) -> None:
    session.start(session.ask())
    session.interrupt("coffee")
    with (
        Supervisor(device, limits=QUICK) as supervisor,
        pytest.raises(DeviceError, match="one that is interrupted"),
    ):
        supervisor.apply(session)
    assert device.told == ["close"]


def test_trial_that_was_acknowledged_is_sent_once(session: Session, device: Recorder) -> None:
    session.start(session.ask())
    with Supervisor(device, limits=QUICK) as supervisor:
        threads = [threading.Thread(target=supervisor.apply, args=(session,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(device.told) == 1
        assert supervisor.status.trial == 1
        assert supervisor.status.state == "running"


def test_measure_gives_every_outcome_and_refuses_unknown_names(
    session: Session, device: Recorder
) -> None:
    session.start(session.ask())
    with Supervisor(device, limits=QUICK) as supervisor:
        with pytest.raises(DeviceError, match="expected a device that is set to trial 1, got none"):
            supervisor.measure(session)
        supervisor.apply(session)
        device.measured = {"comfort": 6.0}
        assert supervisor.measure(session) == {"metabolic_rate": None, "comfort": 6.0}
        device.measured = None
        assert supervisor.measure(session) == {"metabolic_rate": None, "comfort": None}
        device.measured = {"confort": 6.0}
        with pytest.raises(DeviceError, match="got confort"):
            supervisor.measure(session)


def test_outcome_that_is_typed_in_ends_the_measurement(session: Session, device: Recorder) -> None:
    trial = session.start(session.ask())
    patient = Limits(beat_every=0.02, silent_after=0.3)
    with Supervisor(device, limits=patient) as supervisor:
        supervisor.apply(session)
        device.hang.clear()  # the walk goes on
        threading.Timer(0.1, session.measure, (trial, None)).start()
        with pytest.raises(DeviceStoppedError, match="measure: the trial is over"):
            supervisor.measure(session)
        assert supervisor.status.state == "running"
        device.hang.set()
        session.start(session.ask())
        supervisor.apply(session)  # the next trial does not wait for the old walk
        assert supervisor.status.trial == 2
    assert "stop" not in device.told


def test_stop_just_before_a_policy_is_sent_keeps_it_from_the_device(
    session: Session, device: Recorder
) -> None:
    session.start(session.ask())
    supervisor = Supervisor(device, limits=QUICK)

    class StopsWhileReading:
        """A session during whose reading somebody presses stop."""

        @property
        def record(self) -> Record:
            supervisor.stop()
            return session.record

    with supervisor:
        with pytest.raises(DeviceStoppedError):
            supervisor.apply(StopsWhileReading())
        with pytest.raises(DeviceStoppedError):
            supervisor.apply(session)
    assert device.told == ["stop", "close"]


def test_muted_device_puts_the_session_on_hold_once(session: Session, device: Recorder) -> None:
    holds: list[str] = []

    def hold(why: str) -> None:
        holds.append(why)
        session.interrupt(f"device: {why}")

    session.start(session.ask())
    with Supervisor(device, hold, QUICK) as supervisor:
        supervisor.apply(session)
        time.sleep(0.4)
        assert holds == []  # heartbeats arrive: longer than silent_after is no silence
        device.mute = True
        wait_for(lambda: session.record.interrupted)
        assert supervisor.status.state == "silent"
        assert "cable out" in holds[0]
        with pytest.raises(DeviceError):
            supervisor.apply(session)
        wait_for(lambda: "stop" in device.told)
        time.sleep(0.2)
        assert len(holds) == 1
        device.mute = False
        wait_for(lambda: supervisor.status.state == "idle")
        session.resume()
        supervisor.apply(session)  # again, since nobody knows where the device was
        assert [told for told in device.told if told != "stop"] == [device.told[0]] * 2


def test_device_that_reports_a_fault_holds_at_once(device: Recorder) -> None:
    holds: list[str] = []
    patient = Limits(beat_every=0.02, silent_after=600)
    with Supervisor(device, holds.append, patient):
        device.beat_fault, device.mute = DeviceError("emergency button"), True
        wait_for(lambda: len(holds) == 1)
    assert "emergency button" in holds[0]


def test_hold_that_could_not_be_recorded_is_tried_again(device: Recorder) -> None:
    full, calls = True, 0

    def hold(why: str) -> None:
        nonlocal calls
        calls += 1
        if full:
            raise OSError("disk full")

    device.mute = True
    with Supervisor(device, hold, QUICK) as supervisor:
        wait_for(lambda: "disk full" in supervisor.status.problem)
        wait_for(lambda: calls > 1)
        full = False
        wait_for(lambda: "disk full" not in supervisor.status.problem)
        done = calls
        time.sleep(0.1)
        assert calls == done


@pytest.mark.parametrize("fault", [DeviceError("out of range"), OSError("out of range")])
def test_failed_apply_raises_and_holds(
    session: Session, device: Recorder, fault: Exception
) -> None:
    holds: list[str] = []
    device.fault = fault
    session.start(session.ask())
    with Supervisor(device, holds.append, QUICK) as supervisor:
        with pytest.raises(DeviceError, match="out of range"):
            supervisor.apply(session)
        wait_for(lambda: len(holds) == 1)
        assert "apply" in holds[0]


def test_hanging_apply_times_out_and_nothing_more_is_sent(
    session: Session, device: Recorder
) -> None:
    holds: list[str] = []
    device.hang.clear()
    session.start(session.ask())
    with Supervisor(device, holds.append, QUICK) as supervisor:
        with pytest.raises(SilentDeviceError, match=r"no answer within 0\.5 s"):
            supervisor.apply(session)
        wait_for(lambda: len(holds) == 1)
        with pytest.raises(SilentDeviceError, match="still busy"):
            supervisor.apply(session)
        assert "stop" in device.told  # the stop does not wait for the apply


def test_stop_while_a_policy_is_applied_ends_with_a_stopped_device(
    session: Session, device: Recorder
) -> None:
    device.hang.clear()
    session.start(session.ask())
    with Supervisor(device, limits=QUICK) as supervisor:
        errors: list[Exception] = []

        def apply() -> None:
            try:
                supervisor.apply(session)
            except DeviceStoppedError as error:
                errors.append(error)

        thread = threading.Thread(target=apply)
        thread.start()
        wait_for(lambda: supervisor.status.state == "applying")
        supervisor.stop()
        device.hang.set()
        thread.join()
        assert len(errors) == 1
        assert device.told[-1] == "stop"  # after the policy, which the first stop overtook
        assert supervisor.status.trial is None
        with pytest.raises(DeviceStoppedError, match="trial 1: the device was stopped"):
            supervisor.apply(session)
        supervisor.apply(session, after_stop=True)
        assert supervisor.status.state == "running"


def test_listener_is_told_what_happens_in_order(session: Session, device: Recorder) -> None:
    trial = session.start(session.ask())
    with Supervisor(device, limits=QUICK) as supervisor:
        supervisor.apply(session)
        supervisor.measure(session)
        supervisor.note("answer", {"session": session.id, "trial": 1, "choice": "new"})
        supervisor.stop()
    assert [kind for kind, _ in device.notes] == ["start", "applied", "measured", "answer", "stop"]
    assert all(body["trial"] == trial.number for _, body in device.notes)


@pytest.mark.parametrize(
    "limits",
    [{"silent_after": 0}, {"silent_after": 0.5}, {"apply_within": "5"}, {"beat_every": -1}],
)
def test_impossible_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Limits(**limits)
