"""Devices on the wire: a protocol, adapters, a supervisor, and a simulated device with a person."""

from sfihilo.console.devices.device import (
    Device,
    DeviceError,
    DeviceStoppedError,
    Listener,
    SilentDeviceError,
)
from sfihilo.console.devices.loading import device_from_config, device_names
from sfihilo.console.devices.several import SeveralDevices
from sfihilo.console.devices.supervisor import DeviceStatus, Limits, Supervisor

__all__ = [
    "Device",
    "DeviceError",
    "DeviceStatus",
    "DeviceStoppedError",
    "Limits",
    "Listener",
    "SeveralDevices",
    "SilentDeviceError",
    "Supervisor",
    "device_from_config",
    "device_names",
]
