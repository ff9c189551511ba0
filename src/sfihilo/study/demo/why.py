"""Why a person prefers something: the learned reward over outcomes, beside the true one.

Notation
    outcomes   phi    (n, d)   outcomes that settings induce
    shuffled   phi'   (n, d)   the same, one outcome taken from another row

    drive of outcome j = mean |r(phi) - r(phi')|, as a share of the sum over all outcomes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfihilo.history import FloatArray, IntArray, generator
from sfihilo.state import State
from sfihilo.study.people.users import SimulatedUser

Reward = Callable[[FloatArray], FloatArray]
_POINTS = 61
_BAND = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Slice:
    """The reward along one outcome, relative to `here`, the other outcomes held.

    common: the range that contains 90 % of the outcomes of random settings.
    """

    grid: FloatArray
    truth: FloatArray
    learned: FloatArray
    low: FloatArray
    high: FloatArray
    common: tuple[float, float]
    here: float


@dataclass(frozen=True, eq=False)
class Why:
    """One slice per outcome, and the drive of each outcome: learned, and true."""

    slices: tuple[Slice, ...]
    learned: FloatArray
    truth: FloatArray


def explain_person(
    state: State, user: SimulatedUser, policies: FloatArray, centre: FloatArray
) -> Why:
    """The learned reward beside the true one, around the outcome `centre`.

    Answers only compare outcomes: the free unit of the learned reward is set by one linear fit to
    the true reward over the outcomes of `policies`, the same for all slices.
    """
    outcomes = user.outcomes(policies)
    posterior = state.posterior()
    unit = float(np.polyfit(posterior.mean_reward(outcomes), user.rewards(outcomes), 1)[0])
    usual = np.quantile(outcomes, _BAND, axis=0)
    grid = np.linspace(0, 1, _POINTS)
    slices = []
    for outcome in range(outcomes.shape[1]):
        line = np.repeat(centre[None, :], _POINTS + 1, axis=0)
        line[:-1, outcome] = grid  # the last row stays at the centre
        truth, learned = user.rewards(line), unit * posterior.mean_reward(line)
        draws = unit * posterior.reward_samples(line)
        low, high = np.quantile(draws[:-1] - draws[-1], _BAND, axis=1)
        slices.append(
            Slice(
                grid=grid,
                truth=truth[:-1] - truth[-1],
                learned=learned[:-1] - learned[-1],
                low=low,
                high=high,
                common=(float(usual[0, outcome]), float(usual[1, outcome])),
                here=float(centre[outcome]),
            )
        )
    order = generator(user.seed, 0, "demo shuffle").permutation(len(outcomes))
    return Why(
        slices=tuple(slices),
        learned=drives(posterior.mean_reward, outcomes, order),
        truth=drives(user.rewards, outcomes, order),
    )


def drives(reward: Reward, outcomes: FloatArray, order: IntArray) -> FloatArray:
    """The share of each outcome in what makes the reward differ (d,); order: a permutation of n."""
    base = reward(outcomes)
    changes = np.empty(outcomes.shape[1])
    for outcome in range(len(changes)):
        shuffled = outcomes.copy()
        shuffled[:, outcome] = outcomes[order, outcome]
        changes[outcome] = np.abs(reward(shuffled) - base).mean()
    return np.asarray(changes / changes.sum())
