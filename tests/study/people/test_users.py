"""Simulated users against the paper's table and against a plain implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from sfihilo import Query
from sfihilo.study.people.noise import NoiseLevels
from sfihilo.study.people.users import (
    Experience,
    HeadSettings,
    SimulatedUser,
    UserSettings,
    sample_head,
    sample_user,
)

SMALL = UserSettings(
    outcome=HeadSettings(128, 0.35, 0.65), reward=HeadSettings(128, 0.5, 0.8), calibration=500
)
SILENT = NoiseLevels(0, 0, 0)


@pytest.fixture(scope="module")
def user() -> SimulatedUser:
    return sample_user(3, 2, seed=5)


def test_settings_are_the_papers_table() -> None:
    settings = UserSettings()
    assert settings.outcome == HeadSettings(features=1024, shortest=0.35, longest=0.65)
    assert settings.reward == HeadSettings(features=512, shortest=0.50, longest=0.80)
    assert settings.calibration == 20_000
    assert settings.time_constant == pytest.approx(66.8, abs=0.05)


def test_a_head_is_the_papers_sum_of_cosines() -> None:
    rng = np.random.default_rng(0)
    head = sample_head(3, UserSettings().outcome, rng)
    points = rng.uniform(size=(7, 3))
    again = np.random.default_rng(0)
    scale = math.exp((1 - (share := again.uniform())) * math.log(0.35) + share * math.log(0.65))
    omega = again.standard_normal((1024, 3))
    phase = again.uniform(0, 2 * math.pi, 1024)
    weight = again.standard_normal(1024)
    expected = [
        sum(
            weight[m] * math.sqrt(2 / 1024) * math.cos(omega[m] @ point / scale + phase[m])
            for m in range(1024)
        )
        for point in points
    ]
    np.testing.assert_allclose(head(points), expected, atol=3e-6)


def test_length_scales_are_log_uniform() -> None:
    settings = HeadSettings(1, 0.35, 0.65)
    scales = [
        sample_head(1, settings, np.random.default_rng(seed)).length_scale for seed in range(2000)
    ]
    position = np.log(np.array(scales) / 0.35) / math.log(0.65 / 0.35)
    counts, _ = np.histogram(position, bins=5, range=(0, 1))
    assert counts.sum() == 2000
    assert counts.min() > 330


def test_heads_have_the_covariance_of_a_gaussian_process() -> None:
    points = np.array([[0.2, 0.3], [0.5, 0.7], [0.9, 0.1]])
    settings = HeadSettings(256, 0.5, 0.5)
    values = np.array(
        [sample_head(2, settings, np.random.default_rng(seed))(points) for seed in range(3000)]
    )
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.cov(values.T), np.exp(-squared / (2 * 0.5**2)), atol=0.09)


def test_maps_span_the_unit_interval(user: SimulatedUser) -> None:
    policies = np.random.default_rng(1).uniform(size=(20_000, 3))
    outcomes = user.outcomes(policies)
    rewards = user.rewards(outcomes)
    np.testing.assert_allclose(outcomes.min(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(outcomes.max(axis=0), 1, atol=0.03)
    assert rewards.min() == pytest.approx(0, abs=0.03)
    assert rewards.max() == pytest.approx(1, abs=0.03)


def test_heads_are_independent(user: SimulatedUser) -> None:
    scales = {head.length_scale for head in user.outcome_map.heads}
    assert len(scales) == 2
    policies = np.random.default_rng(2).uniform(size=(2000, 3))
    first, second = user.outcomes(policies).T
    assert abs(pearsonr(first, second).statistic) < 0.9


def test_a_person_is_the_same_whatever_the_learner_sees() -> None:
    plain = sample_user(3, 4, seed=1, settings=SMALL)
    hidden = sample_user(3, 4, seed=1, visible=2, settings=SMALL)
    richer = sample_user(3, 4, seed=1, visible=6, settings=SMALL)
    policies = np.random.default_rng(0).uniform(size=(50, 3))
    clean = plain.outcomes(policies)
    np.testing.assert_array_equal(hidden.outcomes(policies), clean)
    np.testing.assert_array_equal(richer.outcomes(policies)[:, :4], clean)
    for other in (hidden, richer):
        np.testing.assert_array_equal(other.rewards(other.outcomes(policies)), plain.rewards(clean))
    assert hidden.seen(clean).shape == (50, 2)
    assert richer.seen(richer.outcomes(policies)).shape == (50, 6)


def test_users_with_other_seeds_have_other_maps() -> None:
    policies = np.random.default_rng(0).uniform(size=(50, 2))
    first, second = (sample_user(2, 2, seed=seed, settings=SMALL) for seed in (1, 2))
    assert np.abs(first.outcomes(policies) - second.outcomes(policies)).max() > 0.1


def test_adaptation_goes_from_the_initial_to_the_steady_map() -> None:
    drifting = sample_user(2, 2, seed=3, drift=True, settings=SMALL)
    steady = sample_user(2, 2, seed=3, settings=SMALL)
    policies = np.random.default_rng(0).uniform(size=(20, 2))
    assert drifting.initial_map is not None
    initial = drifting.initial_map(policies)
    np.testing.assert_array_equal(drifting.outcomes(policies, 0), initial)
    np.testing.assert_allclose(
        drifting.outcomes(policies, 10_000), steady.outcomes(policies), atol=1e-12
    )
    assert drifting.adaptation(200) == pytest.approx(0.95)
    half = drifting.outcomes(policies, 50)
    share = 1 - math.exp(-50 / drifting.time_constant)
    np.testing.assert_allclose(half, initial + share * (steady.outcomes(policies) - initial))
    np.testing.assert_array_equal(drifting.rewards(half), steady.rewards(half))


def test_replies_are_pure_and_noise_depends_on_the_round(user: SimulatedUser) -> None:
    policy = np.array([0.4, 0.5, 0.6])
    first, again, later = (user.experience(round, policy) for round in (3, 3, 4))
    np.testing.assert_array_equal(first.measured, again.measured)
    assert np.abs(first.measured - later.measured).max() > 1e-3


def test_without_noise_the_better_outcome_is_chosen() -> None:
    user = sample_user(2, 2, seed=9, noise=SILENT, settings=SMALL)
    rng = np.random.default_rng(0)
    for round in range(1, 30):
        anchor = user.outcomes(rng.uniform(size=(1, 2)))[0]
        query = Query(round, rng.uniform(size=2), anchor)
        response = user.respond(query)
        new = user.outcomes(query.policy[None])
        assert response.outcome is not None
        np.testing.assert_allclose(response.outcome, new[0])
        better = user.rewards(new)[0] > user.rewards(anchor[None])[0]
        assert response.choice == ("new" if better else "previous")


def test_round_zero_has_nothing_to_compare(user: SimulatedUser) -> None:
    response = user.respond(Query(0, np.full(3, 0.5), None))
    assert response.choice is None
    assert response.outcome is not None


def test_an_experience_compared_with_itself_is_the_same() -> None:
    user = sample_user(2, 2, seed=9, noise=SILENT, settings=SMALL)
    lived = user.experience(1, np.array([0.5, 0.5]))
    assert user.judge(1, lived, lived).choice == "same"


def test_whether_measured_or_true_outcomes_are_judged_matters() -> None:
    noise = NoiseLevels(execution=0, measurement=0.3, reward=0)
    people = {
        judges: sample_user(2, 2, seed=4, noise=noise, judges=judges, settings=SMALL)
        for judges in ("measured", "true")
    }
    rng = np.random.default_rng(0)
    lived = [people["true"].experience(round, rng.uniform(size=2)) for round in range(60)]
    choices = {
        judges: [person.judge(t, lived[t - 1], lived[t]).choice for t in range(1, 60)]
        for judges, person in people.items()
    }
    assert choices["measured"] != choices["true"]
    rewards = people["true"].rewards(np.array([one.true for one in lived]))
    expected = ["new" if rewards[t] > rewards[t - 1] else "previous" for t in range(1, 60)]
    assert choices["true"] == expected


@pytest.mark.parametrize("change", [{"judges": "true"}, {"visible": 1}])
def test_an_incomplete_anchor_is_refused(change: dict[str, object]) -> None:
    user = sample_user(2, 2, seed=4, settings=SMALL, **change)  # type: ignore[arg-type]
    query = Query(1, np.full(2, 0.5), np.full(user.visible, 0.5))
    with pytest.raises(ValueError, match=r"use user\.experience"):
        user.respond(query)
    previous = Experience(np.full(2, 0.5), np.full(2, 0.5))
    new = user.experience(1, query.policy)
    assert user.answer(query, new, previous).choice in ("new", "previous")


def test_wrong_arguments_of_sample_user_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sample_user(0, 2, seed=1)
    with pytest.raises(ValueError, match="measured"):
        sample_user(2, 2, seed=1, judges="felt")  # type: ignore[arg-type]
