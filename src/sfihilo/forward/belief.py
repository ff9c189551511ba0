"""The forward belief: which outcome a policy causes (paper appendix "Forward KRR ...").

Notation
--------
policies              tau_i        (t, d_policy)
outcomes              phi_i        (t, d_outcome)
length_scale, ridge   l_f, lambda_f
weights               omega_i      (t,)            all one unless drift is expected (recency.py)
inverse_factor        L^-1         (t, t)          with A_t = L L^T
solved                A_t^-1 [Phi, 1]              (t, d_outcome + 1)
coefficients          B_t          (t, d_outcome)
centre, scale         m_t, s_t     (d_outcome,)
epistemic_scale       gamma_t^2    (d_outcome,)
observation           v_obs        (d_outcome,)
leverage              e_t(tau)     (n,)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from sfihilo.checks import Checked, fraction, one_of, positive, positives
from sfihilo.forward.factor import add_to_diagonal, explained_by, inverse_cholesky
from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray, IntArray

# Uniform outcomes in [0, 1] have this standard deviation: the scale before two were measured.
_PRIOR_SCALE = float(np.sqrt(1 / 12))


@dataclass(frozen=True)
class ForwardSettings(Checked):
    """tab:forward_krr_hyperparameters; the two `initial` values hold until the warm-up is over."""

    length_scales: tuple[float, ...] = positives((0.3, 0.4, 0.5, 0.6, 0.7))
    ridges: tuple[float, ...] = positives((1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1))
    validation_fraction: float = fraction(0.2)
    tuning_cap: int = positive(1024)
    warm_up: int = positive(16)
    jitter: float = positive(1e-10)
    variance_floor: float = positive(1e-4)
    initial_length_scale: float = positive(0.5)
    initial_ridge: float = positive(0.1)
    residual: Literal["training", "leave_one_out"] = one_of("training", "leave_one_out")


class Hyperparameters(NamedTuple):
    """l_f and lambda_f."""

    length_scale: float
    ridge: float


class Prediction(NamedTuple):
    """Mean and variances of the outcome of each policy, (n, d_outcome) each."""

    mean: FloatArray
    epistemic: FloatArray
    observation: FloatArray

    @property
    def variance(self) -> FloatArray:
        return self.epistemic + self.observation


class PolicyBelief(NamedTuple):
    """The belief evaluated at n policies, with the terms that a one-step update reuses."""

    policies: FloatArray  # (n, d_policy)
    explained: FloatArray  # L^-1 k_t, (n, t)
    leverage: FloatArray  # (n,)
    mean: FloatArray  # (n, d_outcome)

    def rows(self, chosen: IntArray) -> PolicyBelief:
        return PolicyBelief(*(part[chosen] for part in self))


@dataclass(frozen=True, eq=False)
class ForwardBelief:
    """p_f(phi | tau) = N(mu_f(tau), diag v_f(tau)), given the executed policies."""

    settings: ForwardSettings
    hyper: Hyperparameters
    measurement_std: float
    policies: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    inverse_factor: FloatArray
    solved: FloatArray
    coefficients: FloatArray
    centre: FloatArray
    scale: FloatArray
    epistemic_scale: FloatArray
    observation: FloatArray

    @property
    def noise(self) -> float:
        return self.hyper.ridge + self.settings.jitter

    @property
    def working_dtype(self) -> type[np.float32] | type[np.float64]:
        """Single precision for pools, unless the ridge is so small that its rounding would show."""
        return np.float64 if self.hyper.ridge < 1e-3 else np.float32

    @cached_property
    def _single_factor(self) -> FloatArray:
        return self.inverse_factor.astype(np.float32)

    def factor_like(self, array: FloatArray) -> FloatArray:
        """L^-1 in the precision of `array`; the factorisation itself is always in double."""
        return self._single_factor if array.dtype == np.float32 else self.inverse_factor

    def kernel(self, policies: FloatArray) -> FloatArray:
        """k_t(tau), one row per policy."""
        return rbf(policies, self.policies.astype(policies.dtype), self.hyper.length_scale)

    def mean(self, policies: FloatArray) -> FloatArray:
        return self.mean_at(self.kernel(policies))

    def mean_at(self, kernel: FloatArray) -> FloatArray:
        standardised = kernel @ self.coefficients.astype(kernel.dtype)
        return (self.centre + self.scale * standardised).astype(kernel.dtype)  # eq:app_forward_mean

    def leverage(self, policies: FloatArray) -> FloatArray:
        """The share of the prior variance that the data have not explained."""
        return self.at(policies).leverage

    def variances(self, leverage: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Epistemic (n, d_outcome) and observation (d_outcome,) variances."""
        return np.multiply.outer(leverage, self.epistemic_scale), self.observation

    def at(self, policies: FloatArray) -> PolicyBelief:
        """The belief at these policies, in the precision of `policies`."""
        kernel = self.kernel(policies)
        explained = explained_by(self.factor_like(kernel), kernel)
        left = 1 - np.einsum("ij,ij->i", explained, explained)
        leverage: FloatArray = np.maximum(left, 0)  # eq:app_forward_leverage
        return PolicyBelief(policies, explained, leverage, self.mean_at(kernel))

    def predict(self, policies: FloatArray) -> Prediction:
        at = self.at(policies)
        return self.prediction(at.mean, at.leverage)

    def prediction(self, mean: FloatArray, leverage: FloatArray) -> Prediction:
        epistemic, observation = self.variances(leverage)  # eq:app_forward_predictive
        return Prediction(mean, epistemic, np.broadcast_to(observation, epistemic.shape))

    def tried_leverage(self) -> FloatArray:
        """Leverage of each executed policy, had it not been executed itself."""
        diagonal = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        return np.asarray(np.clip(1 / diagonal - self.noise / self.weights, 0, 1))


