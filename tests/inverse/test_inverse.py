"""The inverse posterior against numerical differentiation, counting and its own definition."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from sfihilo import inverse as inv
from sfihilo.forward.factor import inverse_root
from sfihilo.history import FloatArray
from sfihilo.inverse import InverseBelief, InverseSettings
from sfihilo.inverse.features import (
    CustomFeatures,
    FourierFeatures,
    LandmarkFeatures,
    LinearFeatures,
)
from sfihilo.inverse.likelihood import Answers, likelihood_terms
from sfihilo.inverse.posterior import reward_posterior
from tests.small import own_features

LINEAR = InverseSettings(features="linear")


def precision_of(belief: inv.InverseBelief) -> FloatArray:
    return belief.joint.precision(belief.centre, belief.curvature, belief.settings.jitter)


def belief_of(
    settings: InverseSettings, labels: list[float], outcome_dim: int = 3, seed: int = 0
) -> InverseBelief:
    """Random pairs with these labels; the mode is found."""
    rng = np.random.default_rng(seed)
    features = inv.feature_map(settings, outcome_dim, rng)
    belief = inv.begin(settings, features)
    anchors, outcomes = rng.uniform(size=(2, len(labels), outcome_dim))
    return inv.update(belief, inv.difference(features, anchors, outcomes), np.array(labels))


MIXED = [1.0, -1.0, 0.0, 1.0, 1.0, -1.0, 0.0, 0.0, -1.0, 1.0, -1.0, 1.0]
SMALL = InverseSettings(feature_count=12)


def somewhere(belief: InverseBelief, seed: int = 1) -> FloatArray:
    theta = np.random.default_rng(seed).standard_normal(len(belief.centre))
    theta[-1] *= 0.5
    return theta


@pytest.mark.parametrize("labels", [MIXED, [1.0, -1.0, 1.0], [0.0, 0.0]], ids=str)
@pytest.mark.parametrize("odds", [1.0, 0.3])
def test_gradient(labels: list[float], odds: float) -> None:
    settings = replace(SMALL, tie_odds=odds, log_sharpness_mean=0.4, weight_std=1.7)
    belief = belief_of(settings, labels)
    theta = somewhere(belief)
    _, gradient = belief.joint.loss(theta)
    step = 1e-6
    for k in range(len(theta)):
        shift = step * np.eye(len(theta))[k]
        slope = (belief.joint.loss(theta + shift)[0] - belief.joint.loss(theta - shift)[0]) / (
            2 * step
        )
        assert gradient[k] == pytest.approx(slope, abs=1e-7)


def margins_of(belief: InverseBelief, theta: FloatArray) -> FloatArray:
    """u_i = I_i exp(eta) delta z_i w, where a tie's sign is taken as +1."""
    signs = np.where(belief.labels == 0, 1.0, belief.labels)
    return np.asarray(signs * np.exp(theta[-1]) * (belief.differences @ theta[:-1]))


def davidson(margin: float, odds: float) -> float:
    """-log p(same)."""
    return float(-np.log(odds / (2 * np.cosh(margin / 2) + odds)))


def test_curvature_from_differentiated_margins() -> None:
    belief = belief_of(SMALL, MIXED)
    assert np.abs(belief.centre).max() > 0.1
    step = 1e-6
    slopes = np.column_stack(
        [
            margins_of(belief, belief.centre + shift) - margins_of(belief, belief.centre - shift)
            for shift in step * np.eye(len(belief.centre))
        ]
    ) / (2 * step)
    step = 1e-4
    curvature = []
    for label, u in zip(belief.labels, margins_of(belief, belief.centre), strict=True):
        if label == 0:
            values = [davidson(u + k * step, 1.0) for k in (-1, 0, 1)]
            curvature.append((values[0] - 2 * values[1] + values[2]) / step**2)
        else:
            curvature.append(float(expit(u) * (1 - expit(u))))
    expected = slopes.T @ np.diag(curvature) @ slopes + np.diag(belief.prior_precision + 1e-6)
    assert precision_of(belief) == pytest.approx(expected, abs=1e-6)
    assert np.linalg.eigvalsh(precision_of(belief)).min() >= 1


def test_curvature_from_the_whole_hessian() -> None:
    """Gauss-Newton leaves out exactly sum_i (d loss / d u_i) (second derivatives of u_i)."""
    belief = belief_of(SMALL, MIXED)
    theta = belief.centre
    size, step = len(theta), 1e-6
    hessian = np.array(
        [
            (belief.joint.loss(theta + step * row)[1] - belief.joint.loss(theta - step * row)[1])
            / (2 * step)
            for row in np.eye(size)
        ]
    )
    sharpness = np.exp(theta[-1])
    margins = sharpness * (belief.differences @ theta[:-1])
    slope = likelihood_terms(margins, Answers.ungraded(belief.labels, 1.0)).slope
    bend = np.zeros((size, size))
    bend[:-1, -1] = bend[-1, :-1] = sharpness * (slope @ belief.differences)
    bend[-1, -1] = slope @ margins
    assert precision_of(belief) - 1e-6 * np.eye(size) == pytest.approx(hessian - bend, abs=1e-6)


