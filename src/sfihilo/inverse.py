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
root           F                (m + 1, k)  F F^T is the covariance of Theta
curvature      lambda_i         (p,)      of the negative log likelihood in the margin

Two inferences of the same model. "joint_map" is the paper's: weights and log-sharpness together by
L-BFGS, curvature at the mode. It searches in units of the posterior before the newest answer, where
one answer more is a few steps; in the weights themselves fifty need not arrive. "variational" takes
the sharpness by evidence, where asked to, and slope and curvature averaged over the posterior
(variational.py); its log-sharpness has no spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.optimize
from scipy.special import softmax

from sfihilo.factor import add_to_diagonal, inverse_root
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
LARGEST_LOG_SHARPNESS = 30.0
# Of the gradient, in units of the posterior's width: coarser ones change the order of a pool.
_MODE_TOLERANCE = 1e-6
_SHARPNESS_STEP = 0.4
_TRIAL_TOLERANCE = 0.03  # nats: their differences matter, not their last digits
_FIRST_CURVATURE = 0.1


@dataclass(frozen=True)
class InverseSettings:
    """tab:inverse_gp_hyperparameters; `tie_odds` is Davidson's nu, not in the paper.

    own_noise: how far a person's own judgement scatters at most, in units of `weight_std`, which is
    the reward's prior standard deviation with rbf and landmark features. What the answers scatter
    beyond it is reward that the outcomes do not show; None takes all of it for the person's own.
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
        sharpness = np.exp(min(theta[-1], LARGEST_LOG_SHARPNESS))
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
        sharpness = np.exp(min(self.log_sharpness, LARGEST_LOG_SHARPNESS))
        margins = sharpness * (self.differences @ self.weights)
        root = np.sqrt(self.curvature)  # eq:app_inverse_curvature_terms
        slopes = np.empty((len(root), len(self.mode)))
        np.multiply(self.differences, (sharpness * root)[:, None], out=slopes[:, :-1])
        slopes[:, -1] = root * margins
        precision: FloatArray = slopes.T @ slopes
        prior = self.prior_precision + self.settings.jitter
        return add_to_diagonal(precision, prior)  # eq:app_inverse_precision

    @cached_property
    def root(self) -> FloatArray:
        """F: the posterior is the mode plus F times standard normals."""
        if self.settings.inference == "joint_map":
            return inverse_root(self.precision())  # eq:app_inverse_laplace_posterior
        scaled = np.exp(self.log_sharpness) * self.settings.weight_std * self.differences
        root = self.settings.weight_std * inverse_root(weight_precision(scaled, self.curvature))
        return np.vstack([root, np.zeros(len(root))])


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
    reselect: bool = False,
) -> InverseBelief:
    """One more comparison; the new mode is sought from the old one (a warm start)."""
    row = difference(belief.features, anchor[None], outcome[None])
    differences = np.vstack([belief.differences, row])
    return update(belief, differences, np.append(belief.labels, label), reselect=reselect)


def update(
    belief: InverseBelief,
    differences: FloatArray,
    labels: FloatArray,
    *,
    reselect: bool = False,
) -> InverseBelief:
    """The belief with these comparisons, its mode sought from the belief's own.

    reselect: let the variational inference move the sharpness, too; the joint one always does.
    """
    unsolved = replace(belief, differences=differences, labels=labels)
    if belief.settings.inference == "joint_map":
        solved = _joint_map(unsolved, belief.root)
    else:
        solved = _variational(unsolved, reselect)
    if not (np.isfinite(solved.mode).all() and np.isfinite(solved.curvature).all()):
        raise FloatingPointError("inverse model: the optimiser left the finite numbers")
    return solved


def _joint_map(belief: InverseBelief, root: FloatArray) -> InverseBelief:
    start = belief.mode

    def loss(steps: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = belief.loss(start + root @ steps)
        return value, gradient @ root

    steps = scipy.optimize.minimize(
        loss,
        np.zeros(root.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": belief.settings.iterations, "ftol": 0.0, "gtol": _MODE_TOLERANCE},
    ).x
    mode = start + root @ steps
    mode[-1] = min(mode[-1], LARGEST_LOG_SHARPNESS)
    margins = np.exp(mode[-1]) * (belief.differences @ mode[:-1])
    terms = likelihood_terms(margins, belief.labels, belief.settings.tie_odds)
    return replace(belief, mode=mode, curvature=terms.curvature)


def _variational(belief: InverseBelief, reselect: bool) -> InverseBelief:
    if not reselect:
        return _fit_at(belief, belief.log_sharpness)[0]
    # The posterior mean of eta over three values, from which the next reselection goes on.
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
