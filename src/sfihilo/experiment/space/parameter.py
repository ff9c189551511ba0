"""One setting of the device and one measured outcome, in physical units.

Notation
--------
value   in the physical unit of the parameter or outcome, as the lab reads and sets it
unit u  the same value scaled to [0, 1], which is all that the learner sees
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
NARROWEST = 1e-300  # of a range: below it, the reciprocal of a width overflows
GRID_SLACK = 1e-9  # a value this close (in steps) to a grid point is that grid point


def finite_number(value: object, what: str) -> float:
    """A finite float; raises ValueError for anything else, such as True and "4.1"."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise ValueError(
            f"{what}: expected a number, got {type(value).__name__} {shortened(value)}"
        )
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{what}: expected a finite number, got {shortened(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what}: expected a finite number, got {shortened(value)}")
    return number


def shortened(value: object, longest: int = 60) -> str:
    """Any value as text of bounded length, for a message."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a foreign __repr__ must not break the refusal itself
        return f"<{type(value).__name__}>"
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Parameter:
    """A setting of the device between `low` and `high`.

    `max_step` bounds the change from one executed policy to the next, in the parameter's own unit;
    it needs `start`, the value on the device before the first trial. `integer` allows whole numbers
    only, `step` the values low, low + step, ... `fixed` holds the parameter at one value: the
    learner then never sees it. `log` explores orders of magnitude evenly.
    """

    low: float
    high: float
    unit: str = ""
    max_step: float | None = None
    log: bool = False
    integer: bool = False
    step: float | None = None
    fixed: float | None = None
    start: float | None = None

    def __post_init__(self) -> None:
        _check_fields(self, ("low", "high", "max_step", "step", "fixed", "start"))
        for name in ("log", "integer"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"log scale: expected low > 0, got {self.low}")
        for name in ("max_step", "step"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name}: expected a number above 0, got {value}")
        if self.integer and (self.step is not None or self.low != round(self.low)):
            raise ValueError(
                f"integer: expected a whole low and no step, got low {self.low}, step {self.step}"
            )
        grid = self.grid
        if grid is not None and grid > self.high - self.low:
            raise ValueError(f"step: expected at most {self.high - self.low}, got {grid}")
        if grid is not None and self.max_step is not None and self.max_step < grid:
            raise ValueError(f"max_step: expected at least one step of {grid}, got {self.max_step}")
        for name in ("fixed", "start"):
            value = getattr(self, name)
            problem = None if value is None else self.problem(value)
            if problem:
                raise ValueError(f"{name}: {problem}")

    @property
    def grid(self) -> float | None:
        """The distance between allowed values; None if all values are allowed."""
        return 1.0 if self.integer else self.step

    def problem(self, value: float) -> str | None:
        """What is wrong with a value of this parameter."""
        if not self.low <= value <= self.high:
            return f"expected {self.low} to {self.high}{_unit(self.unit)}, got {value}"
        if self.grid is not None:
            index = (value - self.low) / self.grid
            if abs(index - round(index)) > GRID_SLACK:
                kind = "a whole number" if self.integer else f"{self.low} + k * {self.grid}"
                return f"expected {kind}{_unit(self.unit)}, got {value}"
        return None

    def to_unit(self, value: FloatArray) -> FloatArray:
        """Physical values to [0, 1]."""
        low, high = float(self.low), float(self.high)
        if self.log:
            unit = (np.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        else:
            unit = (np.asarray(value, dtype=float) - low) / (high - low)
        return np.clip(unit, 0.0, 1.0)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """[0, 1] to allowed physical values: the nearest point of the grid if there is a grid."""
        low, high = float(self.low), float(self.high)
        if self.log:
            value = np.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            value = low + unit * (high - low)
        if self.grid is not None:
            top = math.floor((high - low) / self.grid + GRID_SLACK)
            value = low + self.grid * np.clip(np.round((value - low) / self.grid), 0, top)
        bounded: FloatArray = np.clip(value, low, high)
        return bounded

    def inside(self, low: float, high: float) -> tuple[float, float]:
        """The lowest and the highest allowed value between `low` and `high`."""
        low, high = max(low, float(self.low)), min(high, float(self.high))
        if self.grid is not None:
            first = math.ceil((low - self.low) / self.grid - GRID_SLACK)
            last = math.floor((high - self.low) / self.grid + GRID_SLACK)
            low, high = self.low + first * self.grid, self.low + last * self.grid
        if low > high:
            raise ValueError("expected a range that contains an allowed value, got an empty one")
        return low, high


@dataclass(frozen=True)
class Outcome:
    """A measured quantity between `low` and `high`.

    Values outside the `hard` limits (by default the range itself) are refused, values outside the
    `soft` limits are kept with a warning. The direction is learned: `lower_is_better` is a note.
    """

    low: float
    high: float
    unit: str = ""
    lower_is_better: bool | None = None
    soft: tuple[float, float] | None = None
    hard: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check_fields(self, ("low", "high"))
        if not isinstance(self.lower_is_better, bool | None):
            raise ValueError(
                f"lower_is_better: expected true, false or nothing, got {self.lower_is_better!r}"
            )
        for name, within in (("hard", (self.low, self.high)), ("soft", self.accepted)):
            limits: Any = getattr(self, name)
            if limits is None:
                continue
            if not isinstance(limits, tuple | list) or len(limits) != 2:
                raise ValueError(f"{name}: expected two numbers, got {limits!r}")
            low, high = (finite_number(limit, name) for limit in limits)
            if not within[0] <= low < high <= within[1]:
                raise ValueError(
                    f"{name}: expected two rising numbers within {within[0]} to {within[1]}, "
                    f"got {low} and {high}"
                )
            object.__setattr__(self, name, (low, high))

    @property
    def accepted(self) -> tuple[float, float]:
        """The limits outside which a value is refused."""
        return self.hard if self.hard is not None else (self.low, self.high)

    def to_unit(self, value: float) -> float:
        """A physical value to [0, 1]."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """[0, 1] to physical values."""
        return self.low + np.asarray(unit, dtype=float) * (self.high - self.low)


def _check_fields(item: Parameter | Outcome, numbers: tuple[str, ...]) -> None:
    """Validates range, numbers and unit; NumPy numbers become Python's, since they are stored."""
    for name in numbers:
        value = getattr(item, name)
        if value is not None or name in ("low", "high"):
            finite_number(value, name)
            whole = isinstance(value, int | np.integer)
            object.__setattr__(item, name, int(value) if whole else float(value))
    if not NARROWEST < item.high - item.low < math.inf:
        raise ValueError(f"expected low < high, got low {item.low}, high {item.high}")
    if not isinstance(item.unit, str):
        raise ValueError(f"unit: expected a text, got {shortened(item.unit)}")


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
