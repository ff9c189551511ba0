"""Paired statistics over simulated users (section `sec:experiments`, appendix `app:evaluation`).

Users differ enormously (150 to beyond 1,000 queries for the same rule), so every comparison is
paired by user, and every interval resamples users, keeping what belongs to one user together.

Notation
--------
first, second    x, y        (users,)               one number per user, same order of users
differences      x - y       (users,)
curves           e_u(q)      (users, checkpoints)   one learning curve per user
queries          q           (checkpoints,)         where the curves were measured
effect           d_z         mean(x - y) / sd(x - y)
hedges           g_z         d_z times the small-sample correction 1 - 3 / (4 (users - 1) - 1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from statsmodels.stats.multitest import multipletests

from sfihilo.history import FloatArray, IntArray, generator
from sfihilo.study.analysis.crossing import CrossingKind, find_crossing, find_crossings

RESAMPLES = 4000
LEVEL = 0.95
SEED = 20260


@dataclass(frozen=True)
class Interval:
    """A point estimate with a bootstrap interval over users (percentiles)."""

    estimate: float
    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True)
class PairedTest:
    """A two-sided paired t-test of `first` against `second` and its effect sizes.

    With one user no test exists: `statistic`, `p_value`, `effect` and `hedges` are then NaN.
    """

    users: int
    first_mean: float
    second_mean: float
    difference: float
    statistic: float
    p_value: float
    effect: float
    hedges: float


@dataclass(frozen=True)
class MeanCrossing:
    """Where the mean learning curve reaches the target, with a bootstrap interval over users.

    `beyond` is the share of bootstrap draws whose mean curve ends above the target, so that their
    crossing was extrapolated.
    """

    interval: Interval
    kind: CrossingKind
    beyond: float


def _checked_values(values: ArrayLike, name: str = "values") -> FloatArray:
    """Validates one number per user: a one-dimensional, non-empty array without NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name}: expected one number for each user, got shape {array.shape}")
    if np.isnan(array).any():
        users = np.flatnonzero(np.isnan(array)).tolist()
        raise ValueError(f"{name}: expected numbers, got NaN at position(s) {users}")
    return array


