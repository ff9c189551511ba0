"""How good the advice is: the setting recommended after some queries, against the best there is.

Notation
    best      r*          largest clean reward that this person can reach
    middle    r_0         clean reward of the mid-range policy
    advised   r_q         clean reward of the policy recommended after q queries

Metrics of `advice_curve`, one row per (query, metric):

    advice_gap      r* - r_q
    advice_share    (r_q - r_0) / (r* - r_0): share of the best reachable improvement
    asked_reward    mean clean reward of the policies asked until then, the first one left out

Whatever seeks a good setting takes part as a `Seeker`: the learner by `LearnerSeeker`, other
methods by an own class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
import scipy.optimize

from sfihilo.history import FloatArray, Query, Response, generator
from sfihilo.learner import ask, begin, recommend, tell
from sfihilo.state import State
from sfihilo.study.design.conditions import Unit, derived_seed, learner_settings, simulated_user
from sfihilo.study.people.users import Experience, Head, RewardMap, SimulatedUser

_POOL = 20_000
_STARTS = 24
_STEP = 1e-5
_NEGATIVE = -1e-6  # a gap below it is an error of the reference, not of rounding


class Seeker(Protocol):
    """Asks one policy per round and can say at any time which one it would advise."""

    def ask(self) -> Query: ...

    def tell(self, query: Query, response: Response) -> None: ...

    def advise(self) -> FloatArray: ...


@dataclass
class LearnerSeeker:
    """The learner's four functions as a Seeker."""

    state: State

    def ask(self) -> Query:
        return ask(self.state)

    def tell(self, query: Query, response: Response) -> None:
        self.state = tell(self.state, query, response)

    def advise(self) -> FloatArray:
        return recommend(self.state).policy


def run_advice_unit(unit: Unit) -> pd.DataFrame:
    """Columns query, metric, value: the learner's advice after the queries of the condition."""
    seed = derived_seed(unit.study_seed, unit.user, "learner")
    seeker = LearnerSeeker(begin(learner_settings(unit), seed))
    at = [query for query in unit.condition.advice if query <= unit.queries]
    if not at:
        raise ValueError(
            f"queries: expected at least {min(unit.condition.advice)}, got {unit.queries}"
        )
    return advice_curve(simulated_user(unit), seeker, at)


def advice_curve(
    user: SimulatedUser, seeker: Seeker, at: Sequence[int], best: float | None = None
) -> pd.DataFrame:
    """Let the seeker ask this person max(at) comparisons; measure its advice after each of `at`.

    best: that of `best_reachable`, where it is already known.
    """
    dimension = policy_dimension(user)
    best = best_reachable(user)[0] if best is None else best
    middle = clean_reward(user, np.full(dimension, 0.5))[0]
    previous: Experience | None = None
    asked: list[float] = []
    rows: list[tuple[int, str, float]] = []
    for query_count in range(max(at) + 1):
        query = seeker.ask()
        new = user.experience(query_count, query.policy)
        seeker.tell(query, user.answer(query, new, previous))
        previous = new
        asked.append(clean_reward(user, query.policy)[0])
        if query_count in at:
            advised = clean_reward(user, seeker.advise())[0]
            if best - advised < _NEGATIVE:
                raise ValueError(f"best: expected at least {advised} for {user.seed}, got {best}")
            rows += [
                (query_count, "advice_gap", best - advised),
                (query_count, "advice_share", (advised - middle) / (best - middle)),
                (query_count, "asked_reward", float(np.mean(asked[1:]))),
            ]
    return pd.DataFrame(rows, columns=["query", "metric", "value"])


def policy_dimension(user: SimulatedUser) -> int:
    """How many settings this person's device has."""
    return int(user.outcome_map.heads[0].frequencies.shape[1])


def clean_reward(user: SimulatedUser, policy: FloatArray) -> tuple[float, FloatArray]:
    """Clean reward of one policy in double precision, and its gradient."""
    parts = [_value_and_slope(head, policy) for head in user.outcome_map.heads[: user.relevant]]
    raw = np.array([value for value, _ in parts])
    slopes = np.array([slope for _, slope in parts])
    slopes[(raw < 0) | (raw > 1)] = 0.0  # outcomes are clipped there
    reward, slope = _reward_and_slope(user, np.clip(raw, 0, 1))
    return reward, slope @ slopes


def _reward_and_slope(user: SimulatedUser, outcome: FloatArray) -> tuple[float, FloatArray]:
    if isinstance(user.reward_map, RewardMap):
        return _value_and_slope(user.reward_map.head, outcome)
    steps = 1e-5 * np.eye(len(outcome))
    around = user.reward_map(np.vstack([outcome, outcome + steps, outcome - steps]))
    rises = around[1 : len(outcome) + 1] - around[len(outcome) + 1 :]
    return float(around[0]), np.asarray(rises / 2e-5)


def _value_and_slope(head: Head, point: FloatArray) -> tuple[float, FloatArray]:
    angles = head.frequencies @ point + head.phases
    span = head.high - head.low
    value = (np.cos(angles) @ head.weights - head.low) / span
    return float(value), -(np.sin(angles) * head.weights) @ head.frequencies / span


def best_reachable(user: SimulatedUser) -> tuple[float, FloatArray]:
    """The largest clean reward over the unit cube, and its policy: many starts, each climbed."""
    if user.initial_map is not None:
        raise ValueError("user: expected one who does not adapt, got one with an initial map")
    dimension = policy_dimension(user)
    rng = generator(user.seed, 0, "best reachable")
    pool = rng.uniform(size=(_POOL, dimension))
    leaders = pool[np.argsort(-user.rewards(user.outcomes(pool)))[:_STARTS]]
    # The leaders of a pool crowd around few summits; random starts find others.
    starts = np.vstack([leaders, rng.uniform(size=(_STARTS, dimension))])

    def loss(policy: FloatArray) -> tuple[float, FloatArray]:
        value, slope = clean_reward(user, policy)
        return -value, -slope

    bounds = [(0.0, 1.0)] * dimension
    climbed = [
        scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    found = min(climbed, key=lambda result: float(result.fun))
    return float(-found.fun), np.asarray(found.x)
