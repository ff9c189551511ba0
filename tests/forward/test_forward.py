"""The forward belief against scikit-learn, brute force and formulas by hand."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from sfihilo import forward as fw
from sfihilo.forward import ForwardBelief, ForwardSettings, Hyperparameters
from sfihilo.forward.kernel import rbf
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import FloatArray, IntArray
from tests.small import with_observation

SETTINGS = ForwardSettings()
NOISE = 0.05


def data(count: int, policy_dim: int = 3, outcome_dim: int = 2, seed: int = 0) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    policies = rng.uniform(size=(count, policy_dim))
    mixing = rng.standard_normal((policy_dim, outcome_dim))
    outcomes = 0.5 + 0.4 * np.sin(3 * policies @ mixing)
    outcomes = np.clip(outcomes + 0.03 * rng.standard_normal(outcomes.shape), 0, 1)
    return [policies, outcomes, rng.uniform(size=(25, policy_dim))]


def fitted(
    policies: FloatArray,
    outcomes: FloatArray,
    hyper: Hyperparameters,
    settings: ForwardSettings = SETTINGS,
    weights: FloatArray | None = None,
) -> ForwardBelief:
    return fw.fit(settings, hyper, NOISE, policies, outcomes, weights)


def ridge_model(
    policies: FloatArray, outcomes: FloatArray, length_scale: float, ridge: float
) -> KernelRidge:
    model = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * length_scale**2))
    return model.fit(policies, (outcomes - outcomes.mean(axis=0)) / outcomes.std(axis=0))


HYPERS = [Hyperparameters(0.5, 0.1), Hyperparameters(0.3, 1e-3), Hyperparameters(0.7, 1e-5)]


@pytest.mark.parametrize("length_scale", [0.3, 0.7])
def test_kernel_is_scikit_learns(length_scale: float) -> None:
    first, second = np.random.default_rng(0).uniform(size=(2, 300, 4))  # several blocks
    expected = rbf_kernel(first, second, gamma=1 / (2 * length_scale**2))
    assert np.abs(rbf(first, second, length_scale) - expected).max() < 1e-14
    single = rbf(first.astype(np.float32), second.astype(np.float32), length_scale)
    assert single.dtype == np.float32
    assert np.abs(single - expected).max() < 1e-5


@pytest.mark.parametrize("hyper", HYPERS)
def test_mean_is_scikit_learns_kernel_ridge(hyper: Hyperparameters) -> None:
    policies, outcomes, elsewhere = data(60)
    model = ridge_model(policies, outcomes, hyper.length_scale, hyper.ridge + SETTINGS.jitter)
    expected = outcomes.mean(axis=0) + outcomes.std(axis=0) * model.predict(elsewhere)
    belief = fitted(policies, outcomes, hyper)
    assert belief.mean(elsewhere) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("hyper", HYPERS)
def test_leverage_is_a_gaussian_process_variance(hyper: Hyperparameters) -> None:
    policies, outcomes, elsewhere = data(60)
    process = GaussianProcessRegressor(
        RBF(hyper.length_scale), alpha=hyper.ridge + SETTINGS.jitter, optimizer=None
    )
    _, deviation = process.fit(policies, outcomes[:, 0]).predict(elsewhere, return_std=True)
    belief = fitted(policies, outcomes, hyper)
    assert belief.leverage(elsewhere) == pytest.approx(deviation**2, abs=1e-9)


def test_single_precision_follows_double() -> None:
    policies, outcomes, elsewhere = data(200)
    belief = fitted(policies, outcomes, Hyperparameters(0.5, 1e-2))
    assert belief.working_dtype is np.float32
    single = elsewhere.astype(np.float32)
    assert np.abs(belief.leverage(single) - belief.leverage(elsewhere)).max() < 1e-4
    assert np.abs(belief.mean(single) - belief.mean(elsewhere)).max() < 1e-4
    assert fitted(policies, outcomes, Hyperparameters(0.5, 1e-9)).working_dtype is np.float64


def test_variance_decomposition() -> None:
    policies, outcomes, elsewhere = data(60)
    hyper = Hyperparameters(0.5, 0.1)
    belief = fitted(policies, outcomes, hyper)
    model = ridge_model(policies, outcomes, 0.5, 0.1 + SETTINGS.jitter)
    spread = outcomes.std(axis=0)
    residual = ((outcomes - outcomes.mean(axis=0) - spread * model.predict(policies)) ** 2).mean(0)
    prediction = belief.predict(elsewhere)
    scale = np.maximum(spread**2 - residual, 0)
    assert (scale > 0).all()
    assert prediction.observation[0] == pytest.approx(residual + NOISE**2, rel=1e-9)
    assert prediction.epistemic == pytest.approx(
        belief.leverage(elsewhere)[:, None] * scale, rel=1e-9
    )
    assert np.array_equal(prediction.variance, prediction.epistemic + prediction.observation)


def test_variance_floor() -> None:
    policies, outcomes, _ = data(40)
    exact = fw.fit(SETTINGS, Hyperparameters(0.3, 1e-9), 0.0, policies, outcomes)
    assert exact.observation == pytest.approx([1e-4, 1e-4], rel=1e-12)
    noisy = fw.fit(SETTINGS, Hyperparameters(0.3, 1e-9), 0.3, policies, outcomes)
    assert noisy.observation == pytest.approx([0.09, 0.09], rel=1e-6)


def test_beliefs_before_the_second_observation() -> None:
    nothing = fitted(np.empty((0, 3)), np.empty((0, 2)), Hyperparameters(0.5, 0.1))
    somewhere = np.full((1, 3), 0.4)
    assert nothing.mean(somewhere).tolist() == [[0.5, 0.5]]
    assert nothing.leverage(somewhere).tolist() == [1.0]
    assert nothing.predict(somewhere).epistemic == pytest.approx(np.full((1, 2), 1 / 12))
    one = fitted(np.full((1, 3), 0.2), np.array([[0.3, 0.9]]), Hyperparameters(0.5, 0.1))
    assert one.mean(somewhere) == pytest.approx(np.array([[0.3, 0.9]]))
    assert 0 < one.leverage(somewhere)[0] < 1


def test_constant_outcome_has_no_reducible_variance() -> None:
    policies, outcomes, elsewhere = data(30)
    outcomes[:, 1] = 0.25
    prediction = fitted(policies, outcomes, Hyperparameters(0.5, 0.1)).predict(elsewhere)
    assert prediction.mean[:, 1] == pytest.approx(0.25, abs=1e-12)
    assert (prediction.epistemic[:, 1] == 0).all()
    assert (prediction.epistemic[:, 0] > 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_residual(weighted: bool) -> None:
    policies, outcomes, _ = data(25)
    weights = np.random.default_rng(3).uniform(0.2, 2, 25) if weighted else np.ones(25)
    hyper = Hyperparameters(0.5, 0.1)
    settings = replace(SETTINGS, residual="leave_one_out")
    belief = fitted(policies, outcomes, hyper, settings, weights)
    standardised = (outcomes - outcomes.mean(axis=0)) / outcomes.std(axis=0)
    squares = np.empty_like(outcomes)
    for left in range(25):
        rest = np.arange(25) != left
        kernel = rbf_kernel(policies, policies[rest], gamma=2.0)
        system = kernel[rest] + np.diag(belief.noise / weights[rest])
        predicted = kernel[left] @ np.linalg.solve(system, standardised[rest])
        squares[left] = ((standardised[left] - predicted) * outcomes.std(axis=0)) ** 2
    residual = (weights[:, None] * squares).mean(axis=0)
    assert belief.observation == pytest.approx(residual + NOISE**2, rel=1e-9)
    training = fitted(policies, outcomes, hyper, SETTINGS, weights)
    assert (training.observation < belief.observation).all()


def test_leverage_of_a_tried_policy_without_itself() -> None:
    policies, outcomes, _ = data(20)
    belief = fitted(policies, outcomes, Hyperparameters(0.4, 0.01))
    for left, leverage in enumerate(belief.tried_leverage()):
        rest = np.arange(20) != left
        without = fitted(policies[rest], outcomes[rest], belief.hyper)
        assert without.leverage(policies[left][None])[0] == pytest.approx(leverage, abs=1e-9)


def test_weighted_system_minimises_the_weighted_objective() -> None:
    policies, outcomes, elsewhere = data(15)
    weights = np.random.default_rng(1).uniform(0.05, 3, 15)
    ridge = 0.07
    settings = replace(SETTINGS, jitter=1e-15)
    belief = fitted(policies, outcomes, Hyperparameters(0.4, ridge), settings, weights)
    standardised = (outcomes - outcomes.mean(axis=0)) / outcomes.std(axis=0)
    # The objective in the coefficients of f = sum_i b_i k(., tau_i) as one least-squares problem:
    # |sqrt(W) (y - K b)|^2 + ridge |R b|^2 with K = R^T R.
    kernel = rbf_kernel(policies, policies, gamma=1 / (2 * 0.4**2))
    root = scipy.linalg.cholesky(kernel)
    stacked = np.vstack([np.sqrt(weights)[:, None] * kernel, np.sqrt(ridge) * root])
    wanted = np.vstack([np.sqrt(weights)[:, None] * standardised, np.zeros((15, 2))])
    coefficients = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
    cross = rbf_kernel(elsewhere, policies, gamma=1 / (2 * 0.4**2))
    expected = outcomes.mean(axis=0) + outcomes.std(axis=0) * (cross @ coefficients)
    assert belief.mean(elsewhere) == pytest.approx(expected, abs=1e-9)
    model = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * 0.4**2))
    model.fit(policies, standardised, sample_weight=weights)
    again = outcomes.mean(axis=0) + outcomes.std(axis=0) * model.predict(elsewhere)
    assert belief.mean(elsewhere) == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("ridge", [0.1, 1e-3, 1e-5])
def test_appending_equals_refitting(ridge: float) -> None:
    policies, outcomes, elsewhere = data(320, policy_dim=8, outcome_dim=3)
    hyper = Hyperparameters(0.5, ridge)
    grown = fitted(policies[:20], outcomes[:20], hyper)
    for policy, outcome in zip(policies[20:], outcomes[20:], strict=True):
        grown = fw.append(grown, policy, outcome)
    whole = fitted(policies, outcomes, hyper)
    assert len(grown.policies) == 320
    assert grown.mean(elsewhere_in(8)) == pytest.approx(whole.mean(elsewhere_in(8)), abs=1e-8)
    assert grown.leverage(elsewhere_in(8)) == pytest.approx(
        whole.leverage(elsewhere_in(8)), abs=1e-8
    )
    assert grown.epistemic_scale == pytest.approx(whole.epistemic_scale, abs=1e-8)
    assert grown.observation == pytest.approx(whole.observation, abs=1e-8)
    product = (
        grown.blocks[0].ridge.inverse_factor
        @ (rbf(policies, policies, 0.5) + grown.noise * np.eye(320))
        @ grown.blocks[0].ridge.inverse_factor.T
    )
    assert np.abs(product - np.eye(320)).max() < 1e-8
    assert elsewhere.shape == (25, 8)


def elsewhere_in(dimension: int) -> FloatArray:
    return np.random.default_rng(99).uniform(size=(25, dimension))


def test_appending_one_policy_again_and_again() -> None:
    rng = np.random.default_rng(0)
    hyper = Hyperparameters(0.5, 1e-9)
    grown = fitted(np.empty((0, 2)), np.empty((0, 1)), hyper)
    for _ in range(200):
        grown = fw.append(grown, np.array([0.3, 0.6]), rng.uniform(0.4, 0.6, 1))
    there = np.array([[0.3, 0.6]])
    assert grown.mean(there)[0, 0] == pytest.approx(grown.centre[0], abs=1e-4)
    assert 0 <= grown.leverage(there)[0] < 1e-6
    assert np.isfinite(grown.blocks[0].ridge.inverse_factor).all()


def brute_force_error(
    chosen: IntArray, policies: FloatArray, outcomes: FloatArray, length: float, ridge: float
) -> float:
    held, rest = chosen[: round(0.2 * len(chosen))], chosen[round(0.2 * len(chosen)) :]
    model = ridge_model(policies[rest], outcomes[rest], length, ridge + SETTINGS.jitter)
    predicted = outcomes[rest].mean(axis=0) + outcomes[rest].std(axis=0) * model.predict(
        policies[held]
    )
    return float(np.sqrt(((predicted - outcomes[held]) ** 2).mean()))


@pytest.mark.parametrize(("count", "cap", "seed"), [(40, 1024, 0), (90, 1024, 1), (90, 50, 2)])
def test_selection_takes_the_least_validation_error(count: int, cap: int, seed: int) -> None:
    policies, outcomes, _ = data(count, seed=seed)
    settings = replace(SETTINGS, tuning_cap=cap)
    chosen = select_hyperparameters(settings, policies, outcomes, np.random.default_rng(seed))
    order = np.random.default_rng(seed).permutation(count)[:cap]
    errors = {
        (length, ridge): brute_force_error(order, policies, outcomes, length, ridge)
        for length in SETTINGS.length_scales
        for ridge in SETTINGS.ridges
    }
    assert tuple(chosen) == min(errors, key=lambda pair: errors[pair])


def test_selection_waits_for_the_warm_up() -> None:
    policies, outcomes, _ = data(16)
    rng = np.random.default_rng(0)
    initial = Hyperparameters(SETTINGS.initial_length_scale, SETTINGS.initial_ridge)
    assert select_hyperparameters(SETTINGS, policies[:15], outcomes[:15], rng) == initial
    patient = replace(SETTINGS, initial_length_scale=0.123)
    assert select_hyperparameters(patient, policies, outcomes, rng).length_scale != 0.123


def test_clipped_sampling() -> None:
    normals = np.random.default_rng(0).standard_normal((40_000, 1))
    inside = fw.sample(np.array([0.5]), np.array([0.01]), normals)
    assert inside.mean() == pytest.approx(0.5, abs=0.002)
    assert inside.std() == pytest.approx(0.1, abs=0.002)
    at_edge = fw.sample(np.array([0.0]), np.array([0.01]), normals)
    assert (at_edge == 0).mean() == pytest.approx(0.5, abs=0.01)
    assert at_edge.max() < 1


def test_reducible_scores_by_hand() -> None:
    epistemic, observation = np.array([[0.03, 0.0], [0.01, 0.02]]), np.array([0.01, 0.02])
    found = fw.reducible(epistemic, observation)
    assert found.fraction == pytest.approx([0.75 / 2, 0.5])
    expected = [(0.0009 / 0.04) / 2, (0.0001 / 0.02 + 0.0004 / 0.04) / 2]
    assert found.score == pytest.approx(expected)


def test_one_step_update_by_hand() -> None:
    policies, outcomes, targets = data(30)
    belief = fitted(policies, outcomes, Hyperparameters(0.5, 0.1))
    candidates, shift = targets[:4] * 0.9, np.array([0.1, -0.2])
    update = fw.target_update(belief, belief.at(targets), belief.at(candidates))
    moved = update.mean(belief.mean(targets), np.broadcast_to(shift, (4, 1, 2)))[:, 0]
    inverse = np.linalg.inv(rbf(policies, policies, 0.5) + belief.noise * np.eye(30))
    for i, candidate in enumerate(candidates):
        for k, target in enumerate(targets):
            near, far = belief.kernel(candidate[None])[0], belief.kernel(target[None])[0]
            cross = np.exp(-2 * ((candidate - target) ** 2).sum()) - far @ inverse @ near
            for j in range(2):
                scale, observation = belief.epistemic_scale[j], belief.observation[j]
                own = 1 - near @ inverse @ near + belief.noise
                denominator = scale * own + observation
                mean = belief.mean(target[None])[0, j] + cross * scale / denominator * shift[j]
                epistemic = (1 - far @ inverse @ far) * scale - (cross * scale) ** 2 / denominator
                assert moved[i, k, j] == pytest.approx(mean, abs=1e-10)
                assert update.variance[i, k, j] == pytest.approx(epistemic + observation, abs=1e-10)


def test_one_step_update_without_observation_noise_is_exact_conditioning() -> None:
    """The paper adds v_obs to the ridge; without it the update is one more row of the system."""
    policies, outcomes, targets = data(30)
    belief = fitted(policies, outcomes, Hyperparameters(0.5, 0.1))
    quiet = with_observation(belief, np.zeros(2))
    candidate, outcome = np.array([0.2, 0.7, 0.4]), np.array([0.9, 0.1])
    update = fw.target_update(quiet, quiet.at(targets), quiet.at(candidate[None]))
    grown = fw.append(belief, candidate, outcome)
    collapsed = np.multiply.outer(grown.leverage(targets), belief.epistemic_scale)
    assert update.variance[0] == pytest.approx(collapsed, abs=1e-12)
    residual = outcome - belief.mean(candidate[None])
    moved = update.mean(belief.mean(targets), residual[:, None])[0, 0]
    longer = np.vstack([policies, candidate])
    standardised = (np.vstack([outcomes, outcome]) - belief.centre) / belief.scale
    system = rbf(longer, longer, 0.5) + belief.noise * np.eye(31)
    exact = rbf(targets, longer, 0.5) @ np.linalg.solve(system, standardised)
    assert moved == pytest.approx(belief.centre + belief.scale * exact, abs=1e-10)
    # With v_obs the update is more cautious, in mean and in variance.
    noisy = fw.target_update(belief, belief.at(targets), belief.at(candidate[None]))
    assert (np.abs(noisy.gain) <= np.abs(update.gain)).all()
    assert (noisy.variance - belief.observation >= update.variance - 1e-15).all()
