"""The inverse belief: which outcomes this person values (paper appendix "Inverse GP posterior").

Notation
--------
differences    delta z_i        (p, m)    feature difference of each compared pair (anchor - new)
labels         I_i              (p,)      +1 anchor preferred, -1 new preferred, 0 "same"
weights        w                (m,)
log_sharpness  eta              ()        beta = exp(eta)
mode           hat Theta        (m + 1,)  the weights, then the log-sharpness
margins        u_i              (p,)      exp(eta) delta z_i^T w
precision      Lambda_t         (m + 1, m + 1)
samples        Theta_s          S of them

"Same" has Davidson's likelihood (R. R. Davidson 1970, "On extending the Bradley-Terry model to
accommodate ties"): p(same) = nu / (2 cosh(u / 2) + nu). Given that an answer is decisive,
Davidson's model is the paper's logistic one, so decisive answers count exactly as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import expit

from sfihilo.features import (
    CustomFeatures,
    FeatureMap,
    LinearFeatures,
    fourier_features,
)
from sfihilo.history import FloatArray
from sfihilo.names import named_function, positive

# exp(50) is beyond any sharpness that data and prior can support, and far from overflow.
_LARGEST_LOG_SHARPNESS = 50.0


@dataclass(frozen=True)
class InverseSettings:
    """tab:inverse_gp_hyperparameters; `tie_odds` is Davidson's nu, not in the paper."""

    features: str = "rbf"
    feature_count: int = 256
    orthogonal: bool = False
    length_scale: float = 0.65
    weight_std: float = 1.0
    log_sharpness_mean: float = 0.0
    log_sharpness_std: float = 1.0
    iterations: int = 50
    samples: int = 512
    jitter: float = 1e-6
    tie_odds: float = 1.0

    def __post_init__(self) -> None:
        positive(
            self,
            "feature_count",
            "length_scale",
            "weight_std",
            "log_sharpness_std",
            "iterations",
            "samples",
            "tie_odds",
        )


def feature_map(
    settings: InverseSettings, outcome_dim: int, rng: np.random.Generator
) -> FeatureMap:
    """The map that `settings.features` names: rbf, linear, or a user's own "module:function"."""
    if settings.features == "rbf":
        return fourier_features(
            settings.feature_count,
            outcome_dim,
            settings.length_scale,
            rng,
            orthogonal=settings.orthogonal,
        )
    if settings.features == "linear":
        return LinearFeatures(outcome_dim)
    function = named_function(settings.features, "features", ("rbf", "linear"))
    size = np.asarray(function(np.full((1, outcome_dim), 0.5))).shape[-1]
    return CustomFeatures(function, size)


class Terms(NamedTuple):
    """Negative log likelihood of each comparison, with its derivatives in the margin u."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


def likelihood_terms(margins: FloatArray, labels: FloatArray, tie_odds: float) -> Terms:
    """Logistic for decisive answers, Davidson's for "same"."""
    near = np.exp(-np.minimum(np.abs(margins), 700.0))
    signed = labels * margins
    wrong = np.where(signed > 0, near, 1.0) / (1 + near)
    terms = Terms(
        np.log1p(near) + np.maximum(-signed, 0),  # eq:app_inverse_pairwise_likelihood
        -labels * wrong,
        near / (1 + near) ** 2,
    )
    ties = np.flatnonzero(labels == 0)
    if ties.size:
        for column, tied in zip(terms, _tie_terms(margins[ties], tie_odds), strict=True):
            column[ties] = tied
    return terms


def _tie_terms(margins: FloatArray, tie_odds: float) -> Terms:
    far = np.abs(margins)
    near, root = np.exp(-np.minimum(far, 700.0)), np.exp(-np.minimum(far, 1400.0) / 2)
    total = 1 + near + tie_odds * root
    return Terms(
        far / 2 + np.log(total) - np.log(tie_odds),
        np.sign(margins) * (1 - near) / (2 * total),
        (near + tie_odds / 4 * root * (1 + near)) / total**2,
    )


