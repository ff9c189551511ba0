"""Data that break careless numerics: each still gives a finite query inside the cube.

Warnings are errors, and every floating-point error raises.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from sfihilo import Feasible, Response, Settings, State, ask, begin, load, recommend, save, tell
from sfihilo import forward as fw
from sfihilo import inverse as inv
from sfihilo.forward import Hyperparameters
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import Choice, FloatArray, History
from sfihilo.inverse import InverseBelief
from sfihilo.inverse.likelihood import likelihood_terms
from tests.small import PRESETS, RULE_NAMES, played


@pytest.fixture(autouse=True)
def _every_floating_point_error_raises() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


@dataclass(frozen=True, eq=False)
class Hard:
    """A record: each outcome is compared with the one before it."""

    policies: FloatArray
    outcomes: FloatArray
    choices: list[Choice | None]
    hyper: Hyperparameters = Hyperparameters(0.5, 0.1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def decisive(count: int, seed: int = 5) -> list[Choice | None]:
    return [None, *("new" if draw < 0.5 else "previous" for draw in rng(seed).random(count - 1))]


def answers(odd: Choice, even: Choice) -> list[Choice | None]:
    return [None, *(odd if index % 2 == 0 else even for index in range(120))]


def separable(count: int) -> Hard:
    policies, outcomes = rng().uniform(size=(count, 3)), rng(1).uniform(size=(count, 2))
    reward = outcomes.sum(axis=1)
    choices: list[Choice | None] = [None]
    choices += ["new" if gain > 0 else "previous" for gain in np.diff(reward)]
    return Hard(policies, outcomes, choices)


def two_outcomes(count: int, choices: list[Choice | None]) -> Hard:
    """To and fro between two outcomes."""
    outcomes = np.where((np.arange(count) % 2 == 0)[:, None], [0.2, 0.3], [0.8, 0.6])
    return Hard(rng().uniform(size=(count, 3)), outcomes, choices)


def random_record(count: int, policy_dim: int = 3, outcome_dim: int = 2) -> Hard:
    shape = (count, policy_dim), (count, outcome_dim)
    policies, outcomes = rng().uniform(size=shape[0]), rng(1).uniform(size=shape[1])
    return Hard(policies, outcomes, decisive(count) if count else [])


TINY_RIDGE = Hyperparameters(0.5, 1e-9)
APART = np.array([0.3, 0.6, 0.9]) + 1e-9 * rng().standard_normal((80, 3))

CASES: dict[str, Callable[[], Hard]] = {
    "no observation": lambda: random_record(0),
    "one observation": lambda: random_record(1),
    "two observations": lambda: random_record(2),
    "identical policies": lambda: replace(
        random_record(80), policies=np.tile([0.3, 0.6, 0.9], (80, 1))
    ),
    "identical policies, ridge 1e-9": lambda: replace(
        random_record(80), policies=np.tile([0.3, 0.6, 0.9], (80, 1)), hyper=TINY_RIDGE
    ),
    "policies 1e-9 apart, ridge 1e-9": lambda: replace(
        random_record(80), policies=APART, hyper=TINY_RIDGE
    ),
    "dense policies, ridge 1e-9": lambda: replace(
        random_record(400), policies=rng().uniform(0.4, 0.6, (400, 3)), hyper=TINY_RIDGE
    ),
    "constant outcomes": lambda: replace(random_record(40), outcomes=np.full((40, 2), 0.4)),
    "one constant outcome": lambda: replace(
        random_record(40), outcomes=np.column_stack([np.full(40, 0.4), rng().random(40)])
    ),
    "everything constant": lambda: replace(
        random_record(40), policies=np.full((40, 3), 0.5), outcomes=np.full((40, 2), 0.5)
    ),
    "corners": lambda: replace(
        random_record(60),
        policies=rng(2).integers(0, 2, (60, 3)).astype(float),
        outcomes=rng(3).integers(0, 2, (60, 2)).astype(float),
    ),
    "1,000 separable labels": lambda: separable(1001),
    "contradictory labels": lambda: two_outcomes(121, answers("new", "new")),
    "consistent labels": lambda: two_outcomes(121, answers("new", "previous")),
    "all new": lambda: replace(random_record(121), choices=answers("new", "new")),
    "all previous": lambda: replace(random_record(121), choices=answers("previous", "previous")),
    "all same": lambda: replace(random_record(121), choices=answers("same", "same")),
    "no answers": lambda: replace(random_record(30), choices=[None] * 30),
    "one policy, one outcome": lambda: random_record(40, 1, 1),
    "one policy, many outcomes": lambda: random_record(40, 1, 9),
    "many policies, one outcome": lambda: random_record(40, 12, 1),
}


def quick(preset: str, policy_dim: int, outcome_dim: int, rule: str) -> Settings:
    """The preset's own models; only pools and searches are smaller."""
    settings = PRESETS[preset](policy_dim, outcome_dim, rule=rule)
    return replace(
        settings,
        query=replace(settings.query, pool_minimum=150, pool_per_dimension=5),
        pairs=replace(settings.pairs, pool=80, past=40, pairs=32, local_steps=4),
        selection=replace(settings.selection, pool=100, starts=2, iterations=20),
    )


