"""The inverse belief: which outcomes this person values (paper appendix "Inverse GP posterior").

Notation
--------
differences    delta z_i        (p, m)    feature difference of each compared pair (anchor - new)
labels         I_i              (p,)      +1 anchor preferred, -1 new preferred, 0 "same"
clarity        1 / f_i          (p,)      f_i: how many times noisier an answer is than a fresh one
weights        w                (m,)
log_sharpness  eta              ()        beta = exp(eta)
centre         hat Theta        (m + 1,)  (weights, log-sharpness): mode or variational mean
covariance_root  F              (m + 1, k)  F F^T is the covariance of Theta
curvature      lambda_i         (p,)      of the negative log likelihood in the margin

Two inferences of the same model. "joint_map" is the paper's (laplace.py): weights and log-sharpness
together, curvature at the mode. "variational" (variational.py) chooses the sharpness by evidence,
where asked to, and averages slope and curvature over the posterior; its log-sharpness has no
spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy

from sfihilo.checks import Checked, finite, flag, named_function, one_of, positive, text, whole
from sfihilo.forward.factor import inverse_root
from sfihilo.history import FloatArray
from sfihilo.inverse.features import (
    CustomFeatures,
    FeatureMap,
    LinearFeatures,
    fourier_features,
    landmark_features,
)
from sfihilo.inverse.grading import LOG_SCALE_STD, Grading, grades_grow
from sfihilo.inverse.laplace import JointPosterior
from sfihilo.inverse.likelihood import Answers, ungraded_bounds
from sfihilo.inverse.variational import TOLERANCE, variational_fit, weight_precision

_SHARPNESS_STEP = 0.4
_SCALE_STEP = 0.4
_TRIAL_TOLERANCE = 0.03  # nats: their differences matter, not their last digits
_FIRST_CURVATURE = 0.1


@dataclass(frozen=True)
class InverseSettings(Checked):
    """tab:inverse_gp_hyperparameters; `tie_odds` is Davidson's nu, not in the paper.

    own_noise: the largest standard deviation of a person's own judgement noise, in units of
    `weight_std`, which is the reward's prior standard deviation with rbf and landmark features.
    Answer noise above this level is attributed to reward components that are not measured; None
    attributes all of it to the person.
    """

    features: str = text("rbf")
    feature_count: int = whole(1, 256)
    orthogonal: bool = flag(False)
    length_scale: float = positive(0.65)
    weight_std: float = positive(1.0)
    log_sharpness_mean: float = finite(0.0)
    log_sharpness_std: float = positive(1.0)
    iterations: int = whole(1, 50)
    samples: int = whole(1, 512)
    jitter: float = positive(1e-6)
    tie_odds: float = positive(1.0)
    own_noise: float | None = positive(None)
    inference: Literal["joint_map", "variational"] = one_of("joint_map", "variational")


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
    return CustomFeatures(function, size, outcome_dim)


@dataclass(frozen=True, eq=False)
class InverseBelief:
    """The comparisons so far, and the centre and curvature of the posterior that they leave."""

    settings: InverseSettings
    features: FeatureMap
    differences: FloatArray
    labels: FloatArray
    centre: FloatArray
    curvature: FloatArray
    bounds: FloatArray
    clarity: FloatArray
    grading: Grading = Grading()

    @property
    def weights(self) -> FloatArray:
        """hat w."""
        return self.centre[:-1]

    @property
    def log_sharpness(self) -> float:
        """hat eta."""
        return float(self.centre[-1])

    @property
    def answers(self) -> Answers:
        """The answers as the likelihood takes them."""
        if not self.grading.used:
            return Answers.ungraded(self.labels, self.settings.tie_odds)
        bounds = self.grading.scale * self.bounds * self.clarity[:, None]
        return Answers(self.labels, bounds, self.settings.tie_odds)

    @cached_property
    def rows(self) -> FloatArray:
        """The differences in units of the noise of their answers: what the likelihood sees."""
        if (self.clarity == 1).all():
            return self.differences
        return self.differences * self.clarity[:, None]

    @cached_property
    def prior_precision(self) -> FloatArray:
        """Diagonal, of the weights and the log-sharpness."""
        diagonal = np.full(len(self.centre), self.settings.weight_std**-2)
        diagonal[-1] = self.settings.log_sharpness_std**-2
        return diagonal

    @cached_property
    def prior_mean(self) -> FloatArray:
        """Of the weights and the log-sharpness."""
        mean = np.zeros(len(self.centre))
        mean[-1] = self.settings.log_sharpness_mean
        return mean  # eq:app_inverse_reward_prior

    @property
    def joint(self) -> JointPosterior:
        """The joint posterior of weights and log-sharpness, given these comparisons."""
        return JointPosterior(
            self.rows,
            self.answers,
            self.prior_mean,
            self.prior_precision,
        )

    @cached_property
    def covariance_root(self) -> FloatArray:
        """F: the posterior is the centre plus F times standard normals."""
        if self.settings.inference == "joint_map":
            precision = self.joint.precision(self.centre, self.curvature, self.settings.jitter)
            return inverse_root(precision)  # eq:app_inverse_laplace_posterior
        scaled = np.exp(self.log_sharpness) * self.settings.weight_std * self.rows
        root = self.settings.weight_std * inverse_root(weight_precision(scaled, self.curvature))
        return np.vstack([root, np.zeros(len(root))])


def begin(settings: InverseSettings, features: FeatureMap) -> InverseBelief:
    """The belief before any comparison: the prior."""
    centre = np.zeros(features.size + 1)
    centre[-1] = settings.log_sharpness_mean
    nothing = np.empty(0)
    return InverseBelief(
        settings,
        features,
        np.empty((0, features.size)),
        nothing,
        centre,
        nothing,
        np.empty((0, 2)),
        nothing,
    )


def difference(features: FeatureMap, anchors: FloatArray, outcomes: FloatArray) -> FloatArray:
    """delta z = z(anchor) - z(outcome), one row per pair."""
    return features(anchors) - features(outcomes)  # eq:app_inverse_feature_difference


def append(
    belief: InverseBelief,
    anchor: FloatArray,
    outcome: FloatArray,
    label: float,
    bounds: FloatArray | None = None,
    *,
    clarity: float = 1.0,
    reselect: bool = False,
) -> InverseBelief:
    """The belief with one more comparison; the search starts from the old centre.

    bounds: the interval (2,) of a graded answer at scale 1. clarity: below 1 for an answer with
    more noise than others.
    """
    row = difference(belief.features, anchor[None], outcome[None])
    differences, labels = np.vstack([belief.differences, row]), np.append(belief.labels, label)
    newest = ungraded_bounds(labels[-1:]) if bounds is None else bounds
    every = np.vstack([belief.bounds, newest])
    clear = np.append(belief.clarity, clarity)
    return update(belief, differences, labels, every, clarity=clear, reselect=reselect)


def update(
    belief: InverseBelief,
    differences: FloatArray,
    labels: FloatArray,
    bounds: FloatArray | None = None,
    *,
    clarity: FloatArray | None = None,
    reselect: bool = False,
) -> InverseBelief:
    """The belief with these comparisons; the search starts from the old centre.

    bounds: the intervals (p, 2) of graded answers at scale 1. clarity: (p,), 1 unless given.
    reselect: also update the sharpness and the scale of the grades in variational inference; the
    joint MAP always does the former.
    """
    every = ungraded_bounds(labels) if bounds is None else bounds
    clear = np.ones(len(labels)) if clarity is None else clarity
    unsolved = replace(belief, differences=differences, labels=labels, bounds=every, clarity=clear)
    if belief.settings.inference == "joint_map":
        centre, curvature = unsolved.joint.mode(
            belief.centre, belief.covariance_root, belief.settings.iterations
        )
        solved = replace(unsolved, centre=centre, curvature=curvature)
    else:
        solved = _variational(unsolved, reselect)
    if not (np.isfinite(solved.centre).all() and np.isfinite(solved.curvature).all()):
        raise FloatingPointError("inverse model: the optimiser returned a non-finite value")
    return solved


def _variational(belief: InverseBelief, reselect: bool) -> InverseBelief:
    if not reselect:
        return _fit_at(belief, belief.log_sharpness)[0]
    if (belief.bounds != ungraded_bounds(belief.labels)).any():
        belief = _regraded(belief)
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
    chosen = float(scipy.special.softmax(bounds - 0.5 * deviation**2) @ trials)
    nearest = fits[int(np.argmin(np.abs(trials - chosen)))]
    return _fit_at(nearest, chosen)[0]


def _regraded(belief: InverseBelief) -> InverseBelief:
    """The belief with its grades checked against the signs, and their scale moved."""
    signs = _fit_at(replace(belief, grading=Grading(used=False)), belief.log_sharpness)[0]
    margins = belief.labels * (belief.differences @ signs.weights)
    decisive = (belief.bounds != ungraded_bounds(belief.labels)).any(axis=1) & (belief.labels != 0)
    far = np.abs(belief.bounds[decisive]).min(axis=1)  # a stronger grade begins farther out
    if not grades_grow(far, margins[decisive]):
        return replace(signs, grading=Grading(belief.grading.scale, used=False))
    scales = belief.grading.scale * np.exp([0.0, -_SCALE_STEP, _SCALE_STEP])
    fits = [
        _fit_at(replace(belief, grading=Grading(scale)), belief.log_sharpness, _TRIAL_TOLERANCE)
        for scale in scales
    ]
    logs = np.log(scales)
    evidence = np.array([bound for _, bound in fits]) - 0.5 * (logs / LOG_SCALE_STD) ** 2
    chosen = float(np.exp(scipy.special.softmax(evidence) @ logs))
    return replace(fits[0][0], grading=Grading(chosen))


def _fit_at(
    belief: InverseBelief, log_sharpness: float, tolerance: float = TOLERANCE
) -> tuple[InverseBelief, float]:
    """The variational posterior at this log-sharpness, and its evidence bound."""
    settings = belief.settings
    new = len(belief.labels) - len(belief.curvature)
    fit = variational_fit(
        np.exp(log_sharpness) * settings.weight_std * belief.rows,
        belief.answers,
        # Where the sharpness moves, margins and weights share the change.
        np.exp((belief.log_sharpness - log_sharpness) / 2) * belief.weights / settings.weight_std,
        np.append(belief.curvature, np.full(new, _FIRST_CURVATURE)),
        settings.iterations,
        tolerance,
    )
    centre = np.append(settings.weight_std * fit.weights, log_sharpness)
    return replace(belief, centre=centre, curvature=fit.curvature), fit.bound
