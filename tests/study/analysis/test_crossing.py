"""Where a learning curve reaches the target, against hand calculations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfihilo.study.analysis.crossing import Crossing, find_crossing, find_crossings


def test_crossing_between_two_checkpoints_is_interpolated() -> None:
    crossing = find_crossing([100, 200, 300], [0.2, 0.12, 0.07])
    assert crossing == Crossing(pytest.approx(240), "observed")  # type: ignore[arg-type]


def test_curve_with_two_crossings_has_the_first() -> None:
    crossing = find_crossing([1, 2, 3, 4], [0.2, 0.1, 0.2, 0.05])
    assert crossing == Crossing(2.0, "observed")


def test_curve_below_the_target_at_its_first_checkpoint_has_that_checkpoint() -> None:
    assert find_crossing([16, 25], [0.08, 0.2]) == Crossing(16.0, "first")


@given(st.floats(-0.05, -0.022), st.floats(0.3, 0.35))
def test_extrapolation_recovers_a_logarithmic_curve(slope: float, intercept: float) -> None:
    queries = np.array([16, 25, 50, 75])
    crossing = find_crossing(queries, slope * np.log1p(queries) + intercept, cap=1e9)
    expected = np.exp((0.10 - intercept) / slope) - 1
    if crossing.kind == "extrapolated":
        assert crossing.queries == pytest.approx(max(expected, 75), rel=1e-6)
    else:
        assert expected <= 75


@pytest.mark.parametrize(
    "errors", [[0.2, 0.2, 0.2], [0.2, 0.21, 0.22], [0.4, 0.3999, 0.3998], [0.3, 0.3, 0.3]]
)
def test_curves_that_do_not_fall_are_capped(errors: list[float]) -> None:
    crossing = find_crossing([16, 25, 50], errors, cap=5000)
    assert crossing == Crossing(5000, "capped")


def test_fit_that_crosses_before_the_last_checkpoint_gives_the_last_checkpoint() -> None:
    crossing = find_crossing([10, 100, 1000], [0.5, 0.11, 0.11])
    assert crossing == Crossing(1000.0, "extrapolated")


@pytest.mark.parametrize(
    ("queries", "errors"), [([], []), ([1, 2], [0.1]), ([2, 1], [0.3, 0.2]), ([[1]], [[0.2]])]
)
def test_invalid_learning_curve_is_refused(queries: list[float], errors: list[float]) -> None:
    with pytest.raises(ValueError, match="learning curve"):
        find_crossing(queries, errors)


def test_one_checkpoint_above_the_target_is_capped() -> None:
    assert find_crossing([16], [0.3]).kind == "capped"


def test_crossings_of_many_curves_equal_an_independent_calculation_of_each() -> None:
    rng = np.random.default_rng(3)
    queries = np.array([16.0, 25, 50, 100, 200])
    curves = np.sort(rng.uniform(0.05, 0.4, size=(50, 5)), axis=1)[:, ::-1].copy()
    curves[:5] = rng.uniform(0, 0.2, size=(5, 5))  # in no order
    curves[5:8] += 0.2  # never cross
    curves[8] = curves[8, ::-1]  # rises
    curves[9, 0] = 0.1  # below from the first on
    found = find_crossings(queries, curves)
    for crossing, curve in zip(found, curves, strict=True):
        assert crossing == find_crossing(queries, curve)
        if crossing.kind == "observed":
            before = np.flatnonzero(queries <= crossing.queries)[-1]
            assert np.interp(crossing.queries, queries, curve) == pytest.approx(0.1)
            assert (curve[: before + 1] >= 0.1).all()
        assert crossing.beyond == (curve > 0.1).all()
    assert {crossing.kind for crossing in found} == {"observed", "first", "extrapolated", "capped"}
    assert find_crossings(queries[:1], curves[:, :1])[9] == Crossing(16.0, "first")
