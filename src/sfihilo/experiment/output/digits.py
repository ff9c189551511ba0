"""Numbers as people read them: physical values with sensible digits and their unit, percentages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from sfihilo.experiment.space.parameter import Outcome, Parameter
from sfihilo.experiment.space.space import Space

RESOLUTION = 1000  # parts of the range that a shown value tells apart
STEP_RESOLUTION = 100  # and of `max_step`: who sets what is shown must not step further
LOG_DIGITS = 4
MOST_DECIMALS = 6  # with more, a number is written as 4e-07


def physical(value: float | None, quantity: Parameter | Outcome) -> str:
    """A value with as many digits as its range and its step ask for, or its grid."""
    if value is None:
        return ""
    places = _places(value, quantity)
    if places > MOST_DECIMALS or (isinstance(quantity, Parameter) and quantity.log):
        text = f"{value:.{max(places + _magnitude(value) + 1, 1)}g}"
        return "0" if text == "-0" else text
    text = f"{value:.{max(places, 0)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _places(value: float, quantity: Parameter | Outcome) -> int:
    """How many decimals tell the values of a quantity apart; below 0 where not even tens do."""
    of_range = _parts(quantity.high - quantity.low, RESOLUTION)
    if isinstance(quantity, Outcome):
        return of_range
    grid = quantity.grid
    if grid is not None:
        exact = max(_decimals(grid), _decimals(float(quantity.low)))
        return min(exact, max(MOST_DECIMALS, _parts(grid, RESOLUTION)))
    if quantity.log:
        of_range = LOG_DIGITS - 1 - _magnitude(value)
    if quantity.max_step is None:
        return of_range
    return max(of_range, _parts(quantity.max_step, STEP_RESOLUTION))


def _parts(width: float, count: int) -> int:
    """How many decimals tell so many parts of a width apart."""
    return math.ceil(math.log10(count) - math.log10(width))


def _magnitude(value: float) -> int:
    """The power of ten of the first digit."""
    return 0 if value == 0 else math.floor(math.log10(abs(value)))


def physical_unit(value: float | None, quantity: Parameter | Outcome) -> str:
    """A value as `physical` shows it, with its unit; "not measured" where there is none."""
    return "not measured" if value is None else with_unit(physical(value, quantity), quantity)


def with_unit(text: str, quantity: Parameter | Outcome) -> str:
    """A shown value and its unit."""
    return f"{text} {quantity.unit}" if quantity.unit else text


def _decimals(value: float) -> int:
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def policy_words(space: Space, policy: Mapping[str, float]) -> str:
    """The free parameters of a policy in one line: "torque 32 Nm, timing 0.4"."""
    return ", ".join(
        f"{name} {physical_unit(policy[name], space.policy[name])}" for name in space.free
    )


def told_apart(values: Sequence[float]) -> list[str]:
    """Numbers without a range of their own, with two digits of the width that they span."""
    width = max(values) - min(values)
    places = 1 - math.floor(math.log10(width)) if width > 0 else MOST_DECIMALS
    return [f"{value:.{min(max(places, 0), MOST_DECIMALS)}f}" for value in values]


def percent(probability: float) -> str:
    """A probability in whole per cent, without claiming certainty."""
    if probability < 0.005:
        return "below 1 %"
    return "above 99 %" if probability > 0.995 else f"{100 * probability:.0f} %"
