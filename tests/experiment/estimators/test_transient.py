"""Metabolic rate from two minutes of breaths: bias, coverage, refusals, independent fits."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import curve_fit

from sfihilo.experiment.estimators import (
    PoorDataError,
    TransientSettings,
    metabolic_rate,
    steady_state,
    summary,
)
from sfihilo.history import FloatArray

KNOWN = TransientSettings(spread=0)


def correlation_of(residuals: FloatArray) -> float:
    """Of neighbours, without a mean; at least 0."""
    return max(float(residuals[1:] @ residuals[:-1] / (residuals @ residuals)), 0.0)


class Breaths(NamedTuple):
    times: FloatArray
    values: FloatArray
    steady: float


def response(t: FloatArray, steady: float, begin: float, tau: float = 42.0) -> FloatArray:
    return np.asarray(steady + (begin - steady) * np.exp(-t / tau))


def breaths(
    seed: int, noise: float = 0.4, correlation: float = 0.0, artefacts: float = 0.05
) -> Breaths:
    """Two minutes of one person, who has an own time constant."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.gamma(9, 3 / 9, size=80))
    t = t[t < 120]
    steady, begin = rng.uniform(2.5, 6, 2)
    errors = rng.standard_normal(len(t))
    for i in range(1, len(t)):
        errors[i] = correlation * errors[i - 1] + np.sqrt(1 - correlation**2) * errors[i]
    tau = 42 * np.exp(0.28 * rng.standard_normal())
    y = response(t, steady, begin, tau) + noise * errors
    coughs = rng.random(len(t)) < artefacts
    y[coughs] *= rng.choice([0.3, 2.0], coughs.sum())
    return Breaths(t, y, float(steady))


@pytest.mark.parametrize(
    ("data", "coverage"),
    [
        ({"artefacts": 0.0}, (0.93, 0.98)),
        ({}, (0.93, 0.98)),
        ({"noise": 0.1}, (0.92, 0.98)),
        ({"correlation": 0.3}, (0.90, 0.97)),
    ],
)
def test_estimates_of_many_people_are_unbiased_and_their_errors_honest(
    data: dict[str, Any], coverage: tuple[float, float]
) -> None:
    errors, scores, of_last_half_minute = [], [], []
    for seed in range(400):
        person = breaths(seed, **data)
        try:
            found = steady_state(person.times, person.values)
        except PoorDataError:
            continue
        errors.append(found.value - person.steady)
        scores.append(errors[-1] / found.standard_error)
        late = person.values[person.times > 90]
        of_last_half_minute.append(float(np.median(late)) - person.steady)
    assert len(errors) > 390
    standard_error_of_bias = np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors)) < 3 * standard_error_of_bias + 0.005
    assert coverage[0] < np.mean(np.abs(scores) < 1.96) < coverage[1]
    assert np.std(errors) < 0.9 * np.std(of_last_half_minute)


def test_known_time_constant_equals_an_independent_least_squares() -> None:
    for seed in range(20):
        person = breaths(seed, artefacts=0.0)
        found = steady_state(person.times, person.values, KNOWN)
        if found.left_out:
            continue
        wanted, covariance = curve_fit(response, person.times, person.values, p0=(4.0, 4.0))
        assert found.value == pytest.approx(wanted[0], abs=1e-6)
        residuals = person.values - response(person.times, *wanted)
        rho = correlation_of(residuals)
        error = np.sqrt(covariance[0, 0] * (1 + rho) / (1 - rho))
        assert found.standard_error == pytest.approx(error, rel=1e-5)


def test_unknown_time_constant_equals_an_independent_integral() -> None:
    person = breaths(5, artefacts=0.0)
    t, y = person.times, person.values
    found = steady_state(t, y)
    assert found.left_out == 0

    def log_density(z: float) -> tuple[float, float]:
        decay = np.exp(-t / (42 * np.exp(0.28 * z)))
        fit, squares, *_ = np.polyfit(decay, y, 1, full=True)
        # y = s + (b - s) decay; the determinant of the design (1 - decay, decay) is this one's.
        spread = len(t) * np.sum((decay - decay.mean()) ** 2)
        power = -0.5 * (len(t) - 2) * np.log(squares[0]) / inflation
        return -(z**2) / 2 - 0.5 * np.log(spread) + power, float(fit[1])

    best, _ = curve_fit(response, t, y, p0=(4.0, 4.0, 42.0))
    residuals = y - response(t, *best)
    rho = correlation_of(residuals)
    inflation = (1 + rho) / (1 - rho)
    top = log_density(0.0)[0]
    whole = quad(lambda z: np.exp(log_density(z)[0] - top), -3.5, 3.5)[0]
    mean = quad(lambda z: np.exp(log_density(z)[0] - top) * log_density(z)[1], -3.5, 3.5)[0] / whole
    assert found.value == pytest.approx(mean, abs=0.02 * found.standard_error)


