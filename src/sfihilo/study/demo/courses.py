"""Simulated people, each learned in three ways: the computation of the demonstration.

A `Course` is one person learned in one way, evaluated after a few comparisons. Everything random
derives from the seed of the `Plan` and the number of the person, so that a run is the same on any
number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfihilo.history import FloatArray
from sfihilo.learner import recommend
from sfihilo.settings import Settings
from sfihilo.state import State
from sfihilo.study.demo import exoskeleton
from sfihilo.study.demo.why import Why, explain_person
from sfihilo.study.design.conditions import derived_seed
from sfihilo.study.people.users import SimulatedUser, UserSettings, sample_user
from sfihilo.study.run.advice_gap import best_reachable, clean_reward
from sfihilo.study.run.evaluation import (
    EvaluationSettings,
    HeldOut,
    correct_probability,
    hold_out,
    preference_errors,
)
from sfihilo.study.run.simulate import interaction

Way = Literal["best", "understand", "random"]
WAYS: tuple[Way, ...] = ("best", "understand", "random")
SEED = 1
_LOOKS = (1 / 12, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1)  # parts of all comparisons


@dataclass(frozen=True)
class Plan:
    """What is run: how many people, how many comparisons each, from which seed."""

    people: int = 16
    queries: int = 60
    seed: int = SEED
    users: UserSettings = UserSettings()
    evaluation: EvaluationSettings = EvaluationSettings(pairs_per_bin=250)

    def __post_init__(self) -> None:
        if self.people < 2:
            raise ValueError(f"people: expected at least 2, got {self.people}")
        if self.queries < 2:
            raise ValueError(f"queries: expected at least 2, got {self.queries}")

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of comparisons after which the learner is evaluated."""
        return tuple(sorted({max(1, round(self.queries * part)) for part in _LOOKS}))


@dataclass(frozen=True, eq=False)
class Person:
    """One simulated person, and the truth that the learner is evaluated against.

    best: the largest clean reward that this person can reach. blind: the mean clean reward of
    settings drawn at random.
    """

    number: int
    user: SimulatedUser
    held_out: HeldOut
    best: float
    blind: float


@dataclass(frozen=True, eq=False)
class Course:
    """One person learned in one way.

    queries, advice, wrong (n,): after so many comparisons, the clean reward of the advice as a
    share of the best reachable one, and the share of held-out pairs whose order is predicted wrong.
    liking (queries,): the clean reward of each compared trial, as a share of the best reachable.
    """

    person: int
    way: Way
    queries: FloatArray
    advice: FloatArray
    wrong: FloatArray
    liking: FloatArray
    blind: float
    advised: FloatArray
    why: Why


def learner(way: Way) -> Settings:
    """The default preset for the device; `random` differs from the goals only in what it asks."""
    settings = Settings(policy_dim=len(exoskeleton.SETTINGS), outcome_dim=len(exoskeleton.OUTCOMES))
    return replace(settings, rule=way) if way == "random" else replace(settings, goal=way)


def prepare(plan: Plan, number: int) -> Person:
    """The person of this number, with the test pairs and the best reachable reward."""
    seed = derived_seed(plan.seed, number, "demo person")
    settings, outcomes = len(exoskeleton.SETTINGS), len(exoskeleton.OUTCOMES)
    user = sample_user(settings, outcomes, seed, settings=plan.users)
    held_out = hold_out(user, plan.evaluation)
    blind = float(user.rewards(user.outcomes(held_out.policies)).mean())
    return Person(number, user, held_out, best_reachable(user)[0], blind)


def learn(plan: Plan, person: Person, way: Way) -> Course:
    """Asks this person all comparisons in one way, and evaluates the learner on the way."""
    user = person.user
    looks: list[tuple[float, float]] = []
    seed = derived_seed(plan.seed, person.number, "demo learner")
    for asked, state in interaction(learner(way), seed, user, plan.queries):
        if asked in plan.looks:
            advised = recommend(state)
            looks.append((clean_reward(user, advised.policy)[0], wrong_share(state, person)))
    advice, wrong = np.array(looks).T
    asked_rewards = [clean_reward(user, policy)[0] for policy in state.history.policies[1:]]
    return Course(
        person=person.number,
        way=way,
        queries=np.array(plan.looks, dtype=float),
        advice=advice / person.best,
        wrong=wrong,
        liking=np.array(asked_rewards) / person.best,
        blind=person.blind / person.best,
        advised=advised.policy,
        why=explain_person(state, user, person.held_out.policies, advised.outcome),
    )


def wrong_share(state: State, person: Person) -> float:
    """The share of held-out pairs whose order the learner predicts wrong."""
    correct = correct_probability(state.posterior(), person.user, person.held_out)
    return float(preference_errors(correct, person.held_out.bins).mean())


def courses(plan: Plan, executor: Executor) -> Iterator[Course]:
    """Yields all courses, each as soon as it is finished."""
    preparing = [executor.submit(prepare, plan, number) for number in range(plan.people)]
    learning: list[Future[Course]] = []
    for future in as_completed(preparing):
        person = future.result()
        learning += [executor.submit(learn, plan, person, way) for way in WAYS]
    for done in as_completed(learning):
        yield done.result()
