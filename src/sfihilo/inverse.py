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
curvature      lambda_i         (p,)      of the negative log likelihood in the margin
factor         F                (m + 1, k) covariance of Theta is F F^T

Two inferences of the same model. "joint_map" is the paper's: weights and log-sharpness together by
L-BFGS, curvature at the mode. "variational" takes the sharpness by evidence, at checkpoints, and
slope and curvature averaged over the posterior (variational.py); its log-sharpness has no spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import expit, ndtr, softmax

from sfihilo.factor import add_to_diagonal, inverse_cholesky
from sfihilo.features import (
    CustomFeatures,
    FeatureMap,
    LinearFeatures,
    fourier_features,
    landmark_features,
)
from sfihilo.history import FloatArray
from sfihilo.likelihood import likelihood_terms
from sfihilo.names import named_function, positive
from sfihilo.variational import TOLERANCE, variational_fit, weight_precision

# exp(30) is beyond any sharpness that data and prior can support; its square fits single precision.
_LARGEST_LOG_SHARPNESS = 30.0
# The logistic function is closest to a normal distribution function of this standard deviation.
LOGISTIC_STD = 1.7
_SHARPNESS_STEP = 0.4
_TRIAL_TOLERANCE = 0.1  # nats: what two trial values differ by matters, not their last digits
_FIRST_CURVATURE = 0.1


@dataclass(frozen=True)
class InverseSettings:
    """tab:inverse_gp_hyperparameters; `tie_odds` is Davidson's nu, not in the paper.

    own_noise: how far a person's own judgement scatters at most, in the reward's prior standard
    deviations. What the answers scatter beyond it is reward that the outcomes do not show; None
    takes all of it for the person's own.
    """

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
    own_noise: float | None = None
    inference: Literal["joint_map", "variational"] = "joint_map"

    def __post_init__(self) -> None:
        if self.inference not in ("joint_map", "variational"):
            raise ValueError(
                f"inference: expected joint_map or variational, got {self.inference!r}"
            )
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
        if self.own_noise is not None:
            positive(self, "own_noise")


def feature_map(
    settings: InverseSettings, outcome_dim: int, rng: np.random.Generator
) -> FeatureMap:
    """The map that `settings.features` names.

    rbf and landmarks approximate the same kernel; else linear, or a user's own "module:function".
    """
    if settings.features == "rbf":
        return fourier_features(
            settings.feature_count,
            outcome_dim,
            settings.length_scale,
            rng,
            orthogonal=settings.orthogonal,
        )
    if settings.features == "landmarks":
        return landmark_features(settings.feature_count, outcome_dim, settings.length_scale, rng)
    if settings.features == "linear":
        return LinearFeatures(outcome_dim)
    function = named_function(settings.features, "features", ("rbf", "landmarks", "linear"))
    size = np.asarray(function(np.full((1, outcome_dim), 0.5))).shape[-1]
    return CustomFeatures(function, size)


@dataclass(frozen=True, eq=False)
class InverseBelief:
    """The comparisons so far and the mode that explains them."""

    settings: InverseSettings
    features: FeatureMap
    differences: FloatArray
    labels: FloatArray
    mode: FloatArray
    curvature: FloatArray

    @property
    def weights(self) -> FloatArray:
        """hat w."""
        return self.mode[:-1]

    @property
    def log_sharpness(self) -> float:
        """hat eta."""
        return float(self.mode[-1])

    @cached_property
    def prior_precision(self) -> FloatArray:
        """Diagonal, of the weights and the log-sharpness."""
        diagonal = np.full(len(self.mode), self.settings.weight_std**-2)
        diagonal[-1] = self.settings.log_sharpness_std**-2
        return diagonal

    @cached_property
    def prior_mean(self) -> FloatArray:
        """Of the weights and the log-sharpness."""
        mean = np.zeros(len(self.mode))
        mean[-1] = self.settings.log_sharpness_mean
        return mean  # eq:app_inverse_reward_prior

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
        """Positive semidefinite curvature at the mode, of the weights and the log-sharpness."""
        sharpness = np.exp(min(self.log_sharpness, _LARGEST_LOG_SHARPNESS))
        margins = sharpness * (self.differences @ self.weights)
        root = np.sqrt(self.curvature)  # eq:app_inverse_curvature_terms
        slopes = np.empty((len(root), len(self.mode)))
        np.multiply(self.differences, (sharpness * root)[:, None], out=slopes[:, :-1])
        slopes[:, -1] = root * margins
        precision: FloatArray = slopes.T @ slopes
        prior = self.prior_precision + self.settings.jitter
        return add_to_diagonal(precision, prior)  # eq:app_inverse_precision


