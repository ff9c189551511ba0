"""The loop: begin, ask, tell, recommend (paper section 3, figure "SFIHILO framework overview").

A `State` is frozen and holds all that the next step needs. `ask` and `recommend` only read it,
`tell` returns the next one. Everything random derives from (seed, round, purpose).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfihilo import forward as fw
from sfihilo import inverse as inv
from sfihilo.feasible import Feasible
from sfihilo.final_policy import Objective, ProcessObjective, final_policy
from sfihilo.forward import Hyperparameters
from sfihilo.forward.recency import require_search
from sfihilo.history import (
    History,
    Query,
    Response,
    generator,
    known_choice,
    known_strength,
    partial_outcome,
    unit_vector,
)
from sfihilo.imputation import with_imputed
from sfihilo.inverse.grading import CUTS, answer_bounds, answer_clarity
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.querying import SEEKING, Decision, Situation
from sfihilo.querying import random as random_policy
from sfihilo.querying import rule as named_rule
from sfihilo.recommendation import NothingLearnedError, Recommendation, describe
from sfihilo.refit import fitted_forward, is_checkpoint, reselected, sharpness_is_due
from sfihilo.settings import Goal, Settings, checked_seed, checked_settings
from sfihilo.state import State, checked_floats

WHOLE_CUBE = Feasible()


def keep_freed_arrays() -> None:
    """Let the allocator reuse the arrays of a round instead of mapping pages for each of them.

    Freeing one 31 MB block raises glibc's mmap threshold to its maximum (about 10 % of a round).
    """
    np.empty(31 << 20, np.uint8)


@checked_floats
def begin(settings: Settings, seed: int) -> State:
    """Return the state before the first query.

    Args:
        settings: what is learned and how; `Settings.paper(...)` is the paper to the letter.
        seed: a whole number from 0. The same seed and the same responses give the same queries.

    Returns:
        A frozen `State` of round 0.

    Raises:
        ValueError: these are no settings, the seed is not a whole number from 0, or the rule is
            unknown.

    Example:
        >>> from sfihilo import Settings, begin
        >>> begin(Settings(policy_dim=2, outcome_dim=3), seed=0).round
        0
    """
    settings, seed = checked_settings(settings), checked_seed(seed)
    if settings.recency.variant != "unweighted":
        require_search()
    keep_freed_arrays()
    features = inv.feature_map(
        settings.inverse, settings.outcome_dim, generator(seed, 0, "features")
    )
    history = History.empty(settings.policy_dim, settings.outcome_dim)
    hyper = Hyperparameters(settings.forward.initial_length_scale, settings.forward.initial_ridge)
    return State(
        settings=settings,
        seed=seed,
        history=history,
        forward=fitted_forward(settings, hyper, history, None),
        inverse=inv.begin(settings.inverse, features),
        decay=None,
        factored=0,
    )


@checked_floats
def explain(state: State, feasible: Feasible | None = None) -> Decision:
    """Return the next query's policy, with the pool, targets and scores that its rule compared.

    Args:
        state: what is known so far.
        feasible: which policies are allowed now; None allows the whole unit cube.

    Returns:
        A `Decision`; its `policy` is that of `ask(state, feasible)`.

    Example:
        >>> from sfihilo import Settings, ask, begin, explain
        >>> state = begin(Settings(policy_dim=2, outcome_dim=3), seed=0)
        >>> bool((explain(state).policy == ask(state).policy).all())
        True
    """
    feasible = feasible_set(feasible)
    settings, situation = state.settings, situation_of(state, feasible)
    # With nothing to compare with, no comparison can be informative.
    rule = random_policy if state.history.anchor is None else named_rule(settings.rule_name)
    decision = rule(situation)
    policy = unit_vector(
        decision.policy, settings.policy_dim, f"policy of rule {settings.rule_name}"
    )
    feasible.check(policy, situation.previous)
    return decision


def situation_of(state: State, feasible: Feasible) -> Situation:
    """What a query rule is given in the state's next round."""
    settings, rounds = state.settings, state.history.recent(state.settings.recall)
    recalled = state.history.filled[rounds] if rounds.size else np.zeros((1, settings.outcome_dim))
    ages = state.round - rounds if rounds.size else np.ones(1, dtype=int)

    def random(purpose: str) -> np.random.Generator:
        return generator(state.seed, state.round, purpose)

    return Situation(
        settings=settings.query,
        pairs=settings.pairs,
        policy_dim=settings.policy_dim,
        feasible=feasible,
        previous=state.history.previous_policy,
        anchor=recalled[0],
        recalled=recalled,
        answer_noise=(LOGISTIC_STD / answer_clarity(ages, settings.recall_noise)) ** 2,
        forward=state.forward,
        sampled=state.rule_posterior,
        gap_std=float(np.sqrt(2)) * settings.noise.reward,
        cuts=state.inverse.grading.cuts(settings.grades),
        random=random,
        fitted=state.processes,
    )


