"""The paper's equations, transcribed one by one into plain float64 NumPy.

Appendices "Forward KRR predictive belief" and "Inverse GP posterior computation"; `lookahead`
continues with "Boundary Lookahead implementation". One function per equation, which calls the
functions of the equations that it refers to. Every round refits the whole kernel system and scores
one candidate after another; only the warm start of the paper is kept from the round before. `tuned`
computes the same with all intermediate results shared. This package shares no line with `sfihilo`,
so it is the oracle of the tests and the reference of `make bench`. Every random draw is an
argument, so that both implementations can be given the same draws.

| name | symbol | shape |
| --- | --- | --- |
| policies, outcomes | tau_i, phi_i | (t, d_policy), (t, d_outcome) |
| factor | chol(A_t) | (t, t) |
| coefficients | B_t | (t, d_outcome) |
| center, scale | m_t, s_t | (d_outcome,) |
| leverage | e_t | (n,) |
| epistemic_scale | gamma_t^2 | (d_outcome,) |
| frequencies, phases | Omega, b | (m, d_outcome), (m,) |
| differences | delta z_i | (p, m) |
| theta | (w, eta) | (m + 1,) |
| samples | Theta_s | (S, m + 1) |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit

Array = NDArray[np.floating]  # float64 throughout
Indices = NDArray[np.integer]


@dataclass(frozen=True)
class Constants:
    """The numbers of the paper's tables; the hyperparameters of the forward model are arguments."""

    jitter_forward: float = 1e-10
    variance_floor: float = 1e-4
    measurement_noise: float = 0.05
    reward_noise: float = 0.02
    weight_scale: float = 1.0
    sharpness_mean: float = 0.0
    sharpness_scale: float = 1.0
    iterations: int = 50
    function_tolerance: float = 2.2e-9  # the default of SciPy, as is the next one
    gradient_tolerance: float = 1e-5
    jitter_inverse: float = 1e-6
    tie_odds: float = 1.0
    targets: int = 32
    main: int = 16
    variance: int = 4

    def to_the_end(self) -> Constants:
        """The same constants, with a search for the mode that runs until it converges.

        Fifty iterations from the mode of the round before may end several posterior standard
        deviations away from the mode.
        """
        return replace(self, iterations=20_000, function_tolerance=1e-16, gradient_tolerance=1e-9)


# ---------------------------------------------------------------- forward model


@dataclass(frozen=True)
class Forward:
    """A fitted kernel ridge belief."""

    policies: Array
    length_scale: float
    regularisation: float
    factor: Array
    coefficients: Array
    center: Array
    scale: Array
    epistemic_scale: Array
    observation: Array


def kernel(first: Array, second: Array, length_scale: float) -> Array:
    """The radial basis function kernel."""
    squares = cdist(first, second, "sqeuclidean")
    return np.exp(-squares / (2.0 * length_scale**2))  # eq:app_forward_kernel


def fit_forward(
    policies: Array,
    outcomes: Array,
    length_scale: float,
    ridge: float,
    constants: Constants,
    recency: Array | None = None,
) -> Forward:
    """Fits the belief to all data; `recency` are the weights omega_i of a drifting person."""
    recency = np.ones(len(policies)) if recency is None else recency
    regularisation = ridge + constants.jitter_forward
    gram = kernel(policies, policies, length_scale)
    system = gram + np.diag(regularisation / recency)  # eq:app_forward_kernel_system
    factor = cholesky(system, lower=True)  # and eq:app_weighted_krr_system
    center = outcomes.mean(axis=0)
    scale = outcomes.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    standardised = (outcomes - center) / scale
    coefficients: Array = cho_solve((factor, True), standardised)  # eq:app_forward_coefficients
    fitted = center + scale * (gram @ coefficients)
    residual = ((outcomes - fitted) ** 2).mean(axis=0)
    return Forward(
        policies=policies,
        length_scale=length_scale,
        regularisation=regularisation,
        factor=factor,
        coefficients=coefficients,
        center=center,
        scale=scale,
        epistemic_scale=np.maximum(scale**2 - residual, 0.0),  # eq:app_forward_epi_scale
        observation=np.maximum(
            residual + constants.measurement_noise**2, constants.variance_floor
        ),  # eq:app_forward_variance_decomposition
    )


