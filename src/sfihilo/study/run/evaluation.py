"""How well the two models are learned (paper: section 4.2, app:evaluation, app:policy-reward-gap).

Notation
    first, second   phi_a, phi_b   (p, heads)   a held-out pair of complete clean outcomes
    gap             Delta r        (p,)         |r(phi_a) - r(phi_b)|, the true reward gap
    bins                           (p,)         which of the four gap bins a pair is in
    error           e(q)                        share of pairs that are predicted wrong
    target          10 %                        the preference error that a crossing is about

``queries`` always counts comparisons. Round 0 only makes the first anchor, so that q queries are
q + 1 told rounds. A learning curve has its points where ``learner.is_checkpoint(q)`` holds, and at
the end of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from sfihilo.forward import Prediction, sample
from sfihilo.history import BoolArray, FloatArray, IntArray, generator
from sfihilo.study.people.noise import reversal_probability
from sfihilo.study.people.users import SimulatedUser

CrossingKind = Literal["observed", "first", "extrapolated", "capped"]
_BLOCK = 2500  # policies at once when the whole pool is scored: keeps the memory below 100 MB


@dataclass(frozen=True)
class EvaluationSettings:
    """What is held out for each user; the defaults are the paper's where it says."""

    gap_edges: tuple[float, ...] = (0.02, 0.04, 0.08, 0.16)  # the last bin has no upper edge
    pairs_per_bin: int = 500
    just_noticeable: float = 0.05
    pair_policies: int = 4000
    error_policies: int = 2000
    pool_policies: int = 50_000
    pool_samples: int = 16
    reliability_at: tuple[int, ...] = (200, 1000)
    reliability_bins: int = 10


class Forward(Protocol):
    """The part of the learner's forward belief that is evaluated."""

    @property
    def working_dtype(self) -> type[np.float32] | type[np.float64]: ...
    def mean(self, policies: FloatArray, /) -> FloatArray: ...
    def predict(self, policies: FloatArray, /) -> Prediction: ...


