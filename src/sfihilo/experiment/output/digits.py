"""Numbers as people read them: physical values with sensible digits and their unit, percentages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from sfihilo.experiment.space.parameter import Outcome, Parameter
from sfihilo.experiment.space.space import Space

RESOLUTION = 1000  # parts of the range that a shown value tells apart
MOST_DECIMALS = 6


def physical(value: float | None, quantity: Parameter | Outcome) -> str:
    """A value with as many digits as its range asks for: a thousandth of it, or its grid."""
    if value is None:
        return ""
    grid = quantity.grid if isinstance(quantity, Parameter) else None
    if grid is not None:
        places = max(_decimals(grid), _decimals(float(quantity.low)))
    elif isinstance(quantity, Parameter) and quantity.log:
        return f"{value:.4g}"
    else:
        places = math.ceil(math.log10(RESOLUTION / (quantity.high - quantity.low)))
    text = f"{value:.{min(max(places, 0), MOST_DECIMALS)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


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
