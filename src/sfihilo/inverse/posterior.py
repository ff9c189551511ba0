"""The reward's posterior: what it predicts (paper appendix "Inverse GP posterior computation").

Notation
--------
centre           hat Theta   (m + 1,)    the weights, then the log-sharpness
covariance_root  F           (m + 1, k)  covariance of Theta is F F^T
samples   Theta_s     S of them
margin    u           exp(eta) (r_w(first) - r_w(second))
unseen    h           variance of a margin due to reward components that are not measured
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy

from sfihilo.history import FloatArray
from sfihilo.inverse.belief import InverseBelief, difference
from sfihilo.inverse.features import FeatureMap, outcome_rows
from sfihilo.inverse.laplace import LARGEST_LOG_SHARPNESS

# The logistic function is closest to a normal distribution function of this standard deviation.
LOGISTIC_STD = 1.7


class Reward(Protocol):
    """What predicts from the answers: one Gaussian posterior, or an average of several."""

    @property
    def features(self) -> FeatureMap: ...

    @property
    def mean_weights(self) -> FloatArray: ...

    @property
    def weights(self) -> FloatArray: ...

    def mean_reward(self, outcomes: FloatArray) -> FloatArray: ...

    def reward_samples(self, outcomes: FloatArray) -> FloatArray: ...

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray: ...

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """Gaussian posterior over Theta = (w, eta): its mean, its covariance F F^T, and samples of it.

    closed_form: predict answers from mean and covariance instead of the samples.
    """

    features: FeatureMap
    centre: FloatArray
    covariance_root: FloatArray
    draw: Callable[[], FloatArray]
    closed_form: bool
    unseen: float

    @property
    def mean_weights(self) -> FloatArray:
        """E[w]."""
        return self.centre[:-1]

    @cached_property
    def _samples(self) -> FloatArray:
        """Theta_s, one column per sample; drawn on first use."""
        return np.asarray(self.centre[:, None] + self.covariance_root @ self.draw())

    @cached_property
    def weights(self) -> FloatArray:
        """w_s (S, m)."""
        return np.ascontiguousarray(self._samples[:-1].T)

    @property
    def log_sharpness(self) -> FloatArray:
        """eta_s (S,)."""
        return np.asarray(self._samples[-1])

    @property
    def sharpness(self) -> FloatArray:
        """beta_s (S,)."""
        return np.exp(np.minimum(self.log_sharpness, LARGEST_LOG_SHARPNESS))

    @property
    def mean_sharpness(self) -> float:
        """exp(E eta): what turns rewards into margins."""
        return float(np.exp(min(self.centre[-1], LARGEST_LOG_SHARPNESS)))

    def draw_weights(self, count: int, rng: np.random.Generator) -> FloatArray:
        """`count` draws of w, (count, m), other than the `weights`."""
        normals = rng.standard_normal((self.covariance_root.shape[1], count))
        return np.asarray(self.mean_weights + (self.covariance_root[:-1] @ normals).T)

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """Mean weights and covariance root of the margins, in single precision."""
        sharpness = self.mean_sharpness
        weights, root = sharpness * self.centre[:-1], sharpness * self.covariance_root[:-1]
        return weights.astype(np.float32), root.astype(np.float32)

    def margins(self, differences: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margin of each feature difference, at the mean sharpness."""
        rows = differences.astype(np.float32, copy=False)
        weights, root = self._scaled
        spread = rows @ root
        variance: FloatArray = np.maximum(np.einsum("ij,ij->i", spread, spread), 1e-6)
        return rows @ weights, variance

    def covariance(self, differences: FloatArray) -> FloatArray:
        """Sigma delta z^T: multiplied by another difference, the covariance of the two margins."""
        _, root = self._scaled
        rows = differences.astype(np.float32, copy=False)
        return np.asarray(root @ (rows @ root).T)

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        """bar r(phi), the posterior mean: linear in w, hence the reward of the mean weights."""
        return self.features.reward(self._rows(outcomes), self.mean_weights)

    def reward_samples(self, outcomes: FloatArray) -> FloatArray:
        """r_w(phi) of every sample, (n, S)."""
        features = self.features(self._rows(outcomes))
        return features @ self.weights.T.astype(features.dtype)  # eq:rff_reward_model

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """q(+1): the probability of the answer that the first outcome is preferred."""
        differences = self._differences(first, second)
        if self.closed_form:
            mean, variance = self.margins(differences)
            return np.asarray(
                scipy.special.ndtr(mean / np.sqrt(variance + LOGISTIC_STD**2)), dtype=float
            )
        margins = np.clip(self.sharpness * (differences @ self.weights.T), -700, 700)
        probability: FloatArray = scipy.special.expit(margins).mean(axis=1)
        return probability  # eq:app_inverse_posterior_predictive

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The probability that the first outcome truly has the larger reward, answers aside."""
        mean, variance = self.margins(self._differences(first, second))
        return np.asarray(scipy.special.ndtr(mean / np.sqrt(variance + self.unseen)), dtype=float)

    def _differences(self, first: FloatArray, second: FloatArray) -> FloatArray:
        return difference(self.features, self._rows(first), self._rows(second))

    def _rows(self, outcomes: FloatArray) -> FloatArray:
        return outcome_rows(outcomes, self.features.outcome_dim)


def reward_posterior(belief: InverseBelief, rng: np.random.Generator) -> RewardPosterior:
    """The Gaussian posterior around the belief's centre."""
    root = belief.covariance_root

    def draw() -> FloatArray:
        return rng.standard_normal((root.shape[1], belief.settings.samples))

    return RewardPosterior(
        belief.features,
        belief.centre,
        root,
        draw,
        closed_form=belief.settings.inference == "variational",
        unseen=_unseen(belief),
    )


def _unseen(belief: InverseBelief) -> float:
    """Variance of a margin due to reward components that are not measured."""
    own_noise = belief.settings.own_noise
    if own_noise is None:
        return 0.0
    own = own_noise * belief.settings.weight_std * np.exp(belief.log_sharpness)
    return float(max(LOGISTIC_STD**2 - own**2, 0.0))
