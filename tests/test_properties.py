"""What holds for any record (hypothesis)."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfihilo import Feasible, Response, Settings, ask, begin, tell
from sfihilo import forward as fw
from sfihilo.forward import ForwardBelief, ForwardSettings, Hyperparameters
from sfihilo.history import Choice, FloatArray
from tests.small import PRESETS, RULE_NAMES, small

CHOICES: list[Choice | None] = ["new", "previous", "same", None]
hypers = st.builds(
    Hyperparameters, st.sampled_from([0.3, 0.5, 0.7]), st.sampled_from([1e-1, 1e-2, 1e-3])
)


def record(count: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    policies = rng.uniform(size=(count, 3))
    repeated = rng.random(count) < 0.2
    policies[repeated] = policies[0]  # people repeat conditions
    return policies, rng.uniform(size=(count, 2))


def fit(policies: FloatArray, outcomes: FloatArray, hyper: Hyperparameters) -> ForwardBelief:
    return fw.fit(ForwardSettings(), hyper, 0.05, policies, outcomes)


@given(st.integers(1, 60), st.integers(0, 10_000), hypers)
def test_order_of_stationary_data_does_not_matter(
    count: int, seed: int, hyper: Hyperparameters
) -> None:
    policies, outcomes = record(count, seed)
    order = np.random.default_rng(seed + 1).permutation(count)
    elsewhere = np.random.default_rng(seed + 2).uniform(size=(20, 3))
    one = fit(policies, outcomes, hyper).predict(elsewhere)
    other = fit(policies[order], outcomes[order], hyper).predict(elsewhere)
    for mine, theirs in zip(one, other, strict=True):
        assert np.abs(mine - theirs).max() < 1e-9


@given(st.integers(1, 60), st.integers(0, 10_000), hypers)
def test_order_of_appended_data_does_not_matter(
    count: int, seed: int, hyper: Hyperparameters
) -> None:
    policies, outcomes = record(count, seed)
    grown = fit(policies[:0], outcomes[:0], hyper)
    for index in np.random.default_rng(seed + 1).permutation(count):
        grown = fw.append(grown, policies[index], outcomes[index])
    elsewhere = np.random.default_rng(seed + 2).uniform(size=(20, 3))
    for mine, theirs in zip(
        grown.predict(elsewhere), fit(policies, outcomes, hyper).predict(elsewhere), strict=True
    ):
        assert np.abs(mine - theirs).max() < 1e-9


@given(st.integers(0, 50), st.integers(1, 10), st.integers(0, 10_000), hypers)
def test_more_data_never_raise_the_leverage(
    count: int, more: int, seed: int, hyper: Hyperparameters
) -> None:
    policies, outcomes = record(count + more, seed)
    elsewhere = np.random.default_rng(seed + 2).uniform(size=(20, 3))
    before = fit(policies[:count], outcomes[:count], hyper).leverage(elsewhere)
    after = fit(policies, outcomes, hyper).leverage(elsewhere)
    assert (after <= before + 1e-12).all()
    assert (after >= 0).all()
    assert (before <= 1).all()


@given(st.integers(2, 40), st.integers(0, 10_000), hypers)
def test_lookahead_variance_never_rises(count: int, seed: int, hyper: Hyperparameters) -> None:
    belief = fit(*record(count, seed), hyper)
    targets, candidates = np.random.default_rng(seed + 3).uniform(size=(2, 8, 3))
    after = fw.target_update(belief, belief.at(targets), belief.at(candidates)).variance
    assert (after <= belief.predict(targets).variance + 1e-12).all()
    assert (after >= belief.observation - 1e-15).all()


responses = st.lists(
    st.tuples(st.one_of(st.none(), st.tuples(*[st.floats(0, 1)] * 2)), st.sampled_from(CHOICES)),
    max_size=6,
)


@st.composite
def sets(draw: st.DrawFn) -> Feasible:
    low, width = draw(st.floats(0, 0.8)), draw(st.floats(0.05, 1))
    kind = draw(st.sampled_from(["everything", "box", "callable", "list", "step"]))
    if kind == "box":
        return Feasible(lower=low, upper=min(low + width, 1.0))
    if kind == "callable":
        return Feasible(accepts=lambda policies: policies[:, 0] >= low)
    if kind == "list":
        return Feasible(choices=np.random.default_rng(int(100 * low)).uniform(size=(5, 2)))
    if kind == "step":
        return Feasible(max_step=width)
    return Feasible()


@settings(max_examples=60)
@given(
    told=responses,
    feasible=sets(),
    preset=st.sampled_from(sorted(PRESETS)),
    rule=st.sampled_from(RULE_NAMES),
    seed=st.integers(0, 2**40),
)
def test_every_query_is_repeatable_finite_and_feasible(
    told: list[tuple[tuple[float, float] | None, Choice | None]],
    feasible: Feasible,
    preset: str,
    rule: str,
    seed: int,
) -> None:
    chosen = small(PRESETS[preset](2, 2, rule=rule))
    chosen = replace(chosen, inverse=replace(chosen.inverse, feature_count=20, samples=30))
    state = begin(chosen, seed)
    for outcome, choice in [*told, (None, None)]:
        query, again = ask(state, feasible), ask(state, feasible)
        assert query.policy.tobytes() == again.policy.tobytes()
        assert np.isfinite(query.policy).all()
        assert ((query.policy >= 0) & (query.policy <= 1)).all()
        feasible.check(query.policy, state.history.previous_policy)
        measured = None if outcome is None else np.array(outcome)
        state = tell(state, query, Response(measured, choice))


@given(st.integers(0, 10_000), st.sampled_from([Settings.paper, Settings]))
def test_first_queries_are_spread(seed: int, make: type[Settings]) -> None:
    """Round 0 of different people differs: nobody starts at one fixed policy."""
    first, second = (ask(begin(make(4, 2), seed + k)).policy for k in range(2))
    assert not np.array_equal(first, second)