def begin(settings: InverseSettings, features: FeatureMap) -> InverseBelief:
    """The belief before any comparison: the prior."""
    mode = np.zeros(features.size + 1)
    mode[-1] = settings.log_sharpness_mean
    return InverseBelief(
        settings, features, np.empty((0, features.size)), np.empty(0), mode, np.empty(0)
    )


def difference(features: FeatureMap, anchors: FloatArray, outcomes: FloatArray) -> FloatArray:
    """delta z: what a comparison tells about, one row a pair."""
    return features(anchors) - features(outcomes)  # eq:app_inverse_feature_difference


def append(
    belief: InverseBelief,
    anchor: FloatArray,
    outcome: FloatArray,
    label: float,
    *,
    checkpoint: bool = False,
) -> InverseBelief:
    """One more comparison; the new mode is sought from the old one (a warm start)."""
    row = difference(belief.features, anchor[None], outcome[None])
    differences = np.vstack([belief.differences, row])
    return update(belief, differences, np.append(belief.labels, label), checkpoint=checkpoint)


def update(
    belief: InverseBelief,
    differences: FloatArray,
    labels: FloatArray,
    *,
    checkpoint: bool = False,
) -> InverseBelief:
    """The belief with these comparisons, its mode sought from the belief's own.

    At a checkpoint the variational inference also moves the sharpness; the joint one always does.
    """
    solve = _joint_map if belief.settings.inference == "joint_map" else _variational
    unsolved = replace(belief, differences=differences, labels=labels)
    solved = solve(unsolved, checkpoint)
    if not (np.isfinite(solved.mode).all() and np.isfinite(solved.curvature).all()):
        raise FloatingPointError("inverse model: the optimiser left the finite numbers")
    return solved


def _joint_map(belief: InverseBelief, checkpoint: bool) -> InverseBelief:
    mode = scipy.optimize.minimize(
        belief.loss,
        belief.mode,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": belief.settings.iterations},
    ).x
    mode[-1] = min(mode[-1], _LARGEST_LOG_SHARPNESS)
    margins = np.exp(mode[-1]) * (belief.differences @ mode[:-1])
    terms = likelihood_terms(margins, belief.labels, belief.settings.tie_odds)
    return replace(belief, mode=mode, curvature=terms.curvature)


def _variational(belief: InverseBelief, checkpoint: bool) -> InverseBelief:
    if not checkpoint:
        return _fit_at(belief, belief.log_sharpness)[0]
    # The posterior mean of eta over three values, from which the next checkpoint goes on.
    here = _fit_at(belief, belief.log_sharpness)
    around = [
        _fit_at(here[0], belief.log_sharpness + step, _TRIAL_TOLERANCE)
        for step in (-_SHARPNESS_STEP, _SHARPNESS_STEP)
    ]
    fits = [fit for fit, _ in (here, *around)]
    bounds = np.array([bound for _, bound in (here, *around)])
    trials = np.array([fit.log_sharpness for fit in fits])
    settings = belief.settings
    deviation = (trials - settings.log_sharpness_mean) / settings.log_sharpness_std
    chosen = float(softmax(bounds - 0.5 * deviation**2) @ trials)
    nearest = fits[int(np.argmin(np.abs(trials - chosen)))]
    return _fit_at(nearest, chosen)[0]


