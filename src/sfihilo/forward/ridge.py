"""Kernel ridge regression of outcomes on policies (paper appendix "Forward KRR ...").

Notation
--------
policies              tau_i        (t, d_policy)
outcomes              phi_i        (t, c)          c outcomes, measured in all of these trials
length_scale, ridge   l_f, lambda_f
weights               omega_i      (t,)            all one unless drift is expected (recency.py)
inverse_factor        L^-1         (t, t)          with A_t = L L^T
solved                A_t^-1 [Phi, 1]              (t, c + 1)
coefficients          B_t          (t, c)
centre, scale         m_t, s_t     (c,)
epistemic_scale       gamma_t^2    (c,)
observation           v_obs        (c,)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from sfihilo.checks import Checked, fraction, one_of, positive, positives, whole
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
    tuning_cap: int = whole(1, 1024)
    warm_up: int = whole(1, 16)
    jitter: float = positive(1e-10)
    variance_floor: float = positive(1e-4)
    initial_length_scale: float = positive(0.5)
    initial_ridge: float = positive(0.1)
    residual: Literal["training", "leave_one_out"] = one_of("training", "leave_one_out")


class Hyperparameters(NamedTuple):
    """l_f and lambda_f."""

    length_scale: float
    ridge: float


def standardisation(outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Empirical mean, and a standard deviation that is never zero."""
    if len(outcomes) == 0:
        return np.full(outcomes.shape[1], 0.5), np.full(outcomes.shape[1], _PRIOR_SCALE)
    scale = outcomes.std(axis=0) if len(outcomes) > 1 else np.full(outcomes.shape[1], _PRIOR_SCALE)
    # A constant outcome is predicted by its mean alone, whatever it is divided by.
    return outcomes.mean(axis=0), np.where(scale > 1e-12, scale, 1.0)


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """The regression of outcomes that were all measured in the same trials, with one factor."""

    settings: ForwardSettings
    hyper: Hyperparameters
    measurement_std: float
    policies: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    inverse_factor: FloatArray
    solved: FloatArray

    @property
    def noise(self) -> float:
        return self.hyper.ridge + self.settings.jitter

    @cached_property
    def _standardisation(self) -> tuple[FloatArray, FloatArray]:
        return standardisation(self.outcomes)

    @property
    def centre(self) -> FloatArray:
        return self._standardisation[0]

    @property
    def scale(self) -> FloatArray:
        return self._standardisation[1]

    @cached_property
    def coefficients(self) -> FloatArray:
        # Standardised after solving, since centre and scale change with every observation.
        return np.asarray(
            (self.solved[:, :-1] - np.multiply.outer(self.solved[:, -1], self.centre)) / self.scale
        )  # eq:app_forward_coefficients

    @cached_property
    def _residual(self) -> FloatArray:
        """Mean squared residual of each outcome."""
        noise = self.noise / self.weights
        if self.settings.residual == "leave_one_out":
            noise = 1 / np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        # A B = Phi, hence the training residual Phi - K B is the ridge times B.
        squares = self.weights[:, None] * (noise[:, None] * self.coefficients * self.scale) ** 2
        return np.asarray(squares.mean(axis=0)) if len(squares) else np.zeros_like(self.scale)

    @cached_property
    def epistemic_scale(self) -> FloatArray:
        spread = self.scale
        if len(self.outcomes) > 1:
            spread = np.where(self.outcomes.std(axis=0) > 1e-12, self.scale, 0.0)
        return np.maximum(spread**2 - self._residual, 0)  # eq:app_forward_epi_scale

    @cached_property
    def observation(self) -> FloatArray:
        return np.asarray(
            np.maximum(self._residual + self.measurement_std**2, self.settings.variance_floor)
        )  # eq:app_forward_variance_decomposition

    @cached_property
    def _single_factor(self) -> FloatArray:
        return self.inverse_factor.astype(np.float32)

    def factor_like(self, array: FloatArray) -> FloatArray:
        """L^-1 in the precision of `array`; the factorisation itself is always in double."""
        return self._single_factor if array.dtype == np.float32 else self.inverse_factor

    def mean_at(self, kernel: FloatArray) -> FloatArray:
        """Mean outcomes of policies, given their kernel rows k_t(tau)."""
        standardised = kernel @ self.coefficients.astype(kernel.dtype)
        return (self.centre + self.scale * standardised).astype(kernel.dtype)  # eq:app_forward_mean

    def explained(self, kernel: FloatArray) -> FloatArray:
        """L^-1 k_t(tau), one row per policy."""
        return explained_by(self.factor_like(kernel), kernel)

    def tried_leverage(self) -> FloatArray:
        """Leverage of each executed policy, had it not been executed itself."""
        diagonal = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        return np.asarray(np.clip(1 / diagonal - self.noise / self.weights, 0, 1))

    def left_out_residual(self) -> FloatArray:
        """Each outcome less its prediction from all other trials, (t, c)."""
        diagonal = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        return np.asarray(self.scale * self.coefficients / diagonal[:, None])

    def only(self, columns: IntArray) -> KernelRidge:
        """The regression of some of these outcomes; the factor is the same."""
        solved = np.column_stack([self.solved[:, columns], self.solved[:, -1]])
        return replace(self, outcomes=self.outcomes[:, columns], solved=solved)

    def append(self, policy: FloatArray, outcome: FloatArray) -> KernelRidge:
        """One more observation: the factor grows by a row instead of being computed again."""
        size = len(self.policies)
        kernel = rbf(policy[None], self.policies.astype(policy.dtype), self.hyper.length_scale)
        explained = self.inverse_factor @ kernel[0]
        # In exact arithmetic the new pivot is at least the ridge; duplicates must not make it less.
        pivot = np.sqrt(max(1 + self.noise - explained @ explained, self.noise))
        row = np.append(-(explained @ self.inverse_factor), 1) / pivot
        factor = np.empty((size + 1, size + 1))
        factor[:size, :size], factor[:size, size], factor[size] = self.inverse_factor, 0, row
        outcomes = np.vstack([self.outcomes, outcome])
        solved = np.multiply.outer(row, row @ _with_ones(outcomes))
        solved[:size] += self.solved
        return replace(
            self,
            policies=np.vstack([self.policies, policy]),
            outcomes=outcomes,
            weights=np.append(self.weights, 1.0),
            inverse_factor=factor,
            solved=solved,
        )


def leverage_left(explained: FloatArray) -> FloatArray:
    """The share of the prior variance of each policy that the data have not explained."""
    left = 1 - np.einsum("ij,ij->i", explained, explained)
    return np.asarray(np.maximum(left, 0))  # eq:app_forward_leverage


def fit_ridge(
    settings: ForwardSettings,
    hyper: Hyperparameters,
    measurement_std: float,
    policies: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
) -> KernelRidge:
    """Factorise from the beginning; no outcome may be missing."""
    noise = hyper.ridge + settings.jitter
    system = add_to_diagonal(
        rbf(policies, policies, hyper.length_scale), noise / weights
    )  # eq:app_forward_kernel_system
    factor = inverse_cholesky(system)
    solved = factor.T @ (factor @ _with_ones(outcomes))
    return KernelRidge(
        settings, hyper, measurement_std, policies, outcomes, weights, factor, solved
    )


def _with_ones(outcomes: FloatArray) -> FloatArray:
    return np.column_stack([outcomes, np.ones(len(outcomes))])
