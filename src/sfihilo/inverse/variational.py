"""The Gaussian variational posterior of the reward's weights: the inference of the default preset.

Notation
--------
scaled     X      (p, m)   exp(eta) delta z_i, so that the margins are X w
weights    mu     (m,)     mean of q(w) = N(mu, Sigma)
curvature  W      (p,)     Sigma^-1 = I + X^T diag(W) X
margins    m_i    (p,)     X mu
variances  v_i    (p,)     x_i^T Sigma x_i
bound                      evidence lower bound, sum_i E_q[log p(I_i | u_i)] - KL(q || N(0, I))

q maximises the bound. At the maximum mu = X^T E[l'(u)] and W = -E[l''(u)], the slopes and
curvatures of the log likelihood averaged over the posterior itself; a Laplace approximation takes
them at the mode and is thereby underconfident. Newton steps on this fixed point, with the
curvature damped and the step halved where it would lower the bound, until the next step promises
a negligible gain. Raising the bound lowers the KL divergence to the true posterior by the same
amount.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sfihilo.forward.factor import add_to_diagonal, explained_by, inverse_cholesky
from sfihilo.history import FloatArray
from sfihilo.inverse.likelihood import Answers, averaged_terms

_SMALLEST = 1e-10
_LONGEST_STEP = 8.0  # logits
_SHORTEST_RATE = 0.01
_TAKEN = 0.85  # of the way to the wanted curvature, in logarithms
TOLERANCE = 0.001  # nats


class VariationalFit(NamedTuple):
    """The mean and curvature that maximise the bound, the bound, and the comparisons' margins."""

    weights: FloatArray
    curvature: FloatArray
    bound: float
    margins: FloatArray
    variances: FloatArray


class _Covariance(Protocol):
    """(I + X^T W X)^-1 for given curvature, in whichever of its two forms is smaller."""

    def variances(self) -> FloatArray: ...

    def apply(self, pull: FloatArray) -> FloatArray:
        """Sigma X^T pull."""
        ...

    def divergence(self) -> float:
        """KL(q || prior) without the mean's part."""
        ...


class _ByComparisons(NamedTuple):
    """Through B = I + W^1/2 X X^T W^1/2 (p, p): for fewer comparisons than features."""

    scaled: FloatArray
    gram: FloatArray
    root: FloatArray
    factor: FloatArray

    @staticmethod
    def of(scaled: FloatArray, gram: FloatArray, curvature: FloatArray) -> _ByComparisons:
        root = np.sqrt(curvature)
        system = add_to_diagonal(root[:, None] * gram * root, 1)
        return _ByComparisons(scaled, gram, root, inverse_cholesky(system))

    def variances(self) -> FloatArray:
        explained = explained_by(self.factor, self.gram * self.root)
        return np.asarray(np.diag(self.gram) - np.einsum("ij,ij->i", explained, explained))

    def apply(self, pull: FloatArray) -> FloatArray:
        inner = self.factor.T @ (self.factor @ (self.root * (self.gram @ pull)))
        return np.asarray(self.scaled.T @ (pull - self.root * inner))

    def divergence(self) -> float:
        return _divergence(self.factor)


class _ByFeatures(NamedTuple):
    """Through the precision I + X^T W X (m, m): for more comparisons than features.

    Variances are in single precision: the factor that they come from is not.
    """

    scaled: FloatArray
    factor: FloatArray

    @staticmethod
    def of(scaled: FloatArray, curvature: FloatArray) -> _ByFeatures:
        return _ByFeatures(scaled, inverse_cholesky(weight_precision(scaled, curvature)))

    def variances(self) -> FloatArray:
        explained = explained_by(self.factor.astype(np.float32), self.scaled.astype(np.float32))
        return np.asarray(np.einsum("ij,ij->i", explained, explained), dtype=float)

    def apply(self, pull: FloatArray) -> FloatArray:
        return np.asarray(self.factor.T @ (self.factor @ (self.scaled.T @ pull)))

    def divergence(self) -> float:
        return _divergence(self.factor)


def _divergence(factor: FloatArray) -> float:
    trace = np.einsum("ij,ij->", factor, factor) - len(factor)
    return float(0.5 * trace - np.log(np.diag(factor)).sum())


def weight_precision(scaled: FloatArray, curvature: FloatArray) -> FloatArray:
    """Sigma^-1."""
    weighted = np.sqrt(curvature)[:, None] * scaled
    return add_to_diagonal(weighted.T @ weighted, 1)


def variational_fit(
    scaled: FloatArray,
    answers: Answers,
    weights: FloatArray,
    curvature: FloatArray,
    iterations: int,
    tolerance: float = TOLERANCE,
    gram: FloatArray | None = None,
) -> VariationalFit:
    """Climb the bound until a step promises less than `tolerance`; none that lowers it is kept.

    gram: X X^T, where it is known already and there are fewer comparisons than features.
    """
    if gram is None and len(scaled) <= scaled.shape[1]:
        gram = scaled @ scaled.T
    best: VariationalFit | None = None
    goal, rate = (weights, curvature), 1.0
    for _ in range(iterations):
        covariance: _Covariance = (
            _ByFeatures.of(scaled, curvature)
            if gram is None
            else _ByComparisons.of(scaled, gram, curvature)
        )
        variances = np.maximum(covariance.variances(), _SMALLEST)
        margins = scaled @ weights
        terms = averaged_terms(margins, variances, answers)
        bound = float(-terms.value.sum() - covariance.divergence() - 0.5 * weights @ weights)
        if best is None or bound >= best.bound:
            best = VariationalFit(weights, curvature, bound, margins, variances)
            rate = 1.0
            change = covariance.apply(curvature * margins - terms.slope) - weights
            moved = scaled @ change
            capped = min(1, _LONGEST_STEP / max(float(np.abs(moved).max(initial=0)), _SMALLEST))
            there = averaged_terms(margins + capped * moved, variances, answers)
            wanted = np.maximum(there.curvature, _SMALLEST)
            goal = weights + capped * change, curvature ** (1 - _TAKEN) * wanted**_TAKEN
            # To second order, what a whole step in the mean and in the curvature would gain.
            by_mean = 0.5 * (change @ change + curvature @ moved**2)
            by_curvature = 0.25 * np.sum(((wanted - curvature) * variances) ** 2)
            if by_mean + by_curvature < tolerance:
                break
        else:
            rate /= 2
            if rate < _SHORTEST_RATE:
                break
        weights = best.weights + rate * (goal[0] - best.weights)
        curvature = best.curvature * (goal[1] / best.curvature) ** rate
    assert best is not None
    return best