def assembled(settings: Settings, hard: Hard) -> State:
    """The state that such a record leads to."""
    start = begin(settings, 0)
    before = np.arange(len(hard.choices)) - 1
    nothing = np.full_like(hard.outcomes, np.nan)
    ungraded = (None,) * len(hard.choices)
    history = History(hard.policies, hard.outcomes, before, tuple(hard.choices), nothing, ungraded)
    pairs = history.preference_data()
    features = start.inverse.features
    differences = inv.difference(features, pairs.anchors, pairs.outcomes)
    return replace(
        start,
        history=history,
        forward=fw.fit(
            settings.forward,
            hard.hyper,
            settings.noise.measurement,
            hard.policies,
            hard.outcomes,
        ),
        inverse=inv.update(start.inverse, differences, pairs.labels),
        factored=len(hard.policies),
    )


@cache
def state_of(name: str, preset: str) -> State:
    hard = CASES[name]()
    settings = quick(preset, hard.policies.shape[1], hard.outcomes.shape[1], RULE_NAMES[0])
    return assembled(settings, hard)


def with_rule(state: State, rule: str) -> State:
    return replace(state, settings=replace(state.settings, rule=rule))


def check(policy: FloatArray, dimension: int) -> None:
    assert policy.shape == (dimension,)
    assert np.isfinite(policy).all()
    assert (policy >= 0).all()
    assert (policy <= 1).all()


def check_goes_on(state: State) -> None:
    """It asks, is told, asks again, recommends, and comes back from its text."""
    dimension = state.settings.policy_dim
    for outcome, choice in ((0.3, "new"), (0.3, "same")):
        query = ask(state)
        check(query.policy, dimension)
        response = Response(np.full(state.settings.outcome_dim, outcome), choice)  # type: ignore[arg-type]
        state = tell(state, query, response)
    query = ask(state)
    check(query.policy, dimension)
    best = recommend(state)
    check(best.policy, dimension)
    numbers = [*best.outcome_low, *best.outcome, *best.outcome_high, best.reward]
    assert np.isfinite([*numbers, best.reward_low, best.reward_high]).all()
    assert np.array_equal(ask(load(save(state))).policy, query.policy)


@pytest.mark.parametrize("rule", RULE_NAMES)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", CASES)
def test_finite_query_in_bounds(name: str, preset: str, rule: str) -> None:
    state = with_rule(state_of(name, preset), rule)
    check(ask(state).policy, state.settings.policy_dim)
    assert (ask(state, Feasible(lower=0.5)).policy >= 0.5).all()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", CASES)
def test_loop_on_hard_data_gives_finite_queries(name: str, preset: str) -> None:
    check_goes_on(with_rule(state_of(name, preset), "boundary_lookahead"))


def with_pairs(preset: str, differences: FloatArray, labels: FloatArray) -> State:
    """A learner with a random forward record and these comparisons."""
    state = state_of("two observations", preset)
    return replace(state, inverse=inv.update(state.inverse, differences, labels))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("labels", ["one", "torn", "same"])
def test_one_pair_ten_thousand_times(preset: str, labels: str) -> None:
    state = state_of("two observations", preset)
    features = state.inverse.features
    row = inv.difference(features, np.array([[0.9, 0.8]]), np.array([[0.1, 0.2]]))
    told = {
        "one": np.ones(10_000),
        "torn": np.where(np.arange(10_000) % 2 == 0, 1.0, -1.0),
        "same": np.zeros(10_000),
    }[labels]
    state = with_pairs(preset, np.repeat(row, 10_000, axis=0), told)
    for rule in RULE_NAMES:
        check(ask(with_rule(state, rule)).policy, 3)
    posterior = state.rule_posterior()  # the pairs are not in the history
    chance = posterior.preference(np.array([[0.9, 0.8]]), np.array([[0.1, 0.2]]))[0]
    if labels == "one":
        assert chance > 0.9  # not one: the Gaussian approximation is wide where labels saturate
    else:
        assert chance == pytest.approx(0.5, abs=0.02)


def at_sharpness(belief: InverseBelief, log_sharpness: float) -> InverseBelief:
    """The same weights with another sharpness, and the curvature that goes with it."""
    margins = np.exp(np.clip(log_sharpness, -300, 50)) * (belief.differences @ belief.weights)
    terms = likelihood_terms(margins, belief.answers)
    mode = np.append(belief.weights, log_sharpness)
    return replace(belief, centre=mode, curvature=terms.curvature)


