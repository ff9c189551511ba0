"""The average over amplitudes, against brute force, its special cases and hard data."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp, ndtr, softmax

from sfihilo import Response, Settings, State, ask, begin, load, save, tell
from sfihilo import inverse as inv
from sfihilo.history import FloatArray
from sfihilo.inverse.average import AverageSettings, Component, RewardAverage
from sfihilo.inverse.features import CombinedFeatures
from sfihilo.inverse.likelihood import Answers
from sfihilo.inverse.variational import variational_fit
from sfihilo.settings import DEFAULT_INVERSE

Pairs = tuple[FloatArray, FloatArray]


def rng_of() -> np.random.Generator:
    return np.random.default_rng(0)


def learned(
    first: FloatArray,
    second: FloatArray,
    labels: FloatArray,
    settings: AverageSettings = AverageSettings(),
    clarity: float = 1.0,
) -> RewardAverage:
    features = inv.feature_map(DEFAULT_INVERSE, first.shape[1], np.random.default_rng(1))
    curved = inv.difference(features, first, second)
    clear = np.full(len(labels), clarity)
    compared = inv.Compared(first - second, curved, clear, Answers.ungraded(labels))
    return inv.reward_average(settings, DEFAULT_INVERSE, features, compared, rng_of)


def choices(
    count: int, dimension: int, sharpness: float, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(size=(2, count, dimension))
    weights = rng.standard_normal(dimension)
    margins = sharpness * (first - second) @ weights
    return first, second, np.where(rng.uniform(size=count) < np.exp(log_expit(margins)), 1.0, -1.0)


@np.errstate(under="ignore")  # certain answers
def sharp_choices(
    count: int = 120, sharpness: float = 100.0, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of a person with a curved reward of three outcomes, who answers nearly without noise."""
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(size=(2, count, 3))
    rewards = [np.sin(6 * part[:, 0]) - ((part - 0.5) ** 2).sum(axis=1) for part in (first, second)]
    felt = sharpness * (rewards[0] - rewards[1]) + rng.logistic(size=count)
    return first, second, np.where(felt > 0, 1.0, -1.0)


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


@pytest.mark.parametrize("count", [0, 1, 25])
def test_scales_are_root_mean_square_differences_with_a_weak_prior(count: int) -> None:
    rng = np.random.default_rng(11)
    first, second = rng.uniform(size=(2, count, 3)) * [1.0, 0.3, 0.02]
    expected = []
    for outcome in range(3):
        squares = 0.0
        for one, other in zip(first[:, outcome], second[:, outcome], strict=True):
            squares += (one - other) ** 2
        expected.append(np.sqrt((0.1 * 0.28**2 + squares) / (0.1 + count)))
    assert learned(first, second, np.ones(count)).features.scales == pytest.approx(expected)


def prior_variance(average: RewardAverage, amplitudes: FloatArray, pairs: Pairs) -> float:
    """Of the margins seen, under one amplitude pair: their mean |A x|^2, one pair after another."""
    squares = []
    for one, other in zip(*pairs, strict=True):
        difference = (average.features(one[None]) - average.features(other[None]))[0]
        squares.append(sum((a * x) ** 2 for a, x in zip(amplitudes, difference, strict=True)))
    return float(np.mean(squares))