def pair(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two samples over the same users in the same order, both finite."""
    x, y = _checked_values(first, "first"), _checked_values(second, "second")
    if x.shape != y.shape:
        raise ValueError(f"expected the same users on both sides, got {x.size} and {y.size}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("expected finite numbers in a paired comparison, got infinity")
    return x, y


def paired_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Two-sided paired t-test; identical samples give p = 1, a constant shift p = 0."""
    x, y = pair(first, second)
    differences = x - y
    users, mean = x.size, float(differences.mean())
    if users < 2:
        statistic = p_value = effect = math.nan
    elif constant(differences, x, y):
        # A t-statistic of rounding noise would be reported as overwhelming evidence.
        shifted = not np.allclose(differences, 0.0, atol=rounding(x, y))
        statistic = effect = math.copysign(math.inf, mean) if shifted else 0.0
        p_value = 0.0 if shifted else 1.0
    else:
        result = stats.ttest_rel(x, y)
        statistic, p_value = float(result.statistic), float(result.pvalue)
        effect = mean / float(differences.std(ddof=1))
    return PairedTest(
        users=users,
        first_mean=float(x.mean()),
        second_mean=float(y.mean()),
        difference=mean,
        statistic=statistic,
        p_value=p_value,
        effect=effect,
        hedges=effect * small_sample_correction(users),
    )


def rounding(x: FloatArray, y: FloatArray) -> float:
    """The size of differences that floating point alone can make between two samples."""
    return 8 * float(np.finfo(np.float64).eps) * float(max(np.abs(x).max(), np.abs(y).max()))


def constant(differences: FloatArray, x: FloatArray, y: FloatArray) -> bool:
    """Whether all differences are the same but for rounding."""
    return float(np.ptp(differences)) <= rounding(x, y)


def small_sample_correction(users: int) -> float:
    """Hedges' factor for users - 1 degrees of freedom (its usual approximation)."""
    freedom = users - 1
    return 1.0 - 3.0 / (4.0 * freedom - 1.0) if freedom >= 2 else math.nan


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm-adjusted p-values; NaN (no test was possible) stays NaN and is not counted."""
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError(f"expected a list of p-values, got shape {raw.shape}")
    tested = ~np.isnan(raw)
    if ((raw[tested] < 0) | (raw[tested] > 1)).any():
        raise ValueError(f"expected p-values in [0, 1], got {raw[tested].tolist()}")
    adjusted = np.full(raw.shape, math.nan)
    if tested.any():
        adjusted[tested] = multipletests(raw[tested], method="holm")[1]
    return adjusted


def stars(p_value: float) -> str:
    """The paper's marks: * below 0.05, ** below 0.01, *** below 0.001, nothing otherwise."""
    if math.isnan(p_value):
        return ""
    return "*" * sum(p_value < limit for limit in (0.05, 0.01, 0.001))


@lru_cache(maxsize=32)
def resampled_users(users: int, purpose: str, count: int = RESAMPLES) -> IntArray:
    """Bootstrap draws of user indices (count, users): the same for all that share a purpose."""
    if users < 1:
        raise ValueError(f"expected at least x user, got {users}")
    rng = generator(SEED, 0, f"bootstrap {purpose}")
    draws: IntArray = rng.integers(0, users, size=(count, users))
    draws.flags.writeable = False  # shared by all callers
    return draws


def percentiles(draws: FloatArray, level: float) -> tuple[float, float]:
    """The central interval; infinite draws sort to the ends instead of turning into NaN."""
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, got {level}")
    ranks = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = np.quantile(draws, ranks, method="nearest")
    return float(low), float(high)


def mean_interval(values: ArrayLike, level: float = LEVEL, count: int = RESAMPLES) -> Interval:
    """The mean over users with its bootstrap interval."""
    array = _checked_values(values)
    draws = array[resampled_users(array.size, "mean", count)].mean(axis=1)
    return Interval(float(array.mean()), *percentiles(draws, level), level)


def difference_interval(
    first: ArrayLike, second: ArrayLike, level: float = LEVEL, count: int = RESAMPLES
) -> Interval:
    """The mean paired difference with its bootstrap interval."""
    x, y = pair(first, second)
    return mean_interval(x - y, level, count)


def change_interval(
    values: ArrayLike, reference: ArrayLike, level: float = LEVEL, count: int = RESAMPLES
) -> Interval:
    """Change of the mean relative to a reference's mean (-0.3 is 30 % lower), paired by user."""
    x, y = pair(values, reference)
    if y.mean() == 0:
        raise ValueError("expected a reference whose mean is not zero")
    users = resampled_users(x.size, "mean", count)
    base = y[users].mean(axis=1)
    draws = x[users].mean(axis=1)[base != 0] / base[base != 0] - 1
    return Interval(float(x.mean() / y.mean() - 1), *percentiles(draws, level), level)


def mean_crossing(
    queries: ArrayLike,
    curves: ArrayLike,
    target: float = 0.10,
    level: float = LEVEL,
    count: int = 1000,
) -> MeanCrossing:
    """Where the mean learning curve reaches the target, as the paper's 958, 563 and 413 queries."""
    checkpoints = np.asarray(queries, dtype=np.float64)
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != checkpoints.size or values.shape[0] == 0:
        raise ValueError(
            f"expected curves of shape (users, {checkpoints.size}), got {values.shape}"
        )
    if np.isnan(values).any():
        raise ValueError("expected complete curves, got NaN")
    found = find_crossing(checkpoints, values.mean(axis=0), target)
    draws = find_crossings(checkpoints, resampled_means(values, count), target)
    low, high = percentiles(np.array([draw.queries for draw in draws]), level)
    beyond = float(np.mean([draw.beyond for draw in draws]))
    return MeanCrossing(Interval(found.queries, low, high, level), found.kind, beyond)


def resampled_means(curves: FloatArray, count: int) -> FloatArray:
    """The mean curve of each bootstrap draw of users (count, checkpoints)."""
    users = resampled_users(curves.shape[0], "mean", count)
    # A matrix of draw counts times the curves is the mean of each draw, without a large copy.
    drawn = np.apply_along_axis(np.bincount, 1, users, minlength=curves.shape[0])
    means: FloatArray = drawn @ curves / curves.shape[0]
    return means


def contrast_interval(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    level: float = LEVEL,
    count: int = RESAMPLES,
) -> Interval:
    """Change in one condition minus change in another, for the same users.

    Each condition is (values, reference).
    """
    pairs = [pair(*first), pair(*second)]
    if pairs[0][0].size != pairs[1][0].size:
        raise ValueError(
            f"expected the same users in both, got {pairs[0][0].size} and {pairs[1][0].size}"
        )
    users = resampled_users(pairs[0][0].size, "mean", count)
    means = [(value[users].mean(axis=1), base[users].mean(axis=1)) for value, base in pairs]
    usable = (means[0][1] != 0) & (means[1][1] != 0)
    changes = [value[usable] / base[usable] for value, base in means]
    estimate = np.subtract(*(value.mean() / base.mean() for value, base in pairs))
    return Interval(float(estimate), *percentiles(changes[0] - changes[1], level), level)


def crossing_change(
    queries: ArrayLike,
    curves: ArrayLike,
    reference: ArrayLike,
    level: float = LEVEL,
    count: int = 1000,
) -> Interval:
    """Change of the mean curve's crossing relative to a reference's, the same users in both."""
    checkpoints = np.asarray(queries, dtype=np.float64)
    pairs = [np.asarray(values, dtype=np.float64) for values in (curves, reference)]
    if pairs[0].shape != pairs[1].shape:
        raise ValueError(f"expected the same users, got {pairs[0].shape} and {pairs[1].shape}")

    value, base = (_resampled_crossings(checkpoints, part, count) for part in pairs)
    crossing, base_crossing = (find_crossing(checkpoints, part.mean(axis=0)) for part in pairs)
    estimate = crossing.queries / base_crossing.queries - 1
    return Interval(estimate, *percentiles(value / base - 1, level), level)


def _resampled_crossings(checkpoints: FloatArray, curves: FloatArray, count: int) -> FloatArray:
    draws = find_crossings(checkpoints, resampled_means(curves, count))
    return np.array([draw.queries for draw in draws])
