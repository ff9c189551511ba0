"""Lines to a real-time target over real sockets, on good and on bad wires."""

import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfihilo.console.devices import Device, DeviceError, DeviceStoppedError, SilentDeviceError
from sfihilo.console.devices.line.line import (
    Line,
    LineSplitter,
    numbers_as_text,
    numbers_from_text,
    parse,
)
from sfihilo.console.devices.line.line_device import LineDevice, tcp_device, udp_device
from tests.console.devices.wires import (
    LOOPBACK,
    Machine,
    bad_tcp_wire,
    bad_udp_wire,
    tcp_target,
    udp_target,
)

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@contextmanager
def closing(device: LineDevice) -> Iterator[LineDevice]:
    try:
        yield device
    finally:
        device.close()


def silent_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((LOOPBACK, 0))
        return int(free.getsockname()[1])


@settings(max_examples=40)
@given(
    st.dictionaries(NAMES, st.one_of(st.none(), FINITE), max_size=8),
    st.integers(0, 10**15),
    st.integers(0, 10**9),
)
def test_line_comes_back_as_it_was_written(
    values: dict[str, float | None], link: int, number: int
) -> None:
    line = Line(link, number, "APPLY", numbers_as_text(values))
    found = parse(line.encode())
    assert found == line
    assert numbers_from_text(found.fields) == values


@given(st.data())
def test_no_changed_bit_is_taken_for_a_line(data: st.DataObject) -> None:
    raw = Line(17, 4, "APPLY", {"torque": "31.5", "timing": "0.25"}).encode().rstrip(b"\n")
    place = data.draw(st.integers(0, len(raw) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :]
    assert parse(changed) is None


def test_lines_of_the_page_are_lines() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "devices.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("SFI1 1")]
    assert [getattr(parse(line.encode()), "verb", None) for line in shown] == ["APPLY", "ACK"]


def test_line_is_as_the_page_says() -> None:
    raw = Line(1763400000000, 7, "APPLY", {"peak_torque": "31.5"}).encode()
    text = b"SFI1 1763400000000 7 APPLY peak_torque=31.5"
    assert raw == text + b" *%08X\n" % zlib.crc32(text)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff\xfe", b"SFI1 1 2 APPLY *00000000\n", b"GET / HTTP/1.1\r\n", b"x" * 5000],
)
def test_anything_else_is_no_line(raw: bytes) -> None:
    assert parse(raw) is None


@pytest.mark.parametrize("name", ["a b", "a=b", "ä", "", "x" * 2000])
def test_name_that_would_break_the_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="line: expected ASCII words"):
        Line(1, 1, "APPLY", {name: "1"}).encode()


def test_splitter_throws_away_what_never_ends() -> None:
    lines = LineSplitter()
    assert list(lines.feed(b"ab\ncd")) == [b"ab"]
    assert list(lines.feed(b"e\n")) == [b"cde"]
    for _ in range(100):
        assert list(lines.feed(b"z" * 100)) == []
    assert list(lines.feed(b"\nok\n"))[-1] == b"ok"


Connect = tuple[Callable[..., LineDevice], Callable[..., object]]
WIRES = [(udp_device, udp_target), (tcp_device, tcp_target)]


@pytest.mark.parametrize("ends", WIRES, ids=["udp", "tcp"])
def test_target_is_applied_measured_and_stopped(ends: Connect) -> None:
    connect, serve = ends
    machine = Machine(outcome={"comfort": 6.5, "speed": None})
    with serve(machine.target()) as port, closing(connect(LOOPBACK, port)) as device:  # type: ignore[attr-defined]
        assert isinstance(device, Device)
        device.apply({"torque": 31.5, "timing": 0.1 + 0.2})
        assert device.heartbeat() == 0
        assert device.measure() == {"comfort": 6.5, "speed": None}
        device.stop()
        assert device.heartbeat() == 0
    assert machine.done == [{"torque": 31.5, "timing": 0.1 + 0.2}, "measure", "stop"]


