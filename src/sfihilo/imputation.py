"""Numbers that were not measured: what is predicted for them, and how much less answers tell then.

Notation
--------
mean, variance   of a number that was not measured, noise included (forward/gaussian_process.py)
slope            g          d margin / d phi, in logits, of the reward learned so far
noise            V_i        variance of the margin of comparison i due to its missing numbers
clarity          c_i        of an answer; by its age alone if all numbers were measured (grading.py)

    V_i = sum_o g(bar phi_i)_o^2 bar v_io + g(phi_i)_o^2 v_io
    c_i = 1 / sqrt(1 / age_i^2 + V_i / 1.7^2),   age_i the clarity by age

A person answers by what they felt, and the learner knows a part of it only by prediction: the
answer is as noisy as that prediction is uncertain, where the reward depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfihilo import inverse as inv
from sfihilo.history import FloatArray, History
from sfihilo.inverse import InverseBelief
from sfihilo.inverse.grading import answer_bounds, answer_clarity
from sfihilo.inverse.laplace import LARGEST_LOG_SHARPNESS
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.refit import sharpness_is_due
from sfihilo.state import State


class Imputed(NamedTuple):
    """The history with every number, and the variance of each (zero where it was measured)."""

    history: History
    variance: FloatArray


def with_imputed(state: State) -> State:
    """The state with all missing numbers predicted anew, and the reward learned with them."""
    settings = state.settings
    history, variance = imputed(state)
    pairs = history.preference_data()
    inverse = state.inverse
    if len(pairs.labels):
        rows = np.flatnonzero(history.compared)
        inverse = inv.update(
            inverse,
            inv.difference(inverse.features, pairs.anchors, pairs.outcomes),
            pairs.labels,
            answer_bounds(pairs.labels, pairs.strengths, settings.grades),
            clarity=imputed_clarity(
                inverse,
                (pairs.anchors, pairs.outcomes),
                (variance[history.compared_with[rows]], variance[rows]),
                answer_clarity(pairs.ages, settings.recall_noise),
            ),
            reselect=bool(history.compared[-1]) and sharpness_is_due(history, settings.grades),
        )
    return replace(state, history=history, inverse=inverse)


def imputed(state: State) -> Imputed:
    """What the outcomes' processes predict for the numbers that were not measured."""
    history, processes = state.history, state.processes()
    belief = processes.at(history.policies, np.float64)
    # An outcome that no trial has measured yet stays unknown.
    known = np.where(state.forward.measurements > 0, np.clip(belief.mean, 0, 1), np.nan)
    variance = belief.variance + processes.noise**2
    return Imputed(history.impute(known), np.where(np.isnan(history.outcomes), variance, 0.0))


def imputed_clarity(
    belief: InverseBelief,
    compared: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    by_age: FloatArray,
) -> FloatArray:
    """c of comparisons of these (anchors, outcomes), each with the variances of its numbers."""
    sharpness = np.exp(min(belief.log_sharpness, LARGEST_LOG_SHARPNESS))
    noise = np.zeros(len(compared[0]))
    for outcomes, variance in zip(compared, variances, strict=True):
        slope = sharpness * belief.features.gradient(outcomes, belief.weights)
        noise += np.einsum("ij,ij->i", slope**2, variance)
    return np.asarray(1 / np.sqrt(by_age**-2 + noise / LOGISTIC_STD**2))