@pytest.mark.parametrize("odds", [0.2, 1.0, 3.0])
def test_davidson_probabilities_sum_to_one(odds: float) -> None:
    margins = np.linspace(-30, 30, 121)
    ones = np.ones_like(margins)
    same = np.exp(-likelihood_terms(margins, Answers.ungraded(0 * ones, odds)).value)
    first = np.exp(-likelihood_terms(margins, Answers.ungraded(ones, odds)).value)
    second = np.exp(-likelihood_terms(margins, Answers.ungraded(-ones, odds)).value)
    # Given that the answer is decisive, it is the paper's logistic one.
    assert first + second == pytest.approx(ones)
    assert first == pytest.approx(expit(margins))
    total = np.exp(margins / 2) + np.exp(-margins / 2) + odds
    assert same == pytest.approx(odds / total)
    assert (1 - same) * first == pytest.approx(np.exp(margins / 2) / total)
    assert (1 - same) * second + (1 - same) * first + same == pytest.approx(ones)


@pytest.mark.parametrize("label", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("margin", [-1e6, -2000.0, -800.0, -40.0, 0.0, 40.0, 800.0, 2000.0, 1e6])
def test_likelihood_of_far_margins_is_linear_and_finite(label: float, margin: float) -> None:
    terms = likelihood_terms(np.array([margin]), Answers.ungraded(np.array([label])))
    expected = abs(margin) / 2 if label == 0 else max(-label * margin, 0.0)
    assert terms.value[0] == pytest.approx(expected, rel=1e-6, abs=1.2)
    assert 0 <= terms.curvature[0] <= 0.25
    assert abs(terms.slope[0]) <= 1


@given(st.floats(-25, 25), st.sampled_from([-1.0, 0.0, 1.0]), st.floats(0.05, 5))
def test_slopes_and_curvatures_of_one_answer(margin: float, label: float, odds: float) -> None:
    step = 1e-4
    shifted = margin + step * np.array([-1.0, 0.0, 1.0])
    terms = likelihood_terms(shifted, Answers.ungraded(np.full(3, label), odds))
    assert terms.slope[1] == pytest.approx((terms.value[2] - terms.value[0]) / 2e-4, abs=1e-6)
    assert terms.curvature[1] == pytest.approx((terms.slope[2] - terms.slope[0]) / 2e-4, abs=1e-6)


def test_same_pulls_the_rewards_together() -> None:
    rng = np.random.default_rng(0)
    features = inv.feature_map(SMALL, 2, rng)
    better, worse = np.array([0.9, 0.8]), np.array([0.1, 0.3])

    def after(*labels: float) -> tuple[float, float, float]:
        belief = inv.begin(SMALL, features)
        for label in labels:
            belief = inv.append(belief, better, worse, label)
        many = replace(belief, settings=replace(SMALL, samples=4000))
        posterior = reward_posterior(many, np.random.default_rng(1))
        gap = posterior.mean_reward(better[None]) - posterior.mean_reward(worse[None])
        samples = posterior.reward_samples(better[None]) - posterior.reward_samples(worse[None])
        return (
            float(gap[0]),
            float(samples.std()),
            float(posterior.preference(better[None], worse[None])[0]),
        )

    decided, torn = after(1, 1, 1, 1), after(1, 1, 1, 1, 0, 0, 0, 0)
    assert decided[0] > 0.3
    assert abs(torn[0]) < 0.8 * decided[0]
    assert 0.5 < torn[2] < decided[2] - 0.03
    # Of two rewards that nothing is known about, "same" says that they are close.
    ignorant, equal = after(), after(0, 0, 0, 0, 0, 0)
    assert abs(equal[0]) < 1e-6
    assert equal[1] < 0.85 * ignorant[1]
    # Neither of the two is favoured: it is no win in disguise.
    assert equal[2] == pytest.approx(0.5, abs=0.03)


def test_mode_is_a_stationary_point() -> None:
    belief = belief_of(replace(SMALL, iterations=2000), MIXED)
    assert np.abs(belief.joint.loss(belief.centre)[1]).max() < 1e-3
    lower = [belief.joint.loss(belief.centre + 0.05 * somewhere(belief, k))[0] for k in range(20)]
    assert min(lower) > belief.joint.loss(belief.centre)[0]


def test_mode_against_a_grid() -> None:
    """One weight and the sharpness: the mode is where a fine grid is least."""
    belief = belief_of(LINEAR, [1.0, 1.0, -1.0, 0.0, 1.0], outcome_dim=1)
    values = [
        (belief.joint.loss(np.array([weight, eta]))[0], weight, eta)
        for weight in np.linspace(-3, 3, 121)
        for eta in np.linspace(-2, 2, 81)
    ]
    assert belief.joint.loss(belief.centre)[0] <= min(values)[0] + 1e-6
    assert belief.centre == pytest.approx(np.array(min(values)[1:]), abs=0.06)


def test_iterations_and_warm_start() -> None:
    few = belief_of(replace(SMALL, iterations=1), MIXED)
    many = belief_of(replace(SMALL, iterations=50), MIXED)
    assert many.joint.loss(many.centre)[0] < few.joint.loss(few.centre)[0]
    again = inv.update(many, many.differences, many.labels)
    assert again.joint.loss(again.centre)[0] <= many.joint.loss(many.centre)[0] + 1e-12
    near = inv.update(few, few.differences, few.labels)  # goes on from where it stopped
    assert near.joint.loss(near.centre)[0] < few.joint.loss(few.centre)[0]


def test_the_mode_is_found_after_a_surprising_answer() -> None:
    rng = np.random.default_rng(4)
    settings = InverseSettings(feature_count=128)
    features = inv.feature_map(settings, 4, rng)
    anchors, outcomes = rng.uniform(size=(2, 400, 4))
    labels = np.where(anchors.sum(axis=1) > outcomes.sum(axis=1), 1.0, -1.0)
    belief = inv.begin(settings, features)
    rows = inv.difference(features, anchors, outcomes)
    for count in (50, 100, 200, 400):
        belief = inv.update(belief, rows[:count], labels[:count])
    surprised = inv.append(belief, np.full(4, 0.55), np.full(4, 0.5), -1.0)
    moved = np.linalg.solve(belief.covariance_root, surprised.centre - belief.centre)
    _, gradient = surprised.joint.loss(surprised.centre)
    assert np.linalg.norm(moved) > 1
    assert np.abs(gradient @ surprised.covariance_root).max() < 1e-5


def test_samples_have_the_inverse_precision() -> None:
    belief = belief_of(replace(LINEAR, samples=40_000), MIXED)
    posterior = reward_posterior(belief, np.random.default_rng(0))
    theta = np.column_stack([posterior.weights, posterior.log_sharpness])
    covariance = np.linalg.inv(precision_of(belief))
    deviations = np.sqrt(np.diag(covariance))
    assert theta.mean(axis=0) == pytest.approx(belief.centre, abs=0.03)
    away = (np.cov(theta.T) - covariance) / np.outer(deviations, deviations)
    assert np.abs(away).max() < 0.03


def test_eigenvalues_are_clipped_where_no_cholesky_factor_exists() -> None:
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    precision = vectors @ np.diag([4.0, 1.0, -1e-9]) @ vectors.T
    draws = inverse_root(precision) @ np.random.default_rng(1).standard_normal((3, 20_000))
    assert np.isfinite(draws).all()
    assert (vectors.T @ draws)[:2].std(axis=1) == pytest.approx([0.5, 1.0], rel=0.03)


def test_predictive_preference_by_counting() -> None:
    belief = belief_of(replace(SMALL, samples=50), MIXED)
    posterior = reward_posterior(belief, np.random.default_rng(0))
    first, second = np.random.default_rng(1).uniform(size=(2, 6, 3))
    for pair, chance in enumerate(posterior.preference(first, second)):
        total = 0.0
        for weights, eta in zip(posterior.weights, posterior.log_sharpness, strict=True):
            gap = float(
                (belief.features(first[pair][None]) - belief.features(second[pair][None]))[0]
                @ weights
            )
            total += 1 / (1 + np.exp(-np.exp(eta) * gap)) / 50
        assert chance == pytest.approx(total)
    assert posterior.preference(first, second) + posterior.preference(
        second, first
    ) == pytest.approx(np.ones(6))
    assert posterior.reward_samples(first).mean(axis=1) == pytest.approx(
        posterior.mean_reward(first), abs=4 / np.sqrt(50)
    )


def test_predictive_preference_against_quadrature() -> None:
    """One linear weight with the sharpness nearly known: a one-dimensional integral."""
    settings = replace(LINEAR, samples=200_000, log_sharpness_std=1e-4)
    belief = belief_of(settings, [1.0, 1.0, -1.0], outcome_dim=1)
    posterior = reward_posterior(belief, np.random.default_rng(0))
    mean, deviation = belief.centre[0], np.sqrt(np.linalg.inv(precision_of(belief))[0, 0])

    def integrand(z: float) -> float:
        weight = mean + deviation * z
        return float(expit(weight * 0.8) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))

    expected = scipy.integrate.quad(integrand, -8, 8)[0]
    chance = posterior.preference(np.array([[0.9]]), np.array([[0.1]]))[0]
    assert chance == pytest.approx(expected, abs=0.002)


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=8),
    st.integers(0, 1000),
)
def test_swapping_a_pair_and_flipping_its_label_changes_nothing(
    labels: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    settings = InverseSettings(feature_count=8)
    features = inv.feature_map(settings, 2, rng)
    anchors, outcomes = rng.uniform(size=(2, len(labels), 2))
    swap = rng.random(len(labels)) < 0.5
    first = np.where(swap[:, None], outcomes, anchors)
    second = np.where(swap[:, None], anchors, outcomes)
    flipped = np.where(swap, -np.array(labels), labels)
    start = inv.begin(settings, features)
    one = inv.update(start, inv.difference(features, anchors, outcomes), np.array(labels))
    other = inv.update(start, inv.difference(features, first, second), flipped)
    assert one.centre == pytest.approx(other.centre, abs=1e-9)
    assert precision_of(one) == pytest.approx(precision_of(other), abs=1e-9)


def test_feature_map_is_the_one_that_settings_name() -> None:
    rng = np.random.default_rng(0)
    rbf = inv.feature_map(InverseSettings(), 4, rng)
    assert isinstance(rbf, FourierFeatures)
    assert rbf.size == 256
    landmarks = inv.feature_map(InverseSettings(features="landmarks", feature_count=64), 4, rng)
    assert isinstance(landmarks, LandmarkFeatures)
    assert landmarks.landmarks.shape == (64, 4)
    assert isinstance(inv.feature_map(LINEAR, 4, rng), LinearFeatures)
    own = inv.feature_map(InverseSettings(features="tests.small:own_features"), 4, rng)
    assert isinstance(own, CustomFeatures)
    assert own.size == own_features(np.full((1, 4), 0.5)).shape[1] == 12


@pytest.mark.parametrize("name", ["quadratic", "no.such:thing", "math:nothing", "math:pi"])
def test_unknown_maps(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"features: expected rbf, landmarks, linear or module:function"
    ):
        inv.feature_map(InverseSettings(features=name), 4, np.random.default_rng(0))


def test_noise_beyond_a_persons_own_makes_better_less_sure() -> None:
    """Answers are predicted as before; who is truly better is left more open, never turned."""
    settings = InverseSettings(
        features="landmarks",
        feature_count=32,
        inference="variational",
        log_sharpness_mean=float(np.log(4)),
    )
    belief = belief_of(settings, MIXED)
    rng = np.random.default_rng(4)
    first, second = rng.uniform(size=(2, 50, 3))

    def probabilities(own_noise: float | None) -> tuple[FloatArray, FloatArray]:
        told = replace(belief, settings=replace(settings, own_noise=own_noise))
        posterior = reward_posterior(told, np.random.default_rng(0))
        return posterior.better(first, second), posterior.preference(first, second)

    every, answers = probabilities(None)
    quiet, same_answers = probabilities(0.1)  # of 1.7 / 4: most of the noise is not the person's
    noisy, _ = probabilities(1.7 / 4)
    np.testing.assert_array_equal(answers, same_answers)
    np.testing.assert_array_equal(every, noisy)
    assert (np.abs(quiet - 0.5) < np.abs(every - 0.5)).all()
    assert (np.sign(quiet - 0.5) == np.sign(every - 0.5)).all()
    # Noise that is not the person's at all is reward: then better is what would be answered.
    nothing, _ = probabilities(1e-9)
    np.testing.assert_allclose(nothing, answers, atol=1e-6)


@pytest.mark.parametrize("outcome_dim", [2, 8])
@pytest.mark.parametrize("sharpness", [12.0, 40.0])
def test_the_sharpness_moves_by_bounds_that_were_reached(
    outcome_dim: int, sharpness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping the trials early must not move what they choose."""
    settings = InverseSettings(
        features="landmarks",
        feature_count=128,
        inference="variational",
        log_sharpness_mean=float(np.log(sharpness)),
        log_sharpness_std=0.5,
    )
    rng = np.random.default_rng(outcome_dim)
    features = inv.feature_map(settings, outcome_dim, rng)
    anchors, outcomes = rng.uniform(size=(2, 90, outcome_dim))
    differences = inv.difference(features, anchors, outcomes)
    labels = np.sign(differences @ rng.standard_normal(features.size) + 0.02)
    before = inv.update(inv.begin(settings, features), differences[:-1], labels[:-1])
    usual = inv.update(before, differences, labels, reselect=True)
    monkeypatch.setattr("sfihilo.inverse.belief._TRIAL_TOLERANCE", 1e-6)
    exact = inv.update(before, differences, labels, reselect=True)
    assert usual.log_sharpness != before.log_sharpness
    assert usual.log_sharpness == pytest.approx(exact.log_sharpness, abs=0.02)