def ask(state: State, feasible: Feasible | None = None) -> Query:
    """Return the next query: the policy to execute, and the outcome to compare with.

    Asking is pure: asking twice gives the same query, and the state stays as it is.

    Args:
        state: what is known so far.
        feasible: which policies are allowed now; None allows the whole unit cube.

    Returns:
        A `Query` with `policy` in `[0, 1]^policy_dim`. In round 0 its `anchor` is None: there is
        nothing to compare with yet, and the policy is drawn at random.

    Raises:
        ValueError: no policy is feasible, or the rule returned one that is not.

    Example:
        >>> from sfihilo import Feasible, Settings, ask, begin
        >>> state = begin(Settings(policy_dim=2, outcome_dim=3), seed=0)
        >>> query = ask(state, Feasible(lower=0.2, upper=0.4))
        >>> bool((query.policy >= 0.2).all() and (query.policy <= 0.4).all())
        True
    """
    policy = explain(state, feasible).policy
    newest = state.history.recent(1).tolist()
    compared_with = newest[0] if newest else None
    return Query(state.round, np.array(policy, dtype=float), state.history.anchor, compared_with)


@checked_floats
def tell(state: State, query: Query, response: Response) -> State:
    """Return the state after this response to this query; both models are refit.

    Args:
        state: the state that the query was asked of.
        query: what `ask` or `question` returned, or an own one with the same round and an anchor
            that is one of the last `settings.recall` measured outcomes.
        response: the measured outcome in `[0, 1]^outcome_dim` and the answer; either may be None,
            and single numbers of the outcome that were not measured may be NaN.

    Returns:
        The next `State`; the given one stays valid.

    Raises:
        ValueError: the query is of another round or has another anchor, or a number is outside
            [0, 1].

    Example:
        >>> from sfihilo import Response, Settings, ask, begin, tell
        >>> state = begin(Settings(policy_dim=2, outcome_dim=3), seed=0)
        >>> state = tell(state, ask(state), Response(outcome=[0.2, 0.5, 0.7], choice=None))
        >>> query = ask(state)
        >>> state = tell(state, query, Response(outcome=[0.3, 0.4, 0.7], choice="new"))
        >>> state.round
        2
    """
    query, response = _validated(state, query, response)
    history = state.history.append(query, response)
    updated = replace(state, history=history)
    if is_checkpoint(query.round):
        updated = reselected(updated)
    elif state.decay is not None:
        updated = replace(
            updated,
            forward=fitted_forward(state.settings, state.forward.hyper, history, state.decay),
        )
    elif response.outcome is not None:
        updated = replace(updated, forward=fw.append(state.forward, query.policy, response.outcome))
    if history.partial:
        return with_imputed(updated)
    if history.compared[-1]:
        pairs = history.preference_data()
        inverse = inv.append(
            state.inverse,
            pairs.anchors[-1],
            pairs.outcomes[-1],
            pairs.labels[-1],
            answer_bounds(pairs.labels, pairs.strengths, state.settings.grades)[-1],
            clarity=float(answer_clarity(pairs.ages, state.settings.recall_noise)[-1]),
            reselect=sharpness_is_due(history, state.settings.grades),
        )
        updated = replace(updated, inverse=inverse)
    return updated


def with_goal(state: State, goal: Goal) -> State:
    """Return the same state, asking from now on by the rule of this goal.

    All that was learned stays: both goals learn the same two models and differ only in what they
    ask. A rule that was named in the settings gives way to the rule of the goal.

    Args:
        state: what is known so far.
        goal: "understand" or "best".

    Returns:
        A `State` of the same round; the given one stays valid.

    Raises:
        ValueError: the goal is unknown.

    Example:
        >>> from sfihilo import Settings, begin, with_goal
        >>> state = with_goal(begin(Settings(policy_dim=2, outcome_dim=3), seed=0), "best")
        >>> state.settings.rule_name
        'best'
    """
    return replace(state, settings=replace(state.settings, goal=goal, rule=None))


