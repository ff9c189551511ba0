"""People who are more like real ones, and how predicted answers are measured."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfihilo.history import generator
from sfihilo.study.analysis.answer_loss import COIN, calibration_slope, log_losses
from sfihilo.study.design.conditions import learner_settings, simulated_user
from sfihilo.study.design.panels import panel_rows
from sfihilo.study.people.lifelike import Shape, ShapedReward, with_shape
from sfihilo.study.people.users import Experience, sample_user
from sfihilo.study.run import evaluation as ev
from sfihilo.study.run.simulate import run_unit
from tests.study.tiny import EVALUATION, PEOPLE, TINY, tiny_unit

SHAPES: tuple[Shape, ...] = ("linear", "saturating", "optimum")


@pytest.mark.parametrize("shape", SHAPES)
def test_shaped_rewards_span_the_unit_interval_over_a_persons_outcomes(shape: Shape) -> None:
    user = with_shape(sample_user(2, 3, seed=4, settings=PEOPLE), shape)
    policies = generator(0, 0, "any").uniform(size=(3000, 2))
    rewards = user.rewards(user.outcomes(policies))
    assert rewards.min() == pytest.approx(0, abs=0.05)
    assert rewards.max() == pytest.approx(1, abs=0.05)


def test_linear_reward_is_additive_and_saturating_reward_flattens() -> None:
    weights, places = np.array([2.0, -1.0]), np.array([3.0, 1.0])
    points = np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 1.0]])
    linear = ShapedReward("linear", weights, places)(points)
    assert linear == pytest.approx([0, 1, 2, 1])
    bent = ShapedReward("saturating", weights, places)(points)
    assert bent[[0, 2, 3]] == pytest.approx([0, 2, 1])
    assert bent[1] > 1.5  # most of the rise is in the first half


def test_reward_with_an_optimum_is_largest_there() -> None:
    reward = ShapedReward("optimum", np.array([1.0, 2.0]), np.array([0.3, 0.6]))
    points = np.random.default_rng(0).uniform(size=(200, 2))
    assert (reward(points) < reward(np.array([[0.3, 0.6]]))).all()


def test_unknown_shape_is_refused() -> None:
    user = sample_user(2, 2, seed=4, settings=PEOPLE)
    with pytest.raises(ValueError, match="shape: expected one of linear"):
        with_shape(user, "round")  # type: ignore[arg-type]


def test_person_who_always_lapses_answers_at_random_and_pure() -> None:
    user = replace(sample_user(2, 2, seed=4, settings=PEOPLE), lapses=1.0)
    best = user.outcomes(generator(0, 0, "any").uniform(size=(500, 2)))
    order = np.argsort(user.rewards(best))
    bad, good = best[order[0]], best[order[-1]]
    answers = [
        user.judge(round, Experience(bad, bad), Experience(good, good)).choice
        for round in range(200)
    ]
    again = [
        user.judge(round, Experience(bad, bad), Experience(good, good)).choice
        for round in range(200)
    ]
    assert answers == again
    assert 70 < answers.count("new") < 130
    attentive = replace(user, lapses=0.0)
    assert attentive.judge(0, Experience(bad, bad), Experience(good, good)).choice == "new"


def test_lapses_and_judgement_noise_lower_the_share_of_right_answers() -> None:
    user = sample_user(3, 3, seed=2, settings=PEOPLE)
    right = ev.hold_out(user, EVALUATION).answered_right
    lapsing = ev.hold_out(replace(user, lapses=0.2), EVALUATION).answered_right
    assert lapsing == pytest.approx(0.8 * right + 0.1)


def test_learner_is_not_told_how_noisy_a_person_judges() -> None:
    unit = tiny_unit(condition=replace(TINY, judgement=6.0))
    assert simulated_user(unit).noise.reward == pytest.approx(0.12)
    assert simulated_user(unit).noise.measurement == 0.05
    assert learner_settings(unit).noise.reward == 0.02


def test_panel_has_people_of_eight_kinds() -> None:
    conditions = [row.condition for row in panel_rows(["lifelike"])]
    assert [condition.judgement for condition in conditions[:3]] == [1, 3, 6]
    assert [condition.shape for condition in conditions[3:6]] == list(SHAPES)
    assert conditions[6].lapses == 0.05
    assert [condition.judges for condition in conditions] == ["measured"] * 7 + ["true"]
    assert len({condition.name for condition in conditions}) == 8


def test_early_queries_are_evaluated_only_where_a_condition_asks() -> None:
    plain = run_unit(tiny_unit(queries=12))
    early = run_unit(tiny_unit(condition=replace(TINY, name="early", early=(5, 10)), queries=12))
    assert set(plain["query"]) == {12}
    assert set(early["query"]) == {5, 10, 12}
    assert not plain["metric"].str.contains("log_loss").any()
    values = early[early["query"] == 10].set_index("metric")["value"]
    assert 0 < values["log_loss_answer"] < 2 * COIN
    # The paper preset's rule works with what predicts.
    assert values["rule_log_loss_answer"] == pytest.approx(values["log_loss_answer"], abs=1e-9)
    assert values["rule_preference_error"] == values["preference_error"]
    # Both runs are the same session.
    last = early[early["query"] == 12].set_index("metric")["value"]
    assert last.to_dict() == plain.set_index("metric")["value"].to_dict()


def test_log_loss_of_a_coin_and_of_certain_answers() -> None:
    assert log_losses(np.array([0.5, 1.0]), np.array([1.0, 1.0])) == pytest.approx(
        [COIN, 0], abs=1e-5
    )
    assert np.isfinite(log_losses(np.array([1.0]), np.array([0.0]))).all()


def test_calibration_slope_matches_unpenalised_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.uniform(0.05, 0.95, 2000)
    odds = np.log(predicted / (1 - predicted))
    answers = rng.uniform(size=2000) < 1 / (1 + np.exp(-0.6 * odds))
    fit = LogisticRegression(C=1e9, fit_intercept=False).fit(odds[:, None], answers)
    assert calibration_slope(predicted, answers.astype(float)) == pytest.approx(
        fit.coef_[0, 0], rel=1e-3
    )
    assert np.isnan(calibration_slope(np.full(4, 0.5), np.ones(4)))
