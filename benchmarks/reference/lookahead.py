"""Boundary Lookahead and a whole round, continuing the transcription in `model`.

It follows the appendix "Boundary Lookahead implementation" with one loop over the shortlist. The
same target normals serve the current utility and every candidate's (common random numbers), and
the candidates are taken in the order main, variance, guard.

| name | symbol | shape |
| --- | --- | --- |
| pool | P_t | (M_pool, d_policy) |
| probability | p_s^+ | (n, S) or (K_tar, M_tar, S) |
| rank_scores, variance_scores | s_rank, s_var | (M_pool,) |
| targets, shortlist | Z_t, S_t | rows of the pool |
| utilities | a_BL | (shortlist,) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from scipy.special import entr, expit

from benchmarks.reference.model import (
    Array,
    Constants,
    Features,
    Forward,
    Indices,
    epistemic_variance,
    fit_forward,
    forward_mean,
    map_estimate,
    posterior_samples,
    precision,
    reducible_fraction,
    reducible_score,
    variance_after,
)


@dataclass(frozen=True)
class Draws:
    """Everything random in one round."""

    pool: Array  # (M_pool, d_policy)
    posterior_normals: Array  # (m + 1, S)
    target_normals: Array  # (targets, M_tar, d_outcome)
    guard: Indices  # rows of the pool


def entropy(probability: Array) -> Array:
    """Binary entropy in nats."""
    result: Array = entr(probability) + entr(1.0 - probability)
    return result


def mutual_information(probability: Array) -> Array:
    """a_MI,mean of every row."""
    mean = probability.mean(axis=1)  # eq:app_active_mean_pbar
    information: Array = entropy(mean) - entropy(probability).mean(axis=1)
    return information  # eq:app_active_mean_mi


def best(scores: Array, count: int) -> Indices:
    """Rows of the highest scores, highest first, the earlier row first among equals."""
    return np.argsort(-scores, kind="stable")[:count]


@dataclass(frozen=True)
class Inverse:
    """The posterior samples, and the anchor that every outcome is compared with."""

    features: Features
    samples: Array
    anchor: Array
    constants: Constants

    def probabilities(self, outcomes: Array) -> Array:
        """p_s^+(anchor, outcome): (n, S)."""
        beta = np.exp(self.samples[:, -1])
        apart = self.features(self.anchor[None]) - self.features(outcomes)
        gap = apart @ self.samples[:, :-1].T  # eq:app_active_reward_gap
        noise = sqrt(2.0) * self.constants.reward_noise
        slope = beta / np.sqrt(1.0 + pi / 8.0 * (beta * noise) ** 2)
        probability: Array = expit(slope * gap)  # eq:app_active_noisy_preference_probability
        return probability


def target_probabilities(
    inverse: Inverse, mean: Array, total_variance: Array, normals: Array
) -> Array:
    """p_s^+ at samples of the targets' outcomes: (K, M_tar, S)."""
    # eq:app_active_target_samples, eq:app_active_post_target_samples, eq:app_forward_sampling
    drawn = np.clip(mean[:, None] + np.sqrt(total_variance)[:, None] * normals, 0.0, 1.0)
    flat = inverse.probabilities(drawn.reshape(-1, mean.shape[1]))
    return flat.reshape(*drawn.shape[:2], -1)  # eq:app_active_target_probabilities


def region_utility(probability: Array, uncertainty: Array, weights: Array) -> float:
    """U(Z) from p_s^+ and H(p_s^+), each (K, M_tar, S), under the posterior weights (S,)."""
    together = entropy((probability @ weights).mean(axis=1))
    apart = (uncertainty @ weights).mean(axis=1)
    # eq:app_active_targetwise_utility, eq:app_active_post_targetwise_utility
    return float((together - apart).mean())  # eq:app_active_current_utility


