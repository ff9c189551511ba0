"""The recommended policy of a session, in physical units with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sfihilo
from sfihilo.experiment.session.proposals import is_painful, way_out
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.parameter import FloatArray
from sfihilo.experiment.space.space import Policy
from sfihilo.history import BoolArray

if TYPE_CHECKING:
    from sfihilo import State


@dataclass(frozen=True)
class Interval:
    """A value with the credible interval that the learner gives for it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Advice:
    """What the learner would settle on now.

    `extrapolates` warns that the policy lies outside what was tried; `one_step` says whether it may
    be set at once from where the device is, or has to be approached in steps of `max_step`.
    """

    policy: Policy
    outcomes: Mapping[str, Interval]
    reward: Interval
    extrapolates: bool
    one_step: bool
    trials: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "policy": dict(self.policy),
            "outcomes": {name: vars(interval) for name, interval in self.outcomes.items()},
            "reward": vars(self.reward),
            "extrapolates": self.extrapolates,
            "one_step": self.one_step,
            "trials": self.trials,
        }


def advise(record: Record, state: State, feasible: Mapping[str, Any] | None = None) -> Advice:
    """Recommend within the space and the ranges given in `feasible`, away from what caused pain."""
    space = record.space
    limits = space.limits(feasible)
    lower, upper = space.box((), limits)

    def accepts(units: FloatArray) -> BoolArray:
        return space.allows(units) & ~is_painful(record, units)

    restricted = bool(space.constraints or record.painful)
    try:
        found = sfihilo.recommend(
            state,
            sfihilo.Feasible(lower=lower, upper=upper, accepts=accepts if restricted else None),
        )
    except ValueError as error:
        if not record.painful:
            raise
        raise ValueError(f"no policy can be recommended: {error}{way_out(record)}") from error
    policy = space.to_policy(found.policy)
    safety.check(space, policy)
    middle, low, high = (
        space.physical_outcomes(values)
        for values in (found.outcome, found.outcome_low, found.outcome_high)
    )
    return Advice(
        policy=policy,
        outcomes={
            name: Interval(float(middle[name]), float(low[name]), float(high[name]))
            for name in space.outcomes
        },
        reward=Interval(float(found.reward), float(found.reward_low), float(found.reward_high)),
        extrapolates=bool(found.extrapolates),
        one_step=not safety.problems(space, policy, record.positions),
        trials=state.round,
    )
