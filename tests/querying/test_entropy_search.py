"""Entropy search: against plain loops, and on worlds in which the answer is known."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from sfihilo import Settings, State
from sfihilo.history import FloatArray, IntArray
from sfihilo.querying.entropy_search import (
    Draws,
    answer_probabilities,
    entropy_search,
    information_about_winner,
    joint_draws,
)
from sfihilo.querying.valuation import Valuation
from tests.small import played, situation_of, small

NO_CUTS = np.empty(0, np.float32)


def entropy(probabilities: FloatArray) -> float:
    some = probabilities[probabilities > 0]
    return float(-(some * np.log(some)).sum())


def plain_information(
    draws: Draws, candidates: IntArray, noise: FloatArray, cuts: FloatArray
) -> list[float]:
    """The score by loops over candidates, true draws and answers, in double precision."""
    outcomes, margins = draws.outcomes.astype(float), draws.margins.astype(float)
    count, pool = margins.shape
    winners = margins.argmax(axis=1)

    def spread(weights: FloatArray) -> float:
        return entropy(np.array([weights[winners == k].sum() for k in range(pool)]))

    edges = np.array([-np.inf, *-cuts[::-1], *([] if len(cuts) else [0.0]), *cuts, np.inf])
    found = []
    for c in candidates:
        expected = 0.0
        for j in range(count):
            away = ((outcomes[j, c] - outcomes[:, c]) ** 2 / (4 * noise**2)).sum(axis=1)
            for low, high in pairwise(edges):
                answer = expit(high - margins[:, c]) - expit(low - margins[:, c])
                weights = np.exp(-away) * answer
                expected += answer[j] * spread(weights / weights.sum()) / count
        found.append(spread(np.full(count, 1 / count)) - expected)
    return found


def random_draws(count: int = 30, pool: int = 7) -> Draws:
    rng = np.random.default_rng(0)
    outcomes = rng.uniform(0.3, 0.7, (count, pool, 2)).astype(np.float32)
    return Draws(outcomes, (2 * rng.standard_normal((count, pool))).astype(np.float32))


@pytest.mark.parametrize("cuts", [(), (1.2, 4.8, 12.0)])
def test_information_about_the_winner_equals_a_plain_loop(cuts: tuple[float, ...]) -> None:
    draws, noise = random_draws(), np.array([0.1, 0.2])
    candidates = np.array([0, 3, 6])
    edges = np.array(cuts, np.float32)
    found = information_about_winner(draws, candidates, noise, edges)
    assert found == pytest.approx(plain_information(draws, candidates, noise, edges), abs=1e-4)


def test_information_lies_between_nothing_and_the_entropy_of_the_winner() -> None:
    draws = random_draws(60)
    found = information_about_winner(draws, np.arange(7), np.array([0.05, 0.05]), NO_CUTS)
    shares = np.bincount(draws.winners, minlength=7) / 60
    assert (found >= -1e-5).all()
    assert (found <= entropy(shares) + 1e-5).all()


def test_candidate_that_decides_between_two_winners_scores_above_one_that_cannot() -> None:
    """Half of the draws prefer policy 0 by a wide margin, the others policy 1; 2 is the same."""
    outcomes = np.full((20, 3, 1), 0.5, np.float32)
    margins = np.zeros((20, 3), np.float32)
    margins[:10, 0], margins[10:, 1] = 6, 6
    margins[:10, 1], margins[10:, 0] = -6, -6
    found = information_about_winner(
        Draws(outcomes, margins), np.arange(3), np.array([0.05]), NO_CUTS
    )
    assert found[:2] == pytest.approx(np.log(2), abs=0.02)
    assert found[2] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("cuts", [(), (1.0,), (1.2, 4.8, 12.0)])
def test_answer_probabilities_sum_to_one_and_stay_finite(cuts: tuple[float, ...]) -> None:
    margins = np.array([[-1e4, -3.0, 0.0], [0.5, 40.0, 1e4]], np.float32)
    found = answer_probabilities(margins, np.array(cuts, np.float32))
    assert found.shape == (2 * len(cuts) + 1 if cuts else 2, 2, 3)
    assert (found >= 0).all()
    assert found.sum(axis=0) == pytest.approx(np.ones((2, 3)), abs=1e-6)


def test_last_of_two_answers_is_that_the_new_outcome_is_preferred() -> None:
    margins = np.array([-2.0, 0.3, 4.0], np.float32)
    assert answer_probabilities(margins, NO_CUTS)[1] == pytest.approx(expit(margins), abs=1e-6)


@cache
def learned(**changes: object) -> State:
    return played(small(Settings(2, 3, **changes)), 16)  # type: ignore[arg-type]


def test_joint_draws_have_the_mean_margins_of_both_beliefs() -> None:
    state = learned()
    at = situation_of(state, sampled=state.rule_posterior)
    policies = np.random.default_rng(1).uniform(size=(4, 2))
    draws = joint_draws(at, policies, 3000, np.random.default_rng(2))
    anchor = at.posterior.features(at.anchor[None].astype(np.float32))
    mean, deviation = Valuation.of(at, policies).margin(anchor)
    error = 6 * deviation / np.sqrt(3000) + 0.15 * deviation  # outcomes are clipped to [0, 1]
    assert (np.abs(draws.margins.mean(axis=0) - mean) < error).all()


def test_graded_answers_tell_at_least_as_much_as_two() -> None:
    draws, noise = random_draws(60), np.array([0.5, 0.5])
    two = information_about_winner(draws, np.arange(7), noise, NO_CUTS)
    # Two grades on either side of zero contain the answer "better or worse" but for "same".
    graded = information_about_winner(draws, np.arange(7), noise, np.array([1e-4, 2], np.float32))
    assert (graded >= two - 1e-3).all()


def test_decision_names_the_candidates_and_their_scores() -> None:
    state = learned(grades=7)
    decision = entropy_search(situation_of(state, sampled=state.rule_posterior))
    best = decision.shortlist[int(np.argmax(decision.utilities))]
    assert np.array_equal(decision.policy, decision.pool[best])
    assert set(decision.targets) <= set(decision.shortlist)
