"""The paired statistics against hand calculations and on degenerate samples."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfihilo.study.analysis import statistics

FIRST = np.array([5.0, 7.0, 6.0, 9.0])
SECOND = np.array([4.0, 4.0, 5.0, 6.0])


def test_paired_test_by_hand() -> None:
    # Differences 1, 3, 1, 3: mean 2, sd sqrt(4/3), t = 2 / (sd / 2), d_z = 2 / sd.
    result = statistics.paired_test(FIRST, SECOND)
    deviation = math.sqrt(4 / 3)
    assert result.users == 4
    assert result.difference == pytest.approx(2.0)
    assert result.statistic == pytest.approx(2 / (deviation / 2))
    assert result.p_value == pytest.approx(2 * stats.t.sf(2 / (deviation / 2), 3))
    assert result.effect == pytest.approx(2 / deviation)
    assert result.hedges == pytest.approx(2 / deviation * (1 - 3 / 11))


def test_paired_test_depends_on_the_pairing() -> None:
    paired = statistics.paired_test(FIRST, SECOND).p_value
    shuffled = statistics.paired_test(FIRST, SECOND[[3, 2, 1, 0]]).p_value
    assert paired != pytest.approx(shuffled)


@pytest.mark.parametrize("users", [2, 3, 30])
def test_identical_samples_show_no_difference(users: int) -> None:
    values = np.linspace(0.1, 0.9, users)
    result = statistics.paired_test(values, values)
    assert (result.statistic, result.p_value, result.effect) == (0.0, 1.0, 0.0)


def test_rounding_noise_is_no_evidence() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.7])
    result = statistics.paired_test(values, values * 3 / 3 + 1e-17)
    assert result.p_value == 1.0


def test_constant_shift_is_certain() -> None:
    result = statistics.paired_test(FIRST, FIRST - 1)
    assert result.p_value == 0.0
    assert result.effect == math.inf


def test_one_user_gives_means_and_no_test() -> None:
    result = statistics.paired_test([3.0], [5.0])
    assert (result.first_mean, result.second_mean, result.difference) == (3.0, 5.0, -2.0)
    assert math.isnan(result.p_value)
    assert math.isnan(result.effect)


def test_two_users_have_a_p_value_but_no_corrected_effect() -> None:
    result = statistics.paired_test([3.0, 6.0], [1.0, 5.0])
    # Differences 2, 1: t = 1.5 / 0.5 = 3 with one degree of freedom.
    assert result.statistic == pytest.approx(3.0)
    assert result.p_value == pytest.approx(1 - 2 * math.atan(3.0) / math.pi)
    assert math.isnan(result.hedges)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([1.0, math.nan], [1.0, 2.0], "NaN"),
        ([1.0, math.inf], [1.0, 2.0], "infinity"),
        ([1.0, 2.0], [1.0], "same users"),
        ([], [], "one number for each user"),
        ([[1.0]], [[1.0]], "one number for each user"),
    ],
)
def test_samples_with_nan_infinity_or_other_users_are_refused(
    first: object, second: object, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        statistics.paired_test(first, second)  # type: ignore[arg-type]


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1 and made monotone: 0.03, 0.04, 0.04.
    assert statistics.holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


def test_holm_ignores_tests_that_could_not_be_made() -> None:
    adjusted = statistics.holm([0.01, math.nan, 0.02])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.02])
    assert math.isnan(adjusted[1])
    assert np.isnan(statistics.holm([math.nan])).all()
    assert statistics.holm([]).size == 0


def test_holm_refuses_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        statistics.holm([0.1, 1.2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_only_raises_p_values_and_keeps_their_order(raw: list[float]) -> None:
    adjusted = statistics.holm(raw)
    assert (adjusted >= np.array(raw) - 1e-15).all()
    assert (adjusted <= 1).all()
    order = np.argsort(raw, kind="stable")
    assert (np.diff(adjusted[order]) >= -1e-15).all()


def test_stars_are_the_papers() -> None:
    marks = [statistics.stars(p) for p in (0.05, 0.049, 0.0099, 0.00099, math.nan)]
    assert marks == ["", "*", "**", "***", ""]


def test_mean_interval_against_complete_enumeration() -> None:
    values = np.array([1.0, 2.0, 4.0])
    means = np.array([np.mean(draw) for draw in product(values, repeat=3)])
    interval = statistics.mean_interval(values, level=0.8, count=40_000)
    expected = np.quantile(means, [0.1, 0.9], method="nearest")
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=0.35)
    assert interval.estimate == pytest.approx(7 / 3)


def test_mean_interval_is_deterministic() -> None:
    assert statistics.mean_interval(FIRST) == statistics.mean_interval(FIRST)


def test_one_user_has_a_point_interval() -> None:
    interval = statistics.mean_interval([0.3])
    assert (interval.low, interval.estimate, interval.high) == (0.3, 0.3, 0.3)


def test_paired_interval_is_narrower_than_the_users_differ() -> None:
    shifted = FIRST * 100 - 1
    interval = statistics.difference_interval(shifted, FIRST * 100)
    assert (interval.low, interval.high) == (-1.0, -1.0)


def test_relative_change_is_paired() -> None:
    interval = statistics.change_interval(FIRST * 0.7, FIRST)
    assert interval.estimate == pytest.approx(-0.3)
    assert interval.low == pytest.approx(-0.3)
    assert interval.high == pytest.approx(-0.3)
    with pytest.raises(ValueError, match="not zero"):
        statistics.change_interval([1.0, 2.0], [0.0, 0.0])


def test_mean_crossing_interpolates_the_mean_curve_and_resamples_users() -> None:
    queries = np.array([100.0, 200.0, 300.0])
    curves = np.array([[0.2, 0.05, 0.01], [0.2, 0.15, 0.01], [0.2, 0.15, 0.11]])
    result = statistics.mean_crossing(queries, curves)
    # The mean curve is 0.2, 0.35/3, 0.13/3: it meets 0.1 on the way from 200 to 300.
    share = (0.1 - 0.35 / 3) / (0.13 / 3 - 0.35 / 3)
    assert result.interval.estimate == pytest.approx(200 + 100 * share)
    assert result.kind == "observed"
    # User 1 alone crosses between 100 and 200; user 3 alone never does.
    assert result.interval.low == pytest.approx(100 + 100 * (0.1 - 0.2) / (0.05 - 0.2), abs=20)
    assert result.interval.high >= 300
    assert 0.0 < result.beyond < 0.1


def test_mean_crossing_of_one_user_is_that_users() -> None:
    result = statistics.mean_crossing([100.0, 200.0], [[0.2, 0.05]])
    interval = result.interval
    assert interval.low == interval.estimate == interval.high == pytest.approx(500 / 3)


def test_mean_crossing_refuses_incomplete_curves() -> None:
    queries = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        statistics.mean_crossing(queries, [[0.2, math.nan]])
    with pytest.raises(ValueError, match="shape"):
        statistics.mean_crossing(queries, [[0.2, 0.1, 0.0]])
