"""The quantities that the paper's claims are about: a number with its interval over users.

Each function returns a `Quantity`: a function of stored results that returns None if too little
was run.

Notation
--------
value      x_u     (users,)   a measure of one cell, e.g. queries to 10 % under Boundary Lookahead
reference  y_u     (users,)   the same measure of another cell, for the same users
change     mean(x) / mean(y) - 1
contrast   change in one condition minus change in another
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray, IntArray
from sfihilo.study.analysis.measures import (
    Cell,
    Curves,
    QueriesToTarget,
    Results,
    UserMeasure,
    extrapolated,
    immediate,
)
from sfihilo.study.analysis.statistics import (
    Interval,
    change_interval,
    contrast_interval,
    crossing_change,
    mean_crossing,
    mean_interval,
    paired_test,
)

Scale = Literal["queries", "share", "change", "points"]
Comparison = tuple[UserMeasure, Cell, Cell]


@dataclass(frozen=True)
class Measured:
    """A number over users with its 95 % interval, and its scale.

    compared: (measure, cell, reference) of a change, which identifies the panel's test of it.
    p: of a two-sided paired t-test, if two cells are compared.
    """

    interval: Interval
    users: int
    scale: Scale
    note: str = ""
    compared: Comparison | None = None
    p: float = nan


Quantity = Callable[[Results], Measured | None]


def crossing(cell: Cell) -> Quantity:
    """Where the mean learning curve of a cell reaches 10 %."""

    def compute(results: Results) -> Measured | None:
        curves = results.curves(cell, "preference_error")
        if not curves.count:
            return None
        found = mean_crossing(curves.queries, curves.values)
        note: str = "" if found.kind in ("observed", "first") else found.kind
        if not note and found.beyond > (1 - found.interval.level) / 2:
            note = f"extrapolated in {found.beyond:.0%} of the draws"
        return Measured(found.interval, curves.count, "queries", note)

    return compute


def crossing_against(cell: Cell, reference: Cell) -> Quantity:
    """Change of that crossing relative to another cell's."""

    def compute(results: Results) -> Measured | None:
        curves, base = (results.curves(each, "preference_error") for each in (cell, reference))
        users = np.intersect1d(curves.users, base.users)
        if not users.size or not np.array_equal(curves.queries, base.queries):
            return None
        interval = crossing_change(curves.queries, _of(curves, users), _of(base, users))
        return Measured(interval, users.size, "change")

    return compute


def _of(curves: Curves, users: IntArray) -> FloatArray:
    return curves.values[np.searchsorted(curves.users, users)]


def level(cell: Cell, measure: UserMeasure) -> Quantity:
    """The mean of a measure that is a share, such as an error."""

    def compute(results: Results) -> Measured | None:
        values = results.measure(cell, measure)
        if values.empty:
            return None
        return Measured(mean_interval(values.to_numpy()), len(values), "share")

    return compute


def change(
    measure: UserMeasure, cell: Cell, reference: Cell, reference_measure: UserMeasure | None = None
) -> Quantity:
    """Change of a measure's mean relative to another cell's (or to another measure of it)."""

    def compute(results: Results) -> Measured | None:
        values = _common(
            results.measure(cell, measure),
            results.measure(reference, reference_measure or measure),
        )
        if not len(values) or not values[1].mean():
            return None
        return Measured(
            change_interval(values[0], values[1]),
            len(values),
            "change",
            _not_observed(results, measure, (cell, reference)),
            (measure, cell, reference) if reference_measure is None else None,
            paired_test(values[0], values[1]).p_value,
        )

    return compute


def contrast(first: Comparison, second: Comparison) -> Quantity:
    """The change of the first comparison minus that of the second."""

    def compute(results: Results) -> Measured | None:
        series = [
            results.measure(cell, measure) for measure, *cells in (first, second) for cell in cells
        ]
        values = _common(*series)
        if not len(values) or not (values[1].mean() and values[3].mean()):
            return None
        interval = contrast_interval((values[0], values[1]), (values[2], values[3]))
        notes = (_not_observed(results, measure, cells) for measure, *cells in (first, second))
        return Measured(interval, len(values), "points", " / ".join(filter(None, notes)))

    return compute


def _common(*series: pd.Series) -> pd.DataFrame:
    """The users that all series have: one row per user, one column per series."""
    return pd.concat(series, axis=1, join="inner", keys=range(len(series))).sort_index()


def _not_observed(results: Results, measure: UserMeasure, cells: Sequence[Cell]) -> str:
    """The number of users per cell whose number of queries was not observed.

    Beyond the last query it is extrapolated; a curve below 10 % at the first checkpoint crossed at
    an unknown earlier time.
    """
    if not isinstance(measure, QueriesToTarget):
        return ""
    texts = []
    for words, kind in (
        ("extrapolated", extrapolated(measure.metric)),
        ("from the first", immediate(measure.metric)),
    ):
        found = [results.measure(cell, kind) for cell in cells]
        if any(series.sum() for series in found):
            counts = " and ".join(f"{series.sum():.0f} of {len(series)}" for series in found)
            texts.append(f"{words}: {counts}")
    return ", ".join(texts)