def test_artefacts_are_found_and_do_not_move_the_estimate() -> None:
    clean = breaths(3, artefacts=0.0)
    spoiled = clean.values.copy()
    spoiled[[4, 11, 19, 30]] = [15.0, 0.0, 12.0, np.nan]
    found = steady_state(clean.times, spoiled)
    wanted = steady_state(clean.times, clean.values)
    assert 4 <= found.left_out <= 5
    assert found.value == pytest.approx(wanted.value, abs=0.5 * wanted.standard_error)


def test_order_of_breaths_and_what_was_before_the_change_do_not_matter() -> None:
    person = breaths(7)
    order = np.random.default_rng(0).permutation(len(person.times))
    times = np.concatenate([[-20.0, -5.0], person.times[order]])
    values = np.concatenate([[9.0, 9.0], person.values[order]])
    assert steady_state(times, values) == steady_state(person.times, person.values)


def cut(t: FloatArray, y: FloatArray, keep: Any) -> tuple[FloatArray, FloatArray]:
    return t[keep], y[keep]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda t, y: cut(t, y, t < 60), r"breaths: expected at least 20|duration: .* 90 s"),
        (lambda t, y: cut(t, y, t < 85), r"duration: expected at least 90 s .* got 8\d s"),
        (lambda t, y: cut(t, y, slice(0, 5)), "breaths: expected at least 20, got 5"),
        (lambda t, y: ([], []), "breaths: expected at least 20, got 0"),
        (lambda t, y: cut(t, y, (t < 40) | (t > 75)), r"gap: expected at most 30 s, got 3\d s"),
        (lambda t, y: (t, np.where(np.arange(len(t)) % 3, y, y * 4)), "artefacts: .* at most 30%"),
        (lambda t, y: (t, np.full(len(t), np.nan)), "breaths: expected at least 20, got 0"),
    ],
)
def test_poor_data_are_refused_in_plain_words(spoil: Any, why: str) -> None:
    person = breaths(1, noise=0.1, artefacts=0.0)
    with pytest.raises(PoorDataError, match=why):
        steady_state(*spoil(person.times, person.values))


def test_constant_data_have_an_estimate() -> None:
    t = np.arange(0, 120, 3.0)
    found = steady_state(t, np.full(len(t), 4.0))
    assert found.value == pytest.approx(4.0)
    assert found.standard_error < 1e-3


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="expected two lists of one length"):
        steady_state([1, 2], [1])
    with pytest.raises(ValueError, match="times: expected finite seconds"):
        steady_state([1, np.nan], [1, 2])
    with pytest.raises(ValueError, match="time_constant: expected a number above 0"):
        TransientSettings(time_constant=0)
    with pytest.raises(ValueError, match="by: expected one of"):
        summary([1], [1], "sum")  # type: ignore[arg-type]


def test_brockway_of_a_walking_person() -> None:
    # 1000 mL/min of oxygen and 850 of carbon dioxide at 70 kg: about 4.9 W/kg.
    assert metabolic_rate(1000, 850, 70) == pytest.approx((16.58 * 1000 + 4.51 * 850) / 60 / 70)
    with pytest.raises(ValueError, match="mass"):
        metabolic_rate(1000, 850, 0)


def test_summaries_of_a_window() -> None:
    times, values = [3.0, 1.0, 2.0, 4.0], [30.0, 10.0, 50.0, np.nan]
    assert summary(times, values, "mean") == 30
    assert summary(times, values, "median") == 30
    assert summary(times, values, "last") == 30
    with pytest.raises(PoorDataError, match="got none of 2"):
        summary([1, 2], [np.nan, np.nan], "mean")
    with pytest.raises(PoorDataError, match="breaths"):
        summary(times, values, "transient")
    person = breaths(2)
    assert summary(person.times, person.values, "transient") == (
        steady_state(person.times, person.values).value
    )
