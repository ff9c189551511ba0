"""Rules that seek a good setting for this person (docs/best-setting.md has their measurements)."""

from __future__ import annotations

import numpy as np
import scipy

from sfihilo.history import FloatArray
from sfihilo.querying.candidates import climb, everywhere
from sfihilo.querying.entropy_search import entropy_search
from sfihilo.querying.situation import Decision, Situation
from sfihilo.querying.valuation import Valuation


def best(situation: Situation) -> Decision:
    """The rule of the goal "best": what tells most about which setting is the best."""
    return entropy_search(situation)


def eubo(situation: Situation) -> Decision:
    """The policy of the largest expected utility of the best option (Lin et al. 2022).

    Of the last outcome and the next one, the person keeps the better: with a margin g ~ N(m, V)
    under the epistemic belief about outcome and reward,

        E max(r(phi), r(bar phi_t)) - E r(bar phi_t) = E max(g, 0) = m Phi(m / s) + s n(m / s),
        s = sqrt(V), n the standard normal density
    """
    rng = situation.random("eubo")
    anchor = situation.posterior.features(situation.anchor[None].astype(np.float32))

    def value(policies: FloatArray) -> FloatArray:
        mean, deviation = Valuation.of(situation, policies).margin(anchor)
        return expected_positive(mean, deviation)

    pool, values = climb(situation, value, everywhere(situation, rng), rng)
    return Decision(policy=pool[int(np.argmax(values))], pool=pool, scores=values)


def expected_positive(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """E max(g, 0) of g ~ N(mean, deviation^2)."""
    standard = mean / deviation
    density = np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    return np.asarray(mean * scipy.special.ndtr(standard) + deviation * density)
