"""Checks for settings values, and lookup of functions given as "module:function"."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any


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


def within(settings: object, name: str, low: float, high: float) -> None:
    """Validates that this field of the settings is a number in [low, high)."""
    value = getattr(settings, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < high:
        raise ValueError(
            f"{type(settings).__name__}.{name}: expected a number in [{low}, {high}), got {value!r}"
        )


def positive(settings: object, *names: str) -> None:
    """Validates that each of these fields of the settings is finite and above zero."""
    for name in names:
        value = getattr(settings, name)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value < math.inf
        ):
            raise ValueError(
                f"{type(settings).__name__}.{name}: expected a positive number, got {value!r}"
            )
