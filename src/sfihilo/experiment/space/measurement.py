"""Validates measurements before the model sees them.

A value is refused rather than repaired. What was refused is described in plain text, so that it can
be recorded whatever it was (NaN, a bool, a number of 10,000 digits, any other object).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfihilo.experiment.space.parameter import Outcome, finite_number, shortened
from sfihilo.experiment.space.space import Space

# Factors between units that are mixed up in practice, each with the units that it is tried for and
# the question that it raises. The first that fits is named.
PER_KILOGRAM = re.compile(r".*((/ ?|per )kg|kg ?(\^?-1|⁻¹)).*")
SPEED = re.compile(r".*\bm ?(/ ?s|s ?(\^?-1|⁻¹)|per s).*")
SCALE = re.compile(r"|points?|score|/ ?10")
ANY = re.compile(r".*", re.DOTALL)
UNIT_FACTORS = (
    (70.0, PER_KILOGRAM, "for the whole body, not per kilogram?"),
    (3.6, SPEED, "in km/h?"),
    (10.0, SCALE, "another scale?"),
    *(
        (factor, ANY, "another unit?")
        # SI prefixes, percent, minutes, hours, calories, pounds
        for factor in (1000.0, 1e6, 100.0, 60.0, 3600.0, 4.184, 2.2046)
    ),
)
MOST_NAMES_SHOWN = 20


class BadMeasurementError(ValueError):
    """A measurement that was refused; the model did not see it."""


@dataclass(frozen=True)
class Measurement:
    """An accepted measurement; None means that an outcome could not be measured."""

    values: Mapping[str, float | None] | None
    warnings: tuple[str, ...] = ()


def accepted(space: Space, values: object) -> Measurement:
    """The validated measurement; raises `BadMeasurementError` with every reason against it.

    None as a whole, or for one outcome, means that it could not be measured. A name left out is an
    error: it may be a typing mistake.
    """
    if values is None:
        return Measurement(None)
    if not isinstance(values, Mapping):
        raise BadMeasurementError(
            f"expected outcome -> value for {', '.join(space.outcomes)}, got {shortened(values)}"
        )
    bad = [
        f"{shortened(name)} is no outcome (known: {', '.join(space.outcomes)})"
        for name in list(values)[:MOST_NAMES_SHOWN]
        if not isinstance(name, str) or name not in space.outcomes
    ]
    if len(values) > MOST_NAMES_SHOWN + len(space.outcomes):
        bad.append(f"expected {len(space.outcomes)} outcomes, got {len(values)}")
    kept: dict[str, float | None] = {}
    warnings = []
    for name, outcome in space.outcomes.items():
        if name not in values:
            bad.append(f"{name} is missing (give None if it could not be measured)")
            continue
        if values[name] is None:
            kept[name] = None
            continue
        try:
            kept[name] = number = _inside(outcome, name, values[name])
        except ValueError as error:
            bad.append(str(error))
            continue
        if outcome.soft is not None and not outcome.soft[0] <= number <= outcome.soft[1]:
            low, high = outcome.soft
            unit = f" {outcome.unit}" if outcome.unit else ""
            warnings.append(f"{name}: {number:.6g}{unit} is outside the usual {low:g} to {high:g}")
    if bad:
        raise BadMeasurementError("measurement refused: " + "; ".join(bad))
    return Measurement(kept, tuple(warnings))


def described(values: object) -> Any:
    """Any object as plain text of bounded length, for the record of what was refused."""
    if isinstance(values, Mapping):
        items = list(values.items())[:MOST_NAMES_SHOWN]
        return {shortened(name): shortened(value) for name, value in items}
    return shortened(values)


def _inside(outcome: Outcome, name: str, value: object) -> float:
    number = finite_number(value, name)
    low, high = outcome.accepted
    if low <= number <= high:
        return number
    unit = f" {outcome.unit}" if outcome.unit else ""
    raise ValueError(
        f"{name}: expected {low:g} to {high:g}{unit}, got {number:.6g}{_hint(outcome, number)}"
    )


def _hint(outcome: Outcome, number: float) -> str:
    """A remark if another unit would explain a value that is far out of range, or nothing.

    Far: by more than half of the factor's orders of magnitude; 11 on a scale to 10 is not far.
    """
    low, high = outcome.accepted
    bound = high if number > high else low
    if number == 0 or bound == 0:
        return ""
    out = max(abs(number / bound), abs(bound / number))
    for factor, units, question in UNIT_FACTORS:
        if not units.fullmatch(outcome.unit):
            continue
        for scaled, sign in ((number / factor, "/"), (number * factor, "*")):
            if low <= scaled <= high and scaled != 0 and out * out >= factor:
                return f" ({question} {number:.6g} {sign} {factor:g} = {scaled:.4g} would fit)"
    return ""
