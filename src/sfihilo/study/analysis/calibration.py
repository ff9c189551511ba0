"""Whether stated confidence is deserved, over the held-out pairs of all users together.

A user's own calibration error is biased upwards by the noise of the user's few pairs in each bin,
so the pooled one is reported too: all users' pairs are put together, then the bins are read.

Notation
--------
kind      "better" (the probability that one side is truly better: what clean labels calibrate),
          "answer" (q, the probability of the person's answer, against answers as noisy as theirs)
          or "clean" (q again, against clean labels, which are surer than any answer)
counts    n_ub   (users, bins)   pairs of user u with a confidence in bin b
stated           (users, bins)   sum of their confidences
right            (users, bins)   sum of their correct predictions
error     ECE = sum_b |sum_u stated_ub - sum_u right_ub| / sum_ub n_ub
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfihilo.history import FloatArray, IntArray
from sfihilo.study.analysis.measures import Cell, Results
from sfihilo.study.analysis.statistics import (
    LEVEL,
    RESAMPLES,
    Interval,
    percentiles,
    resampled_users,
)

Kind = Literal["better", "answer", "clean"]
PREFIX: dict[Kind, str] = {
    "better": "reliability_better",
    "answer": "reliability_answer",
    "clean": "reliability",
}
# The users' own errors as `simulate` stores them, and what each is about.
KIND_OF_ERROR: dict[str, Kind] = {"ece_better": "better", "ece_answer": "answer", "ece": "clean"}


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


def reliability_of(results: Results, cell: Cell, query: int, kind: Kind) -> Reliability | None:
    """The stored histograms; None where there are none at this checkpoint."""
    name = re.compile(PREFIX[kind] + r"_(\d+)_(count|confidence|correct)")
    found: dict[tuple[int, str], dict[int, float]] = {}
    for key in results.groups:
        match = name.fullmatch(key[3]) if key[:3] == tuple(cell) else None
        if match:
            group = results.groups[key]
            chosen = group[group["query"] == query]
            values = dict(zip(chosen["user"].astype(int), chosen["value"], strict=True))
            found[int(match[1]), match[2]] = values
    users = sorted({user for values in found.values() for user in values})
    if not users:
        return None
    bins = sorted({index for index, _ in found})

    def matrix(what: str) -> FloatArray:
        # A bin that is empty for a user is not stored: it has no pairs.
        rows = [[found[index, what].get(user, 0.0) for index in bins] for user in users]
        return np.array(rows, dtype=float)

    counts = matrix("count")
    return Reliability(
        users=np.array(users, dtype=int),
        counts=counts,
        stated=counts * matrix("confidence"),
        right=counts * matrix("correct"),
    )


def shown_checkpoints(end: int) -> list[int]:
    """After 200 queries and at the end, whichever of them exist."""
    return sorted({query for query in (200, end) if 0 < query <= end})


def last_query(results: Results, cell: Cell) -> int:
    """The end of a cell's runs; 0 where there are none."""
    queries = results.curves(cell, "preference_error").queries
    return int(queries[-1]) if len(queries) else 0
