"""The plain transcription of the paper, checked by itself, and the learner checked by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from benchmarks import scenario
from benchmarks.reference import lookahead as plain_lookahead
from benchmarks.reference import model, tuned
from benchmarks.reference.loops import LookaheadByLoops
from sfihilo import Response, Settings, State, ask, begin, explain, tell
from sfihilo import forward as fw
from sfihilo.forward import ForwardSettings, Hyperparameters
from sfihilo.forward.recency import Decay, recency_weights
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import Choice, FloatArray
from sfihilo.inverse import InverseSettings
from sfihilo.querying import QuerySettings

SMALL = Settings.paper(
    3,
    3,
    inverse=InverseSettings(feature_count=24, samples=40),
    query=QuerySettings(pool_minimum=120, pool_per_dimension=1, targets=6, main_shortlist=5),
)


def smooth_person(policy: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Outcomes that bend with the policy, with a little noise."""
    mix = np.random.default_rng(5).normal(size=(len(policy), len(policy)))
    return np.clip(0.5 + 0.3 * np.sin(mix @ policy) + rng.normal(0, 0.05, len(policy)), 0, 1)


def played(settings: Settings, rounds: int, ties: bool = False) -> tuple[State, State]:
    """The states before and after the last of so many rounds of random policies."""
    rng = np.random.default_rng(7)
    state = begin(settings, 3)
    before = state
    for index in range(rounds):
        query = replace(ask(replace(state, settings=replace(settings, rule="random"))), round=index)
        outcome = smooth_person(query.policy, rng)
        choice: Choice | None = None
        if query.anchor is not None:
            choice = "new" if outcome[0] > query.anchor[0] else "previous"
            choice = "same" if ties and index % 4 == 0 else choice
        before, state = state, tell(state, query, Response(outcome, choice))
    return before, state


def by_plain(
    before: State,
    state: State,
    rule: plain_lookahead.LookaheadRule = plain_lookahead.boundary_lookahead,
) -> tuple[plain_lookahead.Lookahead, FloatArray]:
    """The last round's refit and the next question by the transcription, with the same draws."""
    hyper = state.forward.hyper
    return plain_lookahead.whole_round(
        scenario.plain_data(state),
        (hyper.length_scale, hyper.ridge),
        scenario.plain_features(state),
        before.inverse.centre,
        scenario.plain_draws(state),
        scenario.plain_constants(state.settings).to_the_end(),
        rule,
    )


@pytest.fixture(scope="module")
def small() -> tuple[State, State]:
    return played(SMALL, 30)


@pytest.mark.parametrize("label", [1.0, -1.0, 0.0])
def test_losses_have_the_slope_and_curvature_that_differentiation_finds(label: float) -> None:
    logits = np.linspace(-6, 6, 25)
    labels = np.full(25, label)
    step = 1e-5
    up, down = (model.losses(logits + shift, labels, 0.7) for shift in (step, -step))
    _, slope, curvature = model.losses(logits, labels, 0.7)
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), slope, atol=1e-8)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), curvature, atol=1e-8)


def test_objective_has_the_gradient_that_differentiation_finds() -> None:
    rng = np.random.default_rng(0)
    differences, theta = rng.normal(size=(12, 5)), rng.normal(size=6)
    labels = np.array([1, -1, 0] * 4, dtype=float)
    constants = model.Constants(weight_scale=0.8, sharpness_mean=0.3, sharpness_scale=1.5)

    def value(x: FloatArray) -> float:
        return model.objective(x, differences, labels, constants)[0]

    numerical = approx_fprime(theta, value, 1e-7)
    _, gradient = model.objective(theta, differences, labels, constants)
    np.testing.assert_allclose(gradient, numerical, atol=1e-5)


