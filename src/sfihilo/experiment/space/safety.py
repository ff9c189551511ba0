"""The last layer before a device: every policy that leaves the library passes here.

It is written against the declared space alone, on physical values, and shares no code with the
mapping, the boxes or the optimiser above it: a fault there must not become a command.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from sfihilo.experiment.space.space import Space

# |last + max_step - last| may exceed max_step by rounding; this much of the range is no motion.
ROUNDING = 1e-9


class UnsafePolicyError(ValueError):
    """A policy that must not be commanded, with every reason."""


def problems(
    space: Space, policy: Mapping[str, float], positions: Iterable[Mapping[str, float]]
) -> list[str]:
    """Everything that is wrong with commanding `policy` where the device may be at `positions`."""
    if set(policy) != set(space.policy):
        return [f"expected {sorted(space.policy)}, got {sorted(policy)}"]
    found = []
    for name, knob in space.policy.items():
        value = policy[name]
        if type(value) is not float or not math.isfinite(value):
            found.append(f"{name}: expected a finite number, got {value!r}")
            continue
        unit = f" {knob.unit}" if knob.unit else ""
        if value < knob.low or value > knob.high:
            found.append(f"{name}: expected {knob.low} to {knob.high}{unit}, got {value}")
        if knob.integer and value != math.floor(value):
            found.append(f"{name}: expected a whole number, got {value}")
        if knob.step is not None:
            beyond = math.remainder(value - knob.low, knob.step)
            if abs(beyond) > ROUNDING * (knob.high - knob.low):
                found.append(f"{name}: expected {knob.low} + k * {knob.step}, got {value}")
        if knob.fixed is not None and value != knob.fixed:
            found.append(f"{name}: fixed at {knob.fixed}, got {value}")
        if knob.max_step is not None:
            allowed = knob.max_step + ROUNDING * (knob.high - knob.low)
            found += [
                f"{name}: expected a step of at most {knob.max_step}{unit} "
                f"from {last[name]}, got {abs(value - last[name])}"
                for last in positions
                if name in last and not abs(value - last[name]) <= allowed
            ]
    return found or _broken_rules(space, policy)


def check(
    space: Space, policy: Mapping[str, float], positions: Iterable[Mapping[str, float]] = ()
) -> None:
    """Raise unless `policy` may be commanded from every place where the device may be."""
    found = problems(space, policy, tuple(positions))
    if found:
        raise UnsafePolicyError(f"unsafe policy {dict(policy)}: " + "; ".join(found))


def _broken_rules(space: Space, policy: Mapping[str, float]) -> list[str]:

    row = {name: np.array([value]) for name, value in policy.items()}
    broken = [
        f"constraint {rule.text!r} does not hold"
        for rule in space.rules
        if not bool(rule.holds(row)[0])
    ]
    for function in space.functions:
        if not function(dict(policy)):
            broken.append(f"constraint {getattr(function, '__name__', function)!s} does not hold")
    return broken