@pytest.mark.parametrize("seed", range(2))
def test_each_command_is_executed_once_and_in_order_over_a_bad_udp_wire(seed: int) -> None:
    machine = Machine(outcome={"comfort": 6.5})
    with (
        udp_target(machine.target()) as port,
        bad_udp_wire(port, seed, probability=0.2) as wire,
        closing(udp_device(LOOPBACK, wire, retry=0.02, timeout=10)) as device,
    ):
        wanted: list[object] = []
        for torque in range(20):
            device.apply({"torque": float(torque)})
            wanted.append({"torque": float(torque)})
            if torque % 5 == 0:
                device.heartbeat()
                assert device.measure() == {"comfort": 6.5}
                device.stop()
                wanted += ["measure", "stop"]
        time.sleep(0.2)  # what is still on its way arrives
    assert machine.done == wanted


@pytest.mark.parametrize("seed", range(2))
def test_each_command_is_executed_once_and_in_order_over_a_bad_tcp_wire(seed: int) -> None:
    machine = Machine(outcome={"comfort": 6.5})
    with (
        tcp_target(machine.target()) as port,
        bad_tcp_wire(port, seed, probability=0.1) as wire,
        closing(tcp_device(LOOPBACK, wire, retry=0.05, timeout=10)) as device,
    ):
        for torque in range(20):
            device.apply({"torque": float(torque)})
        device.stop()
    assert machine.done == [*({"torque": float(torque)} for torque in range(20)), "stop"]


def test_late_command_is_not_executed_after_a_stop() -> None:
    machine = Machine()
    target = machine.target()
    apply, stop = Line(5, 2, "APPLY", {"torque": "10.0"}), Line(5, 3, "STOP")
    target.reply(Line(5, 1, "HELLO").encode())
    assert target.reply(stop.encode()) == Line(5, 3, "ACK").encode()
    assert target.reply(apply.encode()) == Line(5, 2, "NAK", {"why": "old"}).encode()
    assert machine.done == ["stop"]


def test_line_of_an_older_console_is_refused_but_its_stop_is_obeyed() -> None:
    machine = Machine()
    target = machine.target()
    target.reply(Line(5, 1, "HELLO").encode())
    refused = {"why": "link"}
    assert target.reply(Line(4, 9, "HELLO").encode()) == Line(4, 9, "NAK", refused).encode()
    apply = Line(4, 10, "APPLY", {"torque": "10.0"})
    assert target.reply(apply.encode()) == Line(4, 10, "NAK", refused).encode()
    assert target.reply(Line(4, 11, "STOP").encode()) == Line(4, 11, "ACK").encode()
    assert machine.done == ["stop"]


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "abc"])
def test_target_refuses_what_is_no_finite_number(value: str) -> None:
    machine = Machine()
    target = machine.target()
    target.reply(Line(5, 1, "HELLO").encode())
    reply = target.reply(Line(5, 2, "APPLY", {"torque": value}).encode())
    assert reply == Line(5, 2, "NAK", {"why": "refused"}).encode()
    assert machine.done == []


def test_target_that_refuses_a_policy_raises() -> None:
    machine = Machine()
    with udp_target(machine.target()) as port, closing(udp_device(LOOPBACK, port)) as device:
        with pytest.raises(DeviceError, match="refused command 2: refused"):
            device.apply({"torque": 61.0})
        device.apply({"torque": 60.0})
        device.heartbeat()
    assert machine.done == [{"torque": 60.0}]


@pytest.mark.parametrize("connect", [udp_device, tcp_device])
def test_silent_target_raises_within_the_timeout(connect: Callable[..., LineDevice]) -> None:
    with closing(connect(LOOPBACK, silent_port(), retry=0.02, timeout=0.2)) as device:
        for command in (lambda: device.apply({"torque": 1.0}), device.stop, device.heartbeat):
            begun = time.monotonic()
            with pytest.raises(SilentDeviceError, match=r"no acknowledgement within 0\.2 s"):
                command()
            assert time.monotonic() - begun < 2


def test_restarted_target_is_noticed_and_greeted_again() -> None:
    machine = Machine()
    target = machine.target()
    with udp_target(target) as port, closing(udp_device(LOOPBACK, port)) as device:
        device.apply({"torque": 1.0})
        target.link = target.last = target.at = 0
        with pytest.raises(DeviceError, match="the target was restarted"):
            device.heartbeat()
        assert device.heartbeat() == 0
        device.apply({"torque": 2.0})
    assert machine.done == [{"torque": 1.0}, {"torque": 2.0}]


