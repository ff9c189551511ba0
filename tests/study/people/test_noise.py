"""Noise against the paper's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfihilo.study.people.noise import (
    NoiseLevels,
    evaluate_rewards,
    measure,
    perturb,
    reversal_probability,
)


def test_levels_are_those_of_the_papers_table() -> None:
    assert NoiseLevels() == NoiseLevels(execution=0.02, measurement=0.05, reward=0.02)


@pytest.mark.parametrize(
    ("gap", "percent", "last_digit"),
    [(0.02, 24.0, 0.1), (0.04, 7.9, 0.1), (0.08, 0.23, 0.01), (0.16, 7.7e-7, 0.1e-7)],
)
def test_reversal_probabilities_are_the_papers(
    gap: float, percent: float, last_digit: float
) -> None:
    found = 100 * float(reversal_probability(gap, NoiseLevels()))
    assert found == pytest.approx(percent, abs=last_digit / 2)


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.03])
def test_noisy_evaluations_reverse_as_often_as_the_formula_says(gap: float) -> None:
    levels, rng = NoiseLevels(), np.random.default_rng(1)
    felt = evaluate_rewards(np.tile([gap, 0.0], (40_000, 1)), levels, rng)
    reversed_share = np.mean(felt[:, 0] < felt[:, 1])
    assert reversed_share == pytest.approx(float(reversal_probability(gap, levels)), abs=0.01)


def test_without_reward_noise_nothing_is_reversed() -> None:
    quiet = NoiseLevels(reward=0.0)
    assert reversal_probability([0.1, 0.0], quiet).tolist() == [0.0, 0.5]


@given(st.floats(0, 4), st.integers(0, 2**32))
def test_noisy_policies_and_outcomes_stay_in_the_unit_cube(scale: float, seed: int) -> None:
    levels, rng = NoiseLevels().scaled(scale), np.random.default_rng(seed)
    corners = np.array([[0.0, 1.0, 0.5]] * 20)
    for noisy in (perturb(corners, levels, rng), measure(corners, levels, rng)):
        assert noisy.min() >= 0
        assert noisy.max() <= 1


def test_noise_far_from_the_cube_faces_has_its_standard_deviation() -> None:
    middle, rng = np.full(50_000, 0.5), np.random.default_rng(2)
    assert perturb(middle, NoiseLevels(), rng).std() == pytest.approx(0.02, rel=0.02)
    assert measure(middle, NoiseLevels(), rng).std() == pytest.approx(0.05, rel=0.02)
    assert evaluate_rewards(middle, NoiseLevels(), rng).std() == pytest.approx(0.02, rel=0.02)


def test_scaled_levels_multiply_all_three_and_zero_removes_noise() -> None:
    assert NoiseLevels().scaled(2) == NoiseLevels(0.04, 0.10, 0.04)
    point = np.array([0.3, 0.7])
    silent, rng = NoiseLevels().scaled(0), np.random.default_rng(0)
    np.testing.assert_array_equal(perturb(point, silent, rng), point)
    np.testing.assert_array_equal(measure(point, silent, rng), point)


@pytest.mark.parametrize("level", [-0.1, float("nan"), float("inf")])
def test_negative_or_infinite_noise_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="measurement: expected a finite noise level"):
        NoiseLevels(measurement=level)