@pytest.mark.parametrize("person", ["noisy", "sharp"])
@np.errstate(under="ignore")
def test_noise_beyond_own_judgement_is_taken_as_unmeasured_reward(person: str) -> None:
    first, second, labels = choices(40, 3, 1.0, seed=3) if person == "noisy" else sharp_choices()
    average = learned(first, second, labels)
    some, other = np.random.default_rng(12).uniform(size=(2, 60, 3))
    differences = average.features(some) - average.features(other)
    expected, sure = np.zeros(60), np.zeros(60)
    for component in average.components:
        own = 0.2**2 * prior_variance(average, component.amplitudes, (first, second)) / 2
        assert component.unseen == pytest.approx(max(1.7**2 - own, 0))
        mean, variance = component.margins(differences)
        expected += component.probability * ndtr(mean / np.sqrt(variance + max(1.7**2 - own, 0)))
        sure += component.probability * ndtr(mean / np.sqrt(variance))
    better = average.better(some, other)
    assert better == pytest.approx(expected)
    # An answer adds the noise of judgement to what `better` is unsure of.
    decided = [np.abs(each - 0.5) for each in (average.preference(some, other), better, sure)]
    clear = decided[0] > 0.02
    assert clear.sum() > 30
    assert (decided[0] < decided[1])[clear].all()
    largest = average.components[int(np.argmax(average.probabilities))]
    if person == "noisy":
        assert largest.unseen > 2.5
        assert (decided[1] < decided[2])[clear].all()
    else:
        assert largest.unseen == 0
        drawn = average.reward_samples(some) > average.reward_samples(other)
        assert better == pytest.approx(drawn.mean(axis=1), abs=0.08)


def test_unmeasured_reward_does_not_depend_on_how_clear_the_answers_were() -> None:
    first, second, labels = choices(20, 3, 1.0, seed=3)
    average = learned(first, second, labels, clarity=0.5)
    for component in average.components:
        own = 0.2**2 * prior_variance(average, component.amplitudes, (first, second)) / 2
        assert component.unseen == pytest.approx(max(1.7**2 - own, 0))


def test_samples_are_as_many_as_the_settings_say() -> None:
    average = learned(*choices(20, 3, 1.0))
    assert len(average.weights) == DEFAULT_INVERSE.samples
    assert average.reward_samples(np.full((2, 3), 0.5)).shape == (2, DEFAULT_INVERSE.samples)


def test_unmeasured_reward_before_any_comparison_is_that_of_typical_pairs() -> None:
    """One scale apart in each outcome, and far apart for the curved part: V = d a^2 + 2 b^2."""
    nothing = np.empty((0, 3))
    average = learned(nothing, nothing, np.empty(0))
    assert {component.amplitudes[-1] for component in average.components} == {0, 0.7, 2, 6, 12, 24}
    for component in average.components:
        linear, curved = component.amplitudes[0], component.amplitudes[-1]
        own = 0.2**2 * (3 * linear**2 + 2 * curved**2) / 2
        assert component.unseen == pytest.approx(max(1.7**2 - own, 0))


def sampled_evidence(
    differences: FloatArray, labels: FloatArray, component: Component, count: int = 200_000
) -> float:
    """log p(answers) under one amplitude pair, by importance sampling of the margins.

    The component's own posterior, widened, proposes the margins; any proposal gives this integral.
    """
    scaled = differences * component.amplitudes
    prior = scaled @ scaled.T + 1e-9 * np.eye(len(labels))
    known = scaled @ component.explained.T
    root = np.linalg.cholesky(1.3 * (prior - known @ known.T) + 1e-9 * np.eye(len(labels)))
    normals = np.random.default_rng(13).standard_normal((count, len(labels)))
    margins = differences @ component.weights + normals @ root.T
    prior_root = np.linalg.cholesky(prior)
    whitened = np.linalg.solve(prior_root, margins.T)
    log = 0.5 * (normals**2).sum(axis=1) - 0.5 * (whitened**2).sum(axis=0)
    log += np.log(np.diag(root)).sum() - np.log(np.diag(prior_root)).sum()
    return float(logsumexp(log + log_expit(labels * margins).sum(axis=1)) - np.log(count))


