"""A Gaussian process of utility learned from comparisons: the model of BoTorch's PairwiseGP.

Probit likelihood, Laplace's approximation (Chu and Ghahramani 2005). The latent variables are the
scaled utility differences of the compared pairs, so that the likelihood factorises and nothing is
singular when a point is compared several times; the posterior is the same (a test compares both).

Notation
    points, pairs           (n, d), (p, 2)   what was compared; rows of (preferred, other)
    lengths, variance       l_j, v           k(x, x') = v exp(-sum_j (x_j - x'_j)^2 / 2 l_j^2)
    differences   z         (p,)             (u(preferred) - u(other)) / sqrt(2)
    contrast      q(x)      (p,)             covariance of u(x) and z
    weights       a         (p,)             u's posterior mean is q(x)^T a
    system        B = I + W^1/2 C W^1/2 = L L^T,   C the prior covariance of z, W its curvature
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import log_ndtr, ndtr

from sfihilo.history import FloatArray, IntArray

_STEPS = 50
_TOLERANCE = 1e-6
_ROOT = np.sqrt(2.0)


class Hyperparameters(NamedTuple):
    """l (one per coordinate) and v."""

    lengths: FloatArray
    variance: float


class Laplace(NamedTuple):
    """The mode of the differences and what follows from it."""

    differences: FloatArray
    weights: FloatArray
    root_curvature: FloatArray
    factor: FloatArray  # L
    evidence: float


@dataclass(frozen=True, eq=False)
class PreferenceProcess:
    """Utility given comparisons and hyperparameters."""

    points: FloatArray
    pairs: IntArray
    hyper: Hyperparameters

    def kernel(self, first: FloatArray, second: FloatArray) -> FloatArray:
        one, other = first / self.hyper.lengths, second / self.hyper.lengths
        square = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
        return np.asarray(self.hyper.variance * np.exp(-0.5 * np.maximum(square, 0)))

    def _contrast(self, kernel: FloatArray) -> FloatArray:
        return np.asarray((kernel[..., self.pairs[:, 0]] - kernel[..., self.pairs[:, 1]]) / _ROOT)

    @cached_property
    def laplace(self) -> Laplace:
        """Newton's method on the log posterior of the differences (GPML, algorithm 3.1)."""
        rows = self._contrast(self.kernel(self.points, self.points))
        prior = self._contrast(rows.T)
        mode, weights = np.zeros(len(self.pairs)), np.zeros(len(self.pairs))
        value = -np.inf
        for _ in range(_STEPS):
            slope, root, factor = self._system(prior, mode)
            target = root**2 * mode + slope
            solved = scipy.linalg.cho_solve((factor, True), root * (prior @ target))
            step = target - root * solved - weights
            found, value_before = 1.0, value
            while True:  # halve the step until the posterior grows
                trial = weights + found * step
                differences = prior @ trial
                value = float(log_ndtr(differences).sum() - 0.5 * trial @ differences)
                if value >= value_before or found < 1e-4:
                    break
                found /= 2
            weights, mode = trial, differences
            if value - value_before < _TOLERANCE:
                break
        _, root, factor = self._system(prior, mode)
        evidence = value - float(np.log(np.diag(factor)).sum())
        return Laplace(mode, weights, root, factor, evidence)

    @staticmethod
    def _system(prior: FloatArray, mode: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        slope = np.exp(-0.5 * mode**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(mode))
        root = np.sqrt(np.maximum(slope * (mode + slope), 1e-12))
        system = root[:, None] * prior * root
        system[np.diag_indices_from(system)] += 1.0
        return slope, root, np.linalg.cholesky(system)

    @cached_property
    def _whitener(self) -> FloatArray:
        """L^-1 W^1/2."""
        root = np.diag(self.laplace.root_curvature)
        return np.asarray(scipy.linalg.solve_triangular(self.laplace.factor, root, lower=True))

    def mean(self, points: FloatArray) -> FloatArray:
        """Posterior mean utility, (n,)."""
        return self._contrast(self.kernel(points, self.points)) @ self.laplace.weights

    def mean_and_slope(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Posterior mean of one point and its gradient."""
        contrast, slopes = self._with_slopes(point)
        return float(contrast @ self.laplace.weights), self.laplace.weights @ slopes

    def _with_slopes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """q(x) and its derivatives, (p,) and (p, d)."""
        kernel = self.kernel(point[None], self.points)[0]
        slopes = -kernel[:, None] * (point - self.points) / self.hyper.lengths**2
        return self._contrast(kernel), self._contrast(slopes.T).T

    def best_of(self, previous: FloatArray) -> BestOfTwo:
        """The acquisition EUBO with one of its two options given."""
        explained = self._whitener @ self._contrast(self.kernel(previous[None], self.points))[0]
        return BestOfTwo(self, previous, explained)


@dataclass(frozen=True, eq=False)
class BestOfTwo:
    """EUBO: expected utility of the better of a candidate and a given point (Lin et al. 2022).

    E max(u(x), u(x_0)) = m Phi(g) + m_0 Phi(-g) + s phi(g),  g = (m - m_0) / s,
    where s^2 is the posterior variance of u(x) - u(x_0).
    """

    process: PreferenceProcess
    previous: FloatArray
    explained: FloatArray

    @cached_property
    def _previous_mean(self) -> float:
        return float(self.process.mean(self.previous[None])[0])

    @cached_property
    def _previous_variance(self) -> float:
        return self.process.hyper.variance - float(self.explained @ self.explained)

    def values(self, points: FloatArray) -> FloatArray:
        """At many candidates, (n,)."""
        process = self.process
        kernel = process.kernel(points, process.points)
        contrast = process._contrast(kernel)
        mean = contrast @ process.laplace.weights
        explained = contrast @ process._whitener.T
        own = process.hyper.variance - np.einsum("ij,ij->i", explained, explained)
        shared = process.kernel(points, self.previous[None])[:, 0] - explained @ self.explained
        spread = np.sqrt(np.maximum(own + self._previous_variance - 2 * shared, 1e-10))
        ratio = (mean - self._previous_mean) / spread
        density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
        higher, lower = mean * ndtr(ratio), self._previous_mean * ndtr(-ratio)
        return np.asarray(higher + lower + spread * density)

    def value_and_slope(self, point: FloatArray) -> tuple[float, FloatArray]:
        """At one candidate, with the gradient."""
        process = self.process
        contrast, slopes = process._with_slopes(point)
        mean, mean_slope = contrast @ process.laplace.weights, process.laplace.weights @ slopes
        explained, explained_slopes = process._whitener @ contrast, process._whitener @ slopes
        prior = float(process.kernel(point[None], self.previous[None])[0, 0])
        prior_slope = -prior * (point - self.previous) / process.hyper.lengths**2
        own = process.hyper.variance - explained @ explained
        square = own + self._previous_variance - 2 * (prior - explained @ self.explained)
        square_slope = (
            -2 * explained @ explained_slopes
            - 2 * prior_slope
            + 2 * self.explained @ explained_slopes
        )
        spread = math.sqrt(max(float(square), 1e-10))
        ratio = float((mean - self._previous_mean) / spread)
        density = float(np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi))
        value = mean * ndtr(ratio) + self._previous_mean * ndtr(-ratio) + spread * density
        return float(value), ndtr(ratio) * mean_slope + density * square_slope / (2 * spread)


def climb(
    value_and_slope: Callable[[FloatArray], tuple[float, FloatArray]], starts: FloatArray
) -> FloatArray:
    """The best local maximum within the unit cube that L-BFGS finds from these starts."""

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        value, slope = value_and_slope(point)
        return -value, -slope

    bounds = [(0.0, 1.0)] * starts.shape[1]
    climbed = [
        scipy.optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40}
        )
        for start in starts
    ]
    return np.asarray(min(climbed, key=lambda result: float(result.fun)).x)
