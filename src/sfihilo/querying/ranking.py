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

from sfihilo.forward import ForwardBelief, reducible
from sfihilo.history import BoolArray, FloatArray, IntArray

_ROWS = 128
_FEW = 64  # so few contenders are finished at once
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
    if len(forward.blocks) > 1:  # a bound per block would prune little
        rank, variance = _scores(forward, forward.leverages_at(kernel), information)
        return Ranking(top(rank, target_count), top(variance, variance_count))
    factor = forward.blocks[0].ridge.factor_like(kernel)
    leverage = np.ones(len(kernel))
    rank, variance = _scores(forward, leverage, information)
    exact = np.zeros(len(kernel), dtype=bool)

    def explain(rows: IntArray, start: int, stop: int) -> None:
        """Take these rows of the factor into the leverage and the scores of these policies."""
        known = kernel[:, :stop] if len(rows) == len(kernel) else kernel[rows, :stop]
        for low in range(start, stop, _ROWS):
            high = min(low + _ROWS, stop)
            explained = known[:, :high] @ factor[low:high, :high].T
            leverage[rows] -= np.einsum("ij,ij->i", explained, explained)
        rank[rows], variance[rows] = _scores(forward, leverage[rows], information[rows])

    active: IntArray = np.arange(len(kernel))
    start = 0
    while start < len(factor) and len(active):
        stop = min(start + _ROWS, len(factor)) if len(active) > _FEW else len(factor)
        explain(active, start, stop)
        if stop < len(factor) and start < _REFINED:
            leaders = np.union1d(top(rank, target_count), top(variance, variance_count))
            new = leaders[~exact[leaders]]
            explain(new, stop, len(factor))
            exact[new] = True
        active = _contenders(rank, variance, exact, target_count, variance_count)
        start = stop
    return Ranking(
        top(rank, target_count), top(variance, variance_count)
    )  # eq:app_active_target_set


def _scores(
    forward: ForwardBelief, leverage: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    epistemic, observation = forward.variances(np.maximum(leverage, 0))
    fraction, score = reducible(epistemic, observation)
    return information * fraction, score  # eq:app_active_rank_score


def _contenders(
    rank: FloatArray,
    variance: FloatArray,
    exact: BoolArray,
    target_count: int,
    variance_count: int,
) -> IntArray:
    """Policies not yet exact whose bound still reaches what enough exact ones surpass."""
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