def sample(mean: FloatArray, variance: FloatArray, normals: FloatArray) -> FloatArray:
    """Outcomes drawn from the belief, clipped to where outcomes live."""
    return np.clip(mean + np.sqrt(variance) * normals, 0, 1)  # eq:app_forward_sampling


class Reducible(NamedTuple):
    """Variance that more executions could remove, of each policy, (n,) each."""

    fraction: FloatArray  # of the predictive variance, mean over the outcomes
    score: FloatArray  # large where much is left and little of it is observation noise


def reducible(epistemic: FloatArray, observation: FloatArray) -> Reducible:
    """From epistemic (n, d_outcome) and observation (d_outcome,) variances."""
    share = epistemic / (epistemic + observation)
    count = share.shape[-1]
    return Reducible(
        np.einsum("...d->...", share) / count,  # eq:app_forward_reducible_fraction
        np.einsum("...d,...d->...", epistemic, share) / count,  # eq:app_forward_reducible_score
    )


class TargetUpdate(NamedTuple):
    """How one more observation at each candidate changes the belief at each target."""

    gain: FloatArray  # (candidates, targets, d_outcome): mean shift for each unit of residual
    variance: FloatArray  # (candidates, targets, d_outcome): total variance afterwards
    targets: Prediction  # the belief about each before
    candidates: Prediction

    def mean(self, target_mean: FloatArray, residual: FloatArray) -> FloatArray:
        """Target means (candidates, draws, targets, d_outcome) after these residuals."""
        shift = self.gain[:, None] * residual[:, :, None]
        return target_mean + shift  # eq:app_forward_mean_update


def target_update(
    belief: ForwardBelief, targets: PolicyBelief, candidates: PolicyBelief
) -> TargetUpdate:
    """The one-step update on a target set: eq:app_forward_mean_update and the variance collapse."""
    before = belief.prediction(targets.mean, targets.leverage)
    cross = rbf(candidates.policies, targets.policies, belief.hyper.length_scale)
    cross -= candidates.explained @ targets.explained.T  # eq:app_forward_cross
    covariance = np.multiply.outer(cross, belief.epistemic_scale)  # eq:app_forward_cross_cov
    own = np.multiply.outer(candidates.leverage + belief.noise, belief.epistemic_scale)
    denominator = own + belief.observation  # eq:app_forward_update_denom
    gain = covariance / denominator[:, None]
    left = np.maximum(before.epistemic - gain * covariance, 0)  # eq:app_forward_variance_update
    total = left + belief.observation  # eq:app_forward_total_post_variance
    asked = belief.prediction(candidates.mean, candidates.leverage)
    return TargetUpdate(gain, total, before, asked)


