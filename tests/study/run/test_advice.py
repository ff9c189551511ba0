"""The evaluation of advice: its reference against a direct search, and what it measures."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.optimize

from sfihilo.history import FloatArray, Query, Response
from sfihilo.study.design.conditions import Condition, Unit
from sfihilo.study.people.lifelike import with_shape
from sfihilo.study.people.users import SimulatedUser, sample_user
from sfihilo.study.run.advice_gap import advice_curve, best_reachable, clean_reward
from sfihilo.study.run.simulate import run_unit
from tests.study.tiny import PEOPLE, tiny_unit


@cache
def person(seed: int = 1) -> SimulatedUser:
    return sample_user(2, 3, seed, settings=PEOPLE)


PERSONS = {"study": person(), "optimum": with_shape(person(), "optimum")}


class Fixed:
    """Asks given policies in turn and always advises the same one."""

    def __init__(self, policies: FloatArray, advice: FloatArray) -> None:
        self.policies, self.advice, self.round = policies, advice, 0
        self.anchor: FloatArray | None = None

    def ask(self) -> Query:
        return Query(self.round, self.policies[self.round], self.anchor)

    def tell(self, query: Query, response: Response) -> None:
        self.round, self.anchor = self.round + 1, np.asarray(response.outcome)

    def advise(self) -> FloatArray:
        return self.advice


@pytest.mark.parametrize("name", PERSONS)
def test_clean_reward_equals_the_persons_own_and_its_slope(name: str) -> None:
    user, step = PERSONS[name], 1e-4
    for policy in np.random.default_rng(0).uniform(0.1, 0.9, (5, 2)):
        value, slope = clean_reward(user, policy)
        assert value == pytest.approx(user.rewards(user.outcomes(policy[None]))[0], abs=1e-5)
        numeric = [
            (clean_reward(user, policy + move)[0] - clean_reward(user, policy - move)[0]) / 2 / step
            for move in step * np.eye(2)
        ]
        assert slope == pytest.approx(numeric, abs=1e-4)


@pytest.mark.parametrize("name", PERSONS)
def test_best_reachable_is_not_surpassed_by_a_global_search(name: str) -> None:
    user = PERSONS[name]
    best, policy = best_reachable(user)
    assert clean_reward(user, policy)[0] == pytest.approx(best)
    assert (policy >= 0).all()
    assert (policy <= 1).all()

    def loss(policy: FloatArray) -> float:
        return -clean_reward(user, policy)[0]

    bounds = scipy.optimize.Bounds(np.zeros(2), np.ones(2))
    found = scipy.optimize.differential_evolution(loss, bounds, seed=1, tol=1e-8)
    assert -found.fun <= best + 1e-6
    assert best == pytest.approx(-found.fun, abs=1e-3)


def test_advice_curve_measures_gap_share_and_asked_reward() -> None:
    user = person()
    best, policy = best_reachable(user)
    asked = np.random.default_rng(1).uniform(size=(6, 2))
    table = advice_curve(user, Fixed(asked, policy), [2, 5])
    values = table.set_index(["query", "metric"])["value"]
    assert values[5, "advice_gap"] == pytest.approx(0, abs=1e-9)
    assert values[5, "advice_share"] == pytest.approx(1)
    rewards = [clean_reward(user, each)[0] for each in asked]
    assert values[2, "asked_reward"] == pytest.approx(np.mean(rewards[1:3]))
    assert values[5, "asked_reward"] == pytest.approx(np.mean(rewards[1:6]))
    middle = np.full(2, 0.5)
    values = advice_curve(user, Fixed(asked, middle), [3]).set_index("metric")["value"]
    assert values["advice_share"] == pytest.approx(0)
    assert values["advice_gap"] == pytest.approx(best - clean_reward(user, middle)[0])


def test_advice_better_than_the_reference_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    user = person()
    _, policy = best_reachable(user)
    monkeypatch.setattr("sfihilo.study.run.advice_gap.best_reachable", lambda user: (0.1, policy))
    with pytest.raises(ValueError, match="best: expected at least"):
        advice_curve(user, Fixed(np.full((3, 2), 0.5), policy), [2])


def advice_unit(rule: str, queries: int = 4) -> Unit:
    condition = Condition("small", 2, 2, advice=(2, 4, 100))
    return replace(tiny_unit(rule=rule), condition=condition, queries=queries)


@pytest.mark.parametrize("rule", ["random", "best"])
def test_unit_of_an_advice_condition_has_the_metrics_of_advice(rule: str) -> None:
    table = run_unit(advice_unit(rule))
    assert table["query"].unique().tolist() == [2, 4]
    assert set(table["metric"]) == {"advice_gap", "advice_share", "asked_reward"}
    assert (table.loc[table["metric"] == "advice_gap", "value"] >= 0).all()
    assert run_unit(advice_unit(rule)).equals(table)


def test_unit_with_too_few_queries_is_refused() -> None:
    with pytest.raises(ValueError, match="queries: expected at least 2, got 1"):
        run_unit(advice_unit("random", queries=1))


def test_reference_of_a_person_who_adapts_is_refused() -> None:
    with pytest.raises(ValueError, match="does not adapt"):
        best_reachable(sample_user(2, 2, 1, drift=True, settings=PEOPLE))
