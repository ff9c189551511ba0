"""Lab Streaming Layer over loopback, with the real liblsl and another process."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pylsl
import pytest

from sfihilo.console.devices import (
    Device,
    DeviceError,
    DeviceStoppedError,
    Limits,
    SeveralDevices,
    SilentDeviceError,
    Supervisor,
    device_from_config,
)
from sfihilo.console.devices.lsl import MarkerStream, OutcomeStream
from sfihilo.experiment import Lab, Outcome, Parameter, Space
from tests.console.devices.wires import wait_for
from tests.experiment.people import LEAN, memory_folder

ROOT = Path(__file__).parents[3]
SPACE = Space(
    policy={"peak_torque": Parameter(0, 60)},
    outcomes={"metabolic_rate": Outcome(0, 8), "comfort": Outcome(0, 10)},
)


@pytest.fixture
def name() -> str:
    """Of a stream that nobody else on this network has."""
    return f"test-{uuid.uuid4().hex[:12]}"


def outlet(name: str, labels: list[str], rate: float = 0.0) -> Any:
    described = pylsl.StreamInfo(name, "Outcomes", len(labels), rate, "double64", f"{name}-source")
    channels = described.desc().append_child("channels")
    for label in labels:
        channels.append_child("channel").append_child_value("label", label)
    return pylsl.StreamOutlet(described)


def problem(stream: OutcomeStream) -> DeviceError | None:
    try:
        stream.heartbeat()
    except DeviceError as error:
        return error
    return None


def until_connected(stream: OutcomeStream) -> None:
    wait_for(lambda: problem(stream) is None)


@pytest.fixture
def streams() -> Iterator[list[OutcomeStream]]:
    made: list[OutcomeStream] = []
    yield made
    for stream in made:
        stream.close()


def test_policy_goes_out_and_outcomes_come_in_over_loopback(name: str) -> None:
    lab_process = subprocess.Popen(
        [sys.executable, "-m", "tests.console.devices.lsl_lab", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    device = device_from_config(
        [
            {
                "use": "lsl-outcomes",
                "stream": f"{name}-out",
                "channels": {"metabolic_rate": "rate", "comfort": {"label": "score", "by": "last"}},
                "seconds": 1.6,
                "settle": 1.2,
            },
            {"use": "lsl-markers", "name": f"{name}-markers"},
        ]
    )
    assert isinstance(device, SeveralDevices)
    assert lab_process.stdout is not None
    try:
        assert json.loads(lab_process.stdout.readline()) == {"ready": True}
        with memory_folder() as folder, Lab(folder / "lab.db") as lab:
            session = lab.create(SPACE, "P1", seed=1, settings=LEAN)
            outlet_of_sensor = device.devices[0]
            assert isinstance(outlet_of_sensor, OutcomeStream)
            until_connected(outlet_of_sensor)
            with Supervisor(device, limits=Limits(silent_after=2)) as supervisor:
                trial = session.start(session.ask())
                supervisor.apply(session)
                outcome = supervisor.measure(session)
                supervisor.stop()
                supervisor.note("answer", {"session": session.id, "trial": 1, "choice": "new"})
        lines = [json.loads(line) for line in lab_process.stdout]
        assert lab_process.wait(10) == 0
    finally:
        lab_process.kill()
        lab_process.wait()
        lab_process.stdout.close()
    torque = trial.policy["peak_torque"]
    assert outcome["metabolic_rate"] == pytest.approx(torque / 10)  # without the settling time
    assert outcome["comfort"] == pytest.approx(1.6, abs=0.5)
    assert [line["event"] for line in lines] == ["start", "applied", "measured", "stop", "answer"]
    assert {line["trial"] for line in lines} == {1}
    assert lines[1]["policy"] == dict(trial.policy)
    assert lines[0]["session"] == "P1-1"
    assert all(-0.01 < line["late"] < 0.5 for line in lines)  # one clock, corrected


def test_window_takes_samples_by_their_time_stamps(name: str, streams: list[OutcomeStream]) -> None:
    source = outlet(name, ["a", "b"])
    stream = OutcomeStream(
        name, {"x": "b", "y": {"label": "a", "by": "last"}}, seconds=0.5, settle=0.2
    )
    streams.append(stream)
    until_connected(stream)
    assert source.wait_for_consumers(10)
    stream.apply({})
    begun = pylsl.local_clock()
    for at, b in [(-0.1, 100.0), (0.1, 50.0), (0.25, 1.0), (0.4, 3.0), (0.9, 100.0)]:
        source.push_sample([at, b], begun + at)
    assert stream.measure() == {"x": 2.0, "y": 0.4}
    assert stream.problems == {}


def test_walk_without_samples_is_missing_with_a_reason(
    name: str, streams: list[OutcomeStream]
) -> None:
    source = outlet(name, ["a"])
    stream = OutcomeStream(name, {"x": {"label": "a", "by": "transient"}}, seconds=0.1)
    streams.append(stream)
    until_connected(stream)
    stream.apply({})
    source.push_sample([4.0])
    assert stream.measure() == {"x": None}
    assert "breaths: expected at least 20, got" in stream.problems["x"]


def test_stop_ends_a_measurement(name: str, streams: list[OutcomeStream]) -> None:
    source = outlet(name, ["a"])
    stream = OutcomeStream(name, {"x": "a"})
    streams.append(stream)
    until_connected(stream)
    stream.apply({})
    source.push_sample([1.0])
    threading.Timer(0.1, stream.stop).start()
    with pytest.raises(DeviceStoppedError, match="the walk was stopped"):
        stream.measure()


def test_lost_stream_is_silent_and_found_again(name: str, streams: list[OutcomeStream]) -> None:
    source = outlet(name, ["a"])
    stream = OutcomeStream(name, {"x": "a"}, seconds=0.6)
    streams.append(stream)
    until_connected(stream)
    del source
    wait_for(lambda: isinstance(problem(stream), SilentDeviceError))
    with pytest.raises(SilentDeviceError, match=name):
        stream.apply({})
    again = outlet(name, ["a"])
    until_connected(stream)
    assert again.wait_for_consumers(10)
    stream.apply({})
    time.sleep(0.05)  # more than the error of the clock correction
    again.push_sample([7.0])
    assert stream.measure() == {"x": 7.0}


def test_regular_stream_that_sends_nothing_grows_old(
    name: str, streams: list[OutcomeStream]
) -> None:
    source = outlet(name, ["a"], rate=100)
    stream = OutcomeStream(name, {"x": "a"})
    streams.append(stream)
    until_connected(stream)
    for _ in range(20):
        source.push_sample([1.0])
        time.sleep(0.01)
    young = stream.heartbeat()
    time.sleep(0.5)
    old = stream.heartbeat()
    assert young is not None
    assert old is not None
    assert young < 0.4 < old


def test_stream_without_the_channel_is_a_fault_with_its_labels(
    name: str, streams: list[OutcomeStream]
) -> None:
    source = outlet(name, ["left", "right"])
    stream = OutcomeStream(name, {"x": "middle"})
    streams.append(stream)
    wait_for(lambda: "expected channels middle, got left, right" in str(problem(stream)))
    assert not isinstance(problem(stream), SilentDeviceError)
    assert source is not None


def test_markers_can_leave_the_session_out(name: str) -> None:
    markers = MarkerStream(name, with_session=False)
    assert isinstance(markers, Device)
    inlet = pylsl.StreamInlet(pylsl.resolve_byprop("name", name, 1, 5.0)[0])
    inlet.open_stream(timeout=5.0)
    markers.note("stop", {"session": "P7-1", "trial": 3})
    sample, _ = inlet.pull_sample(timeout=5.0)
    assert json.loads(sample[0]) == {"event": "stop", "trial": 3}
    inlet.close_stream()
    markers.close()
    with pytest.raises(DeviceError, match="closed"):
        markers.note("stop", {})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"channels": {}}, "channels: expected at least one"),
        ({"channels": {"x": 3}}, r"channels\.x: expected a label"),
        ({"channels": {"x": {"label": "a", "by": "sum"}}}, r"channels\.x: expected a label"),
        ({"channels": {"x": "a"}, "seconds": 5, "settle": 5}, "settle, seconds"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        OutcomeStream("none", **options)


def test_importing_the_devices_loads_no_liblsl() -> None:
    script = "import sys, sfihilo.console.devices.lsl; print('pylsl' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