def fit(
    settings: ForwardSettings,
    hyper: Hyperparameters,
    measurement_std: float,
    policies: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray | None = None,
) -> ForwardBelief:
    """Factorise from the beginning; `weights` are those of recency.py."""
    weights = np.ones(len(policies)) if weights is None else weights
    noise = hyper.ridge + settings.jitter
    system = add_to_diagonal(
        rbf(policies, policies, hyper.length_scale), noise / weights
    )  # eq:app_forward_kernel_system
    factor = inverse_cholesky(system)
    solved = factor.T @ (factor @ _with_ones(outcomes))
    return _belief(settings, hyper, measurement_std, policies, outcomes, weights, factor, solved)


def append(belief: ForwardBelief, policy: FloatArray, outcome: FloatArray) -> ForwardBelief:
    """One more observation: the factor grows by a row instead of being computed again."""
    size = len(belief.policies)
    explained = belief.inverse_factor @ belief.kernel(policy[None])[0]
    # In exact arithmetic the new pivot is at least the ridge; duplicates must not make it less.
    pivot = np.sqrt(max(1 + belief.noise - explained @ explained, belief.noise))
    row = np.append(-(explained @ belief.inverse_factor), 1) / pivot
    factor = np.empty((size + 1, size + 1))
    factor[:size, :size], factor[:size, size], factor[size] = belief.inverse_factor, 0, row
    outcomes = np.vstack([belief.outcomes, outcome])
    solved = np.multiply.outer(row, row @ _with_ones(outcomes))
    solved[:size] += belief.solved
    return _belief(
        belief.settings,
        belief.hyper,
        belief.measurement_std,
        np.vstack([belief.policies, policy]),
        outcomes,
        np.append(belief.weights, 1.0),
        factor,
        solved,
    )


def _with_ones(outcomes: FloatArray) -> FloatArray:
    return np.column_stack([outcomes, np.ones(len(outcomes))])


def standardisation(outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Empirical mean and a standard deviation that can divide."""
    if len(outcomes) == 0:
        return np.full(outcomes.shape[1], 0.5), np.full(outcomes.shape[1], _PRIOR_SCALE)
    scale = outcomes.std(axis=0) if len(outcomes) > 1 else np.full(outcomes.shape[1], _PRIOR_SCALE)
    # A constant outcome is predicted by its mean alone, whatever it is divided by.
    return outcomes.mean(axis=0), np.where(scale > 1e-12, scale, 1.0)


def _belief(
    settings: ForwardSettings,
    hyper: Hyperparameters,
    measurement_std: float,
    policies: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    inverse_factor: FloatArray,
    solved: FloatArray,
) -> ForwardBelief:
    centre, scale = standardisation(outcomes)
    # Standardised after solving, since centre and scale change with every observation.
    coefficients = (
        solved[:, :-1] - np.multiply.outer(solved[:, -1], centre)
    ) / scale  # eq:app_forward_coefficients
    noise = (hyper.ridge + settings.jitter) / weights
    if settings.residual == "leave_one_out":
        noise = 1 / np.einsum("ij,ij->j", inverse_factor, inverse_factor)
    # A B = Phi, hence the training residual Phi - K B is the ridge times B.
    squares = weights[:, None] * (noise[:, None] * coefficients * scale) ** 2
    residual = squares.mean(axis=0) if len(squares) else np.zeros_like(scale)
    spread = np.where(outcomes.std(axis=0) > 1e-12, scale, 0.0) if len(outcomes) > 1 else scale
    return ForwardBelief(
        settings=settings,
        hyper=hyper,
        measurement_std=measurement_std,
        policies=policies,
        outcomes=outcomes,
        weights=weights,
        inverse_factor=inverse_factor,
        solved=solved,
        coefficients=coefficients,
        centre=centre,
        scale=scale,
        epistemic_scale=np.maximum(spread**2 - residual, 0),  # eq:app_forward_epi_scale
        observation=np.maximum(
            residual + measurement_std**2, settings.variance_floor
        ),  # eq:app_forward_variance_decomposition
    )