def test_emergency_button_of_the_target_is_noticed() -> None:
    machine = Machine()
    target = machine.target()
    with udp_target(target) as port, closing(udp_device(LOOPBACK, port)) as device:
        device.apply({"torque": 1.0})
        device.heartbeat()
        target.stop()
        with pytest.raises(DeviceError, match=r"got no policy \(stopped\)"):
            device.heartbeat()
        device.stop()
        assert device.heartbeat() == 0


def test_newer_console_takes_over_and_the_older_one_is_told() -> None:
    machine = Machine()
    with (
        udp_target(machine.target()) as port,
        closing(udp_device(LOOPBACK, port)) as older,
    ):
        older.apply({"torque": 1.0})
        time.sleep(0.005)
        with closing(udp_device(LOOPBACK, port)) as newer:
            newer.apply({"torque": 2.0})
            for _ in range(2):
                with pytest.raises(DeviceError, match="another console commands it"):
                    older.apply({"torque": 3.0})
            newer.apply({"torque": 4.0})
    assert machine.done == [{"torque": 1.0}, {"torque": 2.0}, {"torque": 4.0}]


def test_stop_ends_an_apply_that_waits_for_its_acknowledgement() -> None:
    with closing(udp_device(LOOPBACK, silent_port(), retry=0.02, timeout=5)) as device:
        device._greeted = True  # the target has just been cut off
        errors: list[Exception] = []

        def apply() -> None:
            try:
                device.apply({"torque": 1.0})
            except DeviceStoppedError as error:
                errors.append(error)

        def stop() -> None:
            with pytest.raises(DeviceError):
                device.stop()

        thread = threading.Thread(target=apply)
        thread.start()
        time.sleep(0.1)
        stopper = threading.Thread(target=stop)
        stopper.start()
        thread.join(2)
        assert len(errors) == 1
        device.close()
        stopper.join(5)


def test_measure_waits_for_the_end_of_the_walk_and_ends_with_a_stop() -> None:
    machine = Machine()
    with udp_target(machine.target()) as port, closing(udp_device(LOOPBACK, port)) as device:
        device.apply({"torque": 1.0})
        timer = threading.Timer(0.4, lambda: setattr(machine, "outcome", {"comfort": 3.0}))
        timer.start()
        assert device.measure() == {"comfort": 3.0}
        machine.outcome = None
        timer = threading.Timer(0.4, device.stop)
        timer.start()
        with pytest.raises(DeviceStoppedError):
            device.measure()
        timer.join()


def test_next_policy_ends_a_measurement_that_waits() -> None:
    machine = Machine()
    with udp_target(machine.target()) as port, closing(udp_device(LOOPBACK, port)) as device:
        device.apply({"torque": 1.0})
        timer = threading.Timer(0.2, device.apply, ({"torque": 2.0},))
        timer.start()
        with pytest.raises(DeviceStoppedError, match="the walk was ended"):
            device.measure()
        timer.join()


def test_heartbeats_and_commands_at_the_same_time_raise_no_false_alarm() -> None:
    machine = Machine()
    with (
        udp_target(machine.target()) as port,
        bad_udp_wire(port, 7, probability=0.05) as wire,
        closing(udp_device(LOOPBACK, wire, retry=0.02, timeout=10)) as device,
    ):
        ended = threading.Event()
        beats: list[float | None] = []
        problems: list[Exception] = []

        def beat() -> None:
            while not ended.is_set():
                try:
                    beats.append(device.heartbeat())
                except DeviceError as error:
                    problems.append(error)

        thread = threading.Thread(target=beat)
        thread.start()
        for torque in range(30):
            device.apply({"torque": float(torque)})
            if torque % 3 == 0:
                device.stop()
        ended.set()
        thread.join(15)
    assert problems == []
    assert len(beats) > 5
    assert [done for done in machine.done if done != "stop"] == [
        {"torque": float(torque)} for torque in range(30)
    ]


@pytest.mark.parametrize("times", [(0, 1), (2, 1), (-1, 1)])
def test_impossible_times_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="retry, timeout: expected"):
        udp_device(LOOPBACK, 9, *times)
