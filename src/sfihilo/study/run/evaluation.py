"""How well the two models are learned (paper: section 4.2, app:evaluation, app:policy-reward-gap).

Notation
    first, second   phi_a, phi_b   (p, heads)   a held-out pair of complete clean outcomes
    gap             Delta r        (p,)         |r(phi_a) - r(phi_b)|, the true reward gap
    bins                           (p,)         which of the four gap bins a pair is in
    error           e(q)                        share of pairs that are predicted wrong

``queries`` always counts comparisons. Round 0 only makes the first anchor, so that q queries are
q + 1 rounds. A learning curve has its points where ``refit.is_checkpoint(q)`` holds, and at
the end of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from sfihilo.forward import Prediction, sample
from sfihilo.history import BoolArray, FloatArray, IntArray, generator
from sfihilo.study.people.noise import reversal_probability
from sfihilo.study.people.users import SimulatedUser

CalibrationKind = Literal["better", "answer", "clean"]
_SUFFIX: dict[CalibrationKind, str] = {"better": "_better", "answer": "_answer", "clean": ""}
HISTOGRAM = ("count", "confidence", "correct")
_BLOCK = 2500  # policies per block when the whole pool is scored: keeps memory below 100 MB


@dataclass(frozen=True)
class EvaluationSettings:
    """The held-out test set of each user; the defaults are the paper's where it states them."""

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
    """Test policies and pairs of one user, the same for every rule and preset."""

    policies: FloatArray
    first: FloatArray
    second: FloatArray
    bins: IntArray
    first_is_better: BoolArray
    answered_right: FloatArray  # probability that the person's answer is the truly better side


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
    """Yields random disjoint pairs that differ noticeably and fall into a gap bin, with the bin."""
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
        "reduce pairs_per_bin or increase pair_policies"
    )


def forward_rmse(
    forward: Forward, user: SimulatedUser, held_out: HeldOut, clean: FloatArray
) -> float:
    """RMSE against the current clean outcomes of the test policies, visible outcomes only."""
    error = forward.mean(held_out.policies) - user.seen(clean)
    return float(np.sqrt(np.mean(error**2)))


def correct_probability(posterior: Posterior, user: SimulatedUser, held_out: HeldOut) -> FloatArray:
    """q of the answer for the truly better side, per held-out pair."""
    first = posterior.preference(user.seen(held_out.first), user.seen(held_out.second))
    return np.where(held_out.first_is_better, first, 1 - first)


def better_probability(posterior: Posterior, user: SimulatedUser, held_out: HeldOut) -> FloatArray:
    """The predicted probability that the truly better side is better, without answer noise.

    Held-out labels are clean, so this is the probability that they calibrate; q predicts answers.
    """
    first = posterior.better(user.seen(held_out.first), user.seen(held_out.second))
    return np.where(held_out.first_is_better, first, 1 - first)


def preference_errors(correct: FloatArray, bins: IntArray) -> FloatArray:
    """Share of wrongly predicted pairs in each gap bin; an undecided prediction is half wrong."""
    wrong = np.where(correct < 0.5, 1.0, np.where(correct == 0.5, 0.5, 0.0))
    return np.array([wrong[bins == index].mean() for index in range(int(bins.max()) + 1)])


def reliability(correct: FloatArray, count: int, truth: FloatArray | float = 1.0) -> FloatArray:
    """Rows (pairs, mean confidence, share correct), one per bin of confidence in [0.5, 1].

    ``truth``: the probability that the label is the truly better side; below 1 for a person's
    answers.
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


def calibration_metric(kind: CalibrationKind) -> str:
    """The name under which a user's calibration error is stored."""
    return f"ece{_SUFFIX[kind]}"


def histogram_metric(kind: CalibrationKind, index: int, column: str) -> str:
    """The name under which a column of a bin of the reliability table is stored."""
    return f"reliability{_SUFFIX[kind]}_{index:02d}_{column}"


def final_policy_gap(
    forward: Forward,
    posterior: Posterior,
    user: SimulatedUser,
    round: int,
    settings: EvaluationSettings,
) -> float:
    """app:policy-reward-gap: clean reward lost when the learned models choose from a pool."""
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
