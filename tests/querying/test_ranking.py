"""The pruned ranking against computing every leverage."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfihilo import forward as fw
from sfihilo.forward import ForwardBelief, ForwardSettings, Hyperparameters
from sfihilo.history import FloatArray, IntArray
from sfihilo.querying import ranking
from sfihilo.querying.ranking import rank_by_reducible, top


def belief_of(count: int, dimension: int, ridge: float, seed: int) -> ForwardBelief:
    rng = np.random.default_rng(seed)
    policies, outcomes = rng.uniform(size=(count, dimension)), rng.uniform(size=(count, 2))
    return fw.fit(ForwardSettings(), Hyperparameters(0.5, ridge), 0.05, policies, outcomes)


def exhaustive(
    forward: ForwardBelief, pool: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """s_rank and s_var of the whole pool."""
    epistemic, observation = forward.variances(forward.leverage(pool))
    fraction, score = fw.reducible(epistemic, observation)
    return information * fraction, score


def agree(found: IntArray, scores: FloatArray, count: int) -> None:
    """The same scores in the same order; the same policies wherever scores differ."""
    expected = np.argsort(-scores, kind="stable")[:count]
    assert len(found) == len(expected)
    assert len(set(found.tolist())) == len(found)
    assert scores[found] == pytest.approx(scores[expected], rel=1e-9, abs=1e-13)
    ordered = np.sort(scores)[::-1]
    for place, (mine, other) in enumerate(zip(found, expected, strict=True)):
        gaps = np.abs(np.delete(ordered, place) - ordered[place])
        if len(gaps) and gaps.min() > 1e-9:
            assert mine == other


@settings(max_examples=40)
@given(
    count=st.sampled_from([0, 1, 5, 127, 128, 129, 300]),
    pool_size=st.integers(1, 400),
    dimension=st.integers(1, 8),
    ridge=st.sampled_from([1e-1, 1e-3, 1e-5]),
    shape=st.sampled_from(["spread", "peaked", "zeros", "ties", "all zero"]),
    counts=st.tuples(st.integers(1, 40), st.integers(0, 6)),
    seed=st.integers(0, 10_000),
)
def test_ranking_is_the_exhaustive_one(
    count: int,
    pool_size: int,
    dimension: int,
    ridge: float,
    shape: str,
    counts: tuple[int, int],
    seed: int,
) -> None:
    forward = belief_of(count, dimension, ridge, seed)
    rng = np.random.default_rng(seed + 1)
    pool = rng.uniform(size=(pool_size, dimension))
    information = rng.uniform(0, 0.7, pool_size)
    if shape == "peaked":
        information **= 20
    elif shape == "zeros":
        information[rng.random(pool_size) < 0.7] = 0
    elif shape == "ties":
        pool = np.repeat(pool, 2, axis=0)[:pool_size]
        information = np.repeat(information, 2)[:pool_size]
    elif shape == "all zero":
        information[:] = 0
    found = rank_by_reducible(forward, forward.kernel(pool), information, *counts)
    rank, variance = exhaustive(forward, pool, information)
    agree(found.targets, rank, counts[0])
    agree(found.variance, variance, counts[1])


def test_ranking_computes_few_exact_leverages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is for: far fewer exact leverages than policies."""
    forward = belief_of(700, 4, 0.1, 0)
    rng = np.random.default_rng(1)
    pool = rng.uniform(size=(1500, 4))
    information = rng.uniform(0, 0.7, 1500) ** 4
    left: list[int] = []
    original = ranking._contenders

    def contenders(*args: Any) -> IntArray:
        found = original(*args)
        left.append(len(found))
        return found

    monkeypatch.setattr(ranking, "_contenders", contenders)
    found = rank_by_reducible(forward, forward.kernel(pool), information, 32, 4)
    rank, variance = exhaustive(forward, pool, information)
    agree(found.targets, rank, 32)
    agree(found.variance, variance, 4)
    assert left[-1] < 600


def test_single_precision_ranks_nearly_alike() -> None:
    forward = belief_of(400, 8, 0.1, 0)
    rng = np.random.default_rng(1)
    pool, information = rng.uniform(size=(2000, 8)), rng.uniform(0, 0.7, 2000)
    single = rank_by_reducible(forward, forward.kernel(pool.astype(np.float32)), information, 32, 4)
    rank, variance = exhaustive(forward, pool, information)
    assert rank[single.targets] == pytest.approx(np.sort(rank)[::-1][:32], rel=1e-4)
    assert variance[single.variance] == pytest.approx(np.sort(variance)[::-1][:4], rel=1e-4)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]), max_size=30), st.integers(0, 35))
def test_top_with_ties(scores: list[float], count: int) -> None:
    expected = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:count]
    assert top(np.array(scores), count).tolist() == expected
