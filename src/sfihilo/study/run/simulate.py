"""One unit of the study, start to end: the learner's own functions drive a simulated user.

The result is a tidy table with one row per (query, metric). Its metrics:

    forward_rmse                      against the clean current map, visible outcomes
    preference_error, _gap1 .. _gap4  balanced over the four bins, and in each
    preference_loss                   mean probability given to the wrong side, balanced
    ece                               expected calibration error of q on the balanced set, as if
                                      answers were free of noise
    ece_answer                        the same against answers as noisy as this person's
    ece_better                        of the probability that one side is truly better
    log_loss_answer, slope_answer     of predicted answers against answers as noisy as this
                                      person's; after early queries, where a condition asks for it
    rule_preference_error, rule_...   then also of the posterior that the query rule works with
    reliability_NN_count, _confidence, _correct          the histogram behind ece, at a few
    reliability_answer_NN_count, ..._better_NN_...       checkpoints, and behind the other two
    length_scale, ridge, log_sharpness             hyperparameters in use
    decay_time, bandwidth                          the same, of recency-weighted variants
    final_policy_gap                  at the end only
    advice_reward                     clean reward of the recommended policy, after the queries that
                                      a condition names

A condition with `advice` has the metrics of advice_gap.py instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from sfihilo.compared_trial import question
from sfihilo.history import FloatArray
from sfihilo.learner import ask, begin, recommend, tell
from sfihilo.refit import is_checkpoint
from sfihilo.settings import Settings
from sfihilo.state import State
from sfihilo.study.analysis.answer_loss import calibration_slope, log_losses
from sfihilo.study.design.conditions import Unit, derived_seed, learner_settings, simulated_user
from sfihilo.study.people.users import Experience, SimulatedUser
from sfihilo.study.run.advice_gap import run_advice_unit
from sfihilo.study.run.evaluation import (
    HISTOGRAM,
    CalibrationKind,
    EvaluationSettings,
    HeldOut,
    better_probability,
    calibration_error,
    calibration_metric,
    correct_probability,
    final_policy_gap,
    forward_rmse,
    histogram_metric,
    hold_out,
    preference_errors,
    reliability,
)

Metric = tuple[str, float]


def run_unit(unit: Unit) -> pd.DataFrame:
    """Columns query, metric, value: the whole learning curve of one unit."""
    if unit.queries < 1:
        raise ValueError(f"queries: expected at least one query, got {unit.queries}")
    if unit.condition.advice:
        return run_advice_unit(unit)
    user = simulated_user(unit)
    held_out = hold_out(user, unit.evaluation)
    stationary = user.outcomes(held_out.policies) if user.initial_map is None else None
    rows: list[tuple[int, str, float]] = []
    for query, state in unit_interaction(unit, user):
        early = query in unit.condition.early
        if query == unit.queries or (query > 0 and (early or is_checkpoint(query))):
            clean = user.outcomes(held_out.policies, query) if stationary is None else stationary
            metrics = [
                ("forward_rmse", forward_rmse(state.forward, user, held_out, clean)),
                *inverse_metrics(state, user, held_out, query, unit),
                *chosen(state),
            ]
            if early:
                metrics += answer_metrics(state, user, held_out, unit.evaluation)
            if query == unit.queries:
                gap = _final_gap(state, user, query, unit.evaluation)
                metrics.append(("final_policy_gap", gap))
            rows += [(query, name, value) for name, value in metrics]
        if query in unit.condition.advice_at:
            rows.append((query, "advice_reward", advice_reward(state, user, query)))
    return pd.DataFrame(rows, columns=["query", "metric", "value"])


def interaction(
    settings: Settings, seed: int, user: SimulatedUser, queries: int
) -> Iterator[tuple[int, State]]:
    """Yields the states after 0, 1, 2, ... comparisons. Round 0 makes the first anchor."""
    state = begin(settings, seed)
    experiences: list[Experience] = []
    for round in range(queries + 1):
        query = ask(state)
        new = user.experience(round, query.policy)
        query = question(state, query, user.seen(new.measured))
        compared = None if query.compared_with is None else experiences[query.compared_with]
        state = tell(state, query, user.answer(query, new, compared))
        experiences.append(new)
        yield round, state


def unit_interaction(unit: Unit, user: SimulatedUser) -> Iterator[tuple[int, State]]:
    """The interaction of a unit's learner with its user."""
    seed = derived_seed(unit.study_seed, unit.user, "learner")
    return interaction(learner_settings(unit), seed, user, unit.queries)


