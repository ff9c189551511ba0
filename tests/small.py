"""Small learners and a simple person that the tests of the core share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sfihilo import Query, Response, Settings, State, ask, begin, tell
from sfihilo.feasible import Feasible
from sfihilo.forward import ForwardBelief
from sfihilo.history import Choice, FloatArray, generator
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.querying import RULES, Decision, Situation

PRESETS: dict[str, Callable[..., Settings]] = {"paper": Settings.paper, "default": Settings}
RULE_NAMES = tuple(RULES)


def small(settings: Settings) -> Settings:
    """The same learner with a smaller pool and search: its code paths are the same."""
    return replace(
        settings,
        query=replace(settings.query, pool_minimum=200, pool_per_dimension=10),
        pairs=replace(settings.pairs, pool=80, past=40, pairs=32, local_steps=4),
        inverse=replace(settings.inverse, feature_count=64, samples=128),
        selection=replace(settings.selection, pool=150, starts=2, iterations=25),
    )


def true_outcome(policy: FloatArray, outcome_dim: int) -> FloatArray:
    """A smooth map into the unit cube."""
    mixing = np.cos(np.arange(1.0, 1 + outcome_dim)[:, None] * np.arange(1.0, 1 + len(policy)))
    return np.asarray(0.5 + 0.4 * np.sin(2 * mixing @ policy + 0.3))


def true_reward(outcome: FloatArray) -> float:
    return -float(((outcome - 0.7) ** 2).sum())


def with_observation(belief: ForwardBelief, observation: FloatArray) -> ForwardBelief:
    """The belief with another observation variance."""
    changed = replace(belief)
    changed.__dict__["observation"] = observation  # in place of what it would derive
    return changed


def respond(query: Query, outcome_dim: int) -> Response:
    """What the person does; the noise depends on the round only."""
    noise = 0.02 * generator(7, query.round, "person").standard_normal(outcome_dim)
    outcome = np.clip(true_outcome(query.policy, outcome_dim) + noise, 0, 1)
    if query.anchor is None:
        return Response(outcome, None)
    choice: Choice = "new" if true_reward(outcome) > true_reward(query.anchor) else "previous"
    return Response(outcome, choice)


def patchy(query: Query, outcome_dim: int) -> Response:
    """The same person with ties, missing outcomes and missing answers."""
    response = respond(query, outcome_dim)
    if query.round % 7 == 3:
        return Response(None, None)
    if query.round % 9 == 5:
        return Response(None, response.choice)
    if query.round % 5 == 4:
        return Response(response.outcome, None)
    if query.round % 6 == 2:
        return Response(response.outcome, "same")
    return response


def play(
    state: State,
    rounds: int,
    person: Callable[[Query, int], Response] = respond,
    feasible: Feasible | None = None,
) -> State:
    """So many more rounds of the loop."""
    for _ in range(rounds):
        query = ask(state, feasible)
        state = tell(state, query, person(query, state.settings.outcome_dim))
    return state


def played(
    settings: Settings,
    rounds: int,
    seed: int = 0,
    person: Callable[[Query, int], Response] = respond,
) -> State:
    return play(begin(settings, seed), rounds, person)


def situation_of(state: State, **changes: Any) -> Situation:
    """What a rule is given in the state's next round."""
    anchor = state.history.anchor
    assert anchor is not None
    values: dict[str, Any] = {
        "settings": state.settings.query,
        "pairs": state.settings.pairs,
        "policy_dim": state.settings.policy_dim,
        "feasible": Feasible(),
        "previous": state.history.previous_policy,
        "anchor": anchor,
        "recalled": anchor[None],
        "answer_noise": np.array([LOGISTIC_STD**2]),
        "forward": state.forward,
        "sampled": state.posterior,
        "gap_std": float(np.sqrt(2)) * state.settings.noise.reward,
        "random": lambda purpose: generator(state.seed, state.round, purpose),
        "cuts": state.inverse.grading.cuts(state.settings.grades),
        "fitted": state.processes,
    }
    return Situation(**{**values, **changes})


def own_rule(situation: Situation) -> Decision:
    """A user's rule: the policy of the pool that is nearest to the middle."""
    pool = situation.pool()
    scores = -((pool - 0.5) ** 2).sum(axis=1)
    return Decision(policy=pool[int(np.argmax(scores))], pool=pool, scores=scores)


def rule_outside(situation: Situation) -> Decision:
    """A user's rule with a bug: its policy lies outside of the unit cube."""
    return Decision(policy=np.full(situation.policy_dim, 1.5), pool=situation.pool())


def own_features(outcomes: FloatArray) -> FloatArray:
    """A user's map: squares and products of neighbours."""
    return np.concatenate([outcomes, outcomes**2, outcomes * np.roll(outcomes, 1, axis=1)], axis=1)
