"""Checks of a space before a session is created with it.

They are stricter than the construction of a Space, because stored sessions of older versions must
still be readable: a new session needs a `start` wherever there is a `max_step`, units that print,
and at least one policy that may be commanded first.
"""

from __future__ import annotations

import numpy as np

import sfihilo
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.parameter import Outcome, Parameter, shortened
from sfihilo.experiment.space.space import Space

LONGEST_UNIT = 40
SMALLEST_STEP = 1e-6  # of the largest value: below it, rounding is no longer small beside the step


def check_new(space: Space) -> None:
    """Raise ValueError unless a new session may be created in this space."""
    items: dict[str, Parameter | Outcome] = {**space.policy, **space.outcomes}
    for name, item in items.items():
        if len(item.unit) > LONGEST_UNIT or not item.unit.isprintable():
            raise ValueError(
                f"{name}: unit: expected at most {LONGEST_UNIT} printable characters, "
                f"got {shortened(item.unit)}"
            )
    for name, knob in space.policy.items():
        _check_steps(name, knob)
    _check_first_policy(space)


def _check_steps(name: str, knob: Parameter) -> None:
    """Raise unless max_step, start, step and fixed of one parameter fit together."""
    largest = max(abs(knob.low), abs(knob.high))
    for what, size in (("max_step", knob.max_step), ("step", knob.step)):
        if size is not None and size < SMALLEST_STEP * largest:
            raise ValueError(
                f"{name}: {what}: expected at least {SMALLEST_STEP:g} of {largest:g}, "
                f"the largest value, got {size:g}"
            )
    if knob.max_step is None:
        return
    if knob.start is None:
        raise ValueError(
            f"{name}: start: expected the value on the device before the first trial, because "
            "max_step counts from it; got none"
        )
    if knob.fixed is not None and abs(knob.fixed - knob.start) > knob.max_step:
        raise ValueError(
            f"{name}: fixed: expected at most max_step ({knob.max_step}) from start "
            f"({knob.start}), got {knob.fixed}"
        )


def _check_first_policy(space: Space) -> None:
    """Raise if the first query would fail: no policy is allowed within one step of the start."""
    places = (space.start,) if space.start else ()
    try:
        lower, upper = space.box(places)
        reachable = sfihilo.Feasible(
            lower, upper, accepts=space.allows if space.constraints else None
        )
        (unit,) = reachable.sample(1, len(space.free), np.random.default_rng(0), None)
        safety.check(space, space.to_policy(space.on_grid(unit)), places)
    except ValueError as error:
        raise ValueError(
            "space: expected at least one policy within the bounds, the constraints and one step "
            f"from the start; found none ({error}){_objections(space)}"
        ) from error


def _objections(space: Space) -> str:
    """What the constraints say about the middle of the space, if one of them is a function."""
    if not space.functions:
        return ""
    middle = space.to_policy(np.full(len(space.free), 0.5))
    found = safety.problems(space, middle, ())
    return f"; in the middle of the space: {'; '.join(found)}" if found else ""
