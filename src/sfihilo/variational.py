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
curvature damped.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sfihilo.factor import add_to_diagonal, inverse_cholesky
from sfihilo.history import FloatArray
from sfihilo.likelihood import averaged_terms

_SMALLEST = 1e-10
_LONGEST_STEP = 4.0  # logits


class VariationalFit(NamedTuple):
    """What maximises the bound, and the bound."""

    weights: FloatArray
    curvature: FloatArray
    bound: float


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
        explained = self.factor @ (self.root[:, None] * self.gram)
        return np.asarray(np.diag(self.gram) - np.einsum("ij,ij->j", explained, explained))

    def apply(self, pull: FloatArray) -> FloatArray:
        inner = self.factor.T @ (self.factor @ (self.root * (self.gram @ pull)))
        return np.asarray(self.scaled.T @ (pull - self.root * inner))

    def divergence(self) -> float:
        return _divergence(self.factor)


class _ByFeatures(NamedTuple):
    """Through the precision I + X^T W X (m, m): for more comparisons than features."""

    scaled: FloatArray
    factor: FloatArray

    @staticmethod
    def of(scaled: FloatArray, curvature: FloatArray) -> _ByFeatures:
        return _ByFeatures(scaled, inverse_cholesky(weight_precision(scaled, curvature)))

    def variances(self) -> FloatArray:
        explained = self.scaled.astype(np.float32) @ self.factor.T.astype(np.float32)
        return np.asarray(np.einsum("ij,ij->i", explained, explained), dtype=float)

    def apply(self, pull: FloatArray) -> FloatArray:
        return np.asarray(self.factor.T @ (self.factor @ (self.scaled.T @ pull)))

    def divergence(self) -> float:
        return _divergence(self.factor)


def _divergence(factor: FloatArray) -> float:
    trace = np.einsum("ij,ij->", factor, factor) - len(factor)
    return float(0.5 * trace - np.log(np.diag(factor)).sum())


def weight_precision(scaled: FloatArray, curvature: FloatArray) -> FloatArray:
    """Sigma^-1; the product in single precision (the prior keeps it far from singular)."""
    weighted = (np.sqrt(curvature)[:, None] * scaled).astype(np.float32)
    return add_to_diagonal((weighted.T @ weighted).astype(float), 1)


def variational_fit(
    scaled: FloatArray,
    labels: FloatArray,
    tie_odds: float,
    weights: FloatArray,
    curvature: FloatArray,
    iterations: int,
    tolerance: float = 0.02,
) -> VariationalFit:
    """Iterate to the fixed point from these weights and this curvature."""
    gram = scaled @ scaled.T if len(scaled) <= scaled.shape[1] else None
    for _ in range(iterations):
        covariance: _Covariance = (
            _ByFeatures.of(scaled, curvature)
            if gram is None
            else _ByComparisons.of(scaled, gram, curvature)
        )
        variances = np.maximum(covariance.variances(), _SMALLEST)
        margins = scaled @ weights
        terms = averaged_terms(margins, variances, labels, tie_odds)
        target = covariance.apply(curvature * margins - terms.slope)
        step = float(np.abs(scaled @ (target - weights)).max(initial=0))
        weights = weights + (target - weights) * min(1.0, _LONGEST_STEP / max(step, _SMALLEST))
        terms = averaged_terms(scaled @ weights, variances, labels, tie_odds)
        wanted = np.maximum(terms.curvature, _SMALLEST)
        change = float(np.abs(np.log(wanted / curvature)).max(initial=0))
        curvature = curvature**0.3 * wanted**0.7
        if step < tolerance and change < tolerance:
            break
    bound = -terms.value.sum() - covariance.divergence() - 0.5 * weights @ weights
    return VariationalFit(weights, curvature, float(bound))