class Posterior(Protocol):
    """The part of the learner's reward posterior that is evaluated."""

    def preference(self, first: FloatArray, second: FloatArray, /) -> FloatArray: ...
    def better(self, first: FloatArray, second: FloatArray, /) -> FloatArray: ...
    def mean_reward(self, outcomes: FloatArray, /) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Test policies and pairs of one user; made once, the same for every rule and preset."""

    policies: FloatArray
    first: FloatArray
    second: FloatArray
    bins: IntArray
    first_is_better: BoolArray
    answered_right: FloatArray  # chance that this person's answer names the truly better side


@dataclass(frozen=True)
class Crossing:
    """Where a learning curve reaches the target, and how that is known.

    observed: interpolated between two checkpoints. first: the curve is below the target from its
    first checkpoint on, which is returned. extrapolated: from the logarithmic fit. capped: the fit
    does not fall, or reaches the target beyond the cap, which is returned.
    """

    queries: float
    kind: CrossingKind


def hold_out(user: SimulatedUser, settings: EvaluationSettings) -> HeldOut:
    """Clean outcomes of uniformly sampled policies, paired at random until every bin is full."""
    dim = user.outcome_map.heads[0].frequencies.shape[1]
    policies = generator(user.seed, 0, "test policies").uniform(size=(settings.error_policies, dim))
    rng = generator(user.seed, 0, "test pairs")
    outcomes = user.outcome_map(rng.uniform(size=(settings.pair_policies, dim)))
    rewards = user.rewards(outcomes)
    chosen: list[list[tuple[int, int]]] = [[] for _ in settings.gap_edges]
    for pairs, bins in _binned_pairs(user, outcomes, rewards, settings, rng):
        for pair, index in zip(pairs, bins, strict=True):
            if len(chosen[index]) < settings.pairs_per_bin:
                chosen[index].append((int(pair[0]), int(pair[1])))
        if all(len(found) == settings.pairs_per_bin for found in chosen):
            break
    first, second = np.array([pair for found in chosen for pair in found]).T
    return HeldOut(
        policies=policies,
        first=outcomes[first],
        second=outcomes[second],
        bins=np.repeat(np.arange(len(chosen)), settings.pairs_per_bin),
        first_is_better=rewards[first] > rewards[second],
        answered_right=_answered_right(user, rewards[first] - rewards[second]),
    )


def _answered_right(user: SimulatedUser, gaps: FloatArray) -> FloatArray:
    """The probability that the answer names the truly better side, for each gap."""
    right = 1 - reversal_probability(gaps, user.noise)
    return np.asarray((1 - user.lapses) * right + user.lapses / 2)


def _binned_pairs(
    user: SimulatedUser,
    outcomes: FloatArray,
    rewards: FloatArray,
    settings: EvaluationSettings,
    rng: np.random.Generator,
) -> Iterator[tuple[IntArray, IntArray]]:
    """Random disjoint pairs that differ noticeably, by a gap that some bin wants; and the bin."""
    relevant = outcomes[:, : user.relevant]
    for _ in range(1000):
        pairs = rng.permutation(len(outcomes))[: len(outcomes) // 2 * 2].reshape(-1, 2)
        gaps = np.abs(rewards[pairs[:, 0]] - rewards[pairs[:, 1]])
        bins = np.searchsorted(settings.gap_edges, gaps, side="right") - 1
        change = np.abs(relevant[pairs[:, 0]] - relevant[pairs[:, 1]]).max(axis=1)
        wanted = (bins >= 0) & (change >= settings.just_noticeable)
        yield pairs[wanted], bins[wanted]
    raise ValueError(
        f"user {user.seed}: found too few pairs for {settings.pairs_per_bin} in each gap bin; "
        "ask for fewer pairs_per_bin or more pair_policies"
    )


def forward_rmse(
    forward: Forward, user: SimulatedUser, held_out: HeldOut, clean: FloatArray
) -> float:
    """Against the current clean outcomes of the test policies, where the learner sees them."""
    error = forward.mean(held_out.policies) - user.seen(clean)
    return float(np.sqrt(np.mean(error**2)))


def correct_probability(posterior: Posterior, user: SimulatedUser, held_out: HeldOut) -> FloatArray:
    """q(the answer for the truly better side) for each held-out pair."""
    first = posterior.preference(user.seen(held_out.first), user.seen(held_out.second))
    return np.where(held_out.first_is_better, first, 1 - first)


def better_probability(posterior: Posterior, user: SimulatedUser, held_out: HeldOut) -> FloatArray:
    """The probability that the truly better side is better: the answer's noise left out.

    Held-out labels are clean, so this is what they calibrate; q is for answers, which are noisy.
    """
    first = posterior.better(user.seen(held_out.first), user.seen(held_out.second))
    return np.where(held_out.first_is_better, first, 1 - first)


def preference_errors(correct: FloatArray, bins: IntArray) -> FloatArray:
    """Share of wrongly predicted pairs in each gap bin; an undecided prediction is half wrong."""
    wrong = np.where(correct < 0.5, 1.0, np.where(correct == 0.5, 0.5, 0.0))
    return np.array([wrong[bins == index].mean() for index in range(int(bins.max()) + 1)])


def reliability(correct: FloatArray, count: int, truth: FloatArray | float = 1.0) -> FloatArray:
    """Rows (pairs, mean confidence, share correct), one for each bin of confidence in [0.5, 1].

    ``truth``: how often the truly better side is what is to be predicted; for a person's answers,
    less than always.
    """
    confidence = np.maximum(correct, 1 - correct)
    right = np.where(correct > 0.5, truth, np.where(correct == 0.5, 0.5, 1 - np.asarray(truth)))
    index = np.clip(((confidence - 0.5) * 2 * count).astype(int), 0, count - 1)
    table = np.zeros((count, 3))
    for row in range(count):
        here = index == row
        if here.any():
            table[row] = here.sum(), confidence[here].mean(), right[here].mean()
    return table


def calibration_error(table: FloatArray) -> float:
    """Expected calibration error of a reliability table."""
    counts, confidence, right = table.T
    return float(np.sum(counts * np.abs(confidence - right)) / counts.sum())


def final_policy_gap(
    forward: Forward,
    posterior: Posterior,
    user: SimulatedUser,
    round: int,
    settings: EvaluationSettings,
) -> float:
    """app:policy-reward-gap: clean reward lost by trusting the learned models on a fixed pool."""
    dim = user.outcome_map.heads[0].frequencies.shape[1]
    pool = generator(user.seed, 0, "evaluation pool").uniform(size=(settings.pool_policies, dim))
    rng = generator(user.seed, 0, "evaluation pool outcomes")
    clean = user.rewards(user.outcomes(pool, round))
    value = np.empty(len(pool))
    for start in range(0, len(pool), _BLOCK):
        rows = slice(start, start + _BLOCK)
        belief = forward.predict(pool[rows].astype(forward.working_dtype))
        shape = (settings.pool_samples, *belief.mean.shape)
        normals = rng.standard_normal(shape, dtype=np.float32)
        outcomes = sample(belief.mean, belief.variance, normals).astype(np.float32)
        rewards = posterior.mean_reward(outcomes.reshape(-1, shape[-1]))
        value[rows] = rewards.reshape(shape[:2]).mean(axis=0)
    return float(clean.max() - clean[np.argmax(value)])


def queries_to_target(
    queries: ArrayLike, errors: ArrayLike, target: float = 0.10, cap: float = 1e4
) -> Crossing:
    """q_10%: the observed crossing when there is one, otherwise that of a logarithmic fit."""
    q, e = np.asarray(queries, dtype=float), np.asarray(errors, dtype=float)
    if q.ndim != 1 or q.shape != e.shape or q.size == 0 or not np.all(np.diff(q) > 0):
        raise ValueError(
            "expected a learning curve with increasing queries and as many errors, "
            f"got shapes {q.shape} and {e.shape}"
        )
    if e[0] <= target:
        return Crossing(float(q[0]), "first")
    below = np.flatnonzero((e[:-1] > target) & (e[1:] <= target))
    if below.size:
        i = int(below[0])
        share = (target - e[i]) / (e[i + 1] - e[i])
        crossing = q[i] + share * (q[i + 1] - q[i])  # eq:app_linear_crossing
        return Crossing(float(crossing), "observed")
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


def area_under_curve(queries: ArrayLike, values: ArrayLike) -> float:
    """Trapezoidal area over queries, from the first checkpoint to the last (RMSE AUC)."""
    return float(trapezoid(np.asarray(values, dtype=float), np.asarray(queries, dtype=float)))
