"""Rewards that are more like those of real people than draws from the learner's own prior.

Notation
--------
outcomes   phi      (n, d)
weights    w_j      (d,)    slope, size or width of each outcome's part
places     c_j      (d,)    rate of saturation, or place of the optimum
low, high                   min and max of the raw reward over the calibration outcomes

    linear       r = sum_j w_j phi_j
    saturating   r = sum_j w_j (1 - exp(-c_j phi_j)) / (1 - exp(-c_j)): additive and monotone
    optimum      r = -sum_j w_j (phi_j - c_j)^2: one optimum inside the range
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from sfihilo.history import FloatArray, generator
from sfihilo.study.people.users import SimulatedUser

Shape = Literal["linear", "saturating", "optimum"]
_CALIBRATION = 4000  # policies


@dataclass(frozen=True, eq=False)
class ShapedReward:
    """Outcomes (n, d) to rewards (n,): [0, 1] over the calibration outcomes, free beyond them."""

    shape: Shape
    weights: FloatArray
    places: FloatArray
    low: float = 0.0
    high: float = 1.0

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        if self.shape == "linear":
            raw = outcomes @ self.weights
        elif self.shape == "saturating":
            raw = np.expm1(-self.places * outcomes) @ (self.weights / np.expm1(-self.places))
        else:
            raw = -((outcomes - self.places) ** 2) @ self.weights
        return np.asarray((raw - self.low) / (self.high - self.low))


def with_shape(user: SimulatedUser, shape: Shape) -> SimulatedUser:
    """The same person with a random reward of this shape, normalised as other rewards are."""
    if shape not in get_args(Shape):
        raise ValueError(f"shape: expected one of {', '.join(get_args(Shape))}, got {shape!r}")
    dim = user.outcome_map.heads[0].frequencies.shape[1]
    policies = generator(user.seed, 0, "shape policies").uniform(size=(_CALIBRATION, dim))
    raw = _sampled(shape, user.relevant, generator(user.seed, 0, f"{shape} reward"))
    values = raw(user.outcome_map(policies)[:, : user.relevant])
    reward = replace(raw, low=float(values.min()), high=float(values.max()))
    return replace(user, reward_map=reward)


def _sampled(shape: Shape, dim: int, rng: np.random.Generator) -> ShapedReward:
    if shape == "optimum":
        return ShapedReward(shape, rng.lognormal(0, 0.4, dim), rng.uniform(0.25, 0.75, dim))
    return ShapedReward(shape, rng.standard_normal(dim), rng.lognormal(1, 0.5, dim))
