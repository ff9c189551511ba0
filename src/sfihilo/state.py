"""The learner's state: all that the next step needs, frozen, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar

import numpy as np

from sfihilo.forward import ForwardBelief
from sfihilo.forward.gaussian_process import OutcomeProcesses, outcome_processes
from sfihilo.forward.recency import Decay, recency_weights
from sfihilo.history import FloatArray, History, generator
from sfihilo.inverse import Compared, InverseBelief, Reward, RewardAverage, reward_average
from sfihilo.inverse.posterior import RewardPosterior, reward_posterior
from sfihilo.settings import Settings

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Version of the computation. Increase it when the same history yields a different state: cached
# states of other versions are ignored.
STATE_VERSION = 4


def checked_floats(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Nothing invalid passes silently; underflow to zero is what the formulas mean."""

    @wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
            return function(*args, **kwargs)

    return checked


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """What is known after `round` tells.

    factored: how many observations the forward factor was last computed from as a whole; later ones
    were appended. It makes a loaded state equal to the saved one to the last bit.
    """

    settings: Settings
    seed: int
    history: History
    forward: ForwardBelief
    inverse: InverseBelief
    decay: Decay | None
    factored: int

    def __repr__(self) -> str:
        settings, compared = self.settings, int(self.history.compared.sum())
        return (
            f"State(round {self.round}, {compared} comparisons, {settings.policy_dim} settings, "
            f"{settings.outcome_dim} outcomes, rule {settings.rule_name})"
        )

    @property
    def round(self) -> int:
        """How many responses were told."""
        return len(self.history)

    @checked_floats
    def posterior(self) -> Reward:
        """What is known about the reward: it makes every prediction."""
        return self._posterior if self.settings.averaged is None else self._average

    @checked_floats
    def rule_posterior(self) -> RewardPosterior:
        """The Gaussian posterior with this round's samples: what the query rules work with."""
        return self._posterior

    @checked_floats
    def processes(self) -> OutcomeProcesses:
        """The outcomes as Gaussian processes: what the seeking rules work with."""
        return self._processes

    @cached_property
    def _processes(self) -> OutcomeProcesses:
        data = self.history.forward_data()
        weights = executed_weights(self.settings, self.history, self.decay)
        noise = self.settings.noise.measurement
        return outcome_processes(data.policies, data.outcomes, noise, weights)

    @cached_property
    def _average(self) -> RewardAverage:
        assert self.settings.averaged is not None
        pairs, belief = self.history.preference_data(), self.inverse
        linear = pairs.anchors - pairs.outcomes
        return reward_average(
            self.settings.averaged,
            self.settings.inverse,
            belief.features,
            Compared(linear, belief.differences, belief.clarity, belief.answers),
            lambda: generator(self.seed, self.round, "average"),
        )

    @cached_property
    def _posterior(self) -> RewardPosterior:
        return reward_posterior(self.inverse, generator(self.seed, self.round, "posterior"))


def executed_weights(
    settings: Settings, history: History, decay: Decay | None
) -> FloatArray | None:
    """Recency weights of the executed policies, if drift is expected."""
    if decay is None:
        return None
    rounds = history.forward_data().rounds
    return recency_weights(
        rounds, len(history), decay, settings.recency.weight_floor
    )  # eq:app_weighted_krr_system
