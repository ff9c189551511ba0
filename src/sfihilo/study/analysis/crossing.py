"""Where a learning curve reaches 10 % preference error (paper: app:evaluation).

Notation
--------
queries    q       (checkpoints,)         number of comparisons at each checkpoint
errors     e(q)    (checkpoints,)         preference error of one learning curve
curves     e_u(q)  (curves, checkpoints)  several learning curves with the same checkpoints
target             10 %
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sfihilo.history import FloatArray

CrossingKind = Literal["observed", "first", "extrapolated", "capped"]
TARGET = 0.10
CAP = 1e4


@dataclass(frozen=True)
class Crossing:
    """Where a learning curve reaches the target, and how that was determined.

    observed: interpolated between two checkpoints. first: the curve is below the target at its
    first checkpoint, which is returned. extrapolated: from the logarithmic fit. capped: the fit
    does not fall, or reaches the target beyond the cap, which is returned.
    """

    queries: float
    kind: CrossingKind

    @property
    def beyond(self) -> bool:
        """Whether the curve was still above the target at its last checkpoint."""
        return self.kind in ("extrapolated", "capped")


def find_crossing(
    queries: ArrayLike, errors: ArrayLike, target: float = TARGET, cap: float = CAP
) -> Crossing:
    """q_10% of one curve: the observed crossing if there is one, otherwise that of the fit."""
    return find_crossings(queries, np.asarray(errors, dtype=float)[None], target, cap)[0]


def find_crossings(
    queries: ArrayLike, curves: ArrayLike, target: float = TARGET, cap: float = CAP
) -> list[Crossing]:
    """q_10% of each curve (one row per curve)."""
    q, e = np.asarray(queries, dtype=float), np.asarray(curves, dtype=float)
    if q.ndim != 1 or e.shape[1:] != q.shape or q.size == 0 or not np.all(np.diff(q) > 0):
        raise ValueError(
            "learning curve: expected increasing queries and as many errors, "
            f"got shapes {q.shape} and {e.shape[1:]}"
        )
    above = e[:, 0] > target
    falls = (e[:, :-1] > target) & (e[:, 1:] <= target)
    observed = np.flatnonzero(above & falls.any(axis=1))
    found = [Crossing(float(q[0]), "first")] * len(e)
    if observed.size:
        step = falls[observed].argmax(axis=1)
        for row, place in zip(observed, _interpolated(q, e[observed], step, target), strict=True):
            found[row] = Crossing(float(place), "observed")
    for row in np.flatnonzero(above & ~falls.any(axis=1)):
        found[row] = _fitted(q, e[row], target, cap)
    return found


def _interpolated(q: FloatArray, e: FloatArray, step: FloatArray, target: float) -> FloatArray:
    """The crossing of each row within its step, from checkpoint `step` to the next one."""
    rows = np.arange(len(e))
    before, after = e[rows, step], e[rows, step + 1]
    share = (target - before) / (after - before)
    crossing: FloatArray = q[step] + share * (q[step + 1] - q[step])  # eq:app_linear_crossing
    return crossing


def _fitted(q: FloatArray, e: FloatArray, target: float, cap: float) -> Crossing:
    """The crossing of the logarithmic fit to a curve that stays above the target."""
    slope, intercept = log_fit(q, e)
    if slope >= 0:
        return Crossing(cap, "capped")
    exponent = (target - intercept) / slope
    if exponent > math.log1p(cap):
        return Crossing(cap, "capped")
    crossing = math.expm1(exponent)  # eq:app_logfit_crossing
    # A fit may cross before the data end, where the curve itself was still above the target.
    return Crossing(max(crossing, float(q[-1])), "extrapolated")


def log_fit(queries: ArrayLike, errors: ArrayLike) -> tuple[float, float]:
    """Least-squares slope a and intercept b of the logarithmic learning curve."""
    q, e = np.asarray(queries, dtype=float), np.asarray(errors, dtype=float)
    if q.size < 2:
        return 0.0, float(e[0])
    slope, intercept = np.polyfit(np.log1p(q), e, 1)  # eq:app_logfit_error
    return float(slope), float(intercept)
