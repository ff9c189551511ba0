"""Feature maps against the kernel that they stand for, and their gradients."""

from collections.abc import Callable

import numpy as np
import pytest

from sfihilo.history import FloatArray
from sfihilo.inverse.features import (
    CombinedFeatures,
    CustomFeatures,
    FeatureMap,
    LinearFeatures,
    fourier_features,
    landmark_features,
)
from tests.small import own_features


def rbf_kernel(first: FloatArray, second: FloatArray, length_scale: float) -> FloatArray:
    squares = ((first[:, None] - second[None]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares / (2 * length_scale**2)))


def kernel_error(size: int, seed: int, *, orthogonal: bool) -> float:
    rng = np.random.default_rng(seed)
    outcomes = rng.uniform(size=(40, 8))
    features = fourier_features(size, 8, 0.65, rng, orthogonal=orthogonal)
    away = features(outcomes) @ features(outcomes).T - rbf_kernel(outcomes, outcomes, 0.65)
    return float(np.sqrt((away**2).mean()))


@pytest.mark.parametrize("orthogonal", [False, True])
def test_inner_products_are_the_rbf_kernel(orthogonal: bool) -> None:
    errors = [kernel_error(size, 1, orthogonal=orthogonal) for size in (400, 40_000)]
    assert errors[1] < 0.01
    assert errors[1] < errors[0] / 4  # it falls with the root of the number of features


def test_orthogonal_features_err_less() -> None:
    plain = np.mean([kernel_error(256, seed, orthogonal=False) for seed in range(12)])
    orthogonal = np.mean([kernel_error(256, seed, orthogonal=True) for seed in range(12)])
    assert orthogonal < 0.97 * plain


@pytest.mark.parametrize("dimension", [2, 8, 12])
def test_landmarks_err_far_less_where_outcomes_are(dimension: int) -> None:
    rng = np.random.default_rng(0)
    outcomes = np.clip(0.5 + 0.15 * rng.standard_normal((60, dimension)), 0, 1)
    kernel = rbf_kernel(outcomes, outcomes, 0.65)
    maps: dict[str, FeatureMap] = {
        "landmarks": landmark_features(384, dimension, 0.65, rng),
        "fourier": fourier_features(384, dimension, 0.65, rng, orthogonal=True),
    }
    errors = {}
    for name, features in maps.items():
        away = features(outcomes) @ features(outcomes).T - kernel
        errors[name] = np.sqrt((away**2).mean())
    assert errors["landmarks"] < errors["fourier"] / 4


def test_landmarks_are_where_the_kernel_is_exact() -> None:
    features = landmark_features(64, 8, 0.65, np.random.default_rng(0))
    landmarks = features.landmarks
    inner = features(landmarks) @ features(landmarks).T
    assert inner == pytest.approx(rbf_kernel(landmarks, landmarks, 0.65), abs=1e-3)


def test_landmarks_never_add_variance() -> None:
    features = landmark_features(384, 4, 0.65, np.random.default_rng(0))
    outcomes = np.random.default_rng(1).uniform(size=(500, 4))
    variance = (features(outcomes) ** 2).sum(axis=1)
    assert variance.max() <= 1 + 1e-9
    assert variance.min() > 0.9
    assert features.size < 384  # a smooth kernel in few dimensions needs few features


def test_orthogonal_blocks_are_orthogonal() -> None:
    frequencies = fourier_features(
        20, 8, 1.0, np.random.default_rng(0), orthogonal=True
    ).frequencies
    assert np.array_equal(frequencies[::2], frequencies[1::2])  # a cosine and a sine of each
    for block in (frequencies[:16:2], frequencies[16::2]):
        inner = block @ block.T
        assert np.abs(inner - np.diag(np.diag(inner))).max() < 1e-12


def test_frequencies_follow_the_paper() -> None:
    features = fourier_features(4000, 3, 0.65, np.random.default_rng(0))
    assert np.std(features.frequencies * 0.65) == pytest.approx(1, abs=0.02)
    assert 0 <= features.phases.min() < 0.02
    assert 2 * np.pi - 0.02 < features.phases.max() < 2 * np.pi
    by_hand = np.sqrt(2 / 4000) * np.cos(features.frequencies @ [0.1, 0.2, 0.3] + features.phases)
    assert features(np.array([[0.1, 0.2, 0.3]]))[0] == pytest.approx(by_hand, abs=1e-15)


