"""Global Pair Lookahead: its information against exact bivariate normals, its queries in bounds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from sfihilo import Feasible, Query, Response, Settings, State, ask, begin, explain, tell
from sfihilo.forward import append
from sfihilo.history import Choice
from sfihilo.learner import situation_of
from sfihilo.querying import PairSettings
from sfihilo.querying.pairs import (
    TargetPairs,
    expected_error,
    forward_exponent,
    label_sensitivity,
)


def exact_information(mean: tuple[float, float], deviation: tuple[float, float], r: float) -> float:
    """Mutual information of the signs of two jointly normal variables."""
    a, b = mean[0] / deviation[0], mean[1] / deviation[1]
    both = multivariate_normal(cov=[[1, r], [r, 1]]).cdf([a, b])
    p, q = norm.cdf(a), norm.cdf(b)
    joint = np.array([[both, q - both], [p - both, 1 - p - q + both]])
    apart = np.outer([q, 1 - q], [p, 1 - p])
    return float((joint * np.log(joint / apart)).sum())


@pytest.mark.parametrize("mean", [(0.0, 0.0), (1.0, -0.5), (2.0, 1.0)])
@pytest.mark.parametrize("r", [0.05, -0.1])
def test_second_order_information_is_close_for_small_correlation(
    mean: tuple[float, float], r: float
) -> None:
    deviation = (1.5, 0.7)
    psi = [
        float(label_sensitivity(np.array(m), np.array(s**2)))
        for m, s in zip(mean, deviation, strict=True)
    ]
    covariance = r * deviation[0] * deviation[1]
    approximate = 0.5 * (psi[0] * covariance * psi[1]) ** 2
    assert approximate == pytest.approx(exact_information(mean, deviation, r), rel=0.35)


def test_sensitivity_is_finite_far_from_the_boundary() -> None:
    values = label_sensitivity(np.array([-1e6, 0.0, 1e6]), np.array([1e-6, 1.0, 1e6]))
    assert np.isfinite(values).all()
    assert (values > 0).all()


def test_expected_error_is_the_share_of_wrong_signs() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.standard_normal(40), rng.uniform(0.2, 2, 40)
    gaps = mean + np.sqrt(variance) * rng.standard_normal((20_000, 40))
    wrong = (np.sign(gaps) != np.sign(mean)).mean()
    assert expected_error(mean, variance) == pytest.approx(wrong, abs=0.003)
    assert expected_error(np.zeros(3), np.ones(3)) == 0.5


def test_forward_exponent_grows_once_the_expected_error_is_small() -> None:
    settings = PairSettings(balance=0.25, settled=0.08)
    assert [forward_exponent(settings, d) for d in (0.5, 0.08)] == [0.25, 0.25]
    assert forward_exponent(settings, 0.05) == pytest.approx(0.25 * 1.6**2)
    assert forward_exponent(settings, 0.0) == 1.0
    assert forward_exponent(PairSettings(balance=50.0), 0.0) == 50.0
    assert forward_exponent(PairSettings(balance=0.0), 0.01) == 0.0


def told(rounds: int = 12) -> State:
    state = begin(Settings(policy_dim=3, outcome_dim=2), 5)
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        query = Query(state.round, rng.uniform(size=3), state.history.anchor)
        outcome = np.clip(query.policy[:2] ** 2 + 0.05 * rng.standard_normal(2), 0, 1)
        choice: Choice | None = None
        if query.anchor is not None:
            choice = "new" if outcome.sum() > query.anchor.sum() else "previous"
        state = tell(state, query, Response(outcome, choice))
    return state


def test_the_chosen_policy_has_the_largest_utility_of_the_shortlist() -> None:
    selection = explain(told())
    best = selection.shortlist[int(np.argmax(selection.utilities))]
    assert np.array_equal(selection.pool[best], selection.policy)
    assert len(selection.pool) == len(selection.scores)
    assert len(selection.shortlist) == len(selection.utilities)


@pytest.mark.parametrize(
    "feasible",
    [
        Feasible(lower=0.2, upper=[0.5, 0.9, 0.4]),
        Feasible(max_step=0.07),
        Feasible(accepts=lambda policies: policies.sum(axis=1) < 1.0),
        Feasible(choices=np.random.default_rng(1).uniform(size=(9, 3))),
        Feasible(choices=[[0.5, 0.5, 0.5]]),
    ],
)
def test_only_feasible_policies_are_asked(feasible: Feasible) -> None:
    state = told()
    query = ask(state, feasible)
    assert feasible.contains(query.policy[None], state.history.previous_policy)[0]


def test_the_balance_weighs_the_forward_model() -> None:
    """The larger the exponent, the more the observation explains of the whole policy space."""
    state = told(30)
    everywhere = np.random.default_rng(2).uniform(size=(800, 3))
    left = []
    for balance in (0.0, 50.0):
        pairs = replace(state.settings.pairs, balance=balance)
        policy = ask(replace(state, settings=replace(state.settings, pairs=pairs))).policy
        after = append(state.forward, policy, np.full(2, 0.5))
        left.append(float(after.leverage(everywhere).mean()))
    assert left[1] < left[0]


def recalling(state: State, recall: int, recall_noise: float = 0.0) -> TargetPairs:
    """The same target pairs, for a person who remembers this many trials."""
    settings = replace(state.settings, recall=recall, recall_noise=recall_noise)
    situation = situation_of(replace(state, settings=settings), Feasible())
    return TargetPairs.of(situation, replace(situation.pairs, balance=0.0, settled=0.0))


def test_scores_with_recall_count_the_comparison_that_tells_most() -> None:
    """The largest of the scores against each recalled outcome alone, for the same outcome drawn."""
    state = told(30)
    policies = np.random.default_rng(3).uniform(size=(40, 3))
    together = recalling(state, 4)
    alone = [
        replace(
            together,
            situation=replace(
                together.situation,
                recalled=each[None],
                answer_noise=together.situation.answer_noise[:1],
            ),
        )
        for each in together.situation.recalled
    ]
    scores = np.array([one.scores(policies, 1, "drawn") for one in alone])
    assert np.allclose(together.scores(policies, 1, "drawn"), scores.max(axis=0), rtol=1e-5)
    assert len(set(scores.argmax(axis=0))) > 1  # not always the same one, or this shows nothing


def test_scores_of_people_who_forget_everything_are_those_without_recall() -> None:
    state = told(30)
    policies = np.random.default_rng(4).uniform(size=(40, 3))
    forgetful = recalling(state, 5, recall_noise=1e12).scores(policies, 4, "drawn")
    assert np.allclose(forgetful, recalling(state, 1).scores(policies, 4, "drawn"), rtol=1e-5)


def test_queries_of_a_person_who_remembers_more_differ() -> None:
    state = told(30)
    remembering = replace(state, settings=replace(state.settings, recall=5))
    assert not np.array_equal(ask(state).policy, ask(remembering).policy)