def expected_utility(inverse: Inverse, outcome: Array, probability: Array) -> float:
    """The last two terms of a_BL: a candidate's predicted outcome, and p_s^+ after executing it."""
    positive = inverse.probabilities(outcome[None])[0]
    mean = float(positive.mean())  # eq:app_active_candidate_label_probability
    if_anchor = positive / positive.sum()  # eq:app_active_importance_weights
    if_new = (1.0 - positive) / (1.0 - positive).sum()
    uncertainty = entropy(probability)
    # eq:app_active_post_region_utility
    return mean * region_utility(probability, uncertainty, if_anchor) + (
        1.0 - mean
    ) * region_utility(probability, uncertainty, if_new)


@dataclass(frozen=True)
class Lookahead:
    """The scores and the choice of one round; indices are rows of the pool."""

    chosen: int
    rank_scores: Array
    variance_scores: Array
    targets: Indices
    shortlist: Indices
    utilities: Array


def shortlisted(rank: Array, variance: Array, draws: Draws, constants: Constants) -> Indices:
    """Rows of the pool: main, variance, guard, each once."""
    together = [*best(rank, constants.main), *best(variance, constants.variance), *draws.guard]
    return np.array(list(dict.fromkeys(map(int, together))))  # eq:app_active_shortlist


def boundary_lookahead(forward: Forward, inverse: Inverse, draws: Draws) -> Lookahead:
    """Boundary Lookahead, one candidate after another."""
    constants, observation, pool = inverse.constants, forward.observation, draws.pool
    epistemic = epistemic_variance(forward, pool)  # eq:app_active_pool
    information = mutual_information(inverse.probabilities(forward_mean(forward, pool)))
    rank = information * reducible_fraction(epistemic, observation)  # eq:app_active_rank_score
    variance = reducible_score(epistemic, observation)
    targets = best(rank, constants.targets)  # eq:app_active_target_set
    shortlist = shortlisted(rank, variance, draws, constants)
    mean, normals = forward_mean(forward, pool[targets]), draws.target_normals
    now = target_probabilities(inverse, mean, epistemic[targets] + observation, normals)
    uniform = np.full(now.shape[2], 1.0 / now.shape[2])
    current = region_utility(now, entropy(now), uniform)
    utilities = np.empty(len(shortlist))
    for index, candidate in enumerate(pool[shortlist]):
        after = variance_after(forward, pool[targets], epistemic[targets], candidate)
        outcome = forward_mean(forward, candidate[None])[0]  # eq:app_active_mean_observation
        probability = target_probabilities(inverse, mean, after, normals)
        utilities[index] = current - expected_utility(inverse, outcome, probability)
    # eq:app_active_meanobs_score, eq:app_active_selected_query
    return Lookahead(
        int(shortlist[np.argmax(utilities)]), rank, variance, targets, shortlist, utilities
    )


# ---------------------------------------------------------------- one round


@dataclass(frozen=True)
class Data:
    """A history in plain arrays: D_f, D_r (label +1: the anchor was preferred) and the anchor."""

    policies: Array
    outcomes: Array
    first: Array
    second: Array
    labels: Array
    anchor: Array


LookaheadRule = Callable[[Forward, Inverse, Draws], Lookahead]


def whole_round(
    data: Data,
    hyperparameters: tuple[float, float],
    features: Features,
    start: Array,
    draws: Draws,
    constants: Constants,
    rule: LookaheadRule = boundary_lookahead,
) -> tuple[Lookahead, Array]:
    """Refit both models to the data and choose the next policy; also the next warm start."""
    forward = fit_forward(data.policies, data.outcomes, *hyperparameters, constants)
    differences = features(data.first) - features(data.second)  # eq:app_inverse_feature_difference
    theta = map_estimate(differences, data.labels, start, constants)
    matrix = precision(theta, differences, data.labels, constants)
    samples = posterior_samples(theta, matrix, draws.posterior_normals, constants.jitter_inverse)
    inverse = Inverse(features, samples, data.anchor, constants)
    return rule(forward, inverse, draws), theta
