"""Graded answers: "how much better?" as intervals of the felt margin.

Notation
--------
grades     2, 5 or 7     how many answers are offered; 2 is the paper's protocol
cuts       t             (k,)    positive edges between grades, in logits at scale 1
scale      c                     one per person: how large a margin they call "slightly better"
bounds     (a, b) / c    (p, 2)  interval of each answer at scale 1
sensitivity psi_K        how much an answer on a scale of K grades depends on its margin

An answer of strength k says that the felt margin lies between c t_k and c t_(k+1) in its direction;
"same" on a graded scale, that it lies between -c t_1 and c t_1. An answer without a strength keeps
the interval (0, inf) in its direction.

    psi_K(m, V)^2 = (1/V) sum_k [phi(z_k) - phi(z_(k+1))]^2 / [Phi(z_(k+1)) - Phi(z_k)]
    z_k = (c t_k - m) / sqrt(V)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from sfihilo.history import FloatArray, IntArray
from sfihilo.inverse.likelihood import ungraded_bounds

# In the paper's rewards (judgement noise 0.02) these are gaps of 0.02, 0.08 and 0.2.
CUTS: dict[int, tuple[float, ...]] = {2: (), 5: (1.2, 7.0), 7: (1.2, 4.8, 12.0)}
LOG_SCALE_STD = 0.7
# Graded answers before the check of their order says anything.
_FEWEST = 16
_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Grading:
    """How this person grades. used: whether their strengths are learned from, or only the signs."""

    scale: float = 1.0
    used: bool = True

    def cuts(self, grades: int) -> FloatArray:
        """The positive edges of the grades, in logits; none where only signs are used."""
        return self.scale * np.array(CUTS[grades] if self.used else ())


def answer_bounds(labels: FloatArray, strengths: IntArray, grades: int) -> FloatArray:
    """The interval of each answer at scale 1, (p, 2); strength 0 means none was given."""
    bounds = ungraded_bounds(labels)
    edges = np.array([0.0, *CUTS[grades], np.inf])
    if grades == 2:
        return bounds
    graded = np.flatnonzero(strengths > 0)
    near, far = edges[strengths[graded]], edges[strengths[graded] + 1]
    ahead = labels[graded] > 0
    bounds[graded, 0], bounds[graded, 1] = np.where(ahead, near, -far), np.where(ahead, far, -near)
    bounds[labels == 0] = -edges[1], edges[1]
    return bounds


def answer_sensitivity(mean: FloatArray, variance: FloatArray, cuts: FloatArray) -> FloatArray:
    """psi_K of normal margins with these means and variances; `cuts` are the positive edges."""
    deviation = np.sqrt(np.asarray(variance, dtype=float))
    edges = np.concatenate([-cuts[::-1], cuts])
    standard = np.clip((edges - np.asarray(mean, dtype=float)[:, None]) / deviation[:, None], -9, 9)
    ends = np.zeros((len(standard), 1))
    density = np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    falls = np.diff(np.hstack([ends, density, ends]), axis=1)
    masses = np.diff(np.hstack([ends, scipy.special.ndtr(standard), ends + 1]), axis=1)
    information = (falls**2 / np.maximum(masses, _LEAST_PROBABILITY)).sum(axis=1)
    return np.asarray(np.sqrt(information) / deviation)


def answer_clarity(ages: IntArray, recall_noise: float) -> FloatArray:
    """1 / f of answers about outcomes this many rounds apart: f^2 = 1 + kappa (age - 1)."""
    return np.asarray(1 / np.sqrt(1 + recall_noise * (np.asarray(ages) - 1)))


def grades_grow(strengths: FloatArray, margins: FloatArray) -> bool:
    """Whether strengths rise with the margins that the signs alone predict, in their direction.

    By rank correlation: above one standard error of no correlation. True while there are too few
    graded answers to tell, or all have the same strength.
    """
    if len(strengths) < _FEWEST or np.ptp(strengths) == 0 or np.ptp(margins) == 0:
        return True
    correlation = float(
        np.corrcoef(scipy.stats.rankdata(strengths), scipy.stats.rankdata(margins))[0, 1]
    )
    return bool(correlation > 1 / np.sqrt(len(strengths)))
