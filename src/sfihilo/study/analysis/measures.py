"""From stored learning curves to one number a user (section "Evaluation protocol").

Notation
--------
cell      (preset, condition, rule)      what is compared between cells is paired by user
curve     e_u(q)   (users, checkpoints)  one stored metric of a cell
measure            (users,)              one number a user, made from curves

A measure's name says what it is made of: `queries_to_10` and `queries_to_10_gap3` are crossings of
the (binned) preference error, `extrapolated` and `immediate` say that a crossing lies beyond the
last checkpoint or before the first, `forward_rmse_auc` is an area, `ece_end` a last value,
`..._late` a mean over the second half of the queries, `preference_error_at_200` a value at a
checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray, IntArray
from sfihilo.study.design.panels import KNOWN_RULES
from sfihilo.study.run.evaluation import area_under_curve, queries_to_target

REQUIRED = ("preset", "condition", "rule", "user", "query", "metric", "value")
_CROSSING = re.compile(r"(queries_to_10|extrapolated|immediate)(?:_(gap\d))?")
_KINDS = {"extrapolated": ("extrapolated", "capped"), "immediate": ("first",)}
_PLAIN = re.compile(r"(?P<metric>.+?)_(?P<how>auc|end|late|at_(?P<query>\d+))")


class Cell(NamedTuple):
    """One way of learning in one condition, over all of its users."""

    preset: str
    condition: str
    rule: str


@dataclass(frozen=True, eq=False)
class Curves:
    """One metric of a cell: a row for each user, a column for each checkpoint."""

    users: IntArray
    queries: FloatArray
    values: FloatArray

    @property
    def count(self) -> int:
        """How many users there are."""
        return len(self.users)


NOTHING = Curves(np.empty(0, dtype=int), np.empty(0), np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class Results:
    """A tidy table of results, ready to be asked for the curves of a cell."""

    groups: Mapping[tuple[str, str, str, str], Any]
    _known: dict[tuple[str, str, str, str], Curves] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(table: pd.DataFrame) -> Results:
        """Check the columns of a tidy table and sort it into cells."""
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
        return Results({key: group for key, group in self.groups.items() if key[0] == preset})

    def conditions(self, preset: str) -> list[str]:
        """All conditions that a preset has results of."""
        return sorted({key[1] for key in self.groups if key[0] == preset})

    def rules(self, preset: str, condition: str) -> list[str]:
        """The rules that ran, the paper's three first and in its order, a user's own last."""
        found = {key[2] for key in self.groups if key[:2] == (preset, condition)}
        return [r for r in KNOWN_RULES if r in found] + sorted(found.difference(KNOWN_RULES))

    def curves(self, cell: Cell, metric: str) -> Curves:
        """The stored curves of a metric; `NOTHING` where there are none."""
        key = (*cell, metric)
        if key not in self.groups:
            return NOTHING
        if key not in self._known:
            self._known[key] = _curves(self.groups[key], f"{cell}: {metric}")
        return self._known[key]

    def measure(self, cell: Cell, name: str) -> pd.Series:
        """One number a user (a series by user), empty where nothing was run."""
        crossing = _CROSSING.fullmatch(name)
        if crossing:
            what, part = crossing.groups()
            curves = self.curves(cell, f"preference_error_{part}" if part else "preference_error")
            return _series(curves, _crossings(curves, what))
        plain = _PLAIN.fullmatch(name)
        if plain:
            return _reduced(self.curves(cell, plain["metric"]), plain["how"], plain["query"])
        curves = self.curves(cell, name)
        return _series(curves, curves.values[:, -1] if curves.count else np.empty(0))


def _curves(group: pd.DataFrame, name: str) -> Curves:
    """Rows of one metric as a matrix; every user must have every checkpoint, once."""
    users, row = np.unique(group["user"].to_numpy(dtype=int), return_inverse=True)
    queries, column = np.unique(group["query"].to_numpy(dtype=float), return_inverse=True)
    values = np.full((len(users), len(queries)), np.nan)
    values[row, column] = group["value"].to_numpy(dtype=float)
    if np.isnan(values).any():
        lacking = users[np.isnan(values).any(axis=1)].tolist()
        raise ValueError(f"{name}: users {lacking} lack some checkpoints")
    if len(group) != values.size:
        raise ValueError(f"{name}: expected {values.size} values, got {len(group)}")
    return Curves(users, queries, values)


def _series(curves: Curves, values: FloatArray) -> pd.Series:
    return pd.Series(values, index=pd.Index(curves.users, name="user"), dtype=float)


def _crossings(curves: Curves, what: str) -> FloatArray:
    """Where each curve crosses, or (as 0 and 1) whether that is one of the kinds of `what`."""
    found = [queries_to_target(curves.queries, curve) for curve in curves.values]
    if what == "queries_to_10":
        return np.array([one.queries for one in found])
    return np.array([float(one.kind in _KINDS[what]) for one in found])


def _reduced(curves: Curves, how: str, query: str | None) -> pd.Series:
    """One number of each curve; empty when the run has no such checkpoint."""
    if not curves.count:
        return _series(NOTHING, np.empty(0))
    if how == "auc":
        areas = [area_under_curve(curves.queries, curve) for curve in curves.values]
        return _series(curves, np.array(areas))
    if how == "late":
        late = curves.queries >= curves.queries[-1] / 2
        return _series(curves, curves.values[:, late].mean(axis=1))
    if query is None:
        return _series(curves, curves.values[:, -1])
    place = np.flatnonzero(curves.queries == int(query))
    if place.size == 0:
        return _series(NOTHING, np.empty(0))
    return _series(curves, curves.values[:, place[0]])


def paired(first: pd.Series, second: pd.Series) -> tuple[FloatArray, FloatArray]:
    """The values of the users that both have, in the same order."""
    users = first.index.intersection(second.index).sort_values()
    return first.loc[users].to_numpy(dtype=float), second.loc[users].to_numpy(dtype=float)
