"""Label probabilities and their mutual information with the reward, against counting."""

import itertools
from math import exp, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfihilo import inverse as inv
from sfihilo.history import FloatArray
from sfihilo.inverse import InverseSettings
from sfihilo.inverse.posterior import RewardPosterior, reward_posterior
from sfihilo.querying.baselines import mean_information
from sfihilo.querying.labels import LabelModel, binary_entropy, noisy_slopes

GAP = sqrt(2) * 0.02


def posterior_of(samples: int = 40, features: str = "rbf", seed: int = 0) -> RewardPosterior:
    settings = InverseSettings(feature_count=20, samples=samples, features=features)
    rng = np.random.default_rng(seed)
    belief = inv.begin(settings, inv.feature_map(settings, 3, rng))
    for _ in range(8):
        anchor, outcome = rng.uniform(size=(2, 3))
        belief = inv.append(belief, anchor, outcome, float(rng.choice([-1.0, 1.0])))
    return reward_posterior(belief, rng)


def label_chances(
    posterior: RewardPosterior, anchor: FloatArray, outcome: FloatArray, gap: float
) -> list[float]:
    """p_s^+, one sample after another."""
    chances = []
    difference = (posterior.features(anchor[None]) - posterior.features(outcome[None]))[0]
    for weights, eta in zip(posterior.weights, posterior.log_sharpness, strict=True):
        beta = exp(eta)
        margin = beta * float(difference @ weights) / sqrt(1 + pi / 8 * (beta * gap) ** 2)
        chances.append(1 / (1 + exp(-margin)))
    return chances


def information_by_counting(chances: list[float]) -> float:
    """I(Y; s) = sum over samples and labels of p(s) p(y | s) log(p(y | s) / p(y))."""
    mean = sum(chances) / len(chances)
    total = 0.0
    for chance in chances:
        for given_sample, overall in ((chance, mean), (1 - chance, 1 - mean)):
            if given_sample > 0:
                total += given_sample * log(given_sample / overall) / len(chances)
    return total


@pytest.mark.parametrize("gap", [0.0, GAP, 0.5])
@pytest.mark.parametrize("features", ["rbf", "linear", "tests.small:own_features"])
def test_mutual_information_by_enumeration(features: str, gap: float) -> None:
    posterior = posterior_of(features=features)
    rng = np.random.default_rng(1)
    anchor, outcomes = rng.uniform(size=3), rng.uniform(size=(100, 3))
    labels = LabelModel.against(posterior, anchor, gap)
    found = mean_information(labels, outcomes.astype(np.float32))
    exact = labels.information(outcomes)
    for outcome, single, double in zip(outcomes, found, exact, strict=True):
        expected = information_by_counting(label_chances(posterior, anchor, outcome, gap))
        assert single == pytest.approx(expected, abs=1e-6)
        assert double == pytest.approx(expected, abs=1e-12)


def test_probabilities_one_by_one() -> None:
    posterior = posterior_of()
    rng = np.random.default_rng(2)
    anchor, outcomes = rng.uniform(size=3), rng.uniform(size=(5, 3))
    found = LabelModel.against(posterior, anchor, GAP).probabilities(outcomes)
    for row, outcome in zip(found, outcomes, strict=True):
        assert row == pytest.approx(label_chances(posterior, anchor, outcome, GAP), abs=1e-6)


def test_noise_flattens_and_no_noise_is_the_plain_logistic() -> None:
    sharpness = np.array([0.1, 1.0, 30.0, 1e6])
    assert noisy_slopes(sharpness, 0.0) == pytest.approx(sharpness)
    noisy = noisy_slopes(sharpness, GAP)
    assert (noisy < sharpness).all()
    assert noisy[-1] == pytest.approx(1 / (sqrt(pi / 8) * GAP), rel=1e-6)


