"""The loop: begin, ask, tell, recommend, save and load."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfihilo import (
    Feasible,
    Query,
    Response,
    Settings,
    State,
    ask,
    begin,
    explain,
    load,
    recommend,
    save,
    tell,
)
from sfihilo import forward as fw
from sfihilo.forward.recency import RecencySettings, recency_weights
from sfihilo.forward.tuning import select_hyperparameters
from sfihilo.history import CHOICES, Choice, generator
from sfihilo.inverse import InverseSettings
from sfihilo.refit import is_checkpoint
from tests.small import PRESETS, RULE_NAMES, patchy, play, played, respond, small

ROOT = Path(__file__).parents[1]
LEARNED = RecencySettings(variant="learned", trials=20)


def quick(make: Callable[..., Settings] = Settings.paper, **changes: Any) -> Settings:
    return small(make(3, 2, **changes))


@cache
def some_state(rounds: int = 6, preset: str = "paper") -> State:
    return played(quick(PRESETS[preset]), rounds)


# ---------------------------------------------------------------- ask


@pytest.mark.parametrize("make", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("rule", [*RULE_NAMES, "tests.small:own_rule"])
def test_asking_is_pure_and_repeatable(make: Callable[..., Settings], rule: str) -> None:
    state = played(quick(make, rule=rule), 5)
    before = save(state)
    queries = [ask(state) for _ in range(2)]
    recommend(state)
    queries.append(ask(state))
    assert len({query.policy.tobytes() for query in queries}) == 1
    assert all(query.round == 5 for query in queries)
    assert save(state) == before
    assert np.array_equal(explain(state).policy, queries[0].policy)


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_seeds_matter_and_repeat(rule: str) -> None:
    runs = [tuple(played(quick(rule=rule), 4, seed).history.policies.ravel()) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_rounds_differ() -> None:
    policies = some_state().history.policies
    assert len({tuple(policy) for policy in policies}) == len(policies)


def test_first_query_has_no_anchor() -> None:
    state = begin(quick(), 0)
    query = ask(state)
    assert query.round == 0
    assert query.anchor is None
    state = tell(state, query, Response(np.array([0.2, 0.3]), None))
    anchor = ask(state).anchor
    assert anchor is not None
    assert anchor.tolist() == [0.2, 0.3]


def test_explain_returns_pool_targets_and_scores_of_the_query() -> None:
    state = some_state()
    selection = explain(state)
    pool = state.settings.query.pool_size(3)
    assert selection.pool.shape == (pool, 3)
    assert selection.scores.shape == (pool,)
    assert selection.targets.shape == (32,)
    assert 16 <= len(selection.shortlist) <= 24
    assert len(set(selection.shortlist.tolist())) == len(selection.shortlist)
    assert selection.utilities.shape == selection.shortlist.shape
    best = selection.shortlist[int(np.argmax(selection.utilities))]
    assert np.array_equal(selection.policy, selection.pool[best])
    assert np.array_equal(selection.shortlist[:16], selection.targets[:16])


LISTED = np.random.default_rng(0).uniform(size=(300, 3))
SETS = {
    "box": Feasible(lower=0.3, upper=[0.4, 0.5, 0.9]),
    "step": Feasible(max_step=0.05),
    "callable": Feasible(accepts=lambda policies: policies[:, 0] < policies[:, 1] ** 2),
    "list": Feasible(choices=LISTED),
    "all": Feasible(upper=0.9, max_step=0.6, accepts=lambda p: p[:, 0] < 0.8, choices=LISTED),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_query_is_in_the_feasible_set(name: str, rule: str) -> None:
    state, feasible = begin(quick(rule=rule), 3), SETS[name]
    for _ in range(5):
        previous = state.history.previous_policy
        query = ask(state, feasible)
        feasible.check(query.policy, previous)
        if name in ("list", "all"):
            assert (query.policy == LISTED).all(axis=1).any()
        if name == "step" and previous is not None:
            assert np.abs(query.policy - previous).max() <= 0.05 + 1e-12
        state = tell(state, query, respond(query, 2))
    feasible.check(recommend(state, feasible).policy)


def test_own_rule_is_used_and_checked() -> None:
    state = played(quick(rule="tests.small:own_rule"), 2)
    assert np.abs(ask(state).policy - 0.5).max() < 0.25
    assert len(explain(state).scores) == state.settings.query.pool_size(3)
    with pytest.raises(ValueError, match=r"policy of rule tests\.small:rule_outside"):
        ask(replace(state, settings=replace(state.settings, rule="tests.small:rule_outside")))


@pytest.mark.parametrize("name", ["linear", "tests.small:own_features"])
def test_other_features_in_the_loop(name: str) -> None:
    state = played(quick(inverse=InverseSettings(features=name)), 12)
    assert len(state.inverse.centre) == {"linear": 3}.get(name, 7)
    first, second = np.array([[0.7, 0.7]]), np.array([[0.2, 0.2]])
    assert state.posterior().preference(first, second)[0] > 0.5
    assert np.array_equal(ask(load(save(state))).policy, ask(state).policy)


# ---------------------------------------------------------------- tell


@pytest.mark.parametrize("choice", [*CHOICES, None])
@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("preset", PRESETS)
def test_tell_takes_every_kind_of_response(
    choice: Choice | None, measured: bool, preset: str
) -> None:
    state = some_state(3, preset)
    query = ask(state)
    outcome = np.array([0.9, 0.1]) if measured else None
    after = tell(state, query, Response(outcome, choice))
    assert after.round == 4
    assert after.history.choices[-1] == choice
    assert len(after.forward.policies) == 3 + measured
    assert len(after.inverse.labels) == 2 + (measured and choice is not None)
    assert np.isfinite(ask(after).policy).all()
    anchor = ask(after).anchor
    assert anchor is not None
    assert np.array_equal(anchor, state.history.outcomes[-1] if outcome is None else outcome)
    assert state.round == 3


def test_labels_point_the_right_way() -> None:
    for choice, compare in (("new", np.greater), ("previous", np.less)):
        state = begin(quick(), 0)
        state = tell(state, ask(state), Response(np.array([0.1, 0.1]), None))
        for _ in range(4):
            new = Query(state.round, np.full(3, 0.5), state.history.anchor)
            state = tell(state, new, Response(np.array([0.9, 0.9]), choice))  # type: ignore[arg-type]
            back = Query(state.round, np.full(3, 0.5), state.history.anchor)
            state = tell(state, back, Response(np.array([0.1, 0.1]), None))
        rewards = state.posterior().mean_reward(np.array([[0.9, 0.9], [0.1, 0.1]]))
        assert compare(rewards[0], rewards[1])


def test_own_suggestion_may_be_told() -> None:
    state = some_state()
    query = Query(state.round, np.array([0.1, 0.2, 0.3]), state.history.anchor)
    after = tell(state, query, respond(query, 2))
    assert after.history.policies[-1].tolist() == [0.1, 0.2, 0.3]


def test_later_changes_of_arrays_do_not_reach_the_state() -> None:
    state = some_state()
    query, outcome = ask(state), np.array([0.4, 0.6])
    after = tell(state, query, Response(outcome, "new"))
    texts = save(state), save(after)
    for array in (query.policy, query.anchor, outcome, explain(state).pool):
        assert array is not None
        try:
            array[...] = 0.123
        except ValueError:
            continue  # read-only is as good as a copy
    assert (save(state), save(after)) == texts


def wrong_tells() -> dict[str, tuple[Callable[[Query], Query], Response, str]]:
    good = Response(np.array([0.4, 0.6]), "new")

    def same(query: Query) -> Query:
        return query

    def outcome(*values: Any) -> Response:
        return Response(values, "new")  # type: ignore[arg-type]

    return {
        "inf": (same, outcome(0.5, np.inf), "outcome: expected finite"),
        "above one": (same, outcome(0.5, 1.01), r"outcome: expected numbers in \[0, 1\]"),
        "below zero": (same, outcome(-0.01, 0.5), r"outcome: expected numbers in \[0, 1\]"),
        "too short": (same, outcome(0.5), "outcome: expected 2 numbers"),
        "too long": (same, outcome(0.5, 0.5, 0.5), "outcome: expected 2 numbers"),
        "text": (same, outcome("a", "b"), "outcome: expected 2 numbers"),
        "unknown choice": (
            same,
            Response(np.array([0.4, 0.6]), "anchor"),  # type: ignore[arg-type]
            "choice: expected one of new, previous, same",
        ),
        "label for a choice": (
            same,
            Response(np.array([0.4, 0.6]), -1),  # type: ignore[arg-type]
            "choice: expected",
        ),
        "later query": (lambda q: replace(q, round=q.round + 1), good, "query: expected the one"),
        "earlier query": (lambda q: replace(q, round=0, anchor=None), good, "query: expected"),
        "other anchor": (
            lambda q: replace(q, anchor=np.array([0.1, 0.2])),
            good,
            "query: expected the anchor",
        ),
        "no anchor": (lambda q: replace(q, anchor=None), good, "query: expected the anchor"),
        "long anchor": (lambda q: replace(q, anchor=np.full(3, 0.1)), good, "query: expected"),
        "policy NaN": (lambda q: replace(q, policy=np.full(3, np.nan)), good, "policy: expected"),
        "policy outside": (lambda q: replace(q, policy=np.full(3, 1.2)), good, "policy: expected"),
        "policy of another size": (
            lambda q: replace(q, policy=np.full(2, 0.5)),
            good,
            "policy: expected 3 numbers",
        ),
    }


@pytest.mark.parametrize("name", wrong_tells())
def test_bad_input_is_refused_and_leaves_the_state(name: str) -> None:
    change, response, message = wrong_tells()[name]
    state = some_state()
    text, policy = save(state), ask(state).policy
    with pytest.raises(ValueError, match=message):
        tell(state, change(ask(state)), response)
    assert save(state) == text
    assert np.array_equal(ask(state).policy, policy)


def test_an_answer_cannot_be_told_twice() -> None:
    state = some_state()
    query = ask(state)
    response = respond(query, 2)
    after = tell(state, query, response)
    with pytest.raises(ValueError, match="expected the one of round 7, got one of round 6"):
        tell(after, query, response)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True])
def test_wrong_seeds(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed: expected a whole number"):
        begin(quick(), seed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "cleverest"}, "rule: expected random"),
        ({"rule": "no.such:rule"}, "rule: expected random"),
        ({"inverse": InverseSettings(features="cubic")}, "features: expected rbf"),
    ],
)
def test_unknown_names_fail_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        begin(quick(**changes), 0)


def test_ask_with_an_empty_feasible_set_is_refused() -> None:
    state = some_state()
    with pytest.raises(ValueError, match="feasible set"):
        ask(state, Feasible(lower=0.9, upper=0.8))


# ---------------------------------------------------------------- checkpoints and drift


def test_checkpoints() -> None:
    found = [count for count in range(601) if is_checkpoint(count)]
    assert found == [16, *range(25, 201, 25), *range(250, 601, 50)]


def test_hyperparameters_change_at_checkpoints_only() -> None:
    state = begin(quick(rule="random"), 0)
    initial = state.forward.hyper
    changes = {}
    for _ in range(30):
        before = state.forward.hyper
        state = play(state, 1)
        if is_checkpoint(state.round - 1):
            data = state.history.forward_data()
            rng = generator(0, state.round, "reselect")
            chosen = select_hyperparameters(
                state.settings.forward, data.policies, data.outcomes, rng
            )
            changes[state.round - 1] = state.forward.hyper == chosen
        else:
            assert state.forward.hyper == before
    assert changes == {16: True, 25: True}
    assert state.forward.hyper != initial


def test_the_sharpness_is_reselected_ten_rounds_later() -> None:
    """The default's two reselections never fall on one query."""
    state = begin(quick(Settings, rule="random"), 0)
    moved = []
    for _ in range(37):
        before = state.inverse.log_sharpness
        state = play(state, 1)
        if state.inverse.log_sharpness != before:
            moved.append(state.round - 1)
    assert moved == [26, 35]


