"""What the console needs of a device, and what can go wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

Policy = Mapping[str, float]
Measured = Mapping[str, float | None]


class DeviceError(RuntimeError):
    """The device did not do what it was asked to do; the message says why."""


class SilentDeviceError(DeviceError):
    """The device did not answer in time."""


class DeviceStoppedError(DeviceError):
    """A command was given up because the device was stopped meanwhile."""


@runtime_checkable
class Device(Protocol):
    """A device, its sensors, or both; every value is in the physical units of the space.

    `heartbeat` and `stop` are called from other threads, also while `apply` or `measure` runs.
    Any exception counts as a failure; a `DeviceError` is shown to the operator as it is.
    """

    def apply(self, policy: Policy) -> None:
        """Set the policy; returns when the device has acknowledged it.

        Applying the same policy again must do no harm. A `measure` that still waits for the walk
        before ends with DeviceStoppedError.
        """
        ...

    def measure(self) -> Measured | None:
        """The outcomes since the last `apply`; None for what could not be measured.

        Waits until the walk is over. Raises DeviceStoppedError if the device is stopped meanwhile.
        """
        ...

    def stop(self) -> None:
        """Bring the device to its safe state, at any time and any number of times."""
        ...

    def heartbeat(self) -> float | None:
        """How many seconds ago the device was heard, 0 if it has just answered.

        None if the device cannot say. Raises SilentDeviceError if it did not answer, which is
        tolerated for a while, and another DeviceError if it answers that something is wrong.
        """
        ...

    def close(self) -> None:
        """Release sockets, ports and streams; the device itself is not commanded."""
        ...


@runtime_checkable
class Listener(Protocol):
    """A device that also wants to know what happens in the session, such as a marker stream."""

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        """One of start, applied, stop, measured, answer; `body` has session and trial number."""
        ...
