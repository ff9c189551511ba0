"""Policies that the seeking rules compare, and how they improve on the best of them.

Notation
--------
tried       tau_1 ... tau_t   executed policies
value       r(tau)            what a rule maximises, policies (n, d_policy) -> (n,)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfihilo.history import FloatArray, IntArray
from sfihilo.querying.ranking import top
from sfihilo.querying.situation import Decision, Situation
from sfihilo.querying.valuation import Valuation

_RADII = (0.03, 0.08, 0.2)
_CLIMB_RADII = (0.1, 0.05, 0.025, 0.0125)
_CLIMB_STARTS = 4
_CLIMB_STEPS = 16
# By the mean plus this many standard deviations: what looks good, and what might be.
_OPTIMISM = (0.3, 1.0, 2.5)
_KEPT = 54  # per degree of optimism


def everywhere(
    situation: Situation, rng: np.random.Generator, wide: int = 700, moved: int = 250
) -> FloatArray:
    """Policies over the feasible set, executed ones, and executed ones moved a little."""
    pool = situation.feasible.sample(wide, situation.policy_dim, rng, situation.previous)
    tried = situation.forward.policies
    if situation.feasible.choices is not None or len(tried) == 0:
        return pool
    centres = tried[rng.integers(0, len(tried), moved)]
    steps = rng.choice(_RADII, moved)[:, None] * rng.standard_normal(centres.shape)
    again = tried[situation.feasible.contains(tried, situation.previous)]
    return np.concatenate([pool, again, situation.kept(centres + steps)])


def climb(
    situation: Situation,
    value: Callable[[FloatArray], FloatArray],
    pool: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The pool with shrinking random steps from its best policies added, and all their values."""
    values = value(pool)
    if situation.feasible.choices is not None:
        return pool, values
    for radius in _CLIMB_RADII:
        best = np.repeat(pool[top(values, _CLIMB_STARTS)], _CLIMB_STEPS, axis=0)
        near = situation.kept(best + radius * rng.standard_normal(best.shape))
        if len(near):
            pool, values = np.concatenate([pool, near]), np.append(values, value(near))
    return pool, values


def promising(situation: Situation, rng: np.random.Generator) -> Valuation:
    """Policies that may be the best, the one of the largest value first."""
    found: list[Valuation] = []

    def value(policies: FloatArray) -> FloatArray:
        found.append(Valuation.of(situation, policies))
        return found[-1].value

    # Steps of the climb stay in the pool: between those near the advice, the advice is decided.
    _, values = climb(situation, value, everywhere(situation, rng), rng)
    advice, valued = int(np.argmax(values)), Valuation.joined(found)
    mean, deviation = valued.margin(valued.features[advice])
    by_optimism = [top(mean + some * deviation, _KEPT).tolist() for some in _OPTIMISM]
    kept = unique([advice, *(row for rows in by_optimism for row in rows)])
    return valued.rows(kept)


def best_of(
    pool: Valuation, targets: IntArray, candidates: IntArray, scores: FloatArray
) -> Decision:
    """The candidate of the largest score; targets and candidates are indices into the pool."""
    return Decision(
        policy=pool.at.policies[candidates[int(np.argmax(scores))]],
        pool=pool.at.policies,
        scores=pool.value,
        targets=targets,
        shortlist=candidates,
        utilities=scores,
    )


def unique(rows: list[int]) -> IntArray:
    """Each once, in the order of their first appearance."""
    return np.array(list(dict.fromkeys(rows)))
