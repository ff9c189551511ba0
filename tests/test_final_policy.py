"""The final policy: its objective, its gradient, every kind of feasible set, and the flag."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sfihilo import NothingLearnedError, Response, Settings, State, begin, recommend, tell
from sfihilo import forward as fw
from sfihilo.feasible import Feasible
from sfihilo.final_policy import Objective, SelectionSettings, final_policy
from sfihilo.forward import ForwardSettings, Hyperparameters
from sfihilo.history import Choice, FloatArray, Query, generator
from sfihilo.inverse import InverseSettings
from sfihilo.inverse.posterior import Reward
from sfihilo.recommendation import LAST_TRIED
from tests.small import played, small, true_outcome, true_reward


@cache
def learned(features: str = "rbf", rounds: int = 40) -> State:
    settings = small(Settings.paper(2, 2, rule="random"))
    settings = replace(settings, inverse=replace(settings.inverse, features=features))
    return played(settings, rounds)


def normals_of(state: State) -> FloatArray:
    """The draws that `recommend` makes."""
    half = generator(state.seed, state.round, "recommend").standard_normal((16, 2))
    return np.concatenate([half, -half])


def plain_value(state: State, policy: FloatArray) -> float:
    """The objective, one draw after another."""
    prediction = state.forward.predict(policy[None])
    mean, variance = prediction.mean[0], prediction.variance[0]
    draws = [np.clip(mean + np.sqrt(variance) * normal, 0, 1) for normal in normals_of(state)]
    posterior = state.posterior()
    return float(
        np.mean([posterior.features(draw[None])[0] @ posterior.mean_weights for draw in draws])
    )


def policy_values(
    forward: fw.ForwardBelief, posterior: Reward, policies: FloatArray, normals: FloatArray
) -> FloatArray:
    return Objective(forward, posterior, normals).values(policies)


def value_and_gradient(
    forward: fw.ForwardBelief, posterior: Reward, policy: FloatArray, normals: FloatArray
) -> tuple[float, FloatArray]:
    return Objective(forward, posterior, normals).value_and_gradient(policy)


FEATURES = ["rbf", "landmarks", "linear", "tests.small:own_features"]


@pytest.mark.parametrize("features", FEATURES)
def test_objective(features: str) -> None:
    state = learned(features)
    policies = np.random.default_rng(0).uniform(size=(600, 2))  # more than one block
    values = policy_values(state.forward, state.posterior(), policies, normals_of(state))
    scale = float(np.ptp(values))
    for index in [0, 1, 511, 512, 599]:
        expected = plain_value(state, policies[index])
        value, _ = value_and_gradient(
            state.forward, state.posterior(), policies[index], normals_of(state)
        )
        assert values[index] == pytest.approx(expected, abs=1e-5 * scale)
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("count", [0, 1, 40])
def test_gradient(features: str, count: int) -> None:
    state = learned(features)
    belief = state.forward
    forward = fw.fit(
        belief.settings, belief.hyper, 0.05, belief.policies[:count], state.history.outcomes[:count]
    )
    step = 1e-6
    # The draws avoid the clip's corners, where the objective has no derivative.
    normals = 0.3 * normals_of(state)
    for policy in np.random.default_rng(1).uniform(0.1, 0.9, (5, 2)):
        _, gradient = value_and_gradient(forward, state.posterior(), policy, normals)
        for k in range(2):
            shift = step * np.eye(2)[k]
            above, _ = value_and_gradient(forward, state.posterior(), policy + shift, normals)
            below, _ = value_and_gradient(forward, state.posterior(), policy - shift, normals)
            slope = (above - below) / (2 * step)
            assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_gradient_is_flat_where_outcomes_are_clipped() -> None:
    state = learned()
    normals = 8 * normals_of(state)  # many draws end at an edge of the cube
    policy, step = np.array([0.35, 0.6]), 1e-6
    prediction = state.forward.predict(policy[None])
    raw = prediction.mean[0] + np.sqrt(prediction.variance[0]) * normals
    assert 0.1 < ((raw < 0) | (raw > 1)).mean() < 0.9
    _, gradient = value_and_gradient(state.forward, state.posterior(), policy, normals)
    for k in range(2):
        shift = step * np.eye(2)[k]
        above, _ = value_and_gradient(state.forward, state.posterior(), policy + shift, normals)
        below, _ = value_and_gradient(state.forward, state.posterior(), policy - shift, normals)
        assert gradient[k] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-5)


def test_maximum_at_the_edge_of_a_callable_set_is_reached() -> None:
    """The climb alone ends outside; the best of a fine grid inside is still reached."""
    state = learned()
    feasible = Feasible(upper=0.4, accepts=lambda policies: policies[:, 0] > 0.3)
    inside = np.stack(np.meshgrid(np.linspace(0.3001, 0.4, 60), np.linspace(0, 0.4, 60)), axis=-1)
    values = policy_values(
        state.forward, state.posterior(), inside.reshape(-1, 2), normals_of(state)
    )
    best = recommend(state, feasible)
    feasible.check(best.policy)
    assert plain_value(state, best.policy) > values.max() - 0.01 * np.ptp(values)


LIST = np.random.default_rng(3).uniform(size=(40, 2))
SETS = {
    "everything": Feasible(),
    "box": Feasible(lower=[0.5, 0.1], upper=[0.7, 0.4]),
    "callable": Feasible(accepts=lambda policies: policies[:, 0] + policies[:, 1] < 0.6),
    "box and callable": Feasible(upper=0.4, accepts=lambda policies: policies[:, 0] > 0.3),
    "list": Feasible(choices=LIST),
    "list in a box": Feasible(choices=LIST, upper=0.5),
    "list and callable": Feasible(choices=LIST, accepts=lambda policies: policies[:, 1] < 0.3),
    "step": Feasible(max_step=0.05),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("features", FEATURES)
def test_recommendations_lie_in_the_set_and_beat_the_pool(name: str, features: str) -> None:
    state, feasible = learned(features), SETS[name]
    best = recommend(state, feasible)
    feasible.check(best.policy)
    rng = generator(state.seed, state.round, "recommend")
    rng.standard_normal((16, 2))
    pool = feasible.sample(state.settings.selection.pool, 2, rng, None)
    tried = state.forward.policies[feasible.contains(state.forward.policies)]
    pool = np.concatenate([pool, tried])
    values = policy_values(state.forward, state.posterior(), pool, normals_of(state))
    tolerance = 1e-5 * np.ptp(values)
    if name in ("everything", "box"):
        tolerance *= -1  # refined continuously: truly better
    assert plain_value(state, best.policy) >= values.max() - tolerance
    assert best.reward == pytest.approx(plain_value(state, best.policy), abs=1e-9)
    if feasible.choices is not None:
        assert (best.policy == LIST).all(axis=1).any()


def test_refinement_reaches_the_top() -> None:
    """A two-dimensional objective can be searched on a fine grid."""
    state = learned()
    axis = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values = policy_values(state.forward, state.posterior(), grid, normals_of(state))
    best = recommend(state)
    assert plain_value(state, best.policy) >= values.max() - 1e-5 * np.ptp(values)


def test_long_lists_are_searched_whole() -> None:
    state = learned()
    listed = np.random.default_rng(0).uniform(size=(3000, 2))
    values = policy_values(state.forward, state.posterior(), listed, normals_of(state))
    best = recommend(state, Feasible(choices=listed))  # the pool has 150
    assert np.array_equal(best.policy, listed[int(np.argmax(values))])


def test_recommended_policy_is_truly_good() -> None:
    state = learned()
    best = recommend(state)
    rng = np.random.default_rng(0)
    rewards = [true_reward(true_outcome(policy, 2)) for policy in rng.uniform(size=(500, 2))]
    found = true_reward(true_outcome(best.policy, 2))
    assert found > np.quantile(rewards, 0.9)


@pytest.mark.parametrize("rounds", [2, 3, 40])
@pytest.mark.parametrize("interval", [0.5, 0.95, 0.999])
def test_recommended_values_lie_within_their_intervals(rounds: int, interval: float) -> None:
    state = played(small(Settings.paper(2, 2, rule="random")), rounds)
    settings = replace(
        state.settings, selection=replace(state.settings.selection, interval=interval)
    )
    best = recommend(replace(state, settings=settings))
    assert (best.outcome_low >= 0).all()
    assert (best.outcome_low <= best.outcome).all()
    assert (best.outcome <= best.outcome_high).all()
    assert (best.outcome_high <= 1).all()
    assert best.reward_low < best.reward_high
    assert best.reward_low <= best.reward <= best.reward_high
    assert np.isfinite([best.reward_low, best.reward_high]).all()


def test_wider_intervals_contain_narrower_ones() -> None:
    state = learned()
    found = []
    for interval in (0.5, 0.95):
        selection = replace(state.settings.selection, interval=interval)
        found.append(
            recommend(replace(state, settings=replace(state.settings, selection=selection)))
        )
    narrow, wide = found
    assert np.array_equal(narrow.policy, wide.policy)
    assert (wide.outcome_low <= narrow.outcome_low).all()
    assert (wide.outcome_high >= narrow.outcome_high).all()
    assert wide.reward_low < narrow.reward_low < narrow.reward_high < wide.reward_high


def test_outcome_interval_covers_new_measurements() -> None:
    """95 % intervals of the outcome hold most measurements, and not by being huge."""
    state = learned()
    covered, widths = [], []
    for seed in range(60):
        policy = np.random.default_rng(seed).uniform(0.1, 0.9, 2)
        best = recommend(state, Feasible(choices=policy[None]))
        noise = 0.02 * np.random.default_rng(seed + 1000).standard_normal(2)
        outcome = np.clip(true_outcome(policy, 2) + noise, 0, 1)
        covered.append((best.outcome_low <= outcome) & (outcome <= best.outcome_high))
        widths.append(best.outcome_high - best.outcome_low)
    assert np.mean(covered) > 0.9
    assert np.mean(widths) < 0.5


def noisy(query: Query, outcome_dim: int) -> Response:
    """A person who values the first outcome, linearly, and often answers against it."""
    outcome = true_outcome(query.policy, outcome_dim)
    if query.anchor is None:
        return Response(outcome, None)
    felt = 2 * (outcome - query.anchor)[0] + generator(3, query.round, "person").logistic()
    return Response(outcome, "new" if felt > 0 else "previous")


def test_advice_rests_on_the_average_and_not_on_the_posterior_of_the_rule() -> None:
    state = played(small(Settings(2, 2, rule="random")), 10, person=noisy)
    best, processes = recommend(state), state.processes()

    def drawn(policy: FloatArray) -> FloatArray:
        belief = processes.at(policy[None], np.float64)
        deviation = np.sqrt(belief.variance[0] + processes.noise**2)
        return np.asarray(np.clip(belief.mean[0] + deviation * normals_of(state), 0, 1))

    outcomes, others = drawn(best.policy), np.roll(drawn(state.forward.policies[-1]), 8, axis=0)
    average, rule = (
        (posterior.preference(outcomes, others).mean(), posterior.mean_reward(outcomes).mean())
        for posterior in (state.posterior(), state.rule_posterior())
    )
    assert (best.preferred[LAST_TRIED], best.reward) == pytest.approx(average)
    assert rule[0] > average[0] + 0.1  # the rule takes everybody for sharp
    assert rule[1] != pytest.approx(average[1], rel=0.1)


def cornered(count: int = 30) -> State:
    """Only policies near the middle were tried."""
    state = begin(small(Settings.paper(2, 2)), 0)
    rng = np.random.default_rng(0)
    for index in range(count):
        policy = rng.uniform(0.4, 0.6, 2)
        query = Query(index, policy, state.history.anchor)
        choice: Choice | None = None if index == 0 else "new"
        state = tell(state, query, Response(true_outcome(policy, 2), choice))
    return state


def test_flag_outside_of_what_was_tried() -> None:
    state = cornered()
    assert recommend(state, Feasible(choices=[[0.0, 1.0]])).extrapolates
    assert recommend(state, Feasible(choices=[[1.0, 1.0]])).extrapolates
    assert not recommend(state, Feasible(choices=[[0.5, 0.5]])).extrapolates
    for tried in state.forward.policies[:5]:
        assert not recommend(state, Feasible(choices=tried[None])).extrapolates


def test_flag_with_next_to_nothing_tried() -> None:
    assert recommend(cornered(2), Feasible(choices=[[0.0, 0.0]])).extrapolates


@pytest.mark.parametrize("count", [0, 1])
def test_recommend_before_any_comparison_is_refused(count: int) -> None:
    with pytest.raises(NothingLearnedError, match="nothing learned yet: expected at least one"):
        recommend(cornered(count))


@pytest.mark.parametrize("outcome_samples", [1, 2, 7])
def test_recommendation_is_finite_for_any_number_of_outcome_samples(outcome_samples: int) -> None:
    state = learned()
    selection = replace(state.settings.selection, outcome_samples=outcome_samples)
    best = recommend(replace(state, settings=replace(state.settings, selection=selection)))
    assert np.isfinite(best.policy).all()
    assert np.isfinite(best.reward)


def test_recommend_in_an_impossible_set_is_refused() -> None:
    state = learned()
    for wrong in (
        Feasible(lower=0.6, upper=0.4),
        Feasible(accepts=lambda policies: policies[:, 0] > 2),
        Feasible(choices=LIST, accepts=lambda policies: policies[:, 0] > 2),
    ):
        with pytest.raises(ValueError, match="feasible set"):
            recommend(state, wrong)


@pytest.mark.parametrize(
    "wrong", [{"pool": 0}, {"starts": -1}, {"interval": 0.0}, {"interval": 1.5}]
)
def test_wrong_settings(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SelectionSettings(**wrong)  # type: ignore[arg-type]


def test_selection_is_a_function_of_its_arguments() -> None:
    forward = fw.fit(
        ForwardSettings(),
        Hyperparameters(0.5, 0.1),
        0.05,
        np.array([[0.2, 0.2], [0.8, 0.3]]),
        np.array([[0.1, 0.4], [0.9, 0.6]]),
    )
    posterior = begin(Settings.paper(2, 2, inverse=InverseSettings(samples=30)), 0).posterior()
    settings = SelectionSettings(pool=50, starts=2)
    found = []
    for _ in range(2):
        rng = np.random.default_rng(4)
        objective = Objective.of(settings, forward, posterior, rng)
        found.append(final_policy(settings, objective, Feasible(), 2, rng))
    assert np.array_equal(found[0], found[1])
