"""Stored learning curves by cell, and the measures that reduce them to one number per user.

Paper: section "Evaluation protocol".

Notation
--------
cell      (preset, condition, rule)      measures of two cells are compared paired by user
curve     e_u(q)   (users, checkpoints)  one stored metric of a cell
measure            (users,)              one number per user, computed from one curve per user

A measure is a value: `AtQuery("preference_error", 200)`. Its `name` identifies it in CSV and JSON
files, its `words` name it for people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from sfihilo.history import FloatArray, IntArray
from sfihilo.study.analysis.crossing import CrossingKind, find_crossings
from sfihilo.study.analysis.statistics import Interval, mean_crossing, mean_interval
from sfihilo.study.design.panels import KNOWN_RULES

REQUIRED = ("preset", "condition", "rule", "user", "query", "metric", "value")
T = TypeVar("T")


class Cell(NamedTuple):
    """One rule of one preset in one condition, over all of its users."""

    preset: str
    condition: str
    rule: str


@dataclass(frozen=True, eq=False)
class Curves:
    """One metric of a cell: one row per user, one column per checkpoint."""

    users: IntArray
    queries: FloatArray
    values: FloatArray

    @property
    def count(self) -> int:
        """The number of users."""
        return len(self.users)


NO_CURVES = Curves(np.empty(0, dtype=int), np.empty(0), np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class Results:
    """A tidy table of results, grouped by cell and metric.

    `users` restricts all curves to these users; None means all. What is computed from the table
    (curves, measures, tests) is computed once and kept.
    """

    groups: Mapping[tuple[str, str, str, str], Any]
    users: frozenset[int] | None = None
    _computed: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(table: pd.DataFrame) -> Results:
        """Validates the columns of a tidy table and groups its rows."""
        missing = [name for name in REQUIRED if name not in table.columns]
        if missing:
            raise ValueError(f"expected the columns {', '.join(REQUIRED)}; missing: {missing}")
        keys = ["preset", "condition", "rule", "metric"]
        return Results(dict(iter(table.groupby(keys, sort=True))))

    @property
    def presets(self) -> list[str]:
        """All presets with results, the paper's first."""
        found = {key[0] for key in self.groups}
        return sorted(found, key=lambda name: (name != "paper", name))

    def only(self, preset: str) -> Results:
        """The results of one preset."""
        groups = {key: group for key, group in self.groups.items() if key[0] == preset}
        return Results(groups, self.users)

    def among(self, users: Collection[int]) -> Results:
        """The results of these users."""
        return replace(self, users=frozenset(users), _computed={})

    def conditions(self, preset: str) -> list[str]:
        """All conditions that a preset has results of."""
        return sorted({key[1] for key in self.groups if key[0] == preset})

    def rules(self, preset: str, condition: str) -> list[str]:
        """The rules with results: the known ones in the paper's order, then a user's own."""
        found = {key[2] for key in self.groups if key[:2] == (preset, condition)}
        return [r for r in KNOWN_RULES if r in found] + sorted(found.difference(KNOWN_RULES))

    def computed_once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of `compute`, which is called only the first time that `key` is given."""
        if key not in self._computed:
            self._computed[key] = compute()
        value: T = self._computed[key]
        return value

    def rows(self, cell: Cell, metric: str) -> pd.DataFrame | None:
        """The stored rows of a metric; None if there are none."""
        rows = self.groups.get((*cell, metric))
        if rows is None or self.users is None:
            return rows
        kept = rows[rows["user"].isin(self.users)]
        return None if kept.empty else kept

    def curves(self, cell: Cell, metric: str) -> Curves:
        """The stored curves of a metric; `NO_CURVES` if there are none."""

        def compute() -> Curves:
            rows = self.rows(cell, metric)
            return NO_CURVES if rows is None else _curves(rows, f"{cell}: {metric}")

        return self.computed_once(("curves", cell, metric), compute)

    def measure(self, cell: Cell, measure: UserMeasure) -> pd.Series:
        """One number per user (a series by user); empty if nothing was run."""
        return self.computed_once(
            ("measure", cell, measure), lambda: measure.of(self.curves(cell, measure.metric))
        )


def _curves(rows: pd.DataFrame, name: str) -> Curves:
    """Rows of one metric as a matrix; every user must have every checkpoint exactly once."""
    users, row = np.unique(rows["user"].to_numpy(dtype=int), return_inverse=True)
    queries, column = np.unique(rows["query"].to_numpy(dtype=float), return_inverse=True)
    values = np.full((len(users), len(queries)), np.nan)
    values[row, column] = rows["value"].to_numpy(dtype=float)
    if np.isnan(values).any():
        lacking = users[np.isnan(values).any(axis=1)].tolist()
        raise ValueError(f"{name}: users {lacking} lack some checkpoints")
    if len(rows) != values.size:
        raise ValueError(f"{name}: expected {values.size} values, got {len(rows)}")
    return Curves(users, queries, values)


class Estimate(NamedTuple):
    """A number over users with its interval."""

    users: int
    interval: Interval


class Measure(Protocol):
    """Something that has one estimate per cell: one row of `summary.csv`."""

    @property
    def name(self) -> str: ...
    def estimate(self, results: Results, cell: Cell) -> Estimate | None: ...


@dataclass(frozen=True)
class UserMeasure(ABC):
    """One number per user, computed from the stored curves of one metric.

    words: the measure for people. short: the same where there is little room.
    """

    metric: str
    words: str = field(default="", kw_only=True, compare=False)
    short: str = field(default="", kw_only=True, compare=False)

    @property
    @abstractmethod
    def name(self) -> str:
        """Identifies the measure in CSV and JSON files."""

    @abstractmethod
    def values(self, curves: Curves) -> FloatArray | None:
        """One number per curve; None if the curves lack what the measure needs."""

    def of(self, curves: Curves) -> pd.Series:
        """The measure by user; empty if it does not exist for these curves."""
        values = self.values(curves) if curves.count else None
        known = NO_CURVES if values is None else curves
        index = pd.Index(known.users, name="user")
        return pd.Series([] if values is None else values, index=index, dtype=float)

    def estimate(self, results: Results, cell: Cell) -> Estimate | None:
        """The mean over users; None if nothing was run."""
        values = results.measure(cell, self)
        return None if values.empty else Estimate(len(values), mean_interval(values.to_numpy()))


@dataclass(frozen=True)
class AtQuery(UserMeasure):
    """The value at one checkpoint; it does not exist for runs without that checkpoint."""

    query: int

    @property
    def name(self) -> str:
        return f"{self.metric}_at_{self.query}"

    def values(self, curves: Curves) -> FloatArray | None:
        place = np.flatnonzero(curves.queries == self.query)
        return curves.values[:, place[0]] if place.size else None


@dataclass(frozen=True)
class AtEnd(UserMeasure):
    """The value at the last checkpoint."""

    @property
    def name(self) -> str:
        return f"{self.metric}_end"

    def values(self, curves: Curves) -> FloatArray:
        return curves.values[:, -1]


@dataclass(frozen=True)
class Single(AtEnd):
    """A metric that is stored only once per run, at its end."""

    @property
    def name(self) -> str:
        return self.metric


@dataclass(frozen=True)
class LateMean(UserMeasure):
    """The mean over the checkpoints of the second half of the queries."""

    @property
    def name(self) -> str:
        return f"{self.metric}_late"

    def values(self, curves: Curves) -> FloatArray:
        late = curves.queries >= curves.queries[-1] / 2
        mean: FloatArray = curves.values[:, late].mean(axis=1)
        return mean


@dataclass(frozen=True)
class Area(UserMeasure):
    """The area under the curve."""

    @property
    def name(self) -> str:
        return f"{self.metric}_auc"

    def values(self, curves: Curves) -> FloatArray:
        return np.array([area_under_curve(curves.queries, curve) for curve in curves.values])


@dataclass(frozen=True)
class QueriesToTarget(UserMeasure):
    """The number of queries until a preference error reaches 10 %."""

    metric: str = "preference_error"

    @property
    def name(self) -> str:
        return f"queries_to_10{_gap_suffix(self.metric)}"

    def values(self, curves: Curves) -> FloatArray:
        found = find_crossings(curves.queries, curves.values)
        return np.array([crossing.queries for crossing in found])


@dataclass(frozen=True)
class CrossingIs(UserMeasure):
    """Whether the crossing of 10 % is of one of these kinds, as 0 or 1."""

    label: str
    kinds: tuple[CrossingKind, ...]

    @property
    def name(self) -> str:
        return f"{self.label}{_gap_suffix(self.metric)}"

    def values(self, curves: Curves) -> FloatArray:
        found = find_crossings(curves.queries, curves.values)
        return np.array([float(crossing.kind in self.kinds) for crossing in found])


@dataclass(frozen=True)
class MeanCurveCrossing:
    """Where the mean learning curve of a cell reaches 10 %."""

    name: str = "queries_to_10_of_mean_curve"

    def estimate(self, results: Results, cell: Cell) -> Estimate | None:
        """None if nothing was run."""
        curves = results.curves(cell, "preference_error")
        if not curves.count:
            return None
        return Estimate(curves.count, mean_crossing(curves.queries, curves.values).interval)


def extrapolated(metric: str = "preference_error") -> CrossingIs:
    """Whether the crossing lies beyond the last checkpoint."""
    return CrossingIs(metric, "extrapolated", ("extrapolated", "capped"))


def immediate(metric: str = "preference_error") -> CrossingIs:
    """Whether the error is below 10 % at the first checkpoint."""
    return CrossingIs(metric, "immediate", ("first",))


def gap_error(number: int) -> str:
    """The stored preference error on the pairs of one reward-gap bin."""
    return f"preference_error_gap{number}"


def _gap_suffix(metric: str) -> str:
    return metric.removeprefix("preference_error")


def area_under_curve(queries: ArrayLike, values: ArrayLike) -> float:
    """Trapezoidal area over queries, from the first checkpoint to the last (RMSE AUC)."""
    return float(trapezoid(np.asarray(values, dtype=float), np.asarray(queries, dtype=float)))


def paired(first: pd.Series, second: pd.Series) -> tuple[FloatArray, FloatArray]:
    """The values of the users that both have, in the same order."""
    users = first.index.intersection(second.index).sort_values()
    return first.loc[users].to_numpy(dtype=float), second.loc[users].to_numpy(dtype=float)


QUERIES_TO_10 = QueriesToTarget(words="queries to 10 % error")
ERROR_END = AtEnd("preference_error", words="preference error at the end")
ERROR_AREA = Area(
    "preference_error", words="preference error, area under the curve", short="preference error"
)
FORWARD_AREA = Area(
    "forward_rmse", words="forward RMSE, area under the curve", short="forward error"
)
POLICY_GAP = Single(
    "final_policy_gap", words="reward missed by the final policy", short="reward missed"
)


def error_after(query: int) -> AtQuery:
    """The preference error after this many queries."""
    return AtQuery("preference_error", query, words=f"preference error after {query:,}")


def advice_after(query: int) -> AtQuery:
    """The clean reward of the advice after this many queries."""
    return AtQuery("advice_reward", query, words=f"reward of the advice after {query:,}")