@pytest.mark.parametrize("seed", range(3))
@np.errstate(under="ignore")  # far draws have no weight
def test_evidence_of_a_large_amplitude_is_close_to_importance_sampling(seed: int) -> None:
    """At b = 24 and 20 answers, where the bound alone is too low; b = 2 is the comparison."""
    first, second, labels = sharp_choices(20, 40.0, seed)
    grid = AverageSettings(linear=(1.0,), curved=(2.0, 24.0), curved_odds=(1.0, 1.0))
    average = learned(first, second, labels, grid)
    assert [component.amplitudes[-1] for component in average.components] == [2, 24]
    differences = average.features(first) - average.features(second)
    sampled, bounds = [], []
    for component in average.components:
        sampled.append(sampled_evidence(differences, labels, component))
        rows, start = differences * component.amplitudes, np.zeros(average.features.size)
        answers = Answers.ungraded(labels)
        bounds.append(variational_fit(rows, answers, start, np.full(20, 0.1), 100).bound)
    exact = sampled[1] - sampled[0]
    assert exact - (bounds[1] - bounds[0]) > 0.6
    assert np.log(average.probabilities[1] / average.probabilities[0]) == pytest.approx(
        exact, abs=0.2
    )


ONE_PAIR = AverageSettings(linear=(2.0,), curved=(6.0,), curved_odds=(1.0,), prior_count=1e9)


@pytest.mark.parametrize("count", [12, 80])
def test_covariance_is_that_of_the_dense_precision(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sigma^-1 = I + X^T W X, with W the curvatures averaged over the margins' own posterior."""
    monkeypatch.setattr("sfihilo.inverse.average._TOLERANCE", 1e-9)  # where W is that average
    first, second, labels = choices(count, 2, 4.0)
    average = learned(first, second, labels, ONE_PAIR)
    (component,) = average.components
    assert (count > average.features.size) == (count == 80)
    rows = (average.features(first) - average.features(second)) * component.amplitudes
    mean, variance = component.margins(rows / component.amplitudes)
    nodes = np.linspace(-8, 8, 4001)
    mass = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    right = expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes)
    curvature = (right * (1 - right)) @ mass
    covariance = np.linalg.inv(np.eye(rows.shape[1]) + rows.T @ np.diag(curvature) @ rows)
    some, other = np.random.default_rng(8).uniform(size=(2, 9, 2))
    differences = average.features(some) - average.features(other)
    scaled = differences * component.amplitudes
    _, found = component.margins(differences)
    assert found == pytest.approx(np.diag(scaled @ covariance @ scaled.T), rel=1e-3)
    drawn = component.samples(4000, np.random.default_rng(9)) @ differences.T
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(found), rel=0.08)


def test_comparisons_of_an_outcome_with_itself_change_no_margin() -> None:
    """They say nothing, but there are now more comparisons than features: the other form."""
    first, second, labels = choices(12, 2, 4.0)
    same = np.full((40, 2), 0.5)
    few = learned(first, second, labels, ONE_PAIR)
    many = learned(
        np.vstack([same, first]), np.vstack([same, second]), np.append([1.0] * 40, labels), ONE_PAIR
    )
    assert len(labels) < few.features.size < len(labels) + 40
    some, other = np.random.default_rng(8).uniform(size=(2, 9, 2))
    differences = few.features(some) - few.features(other)
    for one, two in zip(
        few.components[0].margins(differences),
        many.components[0].margins(differences),
        strict=True,
    ):
        assert two == pytest.approx(one, rel=1e-4)


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


def played(rounds: int, grades: int, missing: bool) -> State:
    state = begin(Settings(policy_dim=2, outcome_dim=2, grades=grades), seed=5)
    for _ in range(rounds):
        query = ask(state)
        outcome = 0.8 * query.policy + 0.1
        choice, strength = None, None
        if query.anchor is not None:
            gap = outcome.sum() - query.anchor.sum()
            choice = "new" if gap > 0 else "previous"
            strength = 1 + int(abs(gap) > 0.3) if grades > 2 else None
        if missing and query.round % 3 == 2:
            outcome[0] = np.nan
        state = tell(state, query, Response(outcome, choice, strength))  # type: ignore[arg-type]
    return state


@pytest.mark.parametrize(("grades", "missing"), [(2, False), (5, False), (2, True)])
def test_loaded_state_predicts_the_same_bits(grades: int, missing: bool) -> None:
    state = played(9, grades, missing)
    assert (state.inverse.grading.scale != 1) == (grades > 2)
    assert (state.inverse.clarity.min() < 1) == missing
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
