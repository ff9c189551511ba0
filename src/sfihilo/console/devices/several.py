"""Several devices as one: an actuator, sensors of another maker, a marker stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfihilo.console.devices.device import Device, DeviceError, Listener, Measured, Policy


class SeveralDevices:
    """Applies a policy to all in their order, and merges what they measure."""

    def __init__(self, devices: Sequence[Device]) -> None:
        if not devices:
            raise ValueError("devices: expected at least one, got none")
        self.devices = tuple(devices)

    def apply(self, policy: Policy) -> None:
        for device in self.devices:
            device.apply(policy)

    def measure(self) -> Measured | None:
        """The outcomes of all; a name that two devices measured is an error."""
        merged: dict[str, float | None] = {}
        for device in self.devices:
            measured = device.measure() or {}
            both = sorted(merged.keys() & measured.keys())
            if both:
                raise DeviceError(f"measure: expected each outcome once, got {both} twice")
            merged.update(measured)
        return merged or None

    def stop(self) -> None:
        """Stop every device, also when one of them fails."""
        problems = []
        for device in self.devices:
            try:
                device.stop()
            except Exception as error:  # noqa: BLE001 - the others must still be stopped
                problems.append(f"{type(device).__name__}: {error}")
        if problems:
            raise DeviceError("stop: " + "; ".join(problems))

    def heartbeat(self) -> float | None:
        """The age of the device that was heard longest ago."""
        ages = [device.heartbeat() for device in self.devices]
        return max((age for age in ages if age is not None), default=None)

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        for device in self.devices:
            if isinstance(device, Listener):
                device.note(kind, body)

    def close(self) -> None:
        for device in self.devices:
            device.close()
