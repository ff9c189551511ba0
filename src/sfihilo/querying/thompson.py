"""Thompson sampling: ask what would be best, if one draw of both beliefs were true.

    w~     ~ N(hat w, Sigma)               a draw of the reward's weights
    f~     ~ GP(. | tau_1 ... phi_t)       a function drawn from the outcomes' processes
    tau_t  = argmax_tau  w~^T z(clip f~(tau))

Policies are asked as often as they are believed to be the best: the search explores as long as the
draws disagree, and no longer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfihilo.history import FloatArray
from sfihilo.querying.candidates import climb, everywhere, inside_box
from sfihilo.querying.situation import Decision, Situation
from sfihilo.querying.valuation import best_tried

_CENTRES = 2
_LOCAL_POOL = 700


def thompson(situation: Situation) -> Decision:
    """The best policy of the feasible set under one draw of both beliefs."""
    rng = situation.random("thompson")
    value = drawn_value(situation, rng)
    pool, values = climb(situation, value, everywhere(situation, rng), rng)
    return Decision(policy=pool[int(np.argmax(values))], pool=pool, scores=values)


def local_thompson(situation: Situation, half: float) -> Decision:
    """The best policy near the executed ones believed best, under one draw of both beliefs.

    In eight dimensions some policy far away looks best in nearly every draw, since nothing is known
    about it. Near what was tried, draws agree on much and disagree on what matters.
    """
    rng = situation.random("thompson")
    if situation.feasible.choices is not None:
        pool = everywhere(situation, rng)
    else:
        centres = best_tried(situation, _CENTRES)
        pool = inside_box(situation, centres, half, rng, _LOCAL_POOL)
        if len(pool) == 0:  # the feasible set may have moved away from all that was tried
            pool = everywhere(situation, rng)
    values = drawn_value(situation, rng)(pool)
    return Decision(policy=pool[int(np.argmax(values))], pool=pool, scores=values)


def drawn_value(
    situation: Situation, rng: np.random.Generator
) -> Callable[[FloatArray], FloatArray]:
    """One draw of the reward of policies."""
    posterior = situation.posterior
    weights = posterior.draw_weights(1, rng)[0]
    functions = situation.processes.draw(1, rng)

    def value(policies: FloatArray) -> FloatArray:
        return posterior.features.reward(np.clip(functions(policies)[0], 0, 1), weights)

    return value
