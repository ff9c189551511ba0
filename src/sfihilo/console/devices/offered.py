"""The devices that a console offers: named on the command line, or described in TOML files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sfihilo.console.devices import device_from_config, device_names
from sfihilo.console.devices.loading import device_maker
from sfihilo.experiment.space.space import read_toml


def described_device(given: str) -> tuple[str, Any]:
    """The name of a device and the tables that it is made from; raises if it cannot be made.

    `given` is a TOML file with [[device]] tables, or what `use` may be in one.
    """
    if given.endswith(".toml"):
        tables = read_toml(Path(given)).get("device")
        if not tables:
            raise ValueError(f"{given}: expected [[device]] tables, got none")
        listed = [tables] if isinstance(tables, dict) else tables
        for table in listed:
            if not isinstance(table, dict) or not isinstance(table.get("use"), str):
                raise ValueError(f"{given}: expected `use` in each [[device]], got {table!r}")
            device_maker(table["use"])
        return Path(given).stem, listed
    device_maker(given)  # an unknown name is refused now, not at the first trial
    return given, {"use": given}


def factory(tables: Any) -> Any:
    """What makes the device when a session uses it."""
    return partial(device_from_config, tables)


__all__ = ["described_device", "device_names", "factory"]
