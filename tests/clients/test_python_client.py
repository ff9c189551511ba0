"""The Python client against the real console."""

import ast
import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.console.running import SPACE, Running, kinds, serving

ROOT = Path(__file__).parents[2]
FILE = ROOT / "clients" / "python" / "sfihilo_client.py"


def loaded(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sfihilo_client = loaded(FILE, "sfihilo_client")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("clients") / "study.db") as started:
        yield started


def client_of(running: Running, role: Any, session: str | None = None) -> Any:
    client = sfihilo_client.Client(running.address)
    code, _ = running.console.grants.pair(role, session)
    client.enter(code)
    return client


@pytest.fixture
def operator(running: Running) -> Any:
    return client_of(running, "operator")


class Machine:
    """A device whose walk is over after two requests for its outcome."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.asked = 0

    def apply(self, policy: dict[str, float]) -> None:
        self.done.append(dict(policy))
        self.asked = 0

    def measure(self) -> dict[str, float | None] | None:
        self.asked += 1
        return {"effort": 4.5, "comfort": None} if self.asked == 2 else None

    def stop(self) -> None:
        self.done.append("stop")


def test_operator_conducts_two_trials(operator: Any) -> None:
    session = operator.create("P11", SPACE, seed=3)
    for _ in range(2):
        trial = operator.act(session, "ask")["trial"]
        number = trial["trial"]
        operator.act(session, "start", trial=number)
        operator.act(session, "measure", trial=number, outcome={"effort": 4.0, "comfort": 5.0})
        if trial["asks_choice"]:
            operator.act(session, "choose", trial=number, choice="new")
    view = operator.session(session)
    assert [trial["status"] for trial in view["trials"]] == ["complete", "complete"]


def test_device_follows_a_session(running: Running, operator: Any) -> None:
    session = operator.create("P12", SPACE, seed=3)
    machine = Machine()
    device = client_of(running, "device", session)
    loop = sfihilo_client.DeviceLoop(device, session, machine.apply, machine.measure, machine.stop)
    loop.step()
    assert machine.done == []  # nothing is on hold, and nothing was started
    trial = operator.act(session, "ask")["trial"]
    loop.step()
    assert machine.done == []  # asked is not started
    operator.act(session, "start", trial=1)
    for _ in range(4):
        loop.step()
    assert machine.done == [trial["policy"]]
    [row] = operator.session(session)["trials"]
    assert row["outcome"] == {"effort": 4.5, "comfort": None}
    assert device.device(session)["trial"] is None
    operator.act(session, "interrupt", why="coffee")
    loop.step()
    loop.step()
    assert machine.done == [trial["policy"], "stop"]


def test_abort_and_participant_stop_reach_the_device(running: Running, operator: Any) -> None:
    session = operator.create("P13", SPACE, seed=3)
    machine = Machine()
    device = client_of(running, "device", session)
    loop = sfihilo_client.DeviceLoop(device, session, machine.apply, machine.measure, machine.stop)
    operator.act(session, "ask")
    operator.act(session, "start", trial=1)
    loop.step()
    operator.act(session, "abort", trial=1, why="stumbled")
    loop.step()
    assert machine.done[-1] == "stop"
    operator.act(session, "ask")
    operator.act(session, "start", trial=2)
    loop.step()
    assert machine.done[-1] != "stop"
    participant = client_of(running, "participant", session)
    assert participant.post("/api/participant/stop", {})["stopped"]
    loop.step()
    assert machine.done[-1] == "stop"


def test_device_can_stop_the_session(running: Running, operator: Any) -> None:
    session = operator.create("P14", SPACE, seed=3)
    device = client_of(running, "device", session)
    assert device.stop(session, "overheated")["stopped"]
    assert operator.session(session)["status"] == "interrupted"


def test_refusal_raises_with_the_consoles_words(running: Running, operator: Any) -> None:
    session = operator.create("P15", SPACE, seed=3)
    device = client_of(running, "device", session)
    with pytest.raises(sfihilo_client.ConsoleError, match="forbidden") as refused:
        device.act(session, "ask")
    assert refused.value.status == 403
    with pytest.raises(sfihilo_client.ConsoleError) as refused:
        operator.act(session, "start", trial=9)
    assert "trial" in refused.value.message
    with pytest.raises(sfihilo_client.ConsoleError, match="code"):
        sfihilo_client.Client(running.address).enter("WRON-G234")


def test_same_key_is_done_once(running: Running, operator: Any) -> None:
    session = operator.create("P16", SPACE, seed=3)
    first = operator.act(session, "note", text="warm", key="n1")
    again = operator.act(session, "note", text="warm", key="n1")
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert kinds(running.client("operator"), session).count("note") == 1


def test_request_is_repeated_until_the_server_is_there(
    running: Running, operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = operator.create("P17", SPACE, seed=3)
    real, calls = operator._request, []

    def cut_off(method: str, path: str, data: bytes | None) -> Any:
        calls.append(data)
        done = real(method, path, data)
        if len(calls) < 3:
            raise ConnectionResetError  # it was done, and its answer was lost
        return done

    monkeypatch.setattr(operator, "_request", cut_off)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert operator.act(session, "note", text="warm")["repeated"]
    assert len(set(calls)) == 1
    monkeypatch.undo()
    assert kinds(running.client("operator"), session).count("note") == 1


def test_device_without_console_comes_to_rest() -> None:
    machine = Machine()
    now = 0.0
    nobody = sfihilo_client.Client("http://127.0.0.1:9", "token", timeout=0.5)
    loop = sfihilo_client.DeviceLoop(
        nobody, "P1-1", machine.apply, machine.measure, machine.stop, clock=lambda: now
    )
    loop.step()
    assert machine.done == []
    now = 5.1
    loop.step()
    loop.step()
    assert machine.done == ["stop"]


def test_loop_stops_the_device_when_it_ends(running: Running, operator: Any) -> None:
    session = operator.create("P18", SPACE, seed=3)
    machine = Machine()
    device = client_of(running, "device", session)

    def broken(policy: dict[str, float]) -> None:
        raise RuntimeError("motor")

    loop = sfihilo_client.DeviceLoop(device, session, broken, machine.measure, machine.stop)
    device.heartbeat(session)  # it is there before the walk begins
    operator.act(session, "ask")
    operator.act(session, "start", trial=1)
    with pytest.raises(RuntimeError, match="motor"):
        loop.run(every=0.01)
    assert machine.done == ["stop"]


def test_refused_outcome_is_logged_and_left_to_the_operator(
    running: Running, operator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session = operator.create("P21", SPACE, seed=3)
    machine = Machine()
    device = client_of(running, "device", session)
    loop = sfihilo_client.DeviceLoop(
        device, session, machine.apply, lambda: {"effort": 99.0, "comfort": 5.0}, machine.stop
    )
    device.heartbeat(session)  # it is there before the walk begins
    operator.act(session, "ask")
    operator.act(session, "start", trial=1)
    for _ in range(4):
        loop.step()
    assert len(machine.done) == 1
    assert len(caplog.records) == 1
    assert "effort" in caplog.text
    assert operator.session(session)["trial"]["status"] == "started"


def test_client_needs_only_the_standard_library_of_python_3_10() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 10))
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_ros_bridge_publishes_policies_until_reached_and_passes_outcomes_on(
    running: Running, operator: Any
) -> None:
    node = loaded(ROOT / "clients" / "ros2" / "sfihilo_node.py", "sfihilo_node")
    session = operator.create("P19", SPACE, seed=3)
    device = client_of(running, "device", session)
    sent: list[tuple[str, str]] = []

    def wait(seconds: float) -> None:
        bridge.on_reached('{"trial": 99}')
        bridge.on_reached("no JSON")
        if len(sent) == 3:  # the first two were lost
            bridge.on_reached('{"trial": 1}')

    bridge = node.Bridge(device, session, lambda *message: sent.append(message), wait)
    device.heartbeat(session)  # it is there before the walk begins
    trial = operator.act(session, "ask")["trial"]
    operator.act(session, "start", trial=1)
    bridge.step()
    assert [topic for topic, _ in sent] == ["sfihilo/policy"] * 3
    assert ast.literal_eval(sent[0][1]) == {"trial": 1, "policy": trial["policy"]}
    bridge.on_outcome('{"trial": 0, "outcome": {"effort": 1}}')
    bridge.step()
    assert operator.session(session)["trial"]["status"] == "started"
    bridge.on_outcome('{"trial": 1, "outcome": {"effort": 4.5, "comfort": null}}')
    bridge.step()
    assert operator.session(session)["trials"][0]["outcome"] == {"effort": 4.5, "comfort": None}
    operator.act(session, "interrupt")
    bridge.step()
    assert sent[-1] == ("sfihilo/stop", "{}")


def test_ros_node_says_what_is_missing() -> None:
    node = loaded(ROOT / "clients" / "ros2" / "sfihilo_node.py", "sfihilo_node")
    if node.rclpy is not None:
        pytest.skip("ROS 2 is installed")
    with pytest.raises(SystemExit, match="ROS 2"):
        node.main()


def test_silent_ros_device_is_stopped_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    node = loaded(ROOT / "clients" / "ros2" / "sfihilo_node.py", "sfihilo_node")
    monkeypatch.setattr(node, "REACH_WITHIN", 0.1)
    sent: list[tuple[str, str]] = []
    bridge = node.Bridge(None, "P1-1", lambda *message: sent.append(message))
    bridge.loop.trial = 1
    with pytest.raises(node.DeviceSilentError, match="not reached"):
        bridge._apply({"torque": 1.0})
    assert sent[-1] == ("sfihilo/stop", "{}")


def test_two_devices_may_follow_at_once_and_one_outcome_is_kept(
    running: Running, operator: Any
) -> None:
    session = operator.create("P20", SPACE, seed=3)
    operator.act(session, "ask")
    operator.act(session, "start", trial=1)
    devices = [client_of(running, "device", session) for _ in range(2)]
    results: list[str] = []

    def send(device: Any, effort: float) -> None:
        try:
            device.outcome(session, 1, {"effort": effort, "comfort": 5.0})
            results.append("stored")
        except sfihilo_client.ConsoleError as error:
            results.append(error.kind)

    threads = [
        threading.Thread(target=send, args=(device, 4.0 + i)) for i, device in enumerate(devices)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["refused", "stored"]
