"""Outcome -> reward: the inverse belief (paper appendix "Inverse GP posterior computation")."""

from sfihilo.inverse.belief import (
    InverseBelief,
    InverseSettings,
    append,
    begin,
    difference,
    feature_map,
    update,
)
from sfihilo.inverse.posterior import LOGISTIC_STD, RewardPosterior, reward_posterior

__all__ = [
    "LOGISTIC_STD",
    "InverseBelief",
    "InverseSettings",
    "RewardPosterior",
    "append",
    "begin",
    "difference",
    "feature_map",
    "reward_posterior",
    "update",
]
