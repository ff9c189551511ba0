"""The likelihood of an answer (paper section 3, "Inverse reward learning").

Notation
--------
margins   u   exp(eta) (r_w(anchor) - r_w(new))
labels    I   +1 anchor preferred, -1 new preferred, 0 "same"
tie_odds  nu  Davidson's odds of a tie between equals

"Same" has Davidson's likelihood (R. R. Davidson 1970, "On extending the Bradley-Terry model to
accommodate ties"): p(same) = nu / (2 cosh(u / 2) + nu). Given that an answer is decisive,
Davidson's model is the paper's logistic one, so decisive answers count exactly as in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfihilo.history import FloatArray

# Beyond five standard deviations there is no mass; between, the trapezoid is exponentially exact.
_NODES = np.linspace(-5, 5, 65)
_MASS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


class Terms(NamedTuple):
    """Negative log likelihood of each comparison, with its derivatives in the margin."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


def likelihood_terms(margins: FloatArray, labels: FloatArray, tie_odds: float) -> Terms:
    """Terms at these margins: (p,), or (p, n) for n margins of each comparison."""
    signs = labels if margins.ndim == 1 else labels[:, None]
    near = np.exp(-np.minimum(np.abs(margins), 700.0))
    signed = signs * margins
    total = 1 + near
    wrong = np.where(signed > 0, near, 1.0) / total
    terms = Terms(
        np.log(total) + np.maximum(-signed, 0),  # eq:app_inverse_pairwise_likelihood
        -signs * wrong,
        near / (total * total),
    )
    ties = np.flatnonzero(labels == 0)
    if ties.size:
        for column, tied in zip(terms, _tie_terms(margins[ties], tie_odds), strict=True):
            column[ties] = tied
    return terms


def averaged_terms(
    means: FloatArray, variances: FloatArray, labels: FloatArray, tie_odds: float
) -> Terms:
    """The same terms, averaged over margins with these means and variances."""
    margins = means[:, None] + np.sqrt(variances)[:, None] * _NODES
    value, slope, curvature = likelihood_terms(margins, labels, tie_odds)
    return Terms(value @ _MASS, slope @ _MASS, curvature @ _MASS)


def _tie_terms(margins: FloatArray, tie_odds: float) -> Terms:
    far = np.abs(margins)
    near, root = np.exp(-np.minimum(far, 700.0)), np.exp(-np.minimum(far, 1400.0) / 2)
    total = 1 + near + tie_odds * root
    return Terms(
        far / 2 + np.log(total) - np.log(tie_odds),
        np.sign(margins) * (1 - near) / (2 * total),
        (near + tie_odds / 4 * root * (1 + near)) / total**2,
    )
