"""Checks that settings declare beside their fields, and lookup of functions by name.

    @dataclass(frozen=True)
    class InverseSettings(Checked):
        length_scale: float = positive(0.65)

A field made by `positive`, `within`, ... has a default and a check; `Checked` runs the checks when
a value is made. A check raises a ValueError "Class.field: expected X, got Y".
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

Accepts = Callable[[Any], bool]


class Checked:
    """Base of the settings: runs the check of each field."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if "accepts" in field.metadata:
                value = getattr(self, field.name)
                if not field.metadata["accepts"](value):
                    raise ValueError(
                        f"{type(self).__name__}.{field.name}: "
                        f"expected {field.metadata['expected']}, got {value!r}"
                    )
                object.__setattr__(self, field.name, plain(value))


def whole(low: int, default: int) -> Any:
    """A whole number from `low`."""
    return _field(default, lambda value: is_whole(value, low), f"a whole number from {low}")


def wholes(low: int, default: tuple[int, ...]) -> Any:
    """As many whole numbers from `low` as the default has."""
    return _field(
        default,
        lambda values: _all(lambda value: is_whole(value, low), values, len(default)),
        f"{len(default)} whole numbers from {low}",
    )


def text(default: str) -> Any:
    """A text."""
    return _field(default, lambda value: isinstance(value, str), "a text")


def positive(default: float | None) -> Any:
    """A finite number above zero; a field whose default is None may also be None."""
    return _field(default, _positive, "a positive number")


def within(low: float, high: float, default: float) -> Any:
    """A number in [low, high)."""
    return _field(
        default,
        lambda value: is_number(value) and low <= value < high,
        f"a number in [{low}, {high})",
    )


def fraction(default: float) -> Any:
    """A number between zero and one, neither of them."""
    return _field(default, lambda value: is_number(value) and 0 < value < 1, "a number in (0, 1)")


def finite(default: float) -> Any:
    """A finite number."""
    return _field(
        default, lambda value: is_number(value) and math.isfinite(value), "a finite number"
    )


def positives(default: tuple[float, ...]) -> Any:
    """One or more positive numbers."""
    return _field(default, lambda values: _all(_positive, values), "positive numbers")


def not_negatives(default: tuple[float, ...]) -> Any:
    """One or more finite numbers from zero."""
    return _field(default, lambda values: _all(_not_negative, values), "numbers from 0")


def rising_positives(default: tuple[float, ...]) -> Any:
    """One or more positive numbers, each larger than the one before."""
    return _field(
        default,
        lambda values: _all(_positive, values) and _rising(values),
        "rising positive numbers",
    )


def rising_not_negatives(default: tuple[float, ...]) -> Any:
    """One or more finite numbers from zero, each larger than the one before."""
    return _field(
        default,
        lambda values: _all(_not_negative, values) and _rising(values),
        "rising numbers from 0",
    )


def positive_range(default: tuple[float, float]) -> Any:
    """Two positive numbers, the lower one first."""
    return _field(
        default,
        lambda pair: _all(_positive, pair, 2) and _rising(pair),
        "two rising positive numbers",
    )


def one_of(*known: str) -> Any:
    """One of these words; the first is the default."""
    *others, last = known
    return _field(known[0], lambda value: value in known, f"{', '.join(others)} or {last}")


def flag(default: bool) -> Any:
    """True or False."""
    return _field(default, lambda value: isinstance(value, bool), "True or False")


def checked_whole(value: object, name: str, low: int, high: int | None = None) -> int:
    """The whole number that a caller gave, as a plain one."""
    if not is_whole(value, low, high):
        most = "" if high is None else f" to {high}"
        raise ValueError(f"{name}: expected a whole number from {low}{most}, got {value!r}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _field(default: Any, accepts: Accepts, expected: str) -> Any:
    def also_none(value: Any) -> bool:
        return value is None or accepts(value)

    metadata = {"accepts": also_none if default is None else accepts, "expected": expected}
    return dataclasses.field(default=default, metadata=metadata)


def _all(accepts: Accepts, values: object, count: int | None = None) -> bool:
    """Whether it is a sequence of accepted values, not empty, and with so many if that is said."""
    return (
        isinstance(values, tuple | list)
        and len(values) == (max(len(values), 1) if count is None else count)
        and all(map(accepts, values))
    )


def plain(value: Any) -> Any:
    """The same value, in types that JSON and `hash` know: not NumPy's numbers, no list."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if is_whole(value):
        return int(value)
    return float(value) if is_number(value) else value


def is_whole(value: Any, low: float = -math.inf, high: float | None = None) -> bool:
    """Whether it is of a type for whole numbers (2.0 and True are not) and within the limits."""
    return (
        not isinstance(value, bool)
        and isinstance(value, Integral)
        and low <= int(value) <= (math.inf if high is None else high)
    )


def is_number(value: object) -> bool:
    """Whether it is of a type for real numbers (True is not), and not too large for a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf


def _not_negative(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf


def _rising(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))


def named_function(name: str, what: str, known: tuple[str, ...]) -> Callable[..., Any]:
    """Return the function that `name` points at; the error lists what is accepted."""
    expected = f"{what}: expected {', '.join(known)} or module:function"
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"{expected}, got {name!r}")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{expected}, got {name!r}: {error}") from error
    if not callable(function):
        raise ValueError(f"{expected}, got {name!r}, which cannot be called")
    return function  # type: ignore[no-any-return]