def cross_kernel(forward: Forward, policies: Array) -> Array:
    """k_t, one column per policy."""
    return kernel(forward.policies, policies, forward.length_scale)


def solved(forward: Forward, columns: Array) -> Array:
    """A_t^-1 times columns."""
    return np.asarray(cho_solve((forward.factor, True), columns))


def forward_mean(forward: Forward, policies: Array) -> Array:
    """mu_f, one row per policy."""
    standardised = cross_kernel(forward, policies).T @ forward.coefficients
    mean: Array = forward.center + forward.scale * standardised
    return mean  # eq:app_forward_mean


def leverage(forward: Forward, policies: Array) -> Array:
    """e_t."""
    cross = cross_kernel(forward, policies)
    explained = (cross * solved(forward, cross)).sum(axis=0)
    left: Array = np.maximum(1.0 - explained, 0.0)
    return left  # eq:app_forward_leverage


def epistemic_variance(forward: Forward, policies: Array) -> Array:
    """v_epi, a row a policy."""
    # eq:app_forward_variance_decomposition
    return leverage(forward, policies)[:, None] * forward.epistemic_scale


def reducible_fraction(epistemic: Array, observation: Array) -> Array:
    """rho_f."""
    fraction: Array = (epistemic / (epistemic + observation)).mean(axis=1)
    return fraction  # eq:app_forward_reducible_fraction


def reducible_score(epistemic: Array, observation: Array) -> Array:
    """s_var."""
    score: Array = (epistemic**2 / (epistemic + observation)).mean(axis=1)
    return score  # eq:app_forward_reducible_score


def residual_kernel(forward: Forward, targets: Array, candidate: Array) -> Array:
    """c_t of every target with one candidate."""
    between = kernel(targets, candidate[None], forward.length_scale)[:, 0]
    explaining = solved(forward, cross_kernel(forward, candidate[None]))[:, 0]
    return between - cross_kernel(forward, targets).T @ explaining  # eq:app_forward_cross


def variance_after(forward: Forward, targets: Array, epistemic: Array, candidate: Array) -> Array:
    """v_f of the targets, whose v_epi is `epistemic`, once one candidate has been executed."""
    cross = residual_kernel(forward, targets, candidate)
    covariance: Array = cross[:, None] * forward.epistemic_scale  # eq:app_forward_cross_cov
    own = leverage(forward, candidate[None])[0] + forward.regularisation
    denominator = forward.epistemic_scale * own + forward.observation  # eq:app_forward_update_denom
    left: Array = np.maximum(epistemic - covariance**2 / denominator, 0.0)
    # eq:app_forward_variance_update, eq:app_forward_total_post_variance
    return left + forward.observation


def validation_error(
    policies: Array, outcomes: Array, training: Indices, length_scale: float, ridge: float
) -> float:
    """Root mean square error on the rows that are not in `training`."""
    held = np.setdiff1d(np.arange(len(policies)), training)
    fitted = fit_forward(policies[training], outcomes[training], length_scale, ridge, Constants())
    error = forward_mean(fitted, policies[held]) - outcomes[held]
    return float(np.sqrt((error**2).mean()))


# ---------------------------------------------------------------- inverse model


@dataclass(frozen=True)
class Features:
    """Random Fourier features of the reward."""

    frequencies: Array
    phases: Array
    length_scale: float

    def __call__(self, outcomes: Array) -> Array:
        inside = outcomes @ self.frequencies.T / self.length_scale + self.phases
        feature: Array = np.sqrt(2.0 / len(self.phases)) * np.cos(inside)
        return feature  # eq:app_inverse_rff_features


