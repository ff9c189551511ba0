"""Outcome -> reward: the inverse belief (paper appendix "Inverse GP posterior computation")."""

from sfihilo.inverse.average import AverageSettings, Compared, RewardAverage, reward_average
from sfihilo.inverse.belief import (
    InverseBelief,
    InverseSettings,
    append,
    begin,
    difference,
    feature_map,
    update,
)
from sfihilo.inverse.posterior import LOGISTIC_STD, Reward, RewardPosterior, reward_posterior

__all__ = [
    "LOGISTIC_STD",
    "AverageSettings",
    "Compared",
    "InverseBelief",
    "InverseSettings",
    "Reward",
    "RewardAverage",
    "RewardPosterior",
    "append",
    "begin",
    "difference",
    "feature_map",
    "reward_average",
    "reward_posterior",
    "update",
]
