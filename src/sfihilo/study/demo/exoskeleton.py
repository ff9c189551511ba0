"""The device of the demonstration, in the words of a lab.

The simulated people are random smooth maps of the unit cube. These words and ranges only name its
axes: nothing about real hip exoskeletons went into the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NAME = "hip exoskeleton"


@dataclass(frozen=True)
class Dial:
    """One setting of the device: its name, unit and range."""

    name: str
    unit: str
    low: float
    high: float

    def show(self, share: float) -> str:
        """The setting at this share of its range, with its unit."""
        return f"{self.low + share * (self.high - self.low):.0f} {self.unit}"


SETTINGS = (
    Dial("peak torque", "Nm", 10, 60),
    Dial("peak time", "% of stride", 35, 60),
    Dial("rise time", "% of stride", 10, 40),
    Dial("fall time", "% of stride", 10, 40),
)
# Measures of gait that one person wants large and another one small.
OUTCOMES = (
    "walking speed",
    "step length",
    "step width",
    "hip swing",
    "trunk lean",
    "arm swing",
)


def describe(policy: Iterable[float]) -> str:
    """A policy of the unit cube in the units of the device."""
    return ", ".join(
        f"{dial.name} {dial.show(float(share))}"
        for dial, share in zip(SETTINGS, policy, strict=True)
    )
