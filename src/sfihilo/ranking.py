"""The best of a pool by reducible uncertainty, computing only the leverage that can matter.

Paper appendix "Boundary Lookahead implementation", paragraphs "Candidate pool" and "Target set".

The leverage e_t(tau) = 1 - |L^-1 k_t(tau)|^2 is a sum over observations that only falls as rows of
L^-1 are added. After some of the rows it is therefore an upper bound, and so are both scores, which
rise with it. Policies whose bound is below what enough others reach for certain are left there. The
result is exactly that of computing every leverage, at a fraction of the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfihilo.forward import ForwardBelief, reducible_fraction, reducible_score
from sfihilo.history import BoolArray, FloatArray, IntArray

_ROWS = 128
_FEW = 256  # so few contenders are finished at once
# Exact leverages of the leaders make the bounds sharp; after two blocks they hardly improve.
_REFINED = 256


class Ranking(NamedTuple):
    """Indices into the pool."""

    targets: IntArray  # best by s_rank, descending
    variance: IntArray  # best by s_var, descending


def rank_by_reducible(
    forward: ForwardBelief,
    kernel: FloatArray,
    information: FloatArray,
    target_count: int,
    variance_count: int,
) -> Ranking:
    """Top policies of the pool by s_rank and by s_var."""
    factor = forward.factor_like(kernel)
    leverage = np.ones(len(kernel))
    active: IntArray = np.arange(len(kernel))
    exact = np.zeros(len(kernel), dtype=bool)
    for start in range(0, len(factor), _ROWS):
        stop = min(start + _ROWS, len(factor))
        rows = kernel[:, :stop] if len(active) == len(kernel) else kernel[:, :stop][active]
        explained = rows @ factor[start:stop, :stop].T
        leverage[active] -= np.einsum("ij,ij->i", explained, explained)
        if stop == len(factor):
            break
        if start < _REFINED:
            leaders = np.union1d(
                *_leaders(forward, leverage, information, target_count, variance_count)
            )
            new = leaders[~exact[leaders]]
            leverage[new] = forward.leverage_at(kernel[new])
            exact[new] = True
        active = _contenders(forward, leverage, information, exact, target_count, variance_count)
        if len(active) <= _FEW:
            leverage[active] = forward.leverage_at(kernel[active])
            break
    targets, variance = _leaders(forward, leverage, information, target_count, variance_count)
    return Ranking(targets, variance)


def _scores(
    forward: ForwardBelief, leverage: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    epistemic, observation = forward.variances(np.maximum(leverage, 0))
    rank = information * reducible_fraction(epistemic, observation)  # eq:app_active_rank_score
    return rank, reducible_score(epistemic, observation)


def _leaders(
    forward: ForwardBelief,
    leverage: FloatArray,
    information: FloatArray,
    target_count: int,
    variance_count: int,
) -> tuple[IntArray, IntArray]:
    rank, variance = _scores(forward, leverage, information)
    return top(rank, target_count), top(variance, variance_count)  # eq:app_active_target_set


def _contenders(
    forward: ForwardBelief,
    leverage: FloatArray,
    information: FloatArray,
    exact: BoolArray,
    target_count: int,
    variance_count: int,
) -> IntArray:
    """Policies not yet exact whose bound still reaches what enough exact ones surpass."""
    rank, variance = _scores(forward, leverage, information)
    reached = np.zeros(len(rank), dtype=bool)
    for score, count in ((rank, target_count), (variance, variance_count)):
        certain = np.sort(score[exact])[::-1]
        threshold = certain[count - 1] if len(certain) >= count > 0 else -np.inf
        reached |= score >= threshold if count > 0 else False
    return np.flatnonzero(reached & ~exact)


def top(scores: FloatArray, count: int) -> IntArray:
    """Indices of the largest scores, descending, the earlier one first where they are equal."""
    if 0 < count < len(scores):
        least = np.partition(scores, -count)[-count]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:count]
