"""The likelihood of an answer (paper section 3, "Inverse reward learning").

Notation
--------
margins   u       exp(eta) (r_w(anchor) - r_w(new)), in logits
labels    I       +1 anchor preferred, -1 new preferred, 0 "same"
bounds    (a, b)  the interval of a graded answer, in logits
tie_odds  nu      Davidson's odds of a tie between equals
S                 the logistic function

A graded answer says that the felt margin, u plus logistic noise, lies in an interval (a, b):

    l(u) = log[S(b - u) - S(a - u)],   l'(u) = S(a - u) + S(b - u) - 1

The paper's answers are the special cases (0, inf) and (-inf, 0). An ungraded "same" has Davidson's
likelihood (R. R. Davidson 1970, "On extending the Bradley-Terry model to accommodate ties"):
p(same) = nu / (2 cosh(u / 2) + nu). Given that an answer is decisive, Davidson's model is the
paper's logistic one, so decisive answers count exactly as in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.history import BoolArray, FloatArray, IntArray

# Beyond five standard deviations there is no mass; between, the trapezoid is exponentially exact.
_NODES = np.linspace(-5, 5, 65)
_MASS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_LEAST_WIDTH = 1e-9  # logits
_LARGEST_REST = 30.0  # nats


class Answers(NamedTuple):
    """The answers of p comparisons.

    bounds: (p, 2) in logits. Ungraded rows are (0, inf), (-inf, 0), and (0, 0) for "same".
    """

    labels: FloatArray
    bounds: FloatArray
    tie_odds: float

    @staticmethod
    def ungraded(labels: FloatArray, tie_odds: float = 1.0) -> Answers:
        """Answers without a strength."""
        return Answers(labels, ungraded_bounds(labels), tie_odds)

    @property
    def tied(self) -> BoolArray:
        """Which answers are an ungraded "same"."""
        return np.asarray(self.bounds[:, 0] == self.bounds[:, 1])

    @property
    def graded(self) -> BoolArray:
        """Which answers carry a strength, or are "same" on a graded scale."""
        ungraded = (self.bounds == ungraded_bounds(self.labels)).all(axis=1)
        return np.asarray(~ungraded)


def ungraded_bounds(labels: FloatArray) -> FloatArray:
    """The intervals of answers without a strength, (p, 2)."""
    lower = np.where(labels < 0, -np.inf, 0.0)
    return np.column_stack([lower, np.where(labels > 0, np.inf, 0.0)])


class Terms(NamedTuple):
    """Negative log likelihood of each comparison, with its derivatives in the margin."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


def likelihood_terms(margins: FloatArray, answers: Answers) -> Terms:
    """Terms at these margins: (p,), or (p, n) for n margins per comparison."""
    signs = answers.labels if margins.ndim == 1 else answers.labels[:, None]
    near = np.exp(-np.minimum(np.abs(margins), 700.0))
    signed = signs * margins
    total = 1 + near
    wrong = np.where(signed > 0, near, 1.0) / total
    terms = Terms(
        np.log(total) + np.maximum(-signed, 0),  # eq:app_inverse_pairwise_likelihood
        -signs * wrong,
        near / (total * total),
    )
    tied, graded = np.flatnonzero(answers.tied), np.flatnonzero(answers.graded)
    if tied.size:
        _replace_rows(terms, tied, _tie_terms(margins[tied], answers.tie_odds))
    if graded.size:
        _replace_rows(terms, graded, _interval_terms(margins[graded], answers.bounds[graded]))
    return terms


def averaged_terms(means: FloatArray, variances: FloatArray, answers: Answers) -> Terms:
    """The same terms, averaged over margins with these means and variances."""
    margins = means[:, None] + np.sqrt(variances)[:, None] * _NODES
    value, slope, curvature = likelihood_terms(margins, answers)
    return Terms(value @ _MASS, slope @ _MASS, curvature @ _MASS)


def evidence_correction(means: FloatArray, variances: FloatArray, answers: Answers) -> float:
    """sum_i log E[exp r_i], r_i the log likelihood less its second-order match, u_i Gaussian."""
    deviation = np.sqrt(variances)[:, None]
    value, slope, curvature = likelihood_terms(means[:, None] + deviation * _NODES, answers)
    matched = (value @ _MASS)[:, None] + (slope @ _MASS)[:, None] * deviation * _NODES
    matched += 0.5 * (curvature @ _MASS)[:, None] * deviation**2 * (_NODES**2 - 1)
    rest = np.exp(np.minimum(matched - value, _LARGEST_REST))
    return float(np.sum(np.log(rest @ _MASS)))


def _replace_rows(terms: Terms, rows: IntArray, other: Terms) -> None:
    for column, replacement in zip(terms, other, strict=True):
        column[rows] = replacement


def _tie_terms(margins: FloatArray, tie_odds: float) -> Terms:
    far = np.abs(margins)
    near, root = np.exp(-np.minimum(far, 700.0)), np.exp(-np.minimum(far, 1400.0) / 2)
    total = 1 + near + tie_odds * root
    return Terms(
        far / 2 + np.log(total) - np.log(tie_odds),
        np.sign(margins) * (1 - near) / (2 * total),
        (near + tie_odds / 4 * root * (1 + near)) / total**2,
    )


def _interval_terms(margins: FloatArray, bounds: FloatArray) -> Terms:
    """Terms of the interval likelihood, by S(x) - S(y) = S(x) S(-y) (1 - exp(y - x))."""
    lower, upper = bounds.T if margins.ndim == 1 else bounds.T[:, :, None]
    width = np.maximum(upper - lower, _LEAST_WIDTH)
    below, above = scipy.special.expit(lower - margins), scipy.special.expit(upper - margins)
    value = np.logaddexp(0, margins - upper) + np.logaddexp(0, lower - margins)
    return Terms(
        value - np.log(-np.expm1(-width)),
        1 - below - above,
        below * (1 - below) + above * (1 - above),
    )
