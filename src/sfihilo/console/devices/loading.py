"""Find a device by name and make it from a table of a TOML file.

[[device]]
use = "udp"                # a name of the entry point group, or "module:name"
host = "192.168.7.2"       # everything else goes to the device by keyword
port = 5005
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from sfihilo.console.devices.device import Device
from sfihilo.console.devices.several import SeveralDevices
from sfihilo.experiment.space.parameter import shortened

GROUP = "sfihilo.devices"
BUILT_IN = {
    "lsl-markers": "sfihilo.console.devices.lsl:MarkerStream",
    "lsl-outcomes": "sfihilo.console.devices.lsl:OutcomeStream",
    "simulated": "sfihilo.console.devices.simulated:SimulatedDevice",
    "tcp": "sfihilo.console.devices.line.line_device:tcp_device",
    "udp": "sfihilo.console.devices.line.line_device:udp_device",
}
METHODS = ("apply", "measure", "stop", "heartbeat", "close")


def device_names() -> list[str]:
    """The names that `use` may have: built in, and installed by other packages."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def device_from_config(config: Any) -> Device:
    """One device from a table, or several as one from a list of tables."""
    if isinstance(config, Mapping):
        return _device_from_table(config)
    if not isinstance(config, Sequence) or isinstance(config, str) or not config:
        raise ValueError(f"device: expected a table or a list of tables, got {shortened(config)}")
    devices: list[Device] = []
    try:
        for table in config:
            devices.append(_device_from_table(table))
    except BaseException:
        for device in devices:
            device.close()
        raise
    return devices[0] if len(devices) == 1 else SeveralDevices(devices)


def _device_from_table(table: Any) -> Device:
    if not isinstance(table, Mapping):
        raise ValueError(f"device: expected a table, got {shortened(table)}")
    options = dict(table)
    use = options.pop("use", None)
    if not isinstance(use, str):
        raise ValueError(
            f"device.use: expected one of {', '.join(device_names())} or 'module:name', "
            f"got {shortened(use)}"
        )
    maker = device_maker(use)
    try:
        inspect.signature(maker).bind(**options)
    except TypeError as error:
        raise ValueError(
            f"device {use!r}: expected options {inspect.signature(maker)}, {error}"
        ) from None
    device = maker(**options)
    missing = [name for name in METHODS if not callable(getattr(device, name, None))]
    if missing:
        raise ValueError(
            f"device {use!r}: expected the methods {', '.join(METHODS)}, "
            f"got none called {', '.join(missing)}"
        )
    return device


def device_maker(use: str) -> Callable[..., Device]:
    """The class or function that makes the device which is called `use`."""
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if use in installed and use not in BUILT_IN:
        found: Any = installed[use].load()
    elif use in BUILT_IN or ":" in use:
        module, _, name = BUILT_IN.get(use, use).partition(":")
        found = _attribute(module, name, use)
    else:
        raise ValueError(
            f"device.use: expected one of {', '.join(device_names())} or 'module:name', got {use!r}"
        )
    if not callable(found):
        raise ValueError(f"device.use: expected a class or a function, got {shortened(found)}")
    maker: Callable[..., Device] = found
    return maker


def _attribute(module: str, name: str, use: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"device.use: expected something that can be imported, got {use!r}: {error}"
        ) from error
