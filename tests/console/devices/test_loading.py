"""Devices found by entry point, by module and by built-in name, and made from TOML tables."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sfihilo.console.devices import (
    DeviceError,
    SeveralDevices,
    device_from_config,
    device_names,
)
from sfihilo.console.devices.line.line_device import LineDevice
from sfihilo.console.devices.simulated import SimulatedDevice

DEVICE = """
class Treadmill:
    def __init__(self, port, belts=2):
        self.port, self.belts = port, belts
    def apply(self, policy): pass
    def measure(self): return {"speed": 1.2}
    def stop(self): pass
    def heartbeat(self): return None
    def close(self): pass

class Half:
    def apply(self, policy): pass
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_modules: None) -> None:
    """A package of a lab with an entry point, as pip would install it."""
    (tmp_path / "our_treadmill.py").write_text(DEVICE, encoding="utf-8")
    info = tmp_path / "our_treadmill-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our_treadmill\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sfihilo.devices]\ntreadmill = our_treadmill:Treadmill\nhalf = our_treadmill:Half\n"
    )
    sys.path.insert(0, str(tmp_path))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("use", ["treadmill", "our_treadmill:Treadmill"])
def test_device_of_another_package_is_made_with_its_options(use: str) -> None:
    device: Any = device_from_config({"use": use, "port": "COM3"})
    assert (type(device).__name__, device.port, device.belts) == ("Treadmill", "COM3", 2)
    assert "treadmill" in device_names()


def test_tables_of_a_file_make_devices_in_order() -> None:
    text = """
    [[device]]
    use = "simulated"
    seed = 4
    speed = 100.0

    [[device]]
    use = "udp"
    host = "127.0.0.1"
    port = 5005
    """
    device = device_from_config(tomllib.loads(text)["device"])
    assert isinstance(device, SeveralDevices)
    first, second = device.devices
    assert isinstance(first, SimulatedDevice)
    assert first.speed == 100
    assert isinstance(second, LineDevice)
    device.close()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"use": "treadmil", "port": 1}, "device.use: expected one of .*treadmill.*, got 'treadm"),
        ({"port": 1}, "device.use: expected one of"),
        ({"use": "treadmill"}, "device 'treadmill': expected options .*missing.*port"),
        ({"use": "treadmill", "port": 1, "speed": 2}, "unexpected keyword argument 'speed'"),
        ({"use": "half"}, "expected the methods .* got none called measure, stop"),
        ({"use": "nothing.here:Device"}, "expected something that can be imported"),
        ({"use": "our_treadmill:Nothing"}, "expected something that can be imported"),
        ({"use": "our_treadmill:__name__"}, "expected a class or a function"),
        ("udp", "expected a table or a list of tables"),
        ([], "expected a table or a list of tables"),
        ([3], "expected a table, got 3"),
    ],
)
def test_wrong_configuration_is_refused_in_plain_words(config: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        device_from_config(config)


class Part:
    """A device of several."""

    def __init__(self, measured: Mapping[str, float | None] | None, age: float | None) -> None:
        self.measured, self.age = measured, age
        self.told: list[str] = []
        self.broken = False

    def apply(self, policy: Mapping[str, float]) -> None:
        self.told.append("apply")

    def measure(self) -> Mapping[str, float | None] | None:
        return self.measured

    def stop(self) -> None:
        self.told.append("stop")
        if self.broken:
            raise OSError("broken")

    def heartbeat(self) -> float | None:
        return self.age

    def close(self) -> None:
        self.told.append("close")


def test_several_devices_merge_what_they_measure() -> None:
    parts = [Part({"a": 1.0}, 0.5), Part(None, None), Part({"b": None}, 2.0)]
    several = SeveralDevices(parts)
    several.apply({})
    assert several.measure() == {"a": 1.0, "b": None}
    assert several.heartbeat() == 2.0
    assert SeveralDevices([parts[1]]).heartbeat() is None
    with pytest.raises(DeviceError, match="got \\['a'\\] twice"):
        SeveralDevices([parts[0], Part({"a": 2.0}, None)]).measure()


def test_stop_reaches_every_device_though_one_fails() -> None:
    parts = [Part(None, None), Part(None, None)]
    parts[0].broken = True
    with pytest.raises(DeviceError, match="stop: Part: broken"):
        SeveralDevices(parts).stop()
    assert [part.told for part in parts] == [["stop"], ["stop"]]
