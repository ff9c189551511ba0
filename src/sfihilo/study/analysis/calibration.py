"""Calibration of stated probabilities on the held-out pairs of all users together.

A single user's calibration error is biased upwards, because few pairs fall into each bin. The
pooled error is therefore reported too: it bins the pairs of all users together.

Notation
--------
kind      "better" (probability that one side is truly better, against clean labels),
          "answer" (q, the probability of the person's answer, against noisy answers)
          or "clean" (q against clean labels)
counts    n_ub   (users, bins)   pairs of user u with a confidence in bin b
stated           (users, bins)   sum of their confidences
right            (users, bins)   sum of their correct predictions
error     ECE = sum_b |sum_u stated_ub - sum_u right_ub| / sum_ub n_ub
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfihilo.history import FloatArray, IntArray
from sfihilo.study.analysis.measures import AtEnd, AtQuery, Cell, Estimate, Results
from sfihilo.study.analysis.statistics import (
    LEVEL,
    RESAMPLES,
    Interval,
    percentiles,
    resampled_users,
)
from sfihilo.study.run.evaluation import (
    HISTOGRAM,
    CalibrationKind,
    calibration_metric,
    histogram_metric,
)

KINDS: tuple[CalibrationKind, ...] = ("better", "answer", "clean")
_WORDS = {
    "better": "truly better",
    "answer": "answer",
    "clean": "answer against the truth",
}
_MOST_BINS = 100  # bins are numbered with two digits


def calibration_at(kind: CalibrationKind, query: int) -> AtQuery:
    """Each user's own calibration error after this many queries."""
    words = f"calibration error after {query:,}, {_WORDS[kind]}"
    return AtQuery(calibration_metric(kind), query, words=words, short="calibration error")


def calibration_end(kind: CalibrationKind) -> AtEnd:
    """Each user's own calibration error at the end."""
    words = f"calibration error at the end, {_WORDS[kind]}"
    return AtEnd(calibration_metric(kind), words=words, short="calibration error")


@dataclass(frozen=True)
class PooledError:
    """The calibration error of all users' pairs together, after `query` queries or at the end."""

    kind: CalibrationKind
    query: int | None = None

    @property
    def name(self) -> str:
        when = "end" if self.query is None else f"at_{self.query}"
        return f"pooled_{calibration_metric(self.kind)}_{when}"

    def estimate(self, results: Results, cell: Cell) -> Estimate | None:
        """None if nothing was stored at this checkpoint."""
        query = last_query(results, cell) if self.query is None else self.query
        table = reliability_of(results, cell, query, self.kind)
        return None if table is None else Estimate(len(table.users), table.error())


@dataclass(frozen=True, eq=False)
class Reliability:
    """The confidence histograms of a cell's users at one checkpoint."""

    users: IntArray
    counts: FloatArray
    stated: FloatArray
    right: FloatArray

    def pooled(self) -> FloatArray:
        """Rows (pairs, mean confidence, share correct) over all users, empty bins left out."""
        counts = self.counts.sum(axis=0)
        seen = counts > 0
        sums = self.stated.sum(axis=0)[seen], self.right.sum(axis=0)[seen]
        return np.column_stack([counts[seen], *(total / counts[seen] for total in sums)])

    def error(self, level: float = LEVEL, draws: int = RESAMPLES) -> Interval:
        """The pooled expected calibration error, with a bootstrap interval over users."""
        users = resampled_users(len(self.users), "mean", draws)
        drawn = np.apply_along_axis(np.bincount, 1, users, minlength=len(self.users))
        off = self.stated - self.right
        errors = np.abs(drawn @ off).sum(axis=1) / (drawn @ self.counts).sum(axis=1)
        estimate = float(np.abs(off.sum(axis=0)).sum() / self.counts.sum())
        return Interval(estimate, *percentiles(errors, level), level)


def reliability_of(
    results: Results, cell: Cell, query: int, kind: CalibrationKind
) -> Reliability | None:
    """The stored histograms; None if there are none at this checkpoint."""
    stored: dict[tuple[int, str], dict[int, float]] = {}
    for index in range(_MOST_BINS):
        for column in HISTOGRAM:
            rows = results.rows(cell, histogram_metric(kind, index, column))
            if rows is not None:
                chosen = rows[rows["query"] == query]
                values = dict(zip(chosen["user"].astype(int), chosen["value"], strict=True))
                stored[index, column] = values
    users = sorted({user for values in stored.values() for user in values})
    if not users:
        return None
    bins = sorted({index for index, _ in stored})

    def matrix(column: str) -> FloatArray:
        # A bin that is empty for a user is not stored: it contains no pairs.
        rows = [[stored[index, column].get(user, 0.0) for index in bins] for user in users]
        return np.array(rows, dtype=float)

    counts = matrix("count")
    return Reliability(
        users=np.array(users, dtype=int),
        counts=counts,
        stated=counts * matrix("confidence"),
        right=counts * matrix("correct"),
    )


def shown_checkpoints(end: int) -> list[int]:
    """The checkpoints at which calibration is shown: 200 queries and the end, if they exist."""
    return sorted({query for query in (200, end) if 0 < query <= end})


def last_query(results: Results, cell: Cell) -> int:
    """The last query of a cell's runs; 0 if there are none."""
    queries = results.curves(cell, "preference_error").queries
    return int(queries[-1]) if len(queries) else 0
