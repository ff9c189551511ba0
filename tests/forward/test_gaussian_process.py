"""Outcomes as Gaussian processes: against plain linear algebra, and draws against the posterior."""

import numpy as np
import pytest

from sfihilo.forward.gaussian_process import (
    OutcomeProcess,
    OutcomeProcesses,
    ProcessHyperparameters,
    most_likely,
    outcome_processes,
)
from sfihilo.history import FloatArray
from tests.inverse.test_features import rbf_kernel

HYPER = (ProcessHyperparameters(0.5, 0.2, 0.06), ProcessHyperparameters(0.3, 0.1, 0.05))
WEIGHTS = np.array([1.0, 0.2, 1.0, 0.5, 1.0, 1.0])
POINTS = np.array([[0.1, 0.2], [0.15, 0.25], [0.9, 0.9], [0.5, 0.5]])
CONSTANT = 0.3


def processes_of(weights: FloatArray) -> OutcomeProcesses:
    rng = np.random.default_rng(3)
    policies, outcomes = rng.uniform(size=(6, 2)), rng.uniform(size=(6, 2))
    return OutcomeProcesses(
        tuple(OutcomeProcess(HYPER[j], policies, outcomes[:, j], weights) for j in range(2))
    )


def exact(process: OutcomeProcess) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance at the points, from the equations."""
    length, amplitude, noise = process.hyper

    def kernel(first: FloatArray, second: FloatArray) -> FloatArray:
        return np.asarray(amplitude**2 * (rbf_kernel(first, second, length) + CONSTANT))

    system = kernel(process.policies, process.policies) + np.diag(noise**2 / process.weights)
    across = kernel(POINTS, process.policies)
    mean = 0.5 + across @ np.linalg.solve(system, process.values - 0.5)
    return mean, kernel(POINTS, POINTS) - across @ np.linalg.solve(system, across.T)


@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS], ids=["equal", "recency"])
def test_processes_equal_gaussian_process_regression(weights: FloatArray) -> None:
    processes = processes_of(weights)
    at = processes.at(POINTS)
    cross = processes.cross_covariance(at, at.rows(np.array([2, 0])))
    for outcome, process in enumerate(processes.processes):
        mean, covariance = exact(process)
        assert at.mean[:, outcome] == pytest.approx(mean, abs=1e-5)
        assert at.variance[:, outcome] == pytest.approx(np.diag(covariance), abs=1e-6)
        assert cross[:, :, outcome] == pytest.approx(covariance[:, [2, 0]], abs=1e-6)


@pytest.mark.parametrize("weights", [np.ones(6), WEIGHTS], ids=["equal", "recency"])
def test_function_draws_have_mean_and_covariance_of_the_exact_posterior(
    weights: FloatArray,
) -> None:
    processes, rng, count = processes_of(weights), np.random.default_rng(0), 5000
    # Every draw has waves of its own: their kernel is exact only on average.
    values = np.concatenate([processes.draw(1, rng)(POINTS) for _ in range(count)])
    for outcome, process in enumerate(processes.processes):
        mean, covariance = exact(process)
        error = 4 * np.sqrt(np.diag(covariance) / count)
        assert (np.abs(values[:, :, outcome].mean(axis=0) - mean) < error).all()
        found = np.cov(values[:, :, outcome].T)
        assert found == pytest.approx(covariance, abs=0.08 * covariance.max())
    assert abs(np.corrcoef(values[:, 2].T)[0, 1]) < 0.06  # outcomes are independent


def test_function_draw_repeats_its_values_wherever_it_is_evaluated() -> None:
    functions = processes_of(np.ones(6)).draw(5, np.random.default_rng(1))
    together = functions(POINTS)
    assert together.shape == (5, 4, 2)
    for row, point in enumerate(POINTS):
        assert functions(point[None])[:, 0] == pytest.approx(together[:, row], abs=1e-4)
    assert np.ptp(together[:, 0, 0]) > 0.01  # the draws differ


def log_evidence(hyper: ProcessHyperparameters, policies: FloatArray, values: FloatArray) -> float:
    """Of one outcome, with the prior of the hyperparameters, up to a constant."""
    length, amplitude, noise = hyper
    system = amplitude**2 * (rbf_kernel(policies, policies, length) + CONSTANT)
    system += noise**2 * np.eye(len(policies))
    away = values - 0.5
    likelihood = -0.5 * (away @ np.linalg.solve(system, away) + np.linalg.slogdet(system)[1])
    prior = -0.5 * (np.log(length / 0.5) / 0.35) ** 2 - 0.5 * (np.log(amplitude / 0.15) / 0.4) ** 2
    return float(likelihood + prior - np.log(noise / 0.05) / 0.3)


def test_hyperparameters_have_the_largest_evidence_of_the_grid() -> None:
    rng = np.random.default_rng(5)
    policies = rng.uniform(size=(25, 2))
    smooth = 0.5 + 0.2 * np.sin(2 * policies[:, 0])
    rough = 0.5 + 0.2 * np.sin(9 * policies[:, 0]) + 0.1 * rng.standard_normal(25)
    found = most_likely(policies, np.column_stack([smooth, rough]), 0.05)
    assert found[0].length_scale > found[1].length_scale
    assert found[0].noise < found[1].noise
    for hyper, values in zip(found, (smooth, rough), strict=True):
        best = log_evidence(hyper, policies, values)
        for length in (0.3, 0.4, 0.5, 0.65, 0.85):
            for amplitude in (0.07, 0.1, 0.14, 0.2, 0.28):
                for factor in (1.0, 1.25, 1.6, 2.2):
                    other = ProcessHyperparameters(length, amplitude, factor * 0.05)
                    assert log_evidence(other, policies, values) <= best + 1e-8


def test_each_outcome_is_learned_from_the_trials_in_which_it_was_measured() -> None:
    rng = np.random.default_rng(6)
    policies, outcomes = rng.uniform(size=(12, 2)), rng.uniform(size=(12, 3))
    patchy = outcomes.copy()
    patchy[3:6, 1] = np.nan
    kept = ~np.isnan(patchy[:, 1])
    at = outcome_processes(policies, patchy, 0.05, None).at(POINTS)
    whole = outcome_processes(policies, outcomes[:, [0, 2]], 0.05, None).at(POINTS)
    alone = outcome_processes(policies[kept], outcomes[kept][:, 1:2], 0.05, None).at(POINTS)
    assert at.mean[:, [0, 2]] == pytest.approx(whole.mean, abs=1e-6)
    assert at.mean[:, 1] == pytest.approx(alone.mean[:, 0], abs=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_observations_leave_the_prior(count: int) -> None:
    rng = np.random.default_rng(7)
    policies, outcomes = rng.uniform(size=(count, 2)), np.full((count, 2), 0.9)
    at = outcome_processes(policies, outcomes, 0.05, None).at(POINTS)
    assert np.isfinite(at.mean).all()
    assert (at.variance > 0).all()
    if count == 0:
        assert at.mean == pytest.approx(0.5)


def test_evidence_of_many_trials_uses_some_of_them_and_stays_finite() -> None:
    rng = np.random.default_rng(8)
    policies = np.repeat(rng.uniform(size=(5, 2)), 50, axis=0)  # duplicates
    at = outcome_processes(policies, np.full((250, 1), 0.3), 0.0, None).at(policies[:3])
    assert at.mean == pytest.approx(0.3, abs=0.01)
