"""What is known about a recommended policy, and what is not.

Intervals of outcomes are those of the belief that the policy was chosen by, widened by Student's t
for the few observations that its scale rests on; those of the paper's forward belief also by what
its leave-one-out checks show (forward/validation.py).
Probabilities of preference integrate over outcomes and reward: they predict the person's answer,
if both policies were executed one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from sfihilo.feasible import Feasible
from sfihilo.final_policy import Objective, SelectionSettings
from sfihilo.forward.validation import LeaveOneOut
from sfihilo.history import FloatArray

BEST_TRIED, LAST_TRIED = "best tried", "last tried"
# Below this probability of being preferred, the advice is as good as what it is compared with.
AS_GOOD = 0.55
_FEWEST_FREEDOM = 2


class NothingLearnedError(ValueError):
    """No comparison was learned from yet, so there is nothing to recommend."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The final policy, with what it is expected to bring and how sure that is.

    reward is in the learned reward's own units, which preferences fix only up to a positive factor
    and an offset. comparisons: how many answers it was learned from. extrapolates: the forward
    belief has not been shown to predict this far from what was tried. preferred: the probability
    that this person prefers the policy to the best tried one, the last one, and any named one.
    best_tried: the executed policy of the largest expected reward, None if none is feasible.
    """

    policy: FloatArray
    outcome: FloatArray
    outcome_low: FloatArray
    outcome_high: FloatArray
    reward: float
    reward_low: float
    reward_high: float
    extrapolates: bool
    comparisons: int
    preferred: Mapping[str, float]
    best_tried: FloatArray | None

    @property
    def best_tried_is_as_good(self) -> bool:
        """Whether the best tried policy is expected to be as good as this one."""
        return self.preferred.get(BEST_TRIED, 1.0) < AS_GOOD


def describe(
    settings: SelectionSettings,
    objective: Objective,
    policy: FloatArray,
    feasible: Feasible,
    others: Mapping[str, FloatArray],
    comparisons: int,
) -> Recommendation:
    """The recommendation of `policy`, compared with what was tried and with `others`."""
    forward, reward = objective.forward, objective.reward
    mean, deviation = objective.predicted(policy)
    freedom = np.maximum(forward.measurements - 1, _FEWEST_FREEDOM)
    quantile = scipy.special.stdtrit(freedom, 0.5 + settings.interval / 2)
    reach = quantile * deviation * objective.inflation()
    outcomes = objective.outcomes(policy)
    rewards = reward.reward_samples(outcomes).mean(axis=0)
    tail = (1 - settings.interval) / 2
    low, high = np.quantile(rewards, [tail, 1 - tail])
    trusted = LeaveOneOut.of(forward).trusted_leverage()
    best_tried = _best_tried(objective, feasible)
    compared = dict(others)
    if len(forward.policies):
        compared[LAST_TRIED] = forward.policies[-1]
    if best_tried is not None:
        compared[BEST_TRIED] = best_tried
    return Recommendation(
        policy=policy,
        outcome=np.clip(mean, 0, 1),
        outcome_low=np.clip(mean - reach, 0, 1),
        outcome_high=np.clip(mean + reach, 0, 1),
        reward=float(reward.mean_reward(outcomes).mean()),
        reward_low=float(low),
        reward_high=float(high),
        extrapolates=bool(forward.leverage(policy[None])[0] > trusted),
        comparisons=comparisons,
        preferred={
            name: _preferred(objective, outcomes, other) for name, other in compared.items()
        },
        best_tried=best_tried,
    )


def _best_tried(objective: Objective, feasible: Feasible) -> FloatArray | None:
    tried = objective.forward.policies
    allowed = tried[feasible.contains(tried)] if len(tried) else tried
    if len(allowed) == 0:
        return None
    return np.asarray(allowed[int(np.argmax(objective.values(allowed)))])


def _preferred(objective: Objective, outcomes: FloatArray, other: FloatArray) -> float:
    """The probability of the answer that these outcomes are preferred to those of `other`."""
    # Every draw of one against every second draw of the other, so that their noise is independent.
    against = np.roll(objective.outcomes(other), len(outcomes) // 4, axis=0)
    return float(objective.reward.preference(outcomes, against).mean())
