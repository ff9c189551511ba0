"""The paper's inference: joint MAP of weights and log-sharpness, Laplace approximation around it.

Paper appendix "Inverse GP posterior computation".

Notation
--------
theta          Theta            (m + 1,)  the weights, then the log-sharpness
differences    delta z_i        (p, m)
answers        I_i              p of them
margins        u_i              (p,)      exp(eta) delta z_i^T w
curvature      lambda_i         (p,)      of the negative log likelihood in the margin
precision      Lambda_t         (m + 1, m + 1)

L-BFGS searches in units of the posterior before the newest answer. There, one more answer moves
the mode by a few steps; in units of the weights fifty iterations need not arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.forward.factor import add_to_diagonal
from sfihilo.history import FloatArray
from sfihilo.inverse.likelihood import Answers, likelihood_terms

# exp(30) is beyond any sharpness that data and prior can support; its square fits single precision.
LARGEST_LOG_SHARPNESS = 30.0
# Of the gradient, in units of the posterior's width: coarser ones change the order of a pool.
_MODE_TOLERANCE = 1e-6


class JointPosterior(NamedTuple):
    """The unnormalised posterior of Theta = (w, eta)."""

    differences: FloatArray
    answers: Answers
    prior_mean: FloatArray
    prior_precision: FloatArray  # diagonal

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Negative log posterior and its gradient."""
        sharpness = np.exp(min(theta[-1], LARGEST_LOG_SHARPNESS))
        margins = sharpness * (self.differences @ theta[:-1])
        terms = likelihood_terms(margins, self.answers)
        away = theta - self.prior_mean
        pull = self.prior_precision * away
        value = terms.value.sum() + 0.5 * away @ pull  # eq:app_inverse_map_objective
        pull[:-1] += sharpness * (terms.slope @ self.differences)
        pull[-1] += terms.slope @ margins
        return float(value), pull

    def precision(self, theta: FloatArray, curvature: FloatArray, jitter: float) -> FloatArray:
        """Positive semidefinite curvature of the loss at `theta`."""
        sharpness = np.exp(min(theta[-1], LARGEST_LOG_SHARPNESS))
        margins = sharpness * (self.differences @ theta[:-1])
        root = np.sqrt(curvature)  # eq:app_inverse_curvature_terms
        slopes = np.empty((len(root), len(theta)))
        np.multiply(self.differences, (sharpness * root)[:, None], out=slopes[:, :-1])
        slopes[:, -1] = root * margins
        precision: FloatArray = slopes.T @ slopes
        return add_to_diagonal(precision, self.prior_precision + jitter)  # eq:app_inverse_precision

    def mode(
        self, start: FloatArray, scale: FloatArray, iterations: int
    ) -> tuple[FloatArray, FloatArray]:
        """The mode, searched from `start` in units of `scale`, and the curvature of each answer."""

        def scaled_loss(steps: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self.loss(start + scale @ steps)
            return value, gradient @ scale

        steps = scipy.optimize.minimize(
            scaled_loss,
            np.zeros(scale.shape[1]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "ftol": 0.0, "gtol": _MODE_TOLERANCE},
        ).x
        mode = start + scale @ steps
        mode[-1] = min(mode[-1], LARGEST_LOG_SHARPNESS)
        margins = np.exp(mode[-1]) * (self.differences @ mode[:-1])
        return mode, likelihood_terms(margins, self.answers).curvature
