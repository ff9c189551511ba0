"""The average over amplitudes, against brute force, its special cases and hard data."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp, ndtr, softmax

from sfihilo import Response, Settings, State, ask, begin, load, save, tell
from sfihilo import inverse as inv
from sfihilo.history import FloatArray
from sfihilo.inverse.average import AverageSettings, RewardAverage, reward_average
from sfihilo.inverse.features import CombinedFeatures
from sfihilo.settings import DEFAULT_INVERSE


def rng_of() -> np.random.Generator:
    return np.random.default_rng(0)


def learned(
    first: FloatArray,
    second: FloatArray,
    labels: FloatArray,
    settings: AverageSettings = AverageSettings(),
) -> RewardAverage:
    features = inv.feature_map(DEFAULT_INVERSE, first.shape[1], np.random.default_rng(1))
    belief = inv.begin(DEFAULT_INVERSE, features)
    if len(labels):
        belief = inv.update(belief, inv.difference(features, first, second), labels)
    return reward_average(settings, belief, (first, second), rng_of)


def choices(
    count: int, dimension: int, sharpness: float, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(size=(2, count, dimension))
    weights = rng.standard_normal(dimension)
    margins = sharpness * (first - second) @ weights
    return first, second, np.where(rng.uniform(size=count) < np.exp(log_expit(margins)), 1.0, -1.0)


def test_average_before_any_comparison_is_undecided() -> None:
    nothing = np.empty((0, 3))
    average = learned(nothing, nothing, np.empty(0))
    some, other = np.random.default_rng(2).uniform(size=(2, 5, 3))
    assert average.preference(some, other) == pytest.approx(np.full(5, 0.5))
    assert average.probabilities.sum() == pytest.approx(1)
    assert np.isfinite(average.reward_samples(some)).all()


def test_preference_of_swapped_pair_is_the_complement() -> None:
    average = learned(*choices(40, 3, 6.0))
    some, other = np.random.default_rng(3).uniform(size=(2, 50, 3))
    for predict in (average.preference, average.better):
        assert predict(some, other) + predict(other, some) == pytest.approx(np.ones(50), abs=1e-9)


def test_mean_reward_is_linear_in_the_mean_weights_and_matches_samples() -> None:
    average = learned(*choices(30, 2, 5.0))
    outcomes = np.random.default_rng(4).uniform(size=(6, 2))
    differences = average.features(outcomes[:3]) - average.features(outcomes[3:])
    samples = average.reward_samples(outcomes)
    drawn = samples[:3] - samples[3:]
    mean = average.mean_reward(outcomes[:3]) - average.mean_reward(outcomes[3:])
    assert mean == pytest.approx(differences @ average.mean_weights, abs=1e-9)
    error = drawn.std(axis=1) / np.sqrt(drawn.shape[1])
    assert (np.abs(drawn.mean(axis=1) - mean) < 5 * error).all()


def test_probability_of_preference_matches_samples() -> None:
    average = learned(*choices(30, 2, 5.0))
    first, second = np.random.default_rng(5).uniform(size=(2, 8, 2))
    drawn = average.reward_samples(first) - average.reward_samples(second)
    by_samples = ndtr(drawn / inv.LOGISTIC_STD).mean(axis=1)
    assert average.preference(first, second) == pytest.approx(by_samples, abs=0.06)


@pytest.mark.parametrize(("sharpness", "least"), [(1.0, 0.0), (12.0, 1.0)])
def test_noisy_people_get_smaller_amplitudes_than_sharp_ones(
    sharpness: float, least: float
) -> None:
    first, second, labels = choices(80, 3, sharpness, seed=3)
    average = learned(first, second, labels)
    spread = np.abs(average.mean_reward(first) - average.mean_reward(second)).mean()
    assert (spread > 2.0) == (least > 0)


def test_linear_people_are_predicted_better_than_by_the_curved_part_alone() -> None:
    first, second, labels = choices(230, 4, 8.0, seed=7)
    held = slice(30, None)
    losses = {}
    for name, settings in {
        "both": AverageSettings(),
        "curved": AverageSettings(linear=(1e-6,)),
    }.items():
        average = learned(first[:30], second[:30], labels[:30], settings)
        right = average.preference(first[held], second[held])
        losses[name] = -np.log(np.where(labels[held] > 0, right, 1 - right)).mean()
    assert losses["both"] < losses["curved"]
    assert losses["both"] < np.log(2)


@pytest.mark.parametrize("answers", [[1] * 3, [1] * 20, [1] * 200, [1] * 49 + [-1], [1, 0] * 5])
@np.errstate(under="ignore")  # most of the line has no mass
def test_one_pair_compared_again_and_again_is_close_to_exact_integration(
    answers: list[int],
) -> None:
    """All margins are one number, so its posterior is an integral over a line."""
    first, second = np.tile([0.8], (len(answers), 1)), np.tile([0.3], (len(answers), 1))
    labels = np.array(answers, dtype=float)
    average = learned(first, second, labels)
    difference = (average.features(first[:1]) - average.features(second[:1]))[0]
    nodes = np.linspace(-10, 10, 20_001)
    settings = AverageSettings()
    evidence, right, weight = [], [], []
    for linear in settings.linear:
        for curved, odds in zip(settings.curved, settings.curved_odds, strict=True):
            amplitudes = np.append(linear * np.sqrt(3), np.full(len(difference) - 1, curved))
            margin = nodes * np.linalg.norm(amplitudes * difference)
            log = -0.5 * nodes**2 + np.sum(labels > 0) * log_expit(margin)
            log += np.sum(labels < 0) * log_expit(-margin)
            log -= np.sum(labels == 0) * np.logaddexp(np.logaddexp(margin / 2, -margin / 2), 0)
            evidence.append(logsumexp(log))
            right.append(np.exp(log - evidence[-1]) @ expit(margin))
            away = np.log(linear / settings.linear_median) / settings.log_linear_std
            weight.append(evidence[-1] + np.log(odds) - 0.5 * away**2)
    exact = softmax(weight)
    assert average.preference(first[:1], second[:1]) == pytest.approx(exact @ right, abs=0.01)
    assert max(average.probabilities) == pytest.approx(exact.max(), abs=0.03)


@pytest.mark.parametrize(
    "kind", ["identical", "separable", "contradictory", "constant", "ties", "tiny", "many"]
)
@np.errstate(under="ignore")  # a curvature of zero is what certain answers have
def test_hard_comparisons_give_finite_predictions(kind: str) -> None:
    rng = np.random.default_rng(6)
    first, second = rng.uniform(size=(2, 24, 2))
    labels = np.sign(first[:, 0] - second[:, 0])
    if kind == "identical":
        second = first.copy()
    elif kind == "contradictory":
        first, second = np.tile(first[:1], (24, 1)), np.tile(second[:1], (24, 1))
        labels = np.where(np.arange(24) % 2, 1.0, -1.0)
    elif kind == "constant":
        first[:, 1] = second[:, 1] = 0.5
    elif kind == "ties":
        labels = np.zeros(24)
    elif kind == "many":
        first, second = np.tile(first[:1], (5000, 1)), np.tile(second[:1], (5000, 1))
        labels = np.ones(5000)
    elif kind == "tiny":
        second = first + 1e-9 * labels[:, None]
    average = learned(first, second, labels)
    some, other = rng.uniform(size=(2, 40, 2))
    for values in (
        average.preference(some, other),
        average.better(some, other),
        average.mean_reward(some),
        average.reward_samples(some),
    ):
        assert np.isfinite(values).all()
    probability = average.preference(some, other)
    assert ((probability >= 0) & (probability <= 1)).all()


def test_more_comparisons_than_features_agree_with_fewer_features_form() -> None:
    """Both forms of the covariance give the same margins."""
    first, second, labels = choices(60, 1, 4.0)
    average = learned(first, second, labels)
    assert len(labels) > average.features.size  # one outcome has few features
    some, other = np.random.default_rng(8).uniform(size=(2, 9, 1))
    differences = average.features(some) - average.features(other)
    for component in average.components:
        _, variance = component.margins(differences)
        scaled = differences * component.amplitudes
        covariance = np.eye(average.features.size) - component.explained.T @ component.explained
        direct = np.einsum("ij,jk,ik->i", scaled, covariance, scaled)
        assert variance == pytest.approx(np.maximum(direct, 1e-6), rel=1e-6, abs=1e-9)
        drawn = component.samples(4000, np.random.default_rng(9)) @ differences.T
        assert drawn.std(axis=0) == pytest.approx(np.sqrt(variance), rel=0.08)


def test_combined_features_gradient_matches_numerical_slope() -> None:
    curved = inv.feature_map(DEFAULT_INVERSE, 3, np.random.default_rng(1))
    features = CombinedFeatures(np.array([0.1, 0.3, 0.5]), curved)
    weights = np.random.default_rng(2).standard_normal(features.size)
    outcomes, step = np.random.default_rng(3).uniform(0.2, 0.8, (4, 3)), 1e-6
    gradient = features.gradient(outcomes, weights)
    assert features.jacobian(outcomes) @ weights == pytest.approx(gradient, rel=1e-6)
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        rise = (features(outcomes + shift) - features(outcomes - shift)) @ weights
        assert gradient[:, axis] == pytest.approx(rise / (2 * step), rel=1e-4, abs=1e-4)


def played(rounds: int) -> State:
    state = begin(Settings(policy_dim=2, outcome_dim=2), seed=5)
    for _ in range(rounds):
        query = ask(state)
        outcome = 0.8 * query.policy + 0.1
        choice = None
        if query.anchor is not None:
            choice = "new" if outcome.sum() > query.anchor.sum() else "previous"
        state = tell(state, query, Response(outcome, choice))  # type: ignore[arg-type]
    return state


def test_loaded_state_predicts_the_same_bits() -> None:
    state = played(9)
    again = load(save(state))
    some, other = np.random.default_rng(0).uniform(size=(2, 20, 2))
    for one, two in (
        (state.posterior().preference(some, other), again.posterior().preference(some, other)),
        (state.posterior().reward_samples(some), again.posterior().reward_samples(some)),
    ):
        assert (one == two).all()


def test_paper_preset_and_states_from_before_have_no_average() -> None:
    paper = Settings.paper(2, 2)
    assert paper.average is None
    assert "average" not in paper.to_dict()
    record = Settings(policy_dim=2, outcome_dim=2).to_dict()
    assert Settings.from_dict(record) == Settings(policy_dim=2, outcome_dim=2)
    del record["average"]
    assert Settings.from_dict(record).average is None