@dataclass(frozen=True, eq=False)
class InverseBelief:
    """The comparisons so far and the mode that explains them."""

    settings: InverseSettings
    features: FeatureMap
    differences: FloatArray
    labels: FloatArray
    mode: FloatArray

    @property
    def weights(self) -> FloatArray:
        return self.mode[:-1]

    @property
    def log_sharpness(self) -> float:
        return float(self.mode[-1])

    @property
    def prior_precision(self) -> FloatArray:
        diagonal = np.full(len(self.mode), self.settings.weight_std**-2)
        diagonal[-1] = self.settings.log_sharpness_std**-2
        return diagonal

    @property
    def prior_mean(self) -> FloatArray:
        mean = np.zeros(len(self.mode))
        mean[-1] = self.settings.log_sharpness_mean
        return mean

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Negative log posterior and its gradient."""
        sharpness = np.exp(min(theta[-1], _LARGEST_LOG_SHARPNESS))
        margins = sharpness * (self.differences @ theta[:-1])
        terms = likelihood_terms(margins, self.labels, self.settings.tie_odds)
        away = theta - self.prior_mean
        pull = self.prior_precision * away
        value = terms.value.sum() + 0.5 * away @ pull  # eq:app_inverse_map_objective
        pull[:-1] += sharpness * (terms.slope @ self.differences)
        pull[-1] += terms.slope @ margins
        return float(value), pull

    def precision(self) -> FloatArray:
        """Positive semidefinite curvature at the mode."""
        sharpness = np.exp(self.log_sharpness)
        margins = sharpness * (self.differences @ self.weights)
        slopes = np.column_stack([sharpness * self.differences, margins])
        curvature = likelihood_terms(margins, self.labels, self.settings.tie_odds).curvature
        slopes *= np.sqrt(curvature)[:, None]  # eq:app_inverse_curvature_terms
        precision: FloatArray = slopes.T @ slopes
        precision.flat[:: len(precision) + 1] += self.prior_precision + self.settings.jitter
        return precision  # eq:app_inverse_precision


def begin(settings: InverseSettings, features: FeatureMap) -> InverseBelief:
    """The belief before any comparison: the prior."""
    mode = np.zeros(features.size + 1)
    mode[-1] = settings.log_sharpness_mean
    return InverseBelief(settings, features, np.empty((0, features.size)), np.empty(0), mode)


def difference(features: FeatureMap, anchors: FloatArray, outcomes: FloatArray) -> FloatArray:
    """delta z: what a comparison tells about, one row a pair."""
    return features(anchors) - features(outcomes)  # eq:app_inverse_feature_difference


def append(
    belief: InverseBelief, anchor: FloatArray, outcome: FloatArray, label: float
) -> InverseBelief:
    """One more comparison; the new mode is sought from the old one (a warm start)."""
    row = difference(belief.features, anchor[None], outcome[None])
    return update(belief, np.vstack([belief.differences, row]), np.append(belief.labels, label))


def update(belief: InverseBelief, differences: FloatArray, labels: FloatArray) -> InverseBelief:
    """The belief with these comparisons, its mode sought from the belief's own."""
    unsolved = InverseBelief(belief.settings, belief.features, differences, labels, belief.mode)
    solution = scipy.optimize.minimize(
        unsolved.loss,
        belief.mode,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": belief.settings.iterations},
    )
    if not np.isfinite(solution.x).all():
        raise FloatingPointError("inverse model: the optimiser left the finite numbers")
    mode = solution.x
    mode[-1] = min(mode[-1], _LARGEST_LOG_SHARPNESS)
    return InverseBelief(belief.settings, belief.features, differences, labels, mode)


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """Gaussian posterior over (w, eta) and samples of it."""

    features: FeatureMap
    mean_weights: FloatArray
    weights: FloatArray
    log_sharpness: FloatArray

    @property
    def sharpness(self) -> FloatArray:
        return np.exp(np.minimum(self.log_sharpness, _LARGEST_LOG_SHARPNESS))

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        """bar r(phi), the posterior mean: linear in w, hence the reward of the mean weights."""
        return self.features(outcomes) @ self.mean_weights.astype(outcomes.dtype)

    def reward_samples(self, outcomes: FloatArray) -> FloatArray:
        return self.features(outcomes) @ self.weights.T.astype(
            outcomes.dtype
        )  # eq:rff_reward_model

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """q(+1): the probability that the first outcome of each pair is preferred."""
        gaps = difference(self.features, first, second) @ self.weights.T
        margins = np.clip(self.sharpness * gaps, -700, 700)
        chance: FloatArray = expit(margins).mean(axis=1)
        return chance  # eq:app_inverse_posterior_predictive


def posterior(belief: InverseBelief, rng: np.random.Generator) -> RewardPosterior:
    """Samples of the Gaussian approximation around the mode."""
    normals = rng.standard_normal((len(belief.mode), belief.settings.samples))
    theta = belief.mode[:, None] + _whiten(belief.precision(), normals)
    # eq:app_inverse_laplace_posterior
    return RewardPosterior(
        features=belief.features,
        mean_weights=belief.weights,
        weights=np.ascontiguousarray(theta[:-1].T),
        log_sharpness=theta[-1],
    )


def _whiten(precision: FloatArray, normals: FloatArray) -> FloatArray:
    """Zero-mean draws with this precision, clipping eigenvalues where a Cholesky factor fails."""
    try:
        factor = scipy.linalg.cholesky(precision, lower=False)
        return np.asarray(scipy.linalg.solve_triangular(factor, normals))
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(precision)
        clipped = np.maximum(values, values.max() * 1e-12)
        return np.asarray(vectors @ (normals / np.sqrt(clipped)[:, None]))