@pytest.mark.parametrize("draw", [fourier_features, landmark_features])
def test_precision_follows_the_argument(draw: Callable[..., FeatureMap]) -> None:
    features = draw(64, 3, 0.65, np.random.default_rng(0))
    outcomes = np.random.default_rng(1).uniform(size=(5, 3))
    single = features(outcomes.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(single - features(outcomes)).max() < (1e-6 if draw is fourier_features else 2e-4)


def test_linear_map_is_the_outcome() -> None:
    features = LinearFeatures(3)
    outcomes = np.random.default_rng(0).uniform(size=(4, 3))
    assert features.size == 3
    assert np.array_equal(features(outcomes), outcomes)


@pytest.mark.parametrize(
    "features",
    [
        fourier_features(32, 3, 0.65, np.random.default_rng(0)),
        landmark_features(32, 3, 0.65, np.random.default_rng(0)),
        LinearFeatures(3),
        CustomFeatures(own_features, 9, 3),
    ],
    ids=["rbf", "landmarks", "linear", "own"],
)
def test_slopes_by_central_differences(features: FeatureMap) -> None:
    rng = np.random.default_rng(2)
    outcomes, weights = rng.uniform(0.1, 0.9, (6, 3)), rng.standard_normal(features.size)
    slopes = features.jacobian(outcomes) @ weights
    assert features.gradient(outcomes, weights) == pytest.approx(slopes, rel=1e-9, abs=1e-9)
    step = 1e-6
    for coordinate in range(3):
        shift = step * np.eye(3)[coordinate]
        change = (features(outcomes + shift) - features(outcomes - shift)) @ weights / (2 * step)
        assert slopes[:, coordinate] == pytest.approx(change, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    "function",
    [
        lambda outcomes: outcomes[:, :1],
        lambda outcomes: outcomes[0],
        lambda outcomes: outcomes * np.nan,
        lambda outcomes: outcomes / 0.0 if False else np.full_like(outcomes, np.inf),
    ],
)
def test_own_map_that_misbehaves(function: object) -> None:
    features = CustomFeatures(function, 3, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="feature map: expected finite values of shape"):
        features(np.full((4, 3), 0.5))


def test_own_map_that_is_defined_inside_the_cube_only() -> None:
    features = CustomFeatures(np.sqrt, 2, 2)
    corner = np.array([[0.0, 1.0]])
    assert np.isfinite(features.jacobian(corner)).all()


AVERAGED: dict[str, FeatureMap] = {
    "fourier": fourier_features(40, 3, 0.65, np.random.default_rng(5)),
    "landmarks": landmark_features(30, 3, 0.65, np.random.default_rng(5)),
    "linear": LinearFeatures(3),
    "combined": CombinedFeatures(
        np.array([0.2, 0.4, 0.3]), landmark_features(30, 3, 0.65, np.random.default_rng(5))
    ),
}


@pytest.mark.parametrize("name", AVERAGED)
def test_averaged_features_and_gradients_equal_their_means_over_normal_outcomes(name: str) -> None:
    features, rng = AVERAGED[name], np.random.default_rng(6)
    mean, variance = rng.uniform(size=(4, 3)), rng.uniform(0.01, 0.2, (4, 3))
    weights = rng.standard_normal(features.size)
    half = rng.standard_normal((20_000, 3))
    normals = np.concatenate([half, -half])
    averaged = features.averaged(mean, variance)
    gradients = features.averaged_gradient(mean, variance, weights)
    for row in range(4):
        outcomes = mean[row] + np.sqrt(variance[row]) * normals
        values, slopes = features(outcomes), features.gradient(outcomes, weights)
        error = 5 * values.std(axis=0) / 200
        assert (np.abs(averaged[row] - values.mean(axis=0)) < error + 1e-9).all()
        error = 5 * slopes.std(axis=0) / 200
        assert (np.abs(gradients[row] - slopes.mean(axis=0)) < error + 1e-9).all()


def test_averaged_own_features_are_those_of_the_mean() -> None:
    features, rng = CustomFeatures(own_features, 6, 2), np.random.default_rng(6)
    mean, variance, weights = rng.uniform(size=(4, 2)), np.full((4, 2), 0.1), np.ones(6)
    assert np.array_equal(features.averaged(mean, variance), own_features(mean))
    expected = features.gradient(mean, weights)
    assert np.array_equal(features.averaged_gradient(mean, variance, weights), expected)