def test_comparing_an_outcome_with_itself_tells_nothing() -> None:
    posterior = posterior_of()
    anchor = np.array([0.2, 0.5, 0.7])
    labels = LabelModel.against(posterior, anchor, GAP)
    found = mean_information(labels, anchor.astype(np.float32)[None])
    assert found[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("count", [1, 191, 192, 193, 400])
@pytest.mark.parametrize("features", ["rbf", "linear"])
@pytest.mark.parametrize("samples", [1, 3, 33, 40])
def test_weighted_averages_in_blocks(count: int, features: str, samples: int) -> None:
    posterior = posterior_of(samples, features)
    rng = np.random.default_rng(count)
    anchor, outcomes = rng.uniform(size=3), rng.uniform(size=(count, 3))
    weights = rng.dirichlet(np.ones(samples), size=2)
    labels = LabelModel.against(posterior, anchor, GAP)
    probabilities = labels.probabilities(outcomes)
    chance, doubt = labels.averages(outcomes, weights[None], np.array([0, len(outcomes)]))
    assert chance == pytest.approx(probabilities @ weights.T, abs=2e-6)
    assert doubt == pytest.approx(binary_entropy(probabilities).mean(axis=1), abs=2e-6)


@pytest.mark.parametrize("bounds", [[0, 0, 150, 300], [0, 5, 193, 300], [0, 300, 300, 300]])
def test_label_averages_use_the_weights_of_each_group(bounds: list[int]) -> None:
    rng = np.random.default_rng(1)
    labels = LabelModel.against(posterior_of(40), rng.uniform(size=3), GAP)
    outcomes, weights = rng.uniform(size=(300, 3)), rng.dirichlet(np.ones(40), (3, 2))
    chance, _ = labels.averages(outcomes, weights, np.array(bounds))
    probabilities = labels.probabilities(outcomes)
    for group, (low, high) in enumerate(itertools.pairwise(bounds)):
        expected = probabilities[low:high] @ weights[group].T
        assert chance[low:high] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("features", ["rbf", "linear"])
def test_a_tangent_follows_the_labels(features: str) -> None:
    """Its error falls with the square of the step: it is the tangent and no other line."""
    rng = np.random.default_rng(2)
    labels = LabelModel.against(posterior_of(33, features), rng.uniform(size=3), GAP)
    outcomes, direction = rng.uniform(0.2, 0.8, (6, 3)), rng.uniform(-1, 1, (2, 6, 3))
    weights = rng.dirichlet(np.ones(33), (2, 2))
    tangent = labels.tangent(outcomes, weights)
    errors = []
    for length in (0.02, 0.004):
        chance, doubt = tangent.moved(length * direction)
        moved = [labels.probabilities(outcomes + length * one) for one in direction]
        exact = np.stack([p @ own.T for p, own in zip(moved, weights, strict=True)])
        lost = np.stack([binary_entropy(p).mean(axis=1) for p in moved])
        errors.append((np.abs(chance - exact).max(), np.abs(doubt - lost).max()))
        assert np.abs(exact - tangent.probability.transpose(0, 2, 1)).max() > 4 * errors[-1][0]
    assert np.all(np.array(errors[1]) < np.array(errors[0]) / 15 + 1e-6)


@pytest.mark.parametrize("features", ["rbf", "linear"])
def test_arguments_are_left_alone(features: str) -> None:
    posterior = posterior_of(features=features)
    outcomes = np.random.default_rng(0).uniform(size=(4, 3)).astype(np.float32)
    before = outcomes.copy()
    LabelModel.against(posterior, np.full(3, 0.5), GAP).means(outcomes)
    assert np.array_equal(outcomes, before)


@given(st.floats(0, 1))
def test_binary_entropy(chance: float) -> None:
    entropy = float(binary_entropy(np.array(chance)))
    expected = -sum(p * log(p) for p in (chance, 1 - chance) if p > 0)
    assert entropy == pytest.approx(expected, abs=1e-12)
    assert 0 <= entropy <= log(2) + 1e-15