def test_transcription_equals_bare_loops(small: tuple[State, State]) -> None:
    before, state = small
    looked, theta = by_plain(before, state)
    data, features = scenario.plain_data(state), scenario.plain_features(state)
    constants, draws = scenario.plain_constants(state.settings), scenario.plain_draws(state)
    forward = model.fit_forward(data.policies, data.outcomes, *state.forward.hyper, constants)
    differences = features(data.first) - features(data.second)
    matrix = model.precision(theta, differences, data.labels, constants)
    samples = model.posterior_samples(theta, matrix, draws.posterior_normals, 1e-6)
    loops = LookaheadByLoops(
        forward,
        features,
        samples,
        data.anchor,
        draws.pool[looked.targets],
        draws.target_normals,
        constants.reward_noise,
    )
    rows = [0, len(looked.shortlist) // 2, len(looked.shortlist) - 1]
    expected = [loops.score(draws.pool[looked.shortlist[row]]) for row in rows]
    np.testing.assert_allclose(looked.utilities[rows], expected, rtol=1e-9, atol=1e-12)


def test_tuned_transcription_equals_the_literal_one_to_rounding(small: tuple[State, State]) -> None:
    literal, _ = by_plain(*small)
    shared, _ = by_plain(*small, tuned.boundary_lookahead)
    np.testing.assert_array_equal(shared.shortlist, literal.shortlist)
    np.testing.assert_array_equal(shared.targets, literal.targets)
    np.testing.assert_allclose(shared.utilities, literal.utilities, rtol=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_learner_asks_the_query_of_the_transcription(ties: bool) -> None:
    before, state = played(SMALL, 40, ties)
    looked, theta = by_plain(before, state)
    selection = explain(state)
    np.testing.assert_allclose(state.inverse.centre, theta, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(selection.targets, looked.targets)
    np.testing.assert_array_equal(selection.shortlist, looked.shortlist)
    np.testing.assert_allclose(selection.utilities, looked.utilities, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(selection.policy, selection.pool[looked.chosen])


def test_learner_asks_the_query_of_the_transcription_at_the_size_of_the_paper() -> None:
    before, state = played(Settings.paper(), 60)
    looked, _ = by_plain(before, state)
    selection = explain(state)
    np.testing.assert_array_equal(selection.shortlist, looked.shortlist)
    worst = np.abs(selection.utilities - looked.utilities).max()
    assert worst < 1e-3 * looked.utilities.max()
    np.testing.assert_array_equal(selection.policy, selection.pool[looked.chosen])


def test_posterior_samples_and_predictions_equal_the_transcription(
    small: tuple[State, State],
) -> None:
    _, state = small
    data, features = scenario.plain_data(state), scenario.plain_features(state)
    constants = scenario.plain_constants(state.settings)
    differences = features(data.first) - features(data.second)
    matrix = model.precision(state.inverse.centre, differences, data.labels, constants)
    normals = scenario.plain_draws(state).posterior_normals
    samples = model.posterior_samples(state.inverse.centre, matrix, normals, 1e-6)
    posterior = state.rule_posterior()
    np.testing.assert_allclose(posterior.weights, samples[:, :-1], atol=1e-8)
    np.testing.assert_allclose(posterior.log_sharpness, samples[:, -1], atol=1e-8)
    np.testing.assert_allclose(
        posterior.preference(data.first, data.second),
        model.preference(features, samples, data.first, data.second),
        atol=1e-8,
    )


@pytest.mark.parametrize("ridge", [1e-9, 1e-4, 1e-1])
@pytest.mark.parametrize("recency", [False, True])
def test_forward_belief_equals_the_transcription(ridge: float, recency: bool) -> None:
    rng = np.random.default_rng(1)
    policies = rng.uniform(size=(50, 3))
    outcomes = np.array([smooth_person(policy, rng) for policy in policies])
    weights = recency_weights(np.arange(50), 50, Decay(20.0, 0.2), 1e-4) if recency else None
    constants = model.Constants()
    expected = model.fit_forward(policies, outcomes, 0.4, ridge, constants, weights)
    belief = fw.fit(
        ForwardSettings(), Hyperparameters(0.4, ridge), 0.05, policies, outcomes, weights
    )
    elsewhere = rng.uniform(size=(20, 3))
    prediction = belief.predict(elsewhere)
    tolerance = 1e-6 if ridge < 1e-6 else 1e-9
    np.testing.assert_allclose(
        prediction.mean, model.forward_mean(expected, elsewhere), atol=tolerance
    )
    if not recency:  # how weights enter the residual variance is a decision, not an equation
        epistemic = model.epistemic_variance(expected, elsewhere)
        np.testing.assert_allclose(prediction.epistemic, epistemic, atol=tolerance)
        np.testing.assert_allclose(prediction.observation[0], expected.observation, atol=tolerance)


def test_hyperparameters_minimise_the_validation_error_of_the_transcription() -> None:
    rng = np.random.default_rng(2)
    policies = rng.uniform(size=(60, 2))
    outcomes = np.array([smooth_person(policy, rng) for policy in policies])
    settings = ForwardSettings()
    chosen = select_hyperparameters(settings, policies, outcomes, np.random.default_rng(9))
    training = np.random.default_rng(9).permutation(60)[12:]
    errors = {
        (length_scale, ridge): model.validation_error(
            policies, outcomes, training, length_scale, ridge
        )
        for length_scale in settings.length_scales
        for ridge in settings.ridges
    }
    assert tuple(chosen) == min(errors, key=lambda pair: errors[pair])
