"""Which of the last trials the new one is compared with: a question between outcome and answer.

Notation
--------
age       a       rounds from a recalled trial to the new one; 1 for the one before
kappa             `Settings.recall_noise`
f^2               1 + kappa (a - 1): how many times the variance of an answer's noise grows
y                 the answer to the comparison with a recalled trial
S_j               the sign of a target pair of Global Pair Lookahead (querying/pairs.py)

    I(y; S_j) ~ 1/2 psi(m, V + f^2 s^2)^2 c_j^2 psi(m_j, V_j)^2

The trial whose comparison has the largest mean information over the target pairs is chosen. The new
outcome is known by now: nothing is averaged over predictions. The rule that chose the policy
counted on this choice (pairs.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfihilo.feasible import Feasible
from sfihilo.history import FloatArray, IntArray, Query, partial_outcome
from sfihilo.inverse.grading import answer_clarity
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.learner import feasible_set, situation_of
from sfihilo.querying.pairs import TargetPairs
from sfihilo.state import State, checked_floats


@checked_floats
def question(
    state: State,
    query: Query,
    outcome: npt.ArrayLike | None,
    feasible: Feasible | None = None,
    among: Collection[int] | None = None,
) -> Query:
    """Return the query with the trial that its outcome is best compared with as its anchor.

    Call it after measuring and before the person answers. With `Settings.recall` = 1 it returns the
    query as it is. Otherwise it names which of the last `recall` measured trials to compare with,
    by what the answer would tell about all pairs of reachable outcomes.

    Args:
        state: the state that the query was asked of.
        query: what `ask` returned.
        outcome: the measured outcome; None, or NaN for single numbers, where it was not measured.
        feasible: which policies are allowed; None allows the whole unit cube.
        among: the rounds that the person remembers; None: all of the last `recall`.

    Returns:
        The query with the chosen `anchor`; `compared_with` is the round that it was measured in.
        Tell it with the answer.

    Raises:
        ValueError: a number of the outcome is outside [0, 1].

    Example:
        >>> from sfihilo import Response, Settings, ask, begin, question, tell
        >>> state = begin(Settings(policy_dim=2, outcome_dim=2, recall=3), seed=0)
        >>> for round in range(5):
        ...     query = ask(state)
        ...     outcome = query.policy  # what a device would measure
        ...     query = question(state, query, outcome)
        ...     choice = None if query.compared_with is None else "new"
        ...     state = tell(state, query, Response(outcome, choice))
        >>> 4 - query.compared_with in (1, 2, 3)
        True
    """
    rounds = state.history.recent(state.settings.recall)
    if among is not None:
        rounds = rounds[np.isin(rounds, list(among))]
    if state.settings.recall == 1 or rounds.size == 0:
        return query
    whole = _whole(state, query, partial_outcome(outcome, state.settings.outcome_dim))
    if whole is None:
        return query
    gains = answer_information(state, whole, rounds, feasible_set(feasible))
    best = int(rounds[int(np.argmax(gains))])  # the newest of equals
    return replace(query, anchor=state.history.filled[best], compared_with=best)


def answer_information(
    state: State, outcome: FloatArray, rounds: IntArray, feasible: Feasible
) -> FloatArray:
    """Nats about a target pair in the comparison of this outcome with that of each round."""
    situation = situation_of(state, feasible)
    pairs = TargetPairs.of(situation, situation.pairs)
    features = situation.posterior.features
    recalled = state.history.filled[rounds].astype(np.float32)
    differences = features(recalled) - features(outcome[None].astype(np.float32))
    clarity = answer_clarity(state.round - rounds, state.settings.recall_noise)
    return pairs.information(differences, (LOGISTIC_STD / clarity) ** 2)


def _whole(state: State, query: Query, outcome: FloatArray | None) -> FloatArray | None:
    """The outcome with predictions for what was not measured; None where there are none."""
    if outcome is None:
        return None
    if not np.isnan(outcome).any():
        return outcome
    mean = np.clip(state.forward.mean(np.asarray(query.policy, dtype=float)[None])[0], 0, 1)
    known = np.where(state.forward.measurements > 0, mean, np.nan)
    whole = np.where(np.isnan(outcome), known, outcome)
    return None if np.isnan(whole).any() else whole
