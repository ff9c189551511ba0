"""A simulated person who walks: outcomes that settle during the walk, breaths, drop-outs.

Notation
    times           t_i   (n,)   seconds since the policy was applied
    begin, steady   b, s         a quantity at t = 0, and where it settles
    tau                          time constant of the person's metabolic response, seconds

    value(t) = s + (b - s) exp(-t / tau)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfihilo.history import FloatArray, generator
from sfihilo.study.people.answering import Answering, Judgement, graded
from sfihilo.study.people.lifelike import Shape, with_shape
from sfihilo.study.people.users import Experience, SimulatedUser, UserSettings, sample_user

SECONDS_PER_BREATH = 3.0
TIME_CONSTANT = 42.0
TIME_CONSTANT_SPREAD = 0.28  # standard deviation of its logarithm between people


@dataclass(frozen=True)
class Breaths:
    """One value per breath, irregular in time."""

    times: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class WalkingPerson:
    """A person in unit cubes; everything derives from (seed, number of the walk, policy).

    So the same walk gives the same outcomes and the same answer after a restart.
    """

    user: SimulatedUser

    @cached_property
    def time_constant(self) -> float:
        """Of the metabolic response, seconds."""
        rng = generator(self.user.seed, 0, "time constant")
        return TIME_CONSTANT * math.exp(TIME_CONSTANT_SPREAD * rng.standard_normal())

    def walk(self, number: int, policy: FloatArray) -> Experience:
        """The outcomes that the walk settles at, in [0, 1]."""
        return self.user.experience(number, policy)

    def answer(
        self, number: int, new: FloatArray, before: tuple[int, FloatArray], grades: int
    ) -> Judgement:
        """Which of two walks was better; `before` is the number and policy of the earlier one."""
        answering = Answering() if grades == 2 else graded(grades, scatter=0.2)
        user = replace(self.user, answering=answering)
        earlier = user.experience(*before)
        return user.judge(number, earlier, user.experience(number, new), number - before[0])

    def breaths(
        self, number: int, begin: float, steady: float, seconds: float, noise: float
    ) -> Breaths:
        """Breath by breath values of a quantity that goes from `begin` towards `steady`.

        `noise` is the standard deviation per breath; one breath of thirty is a cough.
        """
        rng = generator(self.user.seed, number, "breaths")
        count = int(2 * seconds / SECONDS_PER_BREATH) + 10
        times = np.cumsum(rng.gamma(9, SECONDS_PER_BREATH / 9, size=count))
        times = times[times < seconds]
        values = steady + (begin - steady) * np.exp(-times / self.time_constant)
        values = values + noise * rng.standard_normal(len(times))
        coughs = rng.uniform(size=len(times)) < 1 / 30
        return Breaths(times, np.where(coughs, 2 * values, values))

    def dropped(self, number: int, count: int, probability: float) -> list[bool]:
        """Which of `count` sensors fail in this walk."""
        rng = generator(self.user.seed, number, "drop-outs")
        return [bool(value) for value in rng.uniform(size=count) < probability]


def walking_person(
    policy_dim: int, outcome_dim: int, seed: int, shape: Shape = "optimum"
) -> WalkingPerson:
    """A person who judges what they feel, not what is measured."""
    settings = UserSettings(calibration=2000)  # enough for a demonstration, and quick
    user = sample_user(policy_dim, outcome_dim, seed, judges="true", settings=settings)
    return WalkingPerson(with_shape(user, shape))
