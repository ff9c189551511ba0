"""Boundary Lookahead once more, as bare loops over targets, samples and posterior draws.

Slow and literal: scalars, `math`, and the inverse of the kernel system written out. It shares
only the fitted models with `lookahead`, so that each validates the other at small sizes.
"""

from __future__ import annotations

from math import cos, exp, log, pi, sqrt

import numpy as np

from benchmarks.reference.model import Array, Features, Forward


def sigmoid(logit: float) -> float:
    """The logistic function."""
    return 1.0 / (1.0 + exp(-logit)) if logit >= 0.0 else exp(logit) / (1.0 + exp(logit))


def entropy(probability: float) -> float:
    """Binary entropy in nats."""
    parts = (probability, 1.0 - probability)
    return -sum(part * log(part) for part in parts if part > 0.0)


def reward(features: Features, weights: Array, outcome: Array) -> float:
    """r_w(phi) = w' z(phi)."""
    total = 0.0
    for frequency, phase, weight in zip(
        features.frequencies, features.phases, weights, strict=True
    ):
        inside = sum(float(a) * float(b) for a, b in zip(frequency, outcome, strict=True))
        total += float(weight) * cos(inside / features.length_scale + float(phase))
    return total * sqrt(2.0 / len(features.phases))  # eq:app_inverse_rff_features


def probability(
    features: Features, sample: Array, anchor: Array, outcome: Array, reward_noise: float
) -> float:
    """p_s^+ of one posterior draw."""
    beta = exp(float(sample[-1]))
    gap = reward(features, sample[:-1], anchor) - reward(features, sample[:-1], outcome)
    spread = sqrt(1.0 + pi / 8.0 * (beta * sqrt(2.0) * reward_noise) ** 2)
    return sigmoid(beta * gap / spread)  # eq:app_active_noisy_preference_probability


def similarity(first: Array, second: Array, length_scale: float) -> float:
    """k(tau, tau')."""
    square = sum((float(a) - float(b)) ** 2 for a, b in zip(first, second, strict=True))
    return exp(-square / (2.0 * length_scale**2))  # eq:app_forward_kernel


class ForwardByInverse:
    """The fitted forward belief, evaluated at one policy at a time through A_t^-1."""

    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        self.inverse = np.linalg.inv(forward.factor @ forward.factor.T)

    def cross(self, policy: Array) -> Array:
        """k_t(tau)."""
        scale = self.forward.length_scale
        return np.array([similarity(policy, told, scale) for told in self.forward.policies])

    def mean(self, policy: Array) -> Array:
        """mu_f(tau)."""
        forward = self.forward
        return forward.center + forward.scale * (self.cross(policy) @ forward.coefficients)

    def residual(self, first: Array, second: Array) -> float:
        """c_t(zeta, tau); with both the same, the leverage e_t."""
        prior = similarity(first, second, self.forward.length_scale)
        explained = self.cross(first) @ self.inverse @ self.cross(second)
        return prior - float(explained)  # eq:app_forward_cross

    def variance(self, target: Array, candidate: Array | None) -> Array:
        """v_f of a target, now or once the candidate has been executed."""
        forward = self.forward
        total = np.empty(len(forward.scale))
        for j, gamma in enumerate(forward.epistemic_scale):
            epistemic = max(self.residual(target, target), 0.0) * gamma
            if candidate is not None:
                own = max(self.residual(candidate, candidate), 0.0) + forward.regularisation
                covariance = self.residual(target, candidate) * gamma
                denominator = gamma * own + forward.observation[j]
                epistemic = max(epistemic - covariance**2 / denominator, 0.0)
            total[j] = epistemic + forward.observation[j]
        return total


class LookaheadByLoops:
    """a_BL of any candidate, for given targets and draws."""

    def __init__(
        self,
        forward: Forward,
        features: Features,
        samples: Array,
        anchor: Array,
        targets: Array,
        normals: Array,
        reward_noise: float,
    ) -> None:
        self.forward = ForwardByInverse(forward)
        self.features, self.samples, self.anchor = features, samples, anchor
        self.targets, self.normals, self.reward_noise = targets, normals, reward_noise

    def label_probability(self, sample: Array, outcome: Array) -> float:
        """p_s^+ against the anchor."""
        return probability(self.features, sample, self.anchor, outcome, self.reward_noise)

    def utility(self, candidate: Array | None, weights: list[float]) -> float:
        """U of the target region under the posterior weights, now or after a candidate."""
        total = 0.0
        for target, normals in zip(self.targets, self.normals, strict=True):
            mean = self.forward.mean(target)
            deviation = np.sqrt(self.forward.variance(target, candidate))
            averaged = 0.0
            within = 0.0
            for normal in normals:
                outcome = np.clip(mean + deviation * normal, 0.0, 1.0)
                for sample, weight in zip(self.samples, weights, strict=True):
                    positive = self.label_probability(sample, outcome)
                    averaged += weight * positive / len(normals)
                    within += weight * entropy(positive) / len(normals)
            total += entropy(averaged) - within  # eq:app_active_post_targetwise_utility
        return total / len(self.targets)  # eq:app_active_post_region_utility

    def score(self, candidate: Array) -> float:
        """a_BL."""
        count = len(self.samples)
        outcome = self.forward.mean(candidate)
        positive = [self.label_probability(sample, outcome) for sample in self.samples]
        mean = sum(positive) / count  # eq:app_active_candidate_label_probability
        if_anchor = [p / sum(positive) for p in positive]  # eq:app_active_importance_weights
        if_new = [(1.0 - p) / (count - sum(positive)) for p in positive]
        now = self.utility(None, [1.0 / count] * count)
        after = mean * self.utility(candidate, if_anchor)
        after += (1.0 - mean) * self.utility(candidate, if_new)
        return now - after  # eq:app_active_meanobs_score