def _fit_at(
    belief: InverseBelief, log_sharpness: float, tolerance: float = TOLERANCE
) -> tuple[InverseBelief, float]:
    """The variational posterior at this log-sharpness, and its evidence bound."""
    settings = belief.settings
    new = len(belief.labels) - len(belief.curvature)
    fit = variational_fit(
        np.exp(log_sharpness) * settings.weight_std * belief.differences,
        belief.labels,
        settings.tie_odds,
        # Where the sharpness moves, margins and weights share the change.
        np.exp((belief.log_sharpness - log_sharpness) / 2) * belief.weights / settings.weight_std,
        np.append(belief.curvature, np.full(new, _FIRST_CURVATURE)),
        settings.iterations,
        tolerance,
    )
    mode = np.append(settings.weight_std * fit.weights, log_sharpness)
    return replace(belief, mode=mode, curvature=fit.curvature), fit.bound


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """Gaussian posterior over Theta = (w, eta): its mean, its covariance F F^T, and samples of it.

    closed_form: predict answers from mean and covariance instead of the samples.
    unseen: variance of a margin from rewards that the outcomes do not show.
    """

    features: FeatureMap
    mode: FloatArray
    factor: FloatArray
    draw: Callable[[], FloatArray]
    closed_form: bool
    unseen: float

    @property
    def mean_weights(self) -> FloatArray:
        """E[w]."""
        return self.mode[:-1]

    @property
    def unseen_share(self) -> float:
        """Of the variance of an answer's noise, what is not taken for the person's own."""
        return self.unseen / LOGISTIC_STD**2

    @cached_property
    def _samples(self) -> FloatArray:
        """Theta_s, a column each; drawn when first looked at."""
        return np.asarray(self.mode[:, None] + self.factor @ self.draw())

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
        return np.exp(np.minimum(self.log_sharpness, _LARGEST_LOG_SHARPNESS))

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """Mean weights and covariance factor of the margins, in single precision."""
        sharpness = np.exp(min(self.mode[-1], _LARGEST_LOG_SHARPNESS))
        weights, factor = sharpness * self.mode[:-1], sharpness * self.factor[:-1]
        return weights.astype(np.float32), factor.astype(np.float32)

    def margins(self, differences: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margin of each feature difference, at the mean sharpness."""
        rows = differences.astype(np.float32, copy=False)
        weights, factor = self._scaled
        spread = rows @ factor
        variance: FloatArray = np.maximum(np.einsum("ij,ij->i", spread, spread), 1e-6)
        return rows @ weights, variance

    def covariance(self, differences: FloatArray) -> FloatArray:
        """Sigma delta z^T: multiplied by another difference, the covariance of the two margins."""
        _, factor = self._scaled
        rows = differences.astype(np.float32, copy=False)
        return np.asarray(factor @ (rows @ factor).T)

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        """bar r(phi), the posterior mean: linear in w, hence the reward of the mean weights."""
        return self.features(outcomes) @ self.mean_weights.astype(outcomes.dtype)

    def reward_samples(self, outcomes: FloatArray) -> FloatArray:
        """r_w(phi) of every sample, (n, S)."""
        return self.features(outcomes) @ self.weights.T.astype(
            outcomes.dtype
        )  # eq:rff_reward_model

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """q(+1): the probability of the answer that the first outcome is preferred."""
        differences = difference(self.features, first, second)
        if self.closed_form:
            mean, variance = self.margins(differences)
            return np.asarray(ndtr(mean / np.sqrt(variance + LOGISTIC_STD**2)), dtype=float)
        margins = np.clip(self.sharpness * (differences @ self.weights.T), -700, 700)
        chance: FloatArray = expit(margins).mean(axis=1)
        return chance  # eq:app_inverse_posterior_predictive

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The probability that the first outcome truly has the larger reward, answers aside."""
        mean, variance = self.margins(difference(self.features, first, second))
        return np.asarray(ndtr(mean / np.sqrt(variance + self.unseen)), dtype=float)


def posterior(belief: InverseBelief, rng: np.random.Generator) -> RewardPosterior:
    """The Gaussian around the mode."""
    factor = _covariance_factor(belief)

    def draw() -> FloatArray:
        return rng.standard_normal((factor.shape[1], belief.settings.samples))

    return RewardPosterior(
        belief.features,
        belief.mode,
        factor,
        draw,
        closed_form=belief.settings.inference == "variational",
        unseen=_unseen(belief),
    )


def _unseen(belief: InverseBelief) -> float:
    """Variance of a margin from rewards that the outcomes do not show."""
    own_noise = belief.settings.own_noise
    if own_noise is None:
        return 0.0
    own = own_noise * belief.settings.weight_std * np.exp(belief.log_sharpness)
    return float(max(LOGISTIC_STD**2 - own**2, 0.0))


def _covariance_factor(belief: InverseBelief) -> FloatArray:
    """F with F F^T the covariance, clipping eigenvalues where a Cholesky factor fails."""
    if belief.settings.inference == "variational":
        scaled = np.exp(belief.log_sharpness) * belief.settings.weight_std * belief.differences
        factor = belief.settings.weight_std * _root(weight_precision(scaled, belief.curvature))
        return np.vstack([factor, np.zeros(len(factor))])
    return _root(belief.precision())  # eq:app_inverse_laplace_posterior


def _root(precision: FloatArray) -> FloatArray:
    """F with F F^T the inverse of this precision."""
    try:
        return inverse_cholesky(precision).T
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(precision)
        return np.asarray(vectors / np.sqrt(np.maximum(values, values.max() * 1e-12)))
