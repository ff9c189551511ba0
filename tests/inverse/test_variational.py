"""The variational posterior against direct maximisation of its bound, and its two forms."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit

from sfihilo.history import FloatArray
from sfihilo.inverse.likelihood import Answers
from sfihilo.inverse.variational import VariationalFit, variational_fit, weight_precision


def problem(comparisons: int, features: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    scaled = 3 * rng.standard_normal((comparisons, features))
    labels = np.sign(scaled @ rng.standard_normal(features) + rng.standard_normal(comparisons))
    labels[::7] = 0
    return scaled, labels


def solved(scaled: FloatArray, labels: FloatArray, tolerance: float = 1e-6) -> VariationalFit:
    start = np.zeros(scaled.shape[1]), np.full(len(scaled), 0.1)
    return variational_fit(
        scaled, Answers.ungraded(labels), *start, iterations=500, tolerance=tolerance
    )


def bound_by_quadrature(
    scaled: FloatArray, labels: FloatArray, mean: FloatArray, root: FloatArray
) -> float:
    """The evidence lower bound of N(mean, root root^T), written from its definition."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(60)
    masses = masses / masses.sum()
    total = 0.0
    for row, label in zip(scaled, labels, strict=True):
        margin = row @ mean + np.linalg.norm(row @ root) * nodes
        if label == 0:
            log_likelihood = -np.log(2 * np.cosh(margin / 2) + 1)
        else:
            log_likelihood = log_expit(label * margin)
        total += masses @ log_likelihood
    covariance = root @ root.T
    _, log_determinant = np.linalg.slogdet(covariance)
    divergence = 0.5 * (np.trace(covariance) - len(mean) + mean @ mean - log_determinant)
    return float(total - divergence)


def test_the_bound_is_that_of_its_definition() -> None:
    scaled, labels = problem(12, 3)
    fit = solved(scaled / 3, labels)
    root = np.linalg.cholesky(np.linalg.inv(weight_precision(scaled / 3, fit.curvature)))
    expected = bound_by_quadrature(scaled / 3, labels, fit.weights, root)
    assert fit.bound == pytest.approx(expected, abs=1e-4)


def test_no_gaussian_has_a_larger_bound() -> None:
    """A general optimiser over mean and Cholesky factor finds the same maximum."""
    scaled, labels = problem(12, 3)
    scaled = scaled / 3
    fit = solved(scaled, labels)
    lower = np.tril_indices(3)

    def loss(theta: FloatArray) -> float:
        root = np.zeros((3, 3))
        root[lower] = theta[3:]
        return -bound_by_quadrature(scaled, labels, theta[:3], root)

    start = np.concatenate([np.zeros(3), np.eye(3)[lower]])
    found = minimize(loss, start, method="BFGS")
    assert -found.fun == pytest.approx(fit.bound, abs=2e-4)
    assert found.x[:3] == pytest.approx(fit.weights, abs=5e-3)


@pytest.mark.parametrize("comparisons", [5, 40])
def test_fewer_or_more_comparisons_than_features_are_one_model(comparisons: int) -> None:
    """Rows of zeros tell nothing, but move the work from one form to the other."""
    scaled, labels = problem(comparisons, 40, seed=2)
    padded = np.vstack([scaled, np.zeros((60, 40))])
    few = solved(scaled, labels)
    many = solved(padded, np.concatenate([labels, np.ones(60)]))
    assert many.weights == pytest.approx(few.weights, abs=1e-3)
    assert many.bound + 60 * np.log(2) == pytest.approx(few.bound, abs=1e-2)


@pytest.mark.parametrize("repeats", [600, 3000])
@pytest.mark.parametrize("sharpness", [2.5, 5.0])
def test_one_pair_told_alike_many_times_converges(repeats: int, sharpness: float) -> None:
    row = np.exp(sharpness) * np.random.default_rng(0).standard_normal(16) / 8
    scaled, labels = np.tile(row, (repeats, 1)), np.ones(repeats)
    start = np.zeros(16), np.full(repeats, 0.1)
    some = variational_fit(scaled, Answers.ungraded(labels), *start, iterations=40)
    more = variational_fit(scaled, Answers.ungraded(labels), *start, iterations=400)
    # Any Gaussian beats the prior, under which the labels are coin flips.
    assert some.bound > -30
    assert more.bound >= some.bound
    assert (scaled @ some.weights > 0).all()


def test_averaging_makes_it_surer_than_laplace_where_labels_are_surprising() -> None:
    """More curvature is left where the margin is uncertain than at its mode alone."""
    scaled, labels = problem(60, 10, seed=3)
    fit = solved(scaled, labels)
    margins = scaled @ fit.weights
    at_the_mode = 0.25 / np.cosh(margins / 2) ** 2
    decided = (labels != 0) & (np.abs(margins) > 5)
    assert decided.any()
    assert (fit.curvature[decided] > at_the_mode[decided]).all()


@pytest.mark.parametrize(("comparisons", "features"), [(30, 40), (80, 40)])
def test_variational_fit_stopped_early_matches_the_converged_bound(
    comparisons: int, features: int
) -> None:
    """The bound as promised, and margins within a tenth of their standard deviation."""
    scaled, labels = problem(comparisons, features, seed=5)
    start = np.zeros(features), np.full(comparisons, 0.1)
    usual = variational_fit(scaled, Answers.ungraded(labels), *start, iterations=40)
    end = solved(scaled, labels, tolerance=1e-9)
    assert end.bound - 0.002 < usual.bound <= end.bound + 1e-4
    covariance = np.linalg.inv(weight_precision(scaled, end.curvature))
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", scaled, covariance, scaled))
    assert (np.abs(scaled @ (usual.weights - end.weights)) < 0.1 * deviations).all()


def test_a_warm_start_takes_few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single precision's noise in the bound must not keep it going."""
    scaled, labels = problem(300, 40, seed=6)
    before = solved(scaled[:-1], labels[:-1])
    counted: list[int] = []

    def count(scaled: FloatArray, curvature: FloatArray) -> FloatArray:
        counted.append(len(scaled))
        return weight_precision(scaled, curvature)

    monkeypatch.setattr("sfihilo.inverse.variational.weight_precision", count)
    curvature = np.append(before.curvature, 0.1)
    variational_fit(scaled, Answers.ungraded(labels), before.weights, curvature, iterations=40)
    assert 2 <= len(counted) <= 5


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", [-0.4, 0.4])
def test_variational_fit_goes_on_after_a_first_step_that_gains_little(
    seed: int, step: float
) -> None:
    """From a solution at another sharpness, where mean and curvature first overshoot together."""
    rng = np.random.default_rng(seed)
    scaled = 20 * rng.standard_normal((60, 30)) / np.sqrt(30)
    labels = np.sign(scaled @ rng.standard_normal(30) + rng.standard_normal(60))
    before = solved(scaled, labels)
    start = before.weights * np.exp(-step / 2), before.curvature
    sharper = np.exp(step) * scaled
    fits = [
        variational_fit(
            sharper, Answers.ungraded(labels), *start, iterations=100, tolerance=tolerance
        )
        for tolerance in (0.03, 1e-7)
    ]
    assert fits[0].bound > fits[1].bound - 0.1
