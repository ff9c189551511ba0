"""Devices in the console: applied and measured by themselves, stopped, silent, attached again."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfihilo.console.devices import DeviceStoppedError, SilentDeviceError
from tests.console.running import Running, act, create, kinds, serving, until, view


class Bench:
    """A device on a bench: it does what the test tells it to."""

    def __init__(self) -> None:
        self.applied: list[Mapping[str, float]] = []
        self.stops = 0
        self.outcome: dict[str, float | None] | None = {"effort": 4.0, "comfort": 6.0}
        self.walking = threading.Event()
        self.walking.set()  # cleared: a walk takes until it is set
        self.stopped = threading.Event()
        self.silent = False
        self.failing: Exception | None = None

    def apply(self, policy: Mapping[str, float]) -> None:
        self.stopped.clear()
        if self.failing is not None:
            raise self.failing
        self.applied.append(dict(policy))

    def measure(self) -> dict[str, float | None] | None:
        while not self.walking.wait(0.02):
            if self.stopped.is_set():
                raise DeviceStoppedError("the walk was stopped")
        return self.outcome

    def stop(self) -> None:
        self.stops += 1
        self.stopped.set()

    def heartbeat(self) -> float | None:
        if self.silent:
            raise SilentDeviceError("unplugged")
        return 0.0

    def close(self) -> None:
        self.stopped.set()


@pytest.fixture
def bench(running: Running) -> Bench:
    device = Bench()
    running.console.devices.offer("bench", lambda: device, shared=True)
    return device


def attached(client: httpx.Client, session: str, device: str | None = "bench") -> dict[str, Any]:
    done = client.post(f"/api/sessions/{session}/device", json={"device": device})
    assert done.status_code == 200, done.text
    found: dict[str, Any] = done.json()
    return found


def begun(client: httpx.Client, session: str) -> int:
    number = int(act(client, session, "ask")["trial"]["trial"])
    act(client, session, "start", trial=number)
    return number


def test_a_started_trial_is_applied_and_measured(
    operator: httpx.Client, session: str, bench: Bench
) -> None:
    assert attached(operator, session)["name"] == "bench"
    begun(operator, session)
    until(lambda: view(operator, session)["next"] == "ask")
    row = view(operator, session)["trials"][0]
    assert bench.applied == [row["policy"]]
    assert row["outcome"] == {"effort": 4.0, "comfort": 6.0}
    log = operator.get(f"/api/sessions/{session}/log").json()["events"]
    assert log[-1]["actor"] == "device bench"


def test_a_trial_that_is_only_asked_reaches_no_device(
    operator: httpx.Client, session: str, bench: Bench
) -> None:
    attached(operator, session)
    act(operator, session, "ask")
    time.sleep(0.3)
    assert bench.applied == []


@pytest.mark.parametrize("by", ["stop", "abort", "interrupt"])
def test_a_stop_reaches_the_device_in_the_middle_of_a_walk(
    operator: httpx.Client, session: str, bench: Bench, by: str
) -> None:
    bench.walking.clear()
    attached(operator, session)
    number = begun(operator, session)
    until(lambda: view(operator, session)["device"]["state"] == "measuring")
    body = {"abort": {"trial": number, "why": "x"}}.get(by, {})
    act(operator, session, by, **body)
    until(lambda: bench.stops > 0)
    bench.walking.set()
    time.sleep(0.2)
    assert "measured" not in kinds(operator, session)
    assert view(operator, session)["device"]["state"] == "stopped"


def test_a_stop_is_recorded_when_the_device_cannot_be_stopped(
    running: Running, operator: httpx.Client, session: str
) -> None:
    class Stuck(Bench):
        def stop(self) -> None:
            raise RuntimeError("the cable is off")

    running.console.devices.offer("stuck", Stuck, shared=True)
    attached(operator, session, "stuck")
    begun(operator, session)
    found = act(operator, session, "stop")
    assert (found["stopped"], found["recorded"]) == (False, True)
    assert "the cable is off" in found["why"]


def test_a_silent_device_holds_the_session(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db", heartbeat_limit=4.0) as running:
        device, operator = Bench(), running.client()
        running.console.devices.offer("bench", lambda: device)
        session = create(operator)
        attached(operator, session)
        device.walking.clear()
        begun(operator, session)
        until(lambda: view(operator, session)["device"]["state"] == "measuring")
        device.silent = True
        until(lambda: view(operator, session)["status"] == "interrupted")
        shown = view(operator, session)
        assert shown["stopped"]["by"] == "device"
        assert shown["trials"][0]["status"] == "aborted"
        assert device.stops > 0


def test_a_device_that_fails_holds_the_session(
    operator: httpx.Client, session: str, bench: Bench
) -> None:
    bench.failing = RuntimeError("motor too hot")
    attached(operator, session)
    begun(operator, session)
    until(lambda: view(operator, session)["status"] == "interrupted")
    assert "motor too hot" in view(operator, session)["stopped"]["why"]


def test_a_measurement_that_is_not_plausible_is_left_to_the_operator(
    operator: httpx.Client, session: str, bench: Bench
) -> None:
    bench.outcome = {"effort": 400.0, "comfort": 6.0}
    attached(operator, session)
    begun(operator, session)
    until(lambda: "effort" in view(operator, session)["device"]["message"])
    assert kinds(operator, session)[-1] == "refused"
    assert view(operator, session)["next"] == "measure"
    bench.outcome = {"effort": 4.0, "comfort": 6.0}
    operator.post(f"/api/sessions/{session}/apply", json={})
    until(lambda: view(operator, session)["next"] == "ask")


def test_a_device_serves_one_session_at_a_time(running: Running, operator: httpx.Client) -> None:
    running.console.devices.offer("only", Bench)
    one, two = create(operator, "D1"), create(operator, "D2")
    attached(operator, one, "only")
    refused = operator.post(f"/api/sessions/{two}/device", json={"device": "only"})
    assert (refused.status_code, refused.json()["error"]) == (409, "refused")
    attached(operator, one, None)
    attached(operator, two, "only")
    unknown = operator.post(f"/api/sessions/{two}/device", json={"device": "nothing"})
    assert unknown.status_code == 400


def test_a_stop_reaches_the_device_after_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        first, operator = Bench(), running.client()
        running.console.devices.offer("bench", lambda: first)
        session = create(operator)
        attached(operator, session)
        first.walking.clear()
        begun(operator, session)
        until(lambda: len(first.applied) == 1)
    with serving(db) as running:
        second = Bench()
        running.console.devices.offer("bench", lambda: second)
        running.console.devices.begin()
        operator = running.client()
        assert view(operator, session)["device"]["name"] == "bench"
        assert second.applied == []  # the operator decides whether to walk again
        act(operator, session, "stop")
        until(lambda: second.stops > 0)


def test_a_device_over_http_applies_measures_and_goes_silent(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator)
        device = running.client("device", session)
        path = f"/api/device/{session}"
        assert device.get(path).json()["apply"] is False
        number = begun(operator, session)
        wanted = device.post(f"{path}/heartbeat", json={}).json()
        assert (wanted["apply"], wanted["trial"]["number"]) == (True, number)
        assert device.post(f"{path}/applied", json={"trial": number}).status_code == 200
        body = {"trial": number, "outcome": {"effort": 1, "comfort": 2}, "key": "m-1"}
        for repeated in (False, True):
            done = device.post(f"{path}/outcome", json=body)
            assert (done.status_code, done.json()["repeated"]) == (200, repeated)
        running.console.devices.silent_after = 0.5
        until(lambda: view(operator, session)["status"] == "interrupted")
        assert "nothing heard" in view(operator, session)["stopped"]["why"]


def test_the_demo_conducts_itself(tmp_path: Path) -> None:
    with serving(tmp_path / "demo.db", demo=True, speed=300.0) as running:
        operator = running.client()
        session = running.console.demo.session  # type: ignore[union-attr]
        until(lambda: view(operator, session)["comparisons"] >= 1)
        assert view(operator, session)["demo"] is True
        act(operator, session, "stop")
        until(lambda: view(operator, session)["device"]["state"] == "stopped")
        last = view(operator, session)["last"]
        time.sleep(1)
        assert view(operator, session)["last"] == last
