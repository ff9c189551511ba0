"""The C header for targets, compiled here and commanded over good and bad wires."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfihilo.console.devices import DeviceError
from sfihilo.console.devices.line.line import Line, parse
from sfihilo.console.devices.line.line_device import udp_device
from sfihilo.console.devices.line.target import Target
from tests.console.devices.wires import LOOPBACK, bad_udp_wire

FOLDER = Path(__file__).parents[2] / "clients" / "c"
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("c") / "udp_target"
    assert COMPILER is not None
    strict = ("-std=c99", "-D_POSIX_C_SOURCE=200112L", "-Wall", "-Wextra", "-Werror", "-pedantic")
    command = [COMPILER, *strict, str(FOLDER / "udp_target.c"), "-lm", "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return made


@contextmanager
def target(program: Path, done: list[str]) -> Iterator[int]:
    """The program on a free port; afterwards `done` has what it printed."""
    process = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        done += process.stdout.read().splitlines()
        process.stdout.close()
        process.wait()


def test_target_is_applied_measured_and_stopped(program: Path) -> None:
    done: list[str] = []
    with target(program, done) as port:
        device = udp_device(LOOPBACK, port)
        device.apply({"torque": 31.5, "timing": 0.1 + 0.2})
        device.heartbeat()
        assert device.measure() == {"comfort": 6.5, "speed": None}
        with pytest.raises(DeviceError, match="refused"):
            device.apply({"torque": 61.0})
        device.heartbeat()
        device.stop()
        device.heartbeat()
        device.close()
    assert done == ["apply torque=31.5 timing=0.30000000000000004", "measure", "stop"]


def test_each_command_is_executed_once_and_in_order_over_a_bad_wire(program: Path) -> None:
    done: list[str] = []
    with target(program, done) as port, bad_udp_wire(port, 3, probability=0.2) as wire:
        device = udp_device(LOOPBACK, wire, retry=0.02, timeout=10)
        for torque in range(15):
            device.apply({"torque": float(torque)})
        device.stop()
        device.close()
    assert done == [*(f"apply torque={torque}" for torque in range(15)), "stop"]


def test_lines_are_answered_as_by_the_reference(program: Path) -> None:
    """The same lines to both, one by one, hostile ones too."""

    def apply(policy: object) -> None:
        if isinstance(policy, dict) and policy.get("torque", 0) > 60:
            raise ValueError("torque")

    reference = Target(apply, lambda: {"comfort": 6.5, "speed": None}, lambda: None)
    lines = [
        Line(5, 1, "APPLY", {"torque": "1.0"}),
        Line(5, 1, "HELLO"),
        Line(5, 2, "APPLY", {"torque": "1.0"}),
        Line(5, 2, "APPLY", {"torque": "1.0"}),
        Line(5, 1, "APPLY", {"torque": "2.0"}),
        Line(5, 3, "BEAT"),
        Line(5, 4, "MEASURE"),
        Line(5, 5, "APPLY", {"torque": "nan"}),
        Line(5, 6, "APPLY", {"torque": "x"}),
        Line(5, 7, "APPLY"),
        Line(5, 8, "APPLY", {"torque": "1e999"}),
        Line(4, 9, "APPLY", {"torque": "1"}),
        Line(4, 9, "HELLO"),
        Line(4, 9, "STOP"),
        Line(5, 9, "BEAT"),
        Line(5, 10, "STOP"),
        Line(5, 10, "STOP"),
        Line(5, 9, "STOP"),
        Line(9, 1, "HELLO"),
        Line(9, 2, "APPLY", {"torque": "61"}),
        Line(9, 3, "ACK"),
        Line(9, 4, "APPLY", {"a" * 60 + str(i): "0.1" for i in range(10)}),
        Line(9, 5, "BEAT"),
    ]
    junk = [
        b"",
        b"\n",
        b"SFI1",
        b"SFI1 1 1 APPLY *00000000",
        b"\x00" * 40,
        b"x" * 2000,
        b"\xff" * 30,
    ]
    done: list[str] = []
    with (
        target(program, done) as port,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire,
    ):
        wire.connect((LOOPBACK, port))
        wire.settimeout(10)
        for raw in junk:
            wire.send(raw)  # not answered: else the next answer would be the wrong one
        for line in lines:
            wanted = reference.reply(line.encode())
            wire.send(line.encode())
            if wanted is not None:
                assert parse(wire.recv(4096)) == parse(wanted), line