def advice_reward(state: State, user: SimulatedUser, round: int) -> float:
    """The clean reward of the recommended policy."""
    policy = recommend(state).policy
    return float(user.rewards(user.outcomes(policy[None], round))[0])


def inverse_metrics(
    state: State, user: SimulatedUser, held_out: HeldOut, query: int, unit: Unit
) -> list[Metric]:
    """The errors of the reward posterior on the held-out pairs."""
    settings = unit.evaluation
    correct = correct_probability(state.posterior(), user, held_out)
    errors = preference_errors(correct, held_out.bins)
    metrics = [("preference_error", float(errors.mean()))]
    metrics += [(f"preference_error_gap{i + 1}", float(error)) for i, error in enumerate(errors)]
    # Every bin contains the same number of pairs, so the plain mean is balanced.
    metrics.append(("preference_loss", float(np.mean(1 - correct))))
    better = better_probability(state.posterior(), user, held_out)
    predictions: tuple[tuple[CalibrationKind, FloatArray, FloatArray | float], ...] = (
        ("clean", correct, 1.0),
        ("answer", correct, held_out.answered_right),
        ("better", better, 1.0),
    )
    for kind, probability, truth in predictions:
        table = reliability(probability, settings.reliability_bins, truth)
        metrics.append((calibration_metric(kind), calibration_error(table)))
        if query in settings.reliability_at or query == unit.queries:
            metrics += list(_histogram_metrics(table, kind))
    return metrics


def answer_metrics(
    state: State, user: SimulatedUser, held_out: HeldOut, settings: EvaluationSettings
) -> list[Metric]:
    """How well answers are predicted, by the learner and by its query rule's posterior alone."""
    truth = held_out.answered_right
    metrics: list[Metric] = []
    for prefix, posterior in (("", state.posterior()), ("rule_", state.rule_posterior())):
        predicted = correct_probability(posterior, user, held_out)
        metrics += [
            (f"{prefix}log_loss_answer", float(log_losses(predicted, truth).mean())),
            (f"{prefix}slope_answer", calibration_slope(predicted, truth)),
        ]
    # Of the predicting posterior, these two are measured at every checkpoint.
    errors = preference_errors(predicted, held_out.bins)
    table = reliability(predicted, settings.reliability_bins, truth)
    return [
        *metrics,
        ("rule_preference_error", float(errors.mean())),
        ("rule_ece_answer", calibration_error(table)),
    ]


def _histogram_metrics(table: FloatArray, kind: CalibrationKind) -> Iterator[Metric]:
    """The bins of a reliability table that contain pairs."""
    for index, row in enumerate(table):
        if row[0]:
            for column, value in zip(HISTOGRAM, row, strict=True):
                yield histogram_metric(kind, index, column), float(value)


def chosen(state: State) -> list[Metric]:
    """The hyperparameters in use, to explain unexpected curves."""
    metrics = [
        ("length_scale", float(state.forward.hyper.length_scale)),
        ("ridge", float(state.forward.hyper.ridge)),
        ("log_sharpness", float(state.inverse.log_sharpness)),
    ]
    decay = getattr(state, "decay", None)
    if decay is not None:
        metrics += [
            ("decay_time", float(decay.decay_time)),
            ("bandwidth", float(decay.bandwidth)),
        ]
    return metrics


def _final_gap(
    state: State, user: SimulatedUser, query: int, settings: EvaluationSettings
) -> float:
    return final_policy_gap(state.forward, state.posterior(), user, query, settings)
