"""The transcription once more, with all intermediate results shared within a round.

Still plain float64 NumPy, one candidate after another, but the kernel of the pool and one
triangular solve serve the means, the leverages and every one-step update. `make
bench` reports it beside the literal transcription.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.reference.lookahead import (
    Draws,
    Inverse,
    Lookahead,
    best,
    entropy,
    expected_utility,
    mutual_information,
    region_utility,
    shortlisted,
    target_probabilities,
)
from benchmarks.reference.model import Array, Forward, kernel, reducible_fraction, reducible_score


def boundary_lookahead(forward: Forward, inverse: Inverse, draws: Draws) -> Lookahead:
    """Equals `lookahead.boundary_lookahead` up to rounding."""
    constants, observation, pool = inverse.constants, forward.observation, draws.pool
    cross = kernel(pool, forward.policies, forward.length_scale)
    means = forward.center + forward.scale * (cross @ forward.coefficients)
    whitened = solve_triangular(forward.factor, cross.T, lower=True)
    leverage = np.maximum(1.0 - (whitened**2).sum(axis=0), 0.0)
    epistemic = leverage[:, None] * forward.epistemic_scale
    rank = mutual_information(inverse.probabilities(means))
    rank = rank * reducible_fraction(epistemic, observation)
    variance = reducible_score(epistemic, observation)
    targets = best(rank, constants.targets)
    shortlist = shortlisted(rank, variance, draws, constants)
    between = kernel(pool[shortlist], pool[targets], forward.length_scale)
    between -= whitened[:, shortlist].T @ whitened[:, targets]
    mean, normals = means[targets], draws.target_normals
    now = target_probabilities(inverse, mean, epistemic[targets] + observation, normals)
    uniform = np.full(now.shape[2], 1.0 / now.shape[2])
    current = region_utility(now, entropy(now), uniform)
    utilities = np.empty(len(shortlist))
    for index, row in enumerate(shortlist):
        after = variance_after(forward, epistemic[targets], between[index], float(leverage[row]))
        probability = target_probabilities(inverse, mean, after, normals)
        utilities[index] = current - expected_utility(inverse, means[row], probability)
    return Lookahead(
        int(shortlist[np.argmax(utilities)]), rank, variance, targets, shortlist, utilities
    )


def variance_after(forward: Forward, epistemic: Array, cross: Array, leverage: float) -> Array:
    """v_f of the targets once a candidate of this leverage has been executed."""
    covariance = cross[:, None] * forward.epistemic_scale
    own = leverage + forward.regularisation
    denominator = forward.epistemic_scale * own + forward.observation
    left: Array = np.maximum(epistemic - covariance**2 / denominator, 0.0)
    return left + forward.observation
