"""Evaluation on hand-made pairs and beliefs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sfihilo.forward import Prediction
from sfihilo.history import FloatArray
from sfihilo.study.people.users import SimulatedUser, UserSettings, sample_user
from sfihilo.study.run import evaluation as ev
from tests.study.tiny import EVALUATION, PEOPLE


@pytest.fixture(scope="module")
def user() -> SimulatedUser:
    return sample_user(3, 3, seed=2, settings=PEOPLE)


@pytest.fixture(scope="module")
def held_out(user: SimulatedUser) -> ev.HeldOut:
    return ev.hold_out(user, EVALUATION)


class Oracle:
    """Knows the user; ``bias`` moves its outcomes, ``sign`` turns its preferences around."""

    def __init__(self, user: SimulatedUser, bias: float = 0.0, sign: float = 1.0) -> None:
        self.user, self.bias, self.sign = user, bias, sign
        self.working_dtype: type[np.float32] | type[np.float64] = np.float64

    def mean(self, policies: FloatArray) -> FloatArray:
        return self.user.outcomes(policies) + self.bias

    def predict(self, policies: FloatArray) -> Prediction:
        mean = self.mean(policies)
        return Prediction(mean, np.zeros_like(mean), np.zeros_like(mean))

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        return self.sign * self.user.rewards(outcomes.astype(float))

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        gap = self.sign * (self.user.rewards(first) - self.user.rewards(second))
        return 1 / (1 + np.exp(-50 * gap))

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray:
        gap = self.sign * (self.user.rewards(first) - self.user.rewards(second))
        return (gap > 0).astype(float)


def test_defaults_are_the_papers() -> None:
    settings = ev.EvaluationSettings()
    assert settings.gap_edges == (0.02, 0.04, 0.08, 0.16)
    assert settings.just_noticeable == 0.05
    assert (settings.pool_policies, settings.pool_samples) == (50_000, 16)


def test_pairs_lie_in_their_bins_and_differ_noticeably(
    user: SimulatedUser, held_out: ev.HeldOut
) -> None:
    first, second = user.rewards(held_out.first), user.rewards(held_out.second)
    gaps = np.abs(first - second)
    for index, (low, high) in enumerate([(0.02, 0.04), (0.04, 0.08), (0.08, 0.16), (0.16, 9)]):
        here = gaps[held_out.bins == index]
        assert len(here) == EVALUATION.pairs_per_bin
        assert here.min() >= low
        assert here.max() < high
    change = np.abs(held_out.first - held_out.second).max(axis=1)
    assert change.min() >= 0.05
    np.testing.assert_array_equal(held_out.first_is_better, first > second)
    assert 0.2 < held_out.first_is_better.mean() < 0.8


def test_held_out_sets_are_the_same_for_whatever_the_learner_sees() -> None:
    plain = ev.hold_out(sample_user(3, 3, seed=2, settings=PEOPLE), EVALUATION)
    hidden = ev.hold_out(sample_user(3, 3, seed=2, visible=1, settings=PEOPLE), EVALUATION)
    np.testing.assert_array_equal(plain.first, hidden.first)
    np.testing.assert_array_equal(plain.policies, hidden.policies)


def test_bins_that_cannot_be_filled_are_an_error(user: SimulatedUser) -> None:
    settings = replace(EVALUATION, just_noticeable=1.5)
    with pytest.raises(ValueError, match="too few pairs"):
        ev.hold_out(user, settings)


def test_forward_rmse_of_a_constant_bias_is_the_bias(
    user: SimulatedUser, held_out: ev.HeldOut
) -> None:
    clean = user.outcomes(held_out.policies)
    assert ev.forward_rmse(Oracle(user), user, held_out, clean) == 0
    biased = ev.forward_rmse(Oracle(user, bias=0.2), user, held_out, clean)
    assert biased == pytest.approx(0.2)


def test_true_posterior_has_no_preference_error_and_its_opposite_only_errors(
    user: SimulatedUser, held_out: ev.HeldOut
) -> None:
    right = ev.correct_probability(Oracle(user), user, held_out)
    wrong = ev.correct_probability(Oracle(user, sign=-1), user, held_out)
    assert ev.preference_errors(right, held_out.bins).tolist() == [0, 0, 0, 0]
    assert ev.preference_errors(wrong, held_out.bins).tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(right + wrong, 1)
    assert (ev.better_probability(Oracle(user), user, held_out) == 1).all()
    assert (ev.better_probability(Oracle(user, sign=-1), user, held_out) == 0).all()


def test_errors_are_counted_in_each_bin_and_half_for_undecided() -> None:
    correct = np.array([0.9, 0.4, 0.5, 0.8, 0.2, 0.1])
    bins = np.array([0, 0, 1, 1, 2, 2])
    assert ev.preference_errors(correct, bins).tolist() == [0.5, 0.25, 1.0]


def test_reliability_and_calibration_error_by_hand() -> None:
    correct = np.array([0.95, 0.95, 0.05, 0.45, 0.55])
    table = ev.reliability(correct, 10)
    assert table[1].tolist() == pytest.approx([2, 0.55, 0.5])
    assert table[9].tolist() == pytest.approx([3, 0.95, 2 / 3])
    assert table[:, 0].sum() == 5
    expected = (2 * abs(0.55 - 0.5) + 3 * abs(0.95 - 2 / 3)) / 5
    assert ev.calibration_error(table) == pytest.approx(expected)


def test_reliability_against_answers_that_are_sometimes_wrong() -> None:
    correct = np.array([0.9, 0.9, 0.1, 0.5])
    table = ev.reliability(correct, 1, truth=np.array([0.9, 0.7, 0.8, 0.6]))
    # For the truly better side, for it, against it, undecided.
    assert table[0, 2] == pytest.approx((0.9 + 0.7 + (1 - 0.8) + 0.5) / 4)


def test_probabilities_of_noisy_answers_are_calibrated_to_answers_but_not_to_clean_labels() -> None:
    user = sample_user(8, 8, seed=3, settings=UserSettings(calibration=2000))
    held_out = ev.hold_out(user, ev.EvaluationSettings(pairs_per_bin=200))
    gaps = np.abs(user.rewards(held_out.first) - user.rewards(held_out.second))
    probability = norm.cdf(gaps / (np.sqrt(2) * user.noise.reward))
    assert held_out.answered_right == pytest.approx(probability)
    against_answers = ev.reliability(probability, 10, held_out.answered_right)
    assert ev.calibration_error(against_answers) == pytest.approx(0, abs=1e-12)
    assert ev.calibration_error(ev.reliability(probability, 10)) == pytest.approx(0.044, abs=0.004)


def test_confidence_of_one_falls_into_the_last_bin() -> None:
    assert ev.reliability(np.array([1.0, 0.0]), 10)[9].tolist() == [2, 1, 0.5]


def test_final_gap_is_zero_for_the_truth_and_largest_for_its_opposite(
    user: SimulatedUser,
) -> None:
    truth, opposite = Oracle(user), Oracle(user, sign=-1)
    assert ev.final_policy_gap(truth, truth, user, 5, EVALUATION) == pytest.approx(0, abs=1e-6)
    pool_gap = ev.final_policy_gap(opposite, opposite, user, 5, EVALUATION)
    assert 0.5 < pool_gap <= 1.2


def test_final_gap_of_an_adapting_person_is_about_the_current_map() -> None:
    person = sample_user(2, 2, seed=3, drift=True, settings=PEOPLE)
    steady = sample_user(2, 2, seed=3, settings=PEOPLE)
    truth = Oracle(steady)
    late = ev.final_policy_gap(truth, truth, person, 5000, EVALUATION)
    early = ev.final_policy_gap(truth, truth, person, 0, EVALUATION)
    assert late == pytest.approx(0, abs=1e-6)
    assert early > 0.01
