"""How well probabilities predict answers: log loss and calibration slope.

Notation
--------
predicted   q_i   (n,)   predicted probability of an answer
truth       y_i   (n,)   how often that answer is given: 0 or 1, or a probability
factor      f     ()     calibration slope: f log(q / (1 - q)) predicts best; below 1, q is too sure
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from sfihilo.history import FloatArray

COIN = float(np.log(2))  # the log loss of answers that cannot be predicted
_SMALLEST = 1e-6
_STEPS = 50
_LONGEST_STEP = 0.5


def log_losses(predicted: FloatArray, truth: FloatArray) -> FloatArray:
    """Of each answer, in nats."""
    q = np.clip(predicted, _SMALLEST, 1 - _SMALLEST)
    return np.asarray(-truth * np.log(q) - (1 - truth) * np.log1p(-q))


def calibration_slope(predicted: FloatArray, truth: FloatArray) -> float:
    """The factor of the predicted log-odds with the least log loss; NaN where all are 1/2."""
    odds = logit(np.clip(predicted, _SMALLEST, 1 - _SMALLEST))
    if not np.any(odds):
        return float("nan")
    factor = 1.0
    for _ in range(_STEPS):
        fitted = expit(factor * odds)
        curvature = max(float(np.sum(odds**2 * fitted * (1 - fitted))), _SMALLEST)
        step = float(np.sum(odds * (truth - fitted))) / curvature
        factor += float(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
    return factor
