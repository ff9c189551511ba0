"""The rules that seek a good setting: against Monte Carlo, and on every feasible set."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from sfihilo import (
    Response,
    Settings,
    State,
    ask,
    begin,
    load,
    recommend,
    save,
    tell,
    with_goal,
)
from sfihilo.feasible import Feasible
from sfihilo.forward import Hyperparameters
from sfihilo.forward.recency import RecencySettings
from sfihilo.history import BoolArray, FloatArray
from sfihilo.inverse import InverseSettings
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.querying import RULES, Situation
from sfihilo.querying.knowledge_gradient import expected_gain
from sfihilo.querying.seeking import expected_positive
from sfihilo.querying.thompson import drawn_value
from sfihilo.querying.valuation import Valuation
from tests.small import (
    patchy,
    play,
    played,
    respond,
    situation_of,
    small,
    true_outcome,
    true_reward,
)

SEEKING = ("best", "entropy_search", "thompson", "knowledge_gradient", "eubo")
CHOICES = np.random.default_rng(0).uniform(size=(9, 2))


@cache
def state_of(rule: str = "random", rounds: int = 14, features: str = "landmarks") -> State:
    settings = small(Settings(2, 3, rule=rule))
    return played(replace(settings, inverse=replace(settings.inverse, features=features)), rounds)


def situation(state: State, **changes: object) -> Situation:
    return situation_of(state, sampled=state.rule_posterior, **changes)


def below_diagonal(policies: FloatArray) -> BoolArray:
    return np.asarray(policies[:, 0] + policies[:, 1] < 0.9)


SETS = {
    "bounds": Feasible(lower=[0.2, 0.6], upper=[0.4, 0.9]),
    "step": Feasible(max_step=[0.05, 0.1]),
    "callable": Feasible(accepts=below_diagonal),
    "list": Feasible(choices=CHOICES),
    "one choice": Feasible(choices=CHOICES[:1]),
    "bounds, step and callable": Feasible(lower=0.1, max_step=0.3, accepts=below_diagonal),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("rule", SEEKING)
def test_seeking_rule_asks_inside_every_feasible_set(rule: str, name: str) -> None:
    inside = situation(state_of(rounds=14), feasible=SETS[name])
    if name.startswith("bounds, step"):  # a previous policy from which the set can be reached
        inside = replace(inside, previous=np.array([0.3, 0.3]))
    decision = RULES[rule](inside)
    assert SETS[name].contains(decision.policy[None], inside.previous)[0]
    assert SETS[name].contains(decision.pool, inside.previous).all()


@pytest.mark.parametrize("rule", SEEKING)
@pytest.mark.parametrize("variant", ["unweighted", "learned"])
def test_seeking_rule_goes_on_with_missing_data_and_drift(rule: str, variant: str) -> None:
    recency = RecencySettings(variant=variant, trials=17)  # type: ignore[arg-type]
    state = played(small(Settings(2, 3, rule=rule, recency=recency)), 20, person=patchy)
    assert np.isfinite(state.history.policies).all()
    assert ask(state).policy.shape == (2,)


@pytest.mark.parametrize("features", ["rbf", "linear", "tests.small:own_features"])
@pytest.mark.parametrize("rule", SEEKING)
def test_seeking_rule_works_with_every_kind_of_features(rule: str, features: str) -> None:
    inverse = InverseSettings(features=features, feature_count=32, samples=64)
    state = played(small(Settings.paper(2, 3, rule=rule, inverse=inverse)), 8)
    assert ask(state).policy.shape == (2,)


@pytest.mark.parametrize("rule", SEEKING)
def test_seeking_rule_finds_a_better_setting_than_random_questions(rule: str) -> None:
    def asked(name: str) -> float:
        policies = [state_of(name, 30).history.policies[15:]]
        return float(np.mean([true_reward(true_outcome(p, 3)) for p in policies[0]]))

    assert asked(rule) > asked("random") + 0.05


def test_expected_positive_equals_monte_carlo() -> None:
    normals = np.random.default_rng(0).standard_normal(400_000)
    for mean, deviation in ((0.0, 1.0), (-2.0, 0.7), (3.0, 0.5), (0.3, 2.0)):
        drawn = np.maximum(mean + deviation * normals, 0)
        closed = expected_positive(np.array([mean]), np.array([deviation]))[0]
        assert closed == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 630 + 1e-9)


def test_eubo_equals_monte_carlo_over_both_beliefs() -> None:
    """For a linear reward the closed form lacks only the product of the two errors."""
    state = played(
        small(Settings.paper(2, 3, inverse=InverseSettings(features="linear", samples=64))), 25
    )
    at, rng = situation(state), np.random.default_rng(1)
    policies = rng.uniform(0.2, 0.8, size=(5, 2))
    anchor = at.posterior.features(at.anchor[None].astype(np.float32))
    mean, deviation = Valuation.of(at, policies).margin(anchor)
    closed = expected_positive(mean, deviation)
    weights = at.posterior.draw_weights(40_000, rng) * at.posterior.mean_sharpness
    belief = at.processes.at(policies)
    for row in range(5):
        normals = rng.standard_normal((40_000, 3))
        outcomes = belief.mean[row] + np.sqrt(belief.variance[row]) * normals
        drawn = np.maximum(np.einsum("ij,ij->i", weights, outcomes - at.anchor), 0)
        assert closed[row] == pytest.approx(drawn.mean(), rel=0.04)


def test_knowledge_gradient_equals_monte_carlo_over_rewards_and_answers() -> None:
    """Conditional means given the answer, by sorting sampled rewards by sampled answers."""
    at, rng = situation(state_of(rounds=20)), np.random.default_rng(2)
    policies = rng.uniform(size=(6, 2))
    candidates, targets = Valuation.of(at, policies[:2]), Valuation.of(at, policies)
    normal = np.array([[0.5, -1.0, 0.3]])
    closed = expected_gain(at, candidates, targets, normal)
    posterior, draws = at.posterior, 100_000
    weights = posterior.draw_weights(draws, rng) * posterior.mean_sharpness
    rewards = weights @ targets.features.T.astype(float)
    noise = LOGISTIC_STD * rng.standard_normal(draws)
    cross = at.processes.cross_covariance(candidates.at, targets.at)
    for row in range(2):
        variance = candidates.at.variance[row] + at.processes.noise**2
        residual = np.sqrt(variance) * normal[0]
        shift = (targets.slope * cross[row] * residual / variance).sum(axis=1)
        outcome = np.clip(candidates.at.mean[row] + residual, 0, 1)
        difference = posterior.features(outcome[None]) - posterior.features(at.anchor[None])
        preferred = weights @ difference[0] + noise > 0
        expected = sum(
            here.mean() * (rewards[here].mean(axis=0) + shift).max()
            for here in (preferred, ~preferred)
        )
        assert closed[row] == pytest.approx(expected - rewards.mean(axis=0).max(), abs=0.05)


def test_knowledge_gradient_of_the_mean_outcome_is_not_negative() -> None:
    """Without a surprise in the outcome, the answer cannot make the best advice worse."""
    at = situation(state_of(rounds=20))
    valued = Valuation.of(at, np.random.default_rng(4).uniform(size=(30, 2)))
    gains = expected_gain(at, valued, valued, np.zeros((1, 3)))
    assert (gains >= -1e-5).all()
    assert gains.max() > 1e-3


def test_slopes_are_those_of_the_values() -> None:
    """By central differences in the mean outcome."""
    at = situation(state_of(rounds=20))
    valued, step = Valuation.of(at, np.random.default_rng(4).uniform(size=(5, 2))), 1e-3
    features, weights = at.posterior.features, at.posterior.mean_weights
    mean, variance = valued.mean.astype(float), valued.at.variance.astype(float)
    for outcome in range(3):
        move = step * np.eye(3)[outcome]
        above, below = (features.averaged(mean + sign * move, variance) for sign in (1, -1))
        slope = at.posterior.mean_sharpness * (above - below) @ weights / (2 * step)
        assert valued.slope[:, outcome] == pytest.approx(slope, abs=0.02)


def test_thompson_draws_rank_policies_as_often_best_as_believed() -> None:
    """The share of draws in which one policy beats another is the probability of it."""
    at, rng = situation(state_of(rounds=20)), np.random.default_rng(3)
    pair = np.array([[0.2, 0.7], [0.6, 0.3]])
    wins = [np.diff(drawn_value(at, rng)(pair))[0] > 0 for _ in range(800)]
    valued = Valuation.of(at, pair)
    mean, deviation = valued.margin(valued.features[:1])
    assert 0.02 < np.mean(wins) < 0.98  # or else the comparison would say little
    assert np.mean(wins) == pytest.approx(float(ndtr(mean[1] / deviation[1])), abs=0.12)


@pytest.mark.parametrize("rule", SEEKING)
def test_seeking_rule_stays_finite_when_outcomes_are_known_exactly(rule: str) -> None:
    """The smallest ridge, duplicates, and a constant outcome."""
    state = begin_with_constant(rule)
    assert np.isfinite(ask(state).policy).all()


def begin_with_constant(rule: str) -> State:
    settings = small(Settings(2, 3, rule=rule))
    forward = replace(settings.forward, initial_ridge=1e-9)
    state = begin(replace(settings, forward=forward), 0)
    for round in range(8):
        query = replace(ask(state), policy=np.array([0.2, 0.4 + 0.1 * (round % 2)]))
        outcome = np.array([0.5, 0.2 + 0.3 * (round % 2), 0.1])
        choice = None if query.anchor is None else ("new" if round % 2 else "previous")
        state = tell(state, query, Response(outcome, choice))  # type: ignore[arg-type]
    assert state.forward.hyper == Hyperparameters(0.5, 1e-9)
    return state


def test_both_goals_can_be_followed_one_after_the_other() -> None:
    state = with_goal(state_of("global_pairs", 12), "best")
    assert state.settings.rule_name == "best"
    assert state.round == 12
    again = play(state, 3, respond)
    assert np.array_equal(ask(load(save(again))).policy, ask(again).policy)
    back = with_goal(again, "understand")
    assert back.settings == state_of("global_pairs", 12).settings
    assert np.array_equal(recommend(back).policy, recommend(again).policy)


@pytest.mark.parametrize("name", [name for name in SETS if "step" not in name])
def test_advice_of_a_seeking_goal_is_inside_every_feasible_set(name: str) -> None:
    advised = recommend(with_goal(state_of(rounds=14), "best"), SETS[name])
    assert SETS[name].contains(advised.policy[None])[0]


def test_advice_of_a_seeking_goal_maximises_the_expected_reward_of_the_processes() -> None:
    """By Monte Carlo over outcomes: no policy of a fine grid is expected to be better."""
    state = with_goal(state_of(rounds=20), "best")
    axis = np.linspace(0, 1, 21)
    grid = np.array([[x, y] for x in axis for y in axis])
    policies = np.vstack([recommend(state).policy, grid])
    belief, reward = state.processes().at(policies), state.posterior()
    half = np.random.default_rng(0).standard_normal((300, 3))
    normals = np.concatenate([half, -half])
    expected = [
        reward.mean_reward(np.clip(mean, 0, 1) + np.sqrt(variance) * normals).mean()
        for mean, variance in zip(belief.mean, belief.variance, strict=True)
    ]
    spread = np.ptp(expected)
    assert expected[0] > max(expected[1:]) - 0.01 * spread


def test_advice_of_a_seeking_goal_survives_executing_the_same_policies_again() -> None:
    """Where the forward belief extrapolates from a cluster, the processes return to their prior."""
    state = begin_with_constant("best")
    advised = recommend(state)
    assert np.isfinite([advised.reward_low, advised.reward, advised.reward_high]).all()
    assert np.isfinite(advised.outcome).all()
