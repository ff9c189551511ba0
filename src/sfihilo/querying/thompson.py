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
from sfihilo.querying.candidates import climb, everywhere
from sfihilo.querying.situation import Decision, Situation


def thompson(situation: Situation) -> Decision:
    """The best policy of the feasible set under one draw of both beliefs."""
    rng = situation.random("thompson")
    value = drawn_value(situation, rng)
    pool, values = climb(situation, value, everywhere(situation, rng), rng)
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