def test_a_reselection_without_an_answer_is_made_up_for() -> None:
    state = begin(quick(Settings, rule="random"), 0)
    state = play(state, 26)
    query = ask(state)
    assert query.round == 26
    silent = tell(state, query, replace(respond(query, 2), choice=None))
    assert silent.inverse.log_sharpness == state.inverse.log_sharpness
    assert play(silent, 1).inverse.log_sharpness != state.inverse.log_sharpness


def test_appended_belief_is_the_refitted_one() -> None:
    state = played(quick(rule="random"), 40, person=patchy)
    data = state.history.forward_data()
    whole = fw.fit(state.settings.forward, state.forward.hyper, 0.05, data.policies, data.outcomes)
    policies = np.random.default_rng(0).uniform(size=(30, 3))
    assert state.forward.mean(policies) == pytest.approx(whole.mean(policies), abs=1e-8)
    assert state.forward.leverage(policies) == pytest.approx(whole.leverage(policies), abs=1e-8)


@pytest.mark.parametrize(
    "recency", [LEARNED, RecencySettings(variant="known", decay_time=20.0, trials=18)]
)
def test_decay_is_learned_after_the_warm_up_when_recency_is_on(recency: RecencySettings) -> None:
    settings = quick(rule="random", recency=recency)
    state = played(settings, 16)
    assert state.decay is None  # nothing is learned about drift before the warm-up
    assert (state.forward.blocks[0].ridge.weights == 1).all()
    state = play(state, 1)
    decay = state.decay
    assert decay is not None
    if recency.variant == "known":
        assert decay.decay_time == 20.0
    for _ in range(3):
        rounds = state.history.forward_data().rounds
        expected = recency_weights(rounds, state.round, decay, 1e-4)
        assert np.array_equal(state.forward.blocks[0].ridge.weights, expected)
        assert np.ptp(state.forward.blocks[0].ridge.weights) > 0
        state = play(state, 1, patchy)
        assert state.decay == decay  # reused between checkpoints
    assert np.array_equal(ask(played(settings, 20)).policy, ask(played(settings, 20)).policy)
    assert state.forward.hyper.ridge not in settings.forward.ridges  # a continuous search


def test_ignoring_drift_uses_the_grid() -> None:
    state = played(quick(rule="random"), 18)
    assert state.decay is None
    assert state.forward.hyper.ridge in state.settings.forward.ridges
    assert (state.forward.blocks[0].ridge.weights == 1).all()


# ---------------------------------------------------------------- it learns


@pytest.mark.parametrize("make", PRESETS.values(), ids=PRESETS)
def test_the_loop_learns(make: Callable[..., Settings]) -> None:
    state = played(quick(make), 40)
    rng = np.random.default_rng(0)
    first, second = rng.uniform(size=(2, 300, 2))
    truth = ((first - 0.7) ** 2).sum(axis=1) < ((second - 0.7) ** 2).sum(axis=1)
    right = (state.posterior().preference(first, second) > 0.5) == truth
    assert right.mean() > 0.8


def test_state_shows_itself_in_one_line() -> None:
    state = played(small(Settings.paper(2, 2, rule="random")), 5)
    assert repr(state) == "State(round 5, 4 comparisons, 2 settings, 2 outcomes, rule random)"
