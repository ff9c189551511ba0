"""Partly measured outcomes: each is learned from the trials in which it was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from sfihilo import (
    NothingLearnedError,
    Query,
    Response,
    Settings,
    State,
    ask,
    begin,
    load,
    recommend,
    save,
    tell,
)
from sfihilo import forward as fw
from sfihilo.forward import ForwardSettings, Hyperparameters
from sfihilo.forward.recency import RecencySettings
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.forward.validation import LeaveOneOut
from sfihilo.history import BoolArray, FloatArray, generator
from sfihilo.imputation import imputed, imputed_clarity
from sfihilo.querying.ranking import rank_by_reducible
from tests.small import PRESETS, RULE_NAMES, respond, small

NAN = float("nan")
HYPER = Hyperparameters(0.5, 1e-2)
SETTINGS = ForwardSettings()


def gappy(count: int = 30, outcome_dim: int = 4, share: float = 0.3) -> tuple[FloatArray, ...]:
    """Policies and outcomes with numbers missing at random, and other policies."""
    rng = np.random.default_rng(3)
    policies, elsewhere = rng.uniform(size=(count, 3)), rng.uniform(size=(9, 3))
    outcomes = np.clip(0.5 + 0.3 * np.sin(4 * policies @ rng.normal(size=(3, outcome_dim))), 0, 1)
    outcomes[rng.random(outcomes.shape) < share] = NAN
    outcomes[np.isnan(outcomes).all(axis=1), 0] = 0.4
    return policies, outcomes, elsewhere


def fitted(policies: FloatArray, outcomes: FloatArray) -> fw.ForwardBelief:
    return fw.fit(SETTINGS, HYPER, 0.05, policies, outcomes)


def alone(policies: FloatArray, outcomes: FloatArray, column: int) -> fw.ForwardBelief:
    """The belief about one outcome, from the trials that measured it."""
    rows = np.flatnonzero(~np.isnan(outcomes[:, column]))
    return fitted(policies[rows], outcomes[rows][:, [column]])


# ---------------------------------------------------------------- the forward belief


def test_each_outcome_is_predicted_as_from_its_own_trials() -> None:
    policies, outcomes, elsewhere = gappy()
    belief = fitted(policies, outcomes)
    assert len(belief.blocks) == 4
    prediction = belief.predict(elsewhere)
    leverages = []
    for column in range(4):
        single = alone(policies, outcomes, column)
        expected = single.predict(elsewhere)
        leverages.append(single.leverage(elsewhere))
        for part, own in zip(prediction, expected, strict=True):
            assert part[:, column] == pytest.approx(own[:, 0], abs=1e-12)
    assert belief.leverage(elsewhere) == pytest.approx(np.mean(leverages, axis=0), abs=1e-12)
    assert belief.measurements.tolist() == (~np.isnan(outcomes)).sum(axis=0).tolist()


def test_outcomes_measured_in_the_same_trials_share_a_factor() -> None:
    policies, outcomes, _ = gappy(share=0.0)
    outcomes[::3, [1, 3]] = NAN
    belief = fitted(policies, outcomes)
    assert [block.columns.tolist() for block in belief.blocks] == [[0, 2], [1, 3]]


def test_complete_outcomes_make_one_block() -> None:
    policies, outcomes, elsewhere = gappy(share=0.0)
    belief = fitted(policies, outcomes)
    assert len(belief.blocks) == 1
    assert belief.at(elsewhere).leverages.shape == (9, 1)


def test_appending_partial_outcomes_equals_fitting_them() -> None:
    policies, outcomes, elsewhere = gappy()
    grown = fitted(policies[:4], outcomes[:4])
    for policy, outcome in zip(policies[4:], outcomes[4:], strict=True):
        grown = fw.append(grown, policy, outcome)
    whole = fitted(policies, outcomes)
    for part, expected in zip(grown.predict(elsewhere), whole.predict(elsewhere), strict=True):
        assert part == pytest.approx(expected, abs=1e-10)
    assert grown.tried_leverage() == pytest.approx(whole.tried_leverage(), abs=1e-10)


def test_one_step_update_of_partial_outcomes_is_that_of_each_outcome() -> None:
    policies, outcomes, elsewhere = gappy()
    targets, candidates = elsewhere[:5], elsewhere[5:]
    belief = fitted(policies, outcomes)
    update = fw.target_update(belief, belief.at(targets), belief.at(candidates))
    for column in range(4):
        single = alone(policies, outcomes, column)
        expected = fw.target_update(single, single.at(targets), single.at(candidates))
        assert update.gain[..., column] == pytest.approx(expected.gain[..., 0], abs=1e-11)
        assert update.variance[..., column] == pytest.approx(expected.variance[..., 0], abs=1e-11)


def test_stacked_explained_gives_the_mean_residual_kernel() -> None:
    policies, outcomes, elsewhere = gappy()
    at = fitted(policies, outcomes).at(elsewhere)
    kernel = fw.kernel.rbf(elsewhere, elsewhere, HYPER.length_scale)
    mean = np.zeros((9, 9))
    for column in range(4):
        single = alone(policies, outcomes, column).at(elsewhere)
        mean += (kernel - single.explained @ single.explained.T) / 4
    assert kernel - at.explained @ at.explained.T == pytest.approx(mean, abs=1e-12)
    assert at.leverage == pytest.approx(np.diag(mean), abs=1e-12)


def test_slopes_of_partial_outcomes_match_differences() -> None:
    policies, outcomes, elsewhere = gappy()
    belief = fitted(policies, outcomes)
    for policy in elsewhere:
        slopes = belief.with_slopes(policy)
        prediction = belief.predict(policy[None])
        assert slopes.mean == pytest.approx(prediction.mean[0], abs=1e-12)
        assert slopes.variance == pytest.approx(prediction.variance[0], abs=1e-12)
        for k in range(3):
            shift = 1e-6 * np.eye(3)[k]
            above, below = (belief.predict((policy + s)[None]) for s in (shift, -shift))
            mean = (above.mean - below.mean)[0] / 2e-6
            variance = (above.variance - below.variance)[0] / 2e-6
            assert slopes.mean_slope[:, k] == pytest.approx(mean, abs=1e-6)
            assert slopes.variance_slope[:, k] == pytest.approx(variance, abs=1e-6)


def test_tried_leverage_of_partial_outcomes_leaves_the_trial_out() -> None:
    policies, outcomes, _ = gappy(count=12)
    tried = fitted(policies, outcomes).tried_leverage()
    for left in range(12):
        kept = np.arange(12) != left
        without = fitted(policies[kept], outcomes[kept])
        assert tried[left] == pytest.approx(without.leverage(policies[[left]])[0], abs=1e-9)


def test_leave_one_out_checks_of_partial_outcomes_are_those_of_each_outcome() -> None:
    policies, outcomes, _ = gappy(count=12)
    checks = LeaveOneOut.of(fitted(policies, outcomes))
    assert np.array_equal(np.isnan(checks.residual), np.isnan(outcomes))
    inflation = checks.inflation()
    for column in range(4):
        rows = np.flatnonzero(~np.isnan(outcomes[:, column]))
        single = LeaveOneOut.of(alone(policies, outcomes, column))
        assert checks.residual[rows, column] == pytest.approx(single.residual[:, 0], abs=1e-12)
        assert checks.variance[rows, column] == pytest.approx(single.variance[:, 0], abs=1e-12)
        assert inflation[column] == pytest.approx(single.inflation()[0], abs=1e-12)
    assert 0 <= checks.trusted_leverage() <= 1


def test_ranking_with_partial_outcomes_computes_every_leverage() -> None:
    policies, outcomes, _ = gappy()
    belief = fitted(policies, outcomes)
    pool = np.random.default_rng(0).uniform(size=(200, 3))
    information = np.random.default_rng(1).uniform(size=200)
    ranking = rank_by_reducible(belief, belief.kernel(pool), information, 7, 3)
    prediction = belief.predict(pool)
    share = prediction.epistemic / prediction.variance
    rank = information * share.mean(axis=1)
    assert ranking.targets.tolist() == np.argsort(-rank)[:7].tolist()
    score = (prediction.epistemic * share).mean(axis=1)
    assert ranking.variance.tolist() == np.argsort(-score)[:3].tolist()


def test_selection_with_partial_outcomes_has_the_least_error_on_what_was_measured() -> None:
    policies, outcomes, _ = gappy(count=60)
    order = np.random.default_rng(5).permutation(60)
    held, kept = order[:12], order[12:]
    errors = {}
    for length_scale in SETTINGS.length_scales:
        for ridge in SETTINGS.ridges:
            hyper = Hyperparameters(length_scale, ridge)
            belief = fw.fit(SETTINGS, hyper, 0.05, policies[kept], outcomes[kept])
            squares = (belief.mean(policies[held]) - outcomes[held]) ** 2
            errors[hyper] = float(np.nanmean(squares))
    chosen = select_hyperparameters(SETTINGS, policies, outcomes, np.random.default_rng(5))
    assert errors[chosen] == pytest.approx(min(errors.values()), rel=1e-9)


def test_selection_waits_until_some_outcome_was_measured_often() -> None:
    policies, outcomes, _ = gappy(count=60)
    rare = np.full_like(outcomes, NAN)
    rare[np.arange(60), np.arange(60) % 4] = 0.5  # each fifteen times
    initial = Hyperparameters(SETTINGS.initial_length_scale, SETTINGS.initial_ridge)
    chosen = select_hyperparameters(SETTINGS, policies, rare, np.random.default_rng(0))
    assert chosen == initial


# ---------------------------------------------------------------- the learner

Mask = Callable[[int], BoolArray]  # which of three outcomes are missing in a round


def quick(preset: str = "default", **changes: object) -> Settings:
    return small(PRESETS[preset](2, 3, **changes))


def at_random(round: int) -> BoolArray:
    return np.asarray(generator(5, round, "missing").random(3) < 0.3)


def played(state: State, rounds: int, missing: Mask = at_random) -> State:
    for _ in range(rounds):
        query = ask(state)
        response = respond(query, 3)
        assert response.outcome is not None
        outcome = np.where(missing(query.round), NAN, response.outcome)
        state = tell(state, query, Response(outcome, response.choice))
    return state


def predicted(state: State, round: int, outcome: int) -> float:
    """What the newest processes predict for one number."""
    at = state.processes().at(state.history.policies, np.float64)
    return float(at.mean[round, outcome])


def test_missing_numbers_are_imputed_by_the_newest_prediction() -> None:
    state = played(begin(quick(), 0), 8, lambda round: np.zeros(3, bool))
    query = ask(state)
    after = tell(state, query, Response(np.array([0.2, NAN, 0.6]), "new"))
    expected = predicted(after, -1, 1)
    assert after.history.filled[-1].tolist() == [0.2, expected, 0.6]
    assert np.isnan(after.history.outcomes[-1]).tolist() == [False, True, False]
    assert after.history.anchor is not None
    assert after.history.anchor.tolist() == [0.2, expected, 0.6]
    pairs = after.history.preference_data()
    assert pairs.outcomes[-1].tolist() == [0.2, expected, 0.6]
    assert pairs.anchors[-1].tolist() == state.history.outcomes[-1].tolist()
    assert after.forward.measurements.tolist() == [9, 8, 9]
    later = played(after, 20)
    improved = predicted(later, 8, 1)
    assert improved != expected
    assert later.history.filled[8].tolist() == [0.2, improved, 0.6]
    assert later.history.anchors[9].tolist() == [0.2, improved, 0.6]
    pairs = later.history.preference_data()
    features = later.inverse.features
    differences = features(pairs.anchors) - features(pairs.outcomes)
    assert later.inverse.differences == pytest.approx(differences, abs=1e-12)


def test_comparison_of_measured_numbers_is_as_clear_as_ever() -> None:
    missing = [round for round in range(12) if at_random(round).any()]
    state = played(begin(quick(), 0), 12)
    rows = np.flatnonzero(state.history.compared)
    gaps = [row in missing or state.history.compared_with[row] in missing for row in rows]
    assert 0 < sum(gaps) < len(gaps)
    assert (state.inverse.clarity[~np.array(gaps)] == 1).all()
    assert (state.inverse.clarity[gaps] < 1).all()


def test_clarity_of_a_comparison_is_that_of_its_answers_over_the_missing_numbers() -> None:
    """The probability of an answer, averaged over what was not measured, by simulation."""
    rng = np.random.default_rng(0)
    belief = played(begin(quick(), 0), 20).inverse
    anchors, outcomes = rng.uniform(0.3, 0.7, (2, 40, 3))
    variance = np.where(rng.random((40, 3)) < 0.4, 0.04**2, 0.0)
    clarity = imputed_clarity(belief, (anchors, outcomes), (0 * variance, variance), np.ones(40))
    sharpness = np.exp(belief.log_sharpness)

    def margins(points: FloatArray) -> FloatArray:
        flat = points.reshape(-1, 3)
        reward = belief.features.reward(flat, belief.weights).reshape(points.shape[:-1])
        return np.asarray(sharpness * (belief.features.reward(anchors, belief.weights) - reward))

    felt = outcomes + np.sqrt(variance) * rng.standard_normal((4000, 40, 3))
    simulated = scipy.special.expit(margins(felt)).mean(axis=0)
    assert np.abs(scipy.special.expit(margins(outcomes)) - simulated).max() > 0.06
    assert scipy.special.expit(clarity * margins(outcomes)) == pytest.approx(simulated, abs=0.04)


def test_imputed_variance_is_that_of_a_new_measurement() -> None:
    state = played(begin(quick(), 0), 12)
    processes = state.processes()
    at = processes.at(state.history.policies, np.float64)
    missing = np.isnan(state.history.outcomes)
    variance = imputed(state).variance
    assert missing.any()
    assert variance[missing] == pytest.approx((at.variance + processes.noise**2)[missing])
    assert (variance[~missing] == 0).all()


def test_noise_of_memory_and_of_missing_numbers_add_up() -> None:
    belief = played(begin(quick(), 0), 20).inverse
    points, variance = np.random.default_rng(0).uniform(0.3, 0.7, (2, 9, 3)), np.full((9, 3), 1e-3)
    alone = imputed_clarity(belief, (points[0], points[1]), (variance, variance), np.ones(9))
    older = imputed_clarity(belief, (points[0], points[1]), (variance, variance), np.full(9, 0.5))
    assert older**-2 - alone**-2 == pytest.approx(np.full(9, 3.0))  # 1 / 0.5^2 - 1
    assert (alone < 1).all()


@pytest.mark.parametrize("wrong", [[0.5], "x", "zeros", "texts", "truths"])
def test_saved_clarity_that_does_not_fit_is_refused(wrong: object) -> None:
    record = json.loads(save(played(begin(quick(), 0), 9)))
    count = len(record["clarity"])
    assert count > 1
    many = {"zeros": [0.0] * count, "texts": ["1"] * count, "truths": [True] * count}
    record["clarity"] = many.get(wrong, wrong) if isinstance(wrong, str) else wrong
    with pytest.raises(ValueError, match="expected a clarity of"):
        load(json.dumps(record))


def test_comparison_with_a_never_measured_outcome_is_not_used() -> None:
    state = begin(quick(), 0)
    for _ in range(4):
        query = ask(state)
        assert query.anchor is None
        state = tell(state, query, Response(np.array([0.3, NAN, 0.6]), "new"))
    assert len(state.inverse.labels) == 0
    assert state.forward.measurements.tolist() == [4, 0, 4]
    state = tell(state, ask(state), Response(np.array([0.3, 0.2, 0.6]), None))
    query = ask(state)
    assert query.anchor is not None
    state = tell(state, query, Response(np.array([0.3, NAN, 0.6]), "new"))
    assert len(state.inverse.labels) == 1


def test_outcome_of_only_nan_is_told_as_not_measured() -> None:
    state = played(begin(quick(), 0), 3)
    query = ask(state)
    nothing = tell(state, query, Response(None, "new"))
    assert save(tell(state, query, Response(np.full(3, NAN), "new"))) == save(nothing)


@pytest.mark.parametrize("wrong", [[np.inf, NAN, 0.5], [NAN, 1.1, 0.5], [NAN, -0.1, NAN], [NAN]])
def test_wrong_numbers_beside_missing_ones_are_refused(wrong: list[float]) -> None:
    state = begin(quick(), 0)
    with pytest.raises(ValueError, match="outcome: expected"):
        tell(state, ask(state), Response(np.array(wrong), None))


def test_policy_with_a_missing_number_is_refused() -> None:
    state = begin(quick(), 0)
    with pytest.raises(ValueError, match="policy: expected finite"):
        tell(state, Query(0, np.array([NAN, 0.5]), None), Response(None, None))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("rounds", [7, 19, 27])
def test_saved_state_with_partial_outcomes_loads_to_the_last_bit(preset: str, rounds: int) -> None:
    state = played(begin(quick(preset), 0), rounds)
    again = load(save(state))
    assert save(again) == save(state)
    assert np.array_equal(ask(again).policy, ask(state).policy)
    assert np.array_equal(recommend(again).policy, recommend(state).policy)
    assert save(played(again, 8)) == save(played(state, 8))


def test_saved_drift_with_partial_outcomes_loads_to_the_last_bit() -> None:
    recency = RecencySettings(variant="known", decay_time=20.0, trials=17)
    often = lambda round: at_random(round) & (round % 4 == 0)  # noqa: E731
    state = played(begin(quick(rule="random", recency=recency), 0), 20, often)
    assert state.decay is not None
    assert len(state.forward.blocks) > 1
    for block in state.forward.blocks:
        assert block.ridge.weights.mean() == pytest.approx(1, abs=1e-12)
    assert save(load(save(state))) == save(state)
    assert np.array_equal(ask(load(save(state))).policy, ask(state).policy)


def test_saved_text_of_complete_outcomes_has_no_new_key() -> None:
    state = played(begin(quick(), 0), 4, lambda round: np.zeros(3, bool))
    assert "imputed" not in save(state)
    assert "imputed" in save(played(begin(quick(), 0), 9))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_saved_text_with_numbers_that_are_not_finite_is_refused(constant: str) -> None:
    text = save(begin(quick(), 0)).replace('"factored": 0', f'"factored": {constant}')
    with pytest.raises(ValueError, match="state: expected finite numbers"):
        load(text)


HARD: dict[str, Mask] = {
    "never measured": lambda round: np.array([False, True, False]),
    "measured once": lambda round: np.array([False, round != 3, False]),
    "measured first": lambda round: np.array([False, round > 0, False]),
    "alternating": lambda round: np.arange(3) % 2 == round % 2,
    "one at a time": lambda round: np.arange(3) != round % 3,
    "nothing at all": lambda round: np.ones(3, bool),
    "nothing for long": lambda round: np.full(3, round < 12),
    "mostly missing": lambda round: generator(1, round, "missing").random(3) < 0.8,
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("preset", PRESETS)
def test_hard_patterns_give_finite_answers_in_bounds(name: str, preset: str) -> None:
    state = played(begin(quick(preset, rule="random"), 0), 30, HARD[name])
    for rule in RULE_NAMES:
        query = ask(replace(state, settings=replace(state.settings, rule=rule)))
        assert ((query.policy >= 0) & (query.policy <= 1)).all()
        assert query.anchor is None or np.isfinite(query.anchor).all()
    assert np.array_equal(ask(load(save(state))).policy, ask(state).policy)
    if not state.history.compared.any():
        with pytest.raises(NothingLearnedError):
            recommend(state)
        return
    advice = recommend(state)
    for value in (advice.policy, advice.outcome, advice.outcome_low, advice.outcome_high):
        assert ((value >= 0) & (value <= 1)).all()
    assert np.isfinite([advice.reward, advice.reward_low, advice.reward_high]).all()


@limits(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1), st.sampled_from(RULE_NAMES))
def test_any_pattern_gives_finite_answers_and_loads(seed: int, share: float, rule: str) -> None:
    def missing(round: int) -> BoolArray:
        return np.asarray(generator(seed, round, "missing").random(3) < share)

    state = played(begin(quick(rule=rule), seed), 7, missing)
    prediction = state.forward.predict(np.random.default_rng(seed).uniform(size=(5, 2)))
    assert np.isfinite(prediction.mean).all()
    assert (prediction.epistemic >= 0).all()
    assert (prediction.observation > 0).all()
    again = load(save(state))
    assert save(again) == save(state)
    assert np.array_equal(ask(again).policy, ask(state).policy)


def test_a_missing_outcome_leaves_the_prediction_of_the_others() -> None:
    complete = played(begin(quick(rule="random"), 0), 14, lambda round: np.zeros(3, bool))
    gaps = played(begin(quick(rule="random"), 0), 14, lambda r: np.arange(3) == 2 + 9 * (r % 2))
    policies = np.random.default_rng(0).uniform(size=(6, 2))
    same = gaps.forward.predict(policies).mean[:, :2]
    assert same == pytest.approx(complete.forward.predict(policies).mean[:, :2], abs=1e-12)