@checked_floats
def recommend(
    state: State,
    feasible: Feasible | None = None,
    compare_with: Mapping[str, npt.ArrayLike] | None = None,
) -> Recommendation:
    """Return the policy of the largest expected reward (eq:final_policy_optimization).

    Args:
        state: what is known so far.
        feasible: which policies may be recommended; None allows the whole unit cube. It may differ
            from what was feasible while asking: the reward is learned over outcomes.
        compare_with: named policies, such as "device off"; the probability that this person
            prefers the recommended one to each of them is in `preferred`, beside those for the
            best tried policy and the last one.

    Returns:
        A `Recommendation`: the policy, its predicted outcome and reward with intervals, whether it
        extrapolates, how many comparisons it rests on, and `preferred`.

    Raises:
        NothingLearnedError: no comparison was learned from yet.

    Example:
        >>> from sfihilo import Response, Settings, ask, begin, recommend, tell
        >>> state = begin(Settings(policy_dim=1, outcome_dim=1), seed=0)
        >>> for round in range(12):
        ...     query = ask(state)
        ...     choice = None if query.anchor is None else "new"
        ...     if query.anchor is not None and query.policy[0] < query.anchor[0]:
        ...         choice = "previous"
        ...     state = tell(state, query, Response(query.policy, choice))
        >>> bool(recommend(state).policy[0] > 0.5)
        True
    """
    comparisons = int(state.history.compared.sum())
    if comparisons == 0:
        raise NothingLearnedError(
            "nothing learned yet: expected at least one answered comparison, got none"
        )
    settings, feasible = state.settings, feasible_set(feasible)
    rng = generator(state.seed, state.round, "recommend")
    objective = Objective.of(settings.selection, state.forward, state.posterior(), rng)
    if rests_on_processes(settings):
        objective = ProcessObjective(
            objective.forward, objective.reward, objective.normals, state.processes()
        )
    policy = final_policy(settings.selection, objective, feasible, settings.policy_dim, rng)
    others = {
        name: unit_vector(other, settings.policy_dim, f"compare_with {name!r}")
        for name, other in (compare_with or {}).items()
    }
    return describe(settings.selection, objective, policy, feasible, others, comparisons)


def rests_on_processes(settings: Settings) -> bool:
    """Whether the advice uses the outcomes' processes rather than the paper's forward belief."""
    return settings.average is not None or settings.rule_name in SEEKING


def feasible_set(feasible: object) -> Feasible:
    """Validates a feasible set; None is the whole cube."""
    if feasible is None:
        return WHOLE_CUBE
    if not isinstance(feasible, Feasible):
        raise ValueError(f"feasible: expected a Feasible or None, got {feasible!r}")
    return feasible


def _validated(state: State, query: Query, response: Response) -> tuple[Query, Response]:
    """Validates the arguments of `tell`."""
    settings = state.settings
    if query.round != state.round:
        raise ValueError(
            f"query: expected the one of round {state.round}, got one of round {query.round}"
        )
    compared_with = _compared_round(state, query)
    anchor = None if compared_with is None else state.history.filled[compared_with]
    if (anchor is None) != (query.anchor is None) or (
        anchor is not None and not np.array_equal(anchor, np.asarray(query.anchor))
    ):
        raise ValueError(f"query: expected the anchor {anchor}, got {query.anchor}")
    policy = unit_vector(query.policy, settings.policy_dim, "policy")
    outcome = partial_outcome(response.outcome, settings.outcome_dim)
    choice = known_choice(response.choice)
    strength = known_strength(response.strength, choice, len(CUTS[settings.grades]))
    told = Query(state.round, policy, anchor, compared_with)
    return told, Response(outcome, choice, strength)


def _compared_round(state: State, query: Query) -> int | None:
    """Validates the round that a query compares with; where it names none, the last measured."""
    if query.compared_with is None:
        newest: list[int] = state.history.recent(1).tolist()
        return newest[0] if newest else None
    allowed = state.history.recent(state.settings.recall).tolist()
    if query.compared_with not in allowed:
        raise ValueError(
            f"query: expected a comparison with one of the rounds {allowed}, "
            f"got {query.compared_with!r}"
        )
    return int(query.compared_with)