@pytest.mark.parametrize("log_sharpness", [-800.0, -30.0, 30.0, 60.0])
@pytest.mark.parametrize("reward_noise", [0.0, 0.02])
def test_exploding_sharpness(log_sharpness: float, reward_noise: float) -> None:
    """A mode far out, as joint MAP estimates with warm starts approach it."""
    state = state_of("1,000 separable labels", "paper")
    inverse = at_sharpness(state.inverse, log_sharpness)
    noise = replace(state.settings.noise, reward=reward_noise)
    state = replace(
        state,
        settings=replace(state.settings, noise=noise),
        inverse=inverse,
    )
    for rule in RULE_NAMES:
        check(ask(with_rule(state, rule)).policy, 3)
    query = ask(state)
    after = tell(state, query, Response(np.array([0.2, 0.9]), "previous"))
    assert np.isfinite(after.inverse.centre).all()
    check(ask(after).policy, 3)


@pytest.mark.parametrize("log_sharpness", [-2.0, 2.5, 5.0, 7.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_sharp_people_by_the_default_inference(log_sharpness: float, label: float) -> None:
    """Its sharpness moves by evidence, a little at a time; these are as far as it may come."""
    state = state_of("two observations", "default")
    row = inv.difference(state.inverse.features, np.array([[0.9, 0.8]]), np.array([[0.1, 0.2]]))
    start = replace(state.inverse, centre=np.append(state.inverse.weights, log_sharpness))
    start = replace(start, differences=row[:0], labels=np.empty(0), curvature=np.empty(0))
    rows = np.repeat(row, 600, axis=0)
    with np.errstate(under="ignore"):  # as in the loop
        belief = inv.update(start, rows, np.full(600, label), reselect=True)
    assert np.isfinite(belief.centre).all()
    for rule in RULE_NAMES:
        check(ask(with_rule(replace(state, inverse=belief), rule)).policy, 3)


@pytest.mark.parametrize("preset", PRESETS)
def test_warm_starts_on_separable_labels(preset: str) -> None:
    """Again and again from the last mode: weights shrink and the sharpness grows, within reason."""
    state = state_of("1,000 separable labels", preset)
    belief: InverseBelief = state.inverse
    for _ in range(15):
        belief = inv.update(belief, belief.differences, belief.labels)
    assert np.isfinite(belief.centre).all()
    check_goes_on(replace(state, inverse=belief))


@pytest.mark.parametrize("ridge", [1e-9, 1e-3])
def test_the_same_policy_appended_again_and_again(ridge: float) -> None:
    settings = quick("paper", 3, 2, "boundary_lookahead")
    state = assembled(settings, replace(random_record(20), hyper=Hyperparameters(0.3, ridge)))
    belief = state.forward
    for outcome in rng(4).uniform(size=(150, 2)):
        belief = fw.append(belief, np.array([0.5, 0.5, 0.5]), outcome)
    check(ask(replace(state, forward=belief)).policy, 3)
    assert np.isfinite(belief.mean(np.full((1, 3), 0.5))).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_hyperparameters_of_hard_records(preset: str) -> None:
    """A checkpoint may choose the ridge 1e-9: that must be able to be factored."""
    for name in ("identical policies", "constant outcomes", "everything constant", "corners"):
        hard = CASES[name]()
        settings = quick(preset, 3, 2, "boundary_lookahead")
        hyper = select_hyperparameters(settings.forward, hard.policies, hard.outcomes, rng())
        check_goes_on(assembled(settings, replace(hard, hyper=hyper)))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", ["constant", "corners", "one policy"])
def test_whole_runs_over_a_checkpoint(preset: str, kind: str) -> None:
    settings = quick(preset, 2, 2, "boundary_lookahead")

    def person(query: object, outcome_dim: int) -> Response:
        index = query.round  # type: ignore[attr-defined]
        if kind == "constant":
            return Response(np.full(2, 0.5), "same" if index else None)
        return Response(rng(index).integers(0, 2, 2).astype(float), "new" if index else None)

    if kind == "one policy":
        state = begin(settings, 0)
        only = Feasible(choices=[[0.25, 0.75]])
        for _ in range(18):
            query = ask(state, only)
            state = tell(state, query, person(query, 2))
    else:
        state = played(settings, 18, person=person)
    check_goes_on(state)


def test_many_dimensions() -> None:
    """Single-precision kernels of far-apart policies underflow; the query is still a query."""
    check_goes_on(assembled(quick("paper", 60, 3, "boundary_lookahead"), random_record(30, 60, 3)))
