"""The trial that a new one is compared with, where the person recalls several.

The learner names it when the outcome is known (`sfihilo.question`), and it is stored in the same
event as the outcome: whoever reads the log later, asks about the same pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

import sfihilo
from sfihilo.experiment.record.recalled import nameable
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.proposals import preference_for_new
from sfihilo.experiment.session.requirements import Draft
from sfihilo.history import Query

if TYPE_CHECKING:
    from sfihilo import State


def named(record: Record, draft: Draft, state_of: Callable[[Record], State]) -> Draft:
    """An outcome with the trial to compare with, if that is due; other events as they are.

    None instead of a number says that no trial is left to compare with. `chance_new` is what the
    learner predicted for this pair before the outcome was known.
    """
    trial = record.trial(draft.body["trial"])
    if "outcome" not in draft.body or not trial.awaits_name or trial.ended:
        return draft
    rounds = nameable(record, trial)
    if not rounds:
        return Draft(draft.kind, {**draft.body, "compare_with": None, "chance_new": None})
    state = state_of(record)
    outcome = _unit_outcome(record, draft.body["outcome"])
    compared_with = _most_informative(record, state, trial, outcome, rounds)
    number = next(number for number, round in rounds.items() if round == compared_with)
    mean = np.clip(state.forward.mean(np.array(trial.unit)[None])[0], 0.0, 1.0)
    probability = preference_for_new(state, mean, state.history.filled[compared_with])
    return Draft(draft.kind, {**draft.body, "compare_with": number, "chance_new": probability})


def _most_informative(
    record: Record,
    state: State,
    trial: Trial,
    outcome: list[float],
    rounds: Mapping[int, int],
) -> int:
    """The round whose comparison with this outcome tells most; the newest if nothing is known."""
    newest = next(iter(rounds.values()))
    query = Query(state.round, np.array(trial.unit), state.history.filled[newest], newest)
    space = record.space
    allowed = sfihilo.Feasible(accepts=space.allows if space.constraints else None)
    asked = sfihilo.question(state, query, outcome, allowed, among=tuple(rounds.values()))
    return newest if asked.compared_with is None else asked.compared_with


def _unit_outcome(record: Record, values: Mapping[str, float | None] | None) -> list[float]:
    """An outcome in the learner's unit cube; NaN for each number that was not measured."""
    known = values or {}
    return [
        float("nan") if (value := known.get(name)) is None else part.to_unit(value)
        for name, part in record.space.outcomes.items()
    ]
