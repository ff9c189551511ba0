"""What the paper's claims are about, measured: a number with its interval over users.

Each function makes a `Quantity`: something that can be asked for its value in stored results, and
that answers None where too little was run to say anything.

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
from sfihilo.study.analysis.measures import Cell, Curves, Results
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
Comparison = tuple[str, Cell, Cell]


@dataclass(frozen=True)
class Measured:
    """A number over users with its 95 % interval, and what it counts.

    compared: (metric, cell, reference) of a change, by which a panel's own tests can be found.
    p: of a two-sided paired t-test, where two cells are compared.
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

    def measure(results: Results) -> Measured | None:
        curves = results.curves(cell, "preference_error")
        if not curves.count:
            return None
        found = mean_crossing(curves.queries, curves.values)
        note: str = "" if found.kind in ("observed", "first") else found.kind
        if not note and found.beyond > (1 - found.interval.level) / 2:
            note = f"extrapolated in {found.beyond:.0%} of the draws"
        return Measured(found.interval, curves.count, "queries", note)

    return measure


def crossing_against(cell: Cell, reference: Cell) -> Quantity:
    """Change of that crossing from another cell's."""

    def measure(results: Results) -> Measured | None:
        one, two = (results.curves(each, "preference_error") for each in (cell, reference))
        users = np.intersect1d(one.users, two.users)
        if not users.size or not np.array_equal(one.queries, two.queries):
            return None
        interval = crossing_change(one.queries, _of(one, users), _of(two, users))
        return Measured(interval, users.size, "change")

    return measure


def _of(curves: Curves, users: IntArray) -> FloatArray:
    return curves.values[np.searchsorted(curves.users, users)]


def level(cell: Cell, metric: str) -> Quantity:
    """The mean of a measure that is a share, such as an error."""

    def measure(results: Results) -> Measured | None:
        values = results.measure(cell, metric)
        if values.empty:
            return None
        return Measured(mean_interval(values.to_numpy()), len(values), "share")

    return measure


def change(metric: str, cell: Cell, reference: Cell, reference_metric: str = "") -> Quantity:
    """Change of a measure's mean from another cell's (or from another measure of it)."""

    def measure(results: Results) -> Measured | None:
        one = results.measure(cell, metric)
        two = results.measure(reference, reference_metric or metric)
        values = _common(one, two)
        if not len(values) or not values[1].mean():
            return None
        return Measured(
            change_interval(values[0], values[1]),
            len(values),
            "change",
            _fitted(results, metric, (cell, reference)),
            (metric, cell, reference) if not reference_metric else None,
            paired_test(values[0], values[1]).p_value,
        )

    return measure


def contrast(one: Comparison, other: Comparison) -> Quantity:
    """Change (metric, cell, reference) in one place minus the change in another."""

    def measure(results: Results) -> Measured | None:
        series = [
            results.measure(cell, metric) for metric, *cells in (one, other) for cell in cells
        ]
        values = _common(*series)
        if not len(values) or not (values[1].mean() and values[3].mean()):
            return None
        interval = contrast_interval((values[0], values[1]), (values[2], values[3]))
        notes = (_fitted(results, metric, cells) for metric, *cells in (one, other))
        return Measured(interval, len(values), "points", " / ".join(filter(None, notes)))

    return measure


def _common(*series: pd.Series) -> pd.DataFrame:
    """The users that all have, a column for each."""
    return pd.concat(series, axis=1, join="inner", keys=range(len(series))).sort_index()


def _fitted(results: Results, metric: str, cells: Sequence[Cell]) -> str:
    """How many users' counts were not observed, in each of the cells.

    Beyond the last query a count rests on a fit; and of a curve that is below 10 % at the first
    checkpoint, nobody knows when it got there.
    """
    if not metric.startswith("queries_to_10"):
        return ""
    texts = []
    for words, name in (("extrapolated", "extrapolated"), ("from the first", "immediate")):
        found = [results.measure(cell, metric.replace("queries_to_10", name)) for cell in cells]
        if any(one.sum() for one in found):
            counts = " and ".join(f"{one.sum():.0f} of {len(one)}" for one in found)
            texts.append(f"{words}: {counts}")
    return ", ".join(texts)
