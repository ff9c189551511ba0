"""The last check before a device: every policy that leaves the library passes it.

It is written against the declared space alone, on physical values, and shares no code with the
mapping, the boxes, the constraint functions' evaluation or the optimiser above it: a fault there
must not become a command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sfihilo.experiment.space.space import Space

# |last + max_step - last| may exceed max_step by rounding. One millionth of the step itself, in the
# parameter's own unit, is no motion; a share of the range would be, where the range is much larger.
ROUNDING = 1e-6


class UnsafePolicyError(ValueError):
    """A policy that must not be commanded, with every reason."""


def in_words(policy: Mapping[str, float]) -> str:
    """A policy in a message, as it is typed in a shell."""
    return ", ".join(f"{name}={value}" for name, value in policy.items())


def problems(
    space: Space, policy: Mapping[str, float], positions: Iterable[Mapping[str, float]]
) -> list[str]:
    """Everything that is wrong with commanding `policy` while the device is at any of `positions`.

    Without a position in a parameter (a session stored before `start` was required), its first step
    cannot be checked.
    """
    if set(policy) != set(space.policy):
        wanted, got = (", ".join(sorted(names)) for names in (space.policy, policy))
        return [f"expected {wanted}, got {got or 'nothing'}"]
    found = []
    places = tuple(positions)
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
            if not abs(beyond) <= ROUNDING * knob.step:
                found.append(f"{name}: expected {knob.low} + k * {knob.step}, got {value}")
        if knob.fixed is not None and value != knob.fixed:
            found.append(f"{name}: fixed at {knob.fixed}, got {value}")
        if knob.max_step is not None:
            allowed = knob.max_step * (1 + ROUNDING)
            found += [
                f"{name}: expected a step of at most {knob.max_step}{unit} "
                f"from {last[name]}, got {abs(value - last[name]):.9g}"
                for last in places
                if name in last and not abs(value - last[name]) <= allowed
            ]
    return found or _broken_constraints(space, policy)


def check(
    space: Space, policy: Mapping[str, float], positions: Iterable[Mapping[str, float]] = ()
) -> None:
    """Raise unless `policy` may be commanded from every position where the device may be."""
    found = problems(space, policy, positions)
    if found:
        raise UnsafePolicyError(f"unsafe policy {in_words(policy)}: " + "; ".join(found))


def _broken_constraints(space: Space, policy: Mapping[str, float]) -> list[str]:
    row = {name: np.array([value]) for name, value in policy.items()}
    broken = [
        f"constraint {rule.text!r} does not hold"
        for rule in space.rules
        if not bool(rule.holds(row)[0])
    ]
    for function in space.functions:
        problem = _objection(function, dict(policy))
        if problem is not None:
            name = getattr(function, "__name__", type(function).__name__)
            broken.append(f"constraint {name} {problem}")
    return broken


def _objection(function: Callable[[dict[str, float]], Any], policy: dict[str, float]) -> str | None:
    """Why a constraint function does not allow the policy; None only if it returned True."""
    try:
        answer = function(policy)
    except Exception as error:  # noqa: BLE001 - whatever it raises, the policy is not allowed
        return f"raised {type(error).__name__}"
    if type(answer) not in (bool, np.bool_):
        return f"returned a {type(answer).__name__}, expected True or False"
    return None if answer else "does not hold"
