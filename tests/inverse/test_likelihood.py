"""The likelihood of graded answers, against numerical derivatives and its special cases."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from sfihilo.history import FloatArray
from sfihilo.inverse.likelihood import Answers, averaged_terms, likelihood_terms

CUTS = np.array([1.2, 4.8, 12.0])


def interval(lower: float, upper: float, count: int = 1) -> Answers:
    label = float(np.sign(np.clip(lower, -99, 99) + np.clip(upper, -99, 99)))
    return Answers(np.full(count, label), np.tile([lower, upper], (count, 1)), 1.0)


def seven_intervals() -> list[tuple[float, float]]:
    edges = [-np.inf, *(-CUTS[::-1]), *CUTS, np.inf]
    return [(float(low), float(high)) for low, high in itertools.pairwise(edges)]


@pytest.mark.parametrize("bounds", [*seven_intervals(), (0.3, 0.4)])
def test_interval_terms_match_numerical_derivatives(bounds: tuple[float, float]) -> None:
    margins, step = np.linspace(-9, 9, 25), 1e-5
    answers = interval(*bounds, count=len(margins))
    terms = likelihood_terms(margins, answers)
    above = likelihood_terms(margins + step, answers)
    below = likelihood_terms(margins - step, answers)
    assert terms.slope == pytest.approx((above.value - below.value) / (2 * step), abs=1e-6)
    assert terms.curvature == pytest.approx((above.slope - below.slope) / (2 * step), abs=1e-6)
    direct = expit(bounds[1] - margins) - expit(bounds[0] - margins)
    assert np.exp(-terms.value) == pytest.approx(direct, rel=1e-6, abs=1e-12)


def test_probabilities_of_seven_grades_sum_to_one() -> None:
    margins = np.linspace(-40, 40, 81)
    total = sum(
        np.exp(-likelihood_terms(margins, interval(*bounds, count=81)).value)
        for bounds in seven_intervals()
    )
    assert total == pytest.approx(np.ones(81), abs=1e-12)


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_interval_from_zero_to_infinity_equals_binary_answer(label: float) -> None:
    margins = np.linspace(-30, 30, 61)
    binary = likelihood_terms(margins, Answers.ungraded(np.full(61, label)))
    near_zero = 1e-300 * label  # not exactly ungraded, so that the interval formula is used
    bounds = (near_zero, np.inf) if label > 0 else (-np.inf, near_zero)
    answers = interval(*bounds, count=61)
    assert answers.graded.all()
    for ours, expected in zip(likelihood_terms(margins, answers), binary, strict=True):
        assert ours == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_ungraded_rows_keep_their_bits_beside_graded_ones() -> None:
    labels = np.array([1.0, -1.0, 0.0, 1.0])
    alone = Answers.ungraded(labels)
    bounds = alone.bounds.copy()
    bounds[3] = 1.2, 4.8
    mixed = Answers(labels, bounds, 1.0)
    assert mixed.graded.tolist() == [False, False, False, True]
    margins = np.array([0.3, -2.0, 1.1, 3.0])
    for ours, expected in zip(
        averaged_terms(margins, np.ones(4), mixed),
        averaged_terms(margins, np.ones(4), alone),
        strict=True,
    ):
        assert (ours[:3] == expected[:3]).all()
        assert ours[3] != expected[3]


@pytest.mark.parametrize("margin", [-1e6, -800.0, 0.0, 800.0, 1e6])
@pytest.mark.parametrize(
    "bounds", [*seven_intervals(), (0.0, 1e-12), (1e5, np.inf), (-np.inf, -1e5), (1e5, 1e5 + 1e-6)]
)
@np.errstate(under="ignore")  # a term that is zero in double precision
def test_extreme_margins_and_bounds_give_finite_terms(
    margin: float, bounds: tuple[float, float]
) -> None:
    terms = likelihood_terms(np.array([margin]), interval(*bounds))
    assert all(np.isfinite(term).all() for term in terms)
    assert terms.curvature[0] >= 0


def test_graded_curvature_is_never_negative_and_exceeds_binary_inside() -> None:
    margins: FloatArray = np.linspace(-15, 15, 301)
    same = likelihood_terms(margins, interval(-1.2, 1.2, count=301))
    assert (same.curvature >= 0).all()
    binary = likelihood_terms(margins, Answers.ungraded(np.ones(301)))
    assert same.curvature[150] > binary.curvature[150]