def losses(logit: Array, labels: Array, tie_odds: float) -> tuple[Array, Array, Array]:
    """Of every comparison: -log p, its slope and its curvature in the logit u = beta delta_z w.

    The label 0 is the answer "same", with Davidson's p(same) = nu / (2 cosh(u / 2) + nu).
    """
    loss = np.logaddexp(0.0, -labels * logit)  # eq:app_inverse_pairwise_likelihood
    slope = -labels * expit(-labels * logit)
    curvature = expit(logit) * expit(-logit)  # eq:app_inverse_curvature_terms
    tie = np.flatnonzero(labels == 0.0)
    if len(tie):
        half = np.clip(0.5 * logit[tie], -300.0, 300.0)  # cosh overflows beyond
        two_cosh = 2.0 * np.cosh(half)
        loss[tie] = np.log((two_cosh + tie_odds) / tie_odds) + np.abs(0.5 * logit[tie] - half)
        slope[tie] = np.sinh(half) / (two_cosh + tie_odds)
        curvature[tie] = (4.0 + tie_odds * two_cosh) / (2.0 * (two_cosh + tie_odds)) ** 2
    return loss, slope, curvature


def objective(
    theta: Array, differences: Array, labels: Array, constants: Constants
) -> tuple[float, Array]:
    """Negative log posterior and its gradient."""
    weights, eta, beta = theta[:-1], theta[-1], np.exp(theta[-1])
    logit = beta * (differences @ weights)
    loss, slope, _ = losses(logit, labels, constants.tie_odds)
    weight_prior = weights / constants.weight_scale**2
    sharpness_prior = (eta - constants.sharpness_mean) / constants.sharpness_scale**2
    value = loss.sum() + 0.5 * weights @ weight_prior
    value += 0.5 * (eta - constants.sharpness_mean) * sharpness_prior
    by_weights = beta * (differences.T @ slope) + weight_prior
    by_eta = slope @ logit + sharpness_prior
    return float(value), np.append(by_weights, by_eta)  # eq:app_inverse_map_objective


def map_estimate(differences: Array, labels: Array, start: Array, constants: Constants) -> Array:
    """L-BFGS from the previous round's estimate."""
    found = minimize(
        objective,
        start,
        args=(differences, labels, constants),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": constants.iterations,
            "ftol": constants.function_tolerance,
            "gtol": constants.gradient_tolerance,
        },
    )
    return np.asarray(found.x, dtype=np.float64)


def precision(theta: Array, differences: Array, labels: Array, constants: Constants) -> Array:
    """Lambda_t: the prior and the positive-semidefinite curvature of every comparison."""
    beta = np.exp(theta[-1])
    logit = beta * (differences @ theta[:-1])
    # The label's sign cancels in G' diag(lambda) G, so it is left out of both.
    gradients = np.column_stack([beta * differences, logit])
    _, _, curvature = losses(logit, labels, constants.tie_odds)
    prior = np.full(len(theta), constants.weight_scale**-2.0)
    prior[-1] = constants.sharpness_scale**-2.0
    data = gradients.T @ (curvature[:, None] * gradients)
    matrix: Array = data + np.diag(prior + constants.jitter_inverse)
    return matrix  # eq:app_inverse_precision


def posterior_samples(theta: Array, matrix: Array, normals: Array, floor: float) -> Array:
    """Draws (S, m + 1) of the Gaussian approximation, eigenvalues clipped from below.

    Any square root of the covariance would do. This one, the inverse transposed Cholesky factor,
    does not depend on the signs that LAPACK gives to eigenvectors.
    """
    values, vectors = np.linalg.eigh(matrix)
    clipped = (vectors * np.maximum(values, floor)) @ vectors.T
    factor = cholesky(clipped, lower=True)
    samples: Array = theta + solve_triangular(factor, normals, lower=True, trans="T").T
    return samples  # eq:app_inverse_laplace_posterior


def preference(features: Features, samples: Array, first: Array, second: Array) -> Array:
    """q_t(+1 | first, second), a pair a row."""
    rewards = (features(first) - features(second)) @ samples[:, :-1].T
    probability: Array = expit(np.exp(samples[:, -1]) * rewards).mean(axis=1)
    return probability  # eq:app_inverse_posterior_predictive
