"""What a session shows: what drives the learned reward, where the best policy lies, how well the
learner predicted.

Notation
--------
reachable   phi            (m, d_outcome)   predicted outcomes of policies over the allowed space
rewards     r_s(phi)       (m, S)           one column for each posterior sample of the reward

Preferences fix a reward only up to a positive factor and an offset, so each sample is scaled to
standard deviation 1 over the reachable outcomes: effects are in those deviations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

import sfihilo
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import TAKEN_OUT, Trial
from sfihilo.experiment.session.rounds import rounds_of, used_answers
from sfihilo.experiment.session.snapshots import tell_round
from sfihilo.experiment.space.parameter import FloatArray, Outcome
from sfihilo.experiment.space.space import Space
from sfihilo.feasible import Feasible
from sfihilo.history import generator
from sfihilo.learner import rests_on_processes
from sfihilo.state import State

POLICIES = 512
BASES = 48
LEVELS = 15
CANDIDATES, BEYOND = 4096, 0.15
INTERVAL = (0.05, 0.95)
NORMAL_90 = 1.645  # standard deviations of a normal distribution to its 5 % and 95 % quantiles
WINDOW = 20  # trials over which the quality of predictions is averaged


@dataclass(frozen=True)
class Drive:
    """How one outcome moves the reward while the others stay as they are.

    `share` is its part of all such movement; `effect` the change from the low to the high end of
    what is reachable; `curve` the reward along `values`. Each with a 90 % interval (low, high).
    """

    name: str
    unit: str
    share: tuple[float, float, float]
    effect: tuple[float, float, float]
    values: FloatArray
    curve: FloatArray


@dataclass(frozen=True)
class BestRange:
    """Where the best value of a parameter lies under the reward samples: median and 90 %."""

    name: str
    value: float
    low: float
    high: float


def drives(state: State, space: Space) -> tuple[Drive, ...]:
    """The outcomes in declared order; needs at least one measured trial."""
    policies = _policies(state, space)
    reachable = _outcomes(state, policies)
    posterior = state.posterior()
    scale = _scale(posterior.reward_samples(reachable))
    bases = reachable[:BASES]
    spreads, effects, curves, grids = [], [], [], []
    for index in range(len(space.outcomes)):
        low, high = np.quantile(reachable[:, index], [0.02, 0.98])
        grid = np.linspace(float(low), float(high), LEVELS)
        varied = np.repeat(bases[None], LEVELS, axis=0)
        varied[:, :, index] = grid[:, None]
        rewards = posterior.reward_samples(varied.reshape(-1, bases.shape[1])) / scale
        rewards = rewards.reshape(LEVELS, len(bases), -1)
        spreads.append(rewards.std(axis=0).mean(axis=0))
        average = rewards.mean(axis=1)
        effects.append(average[-1] - average[0])
        curves.append(average - average.mean(axis=0))
        grids.append(grid)
    total = np.maximum(np.sum(spreads, axis=0), np.finfo(float).tiny)
    return tuple(
        Drive(
            name=name,
            unit=outcome.unit,
            share=_summary(spreads[index] / total),
            effect=_summary(effects[index]),
            values=outcome.from_unit(grids[index]),
            curve=np.stack(
                [curves[index].mean(axis=1), *np.quantile(curves[index], INTERVAL, axis=1)]
            ),
        )
        for index, (name, outcome) in enumerate(space.outcomes.items())
    )


def best_ranges(state: State, space: Space) -> tuple[BestRange, ...]:
    """For each free parameter, where the best policy lies if each reward sample were the truth."""
    rng = generator(state.seed, state.round, "best")
    # Drawn beyond the cube and clipped: the best often lies on its boundary, where no draw would.
    policies = np.clip(rng.uniform(-BEYOND, 1 + BEYOND, (CANDIDATES, len(space.free))), 0.0, 1.0)
    policies = np.concatenate([policies[space.allows(policies)], _policies(state, space)])
    reachable = _outcomes(state, policies)
    best = np.argmax(state.posterior().reward_samples(reachable), axis=0)
    columns = space.columns(policies[best])
    return tuple(
        BestRange(name, *(float(q) for q in np.quantile(columns[name], [0.5, *INTERVAL])))
        for name in space.free
    )


def _outcomes(state: State, policies: FloatArray) -> FloatArray:
    """The expected outcomes of policies, by the belief that the advice rests on."""
    if rests_on_processes(state.settings):
        return np.clip(state.processes().at(policies, np.float64).mean, 0.0, 1.0)
    return np.clip(state.forward.mean(policies), 0.0, 1.0)


def _policies(state: State, space: Space) -> FloatArray:
    rng = generator(state.seed, state.round, "insight")
    accepts = space.allows if space.constraints else None
    return Feasible(accepts=accepts).sample(POLICIES, len(space.free), rng, None)


def _scale(rewards: FloatArray) -> FloatArray:
    spread: FloatArray = np.maximum(np.std(rewards, axis=0), 1e-150)  # a flat one stays flat
    return spread


def _summary(samples: FloatArray) -> tuple[float, float, float]:
    low, high = np.quantile(samples, INTERVAL)
    return float(samples.mean()), float(low), float(high)


def ranked(found: Sequence[Drive]) -> list[Drive]:
    """The outcomes that move the reward most, first."""
    return sorted(found, key=lambda drive: -drive.share[0])


def answer_hits(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Trial numbers, and 1 or 0 for each answer that was predicted right or wrong beforehand.

    Counts only answers that the learner uses and predicted: a probability of 0.5 is no prediction.
    """
    used = used_answers(record)
    rows = [
        (trial.number, float((trial.model["chance_new"] > 0.5) == (trial.choice == "new")))
        for trial in record.trials
        if trial.number in used
        and trial.choice != "same"
        and trial.model["chance_new"] is not None
        and abs(trial.model["chance_new"] - 0.5) > 1e-9  # averages of 0.5 round
    ]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def outcome_errors(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Trial numbers, and the error of the predicted outcome as a share of the declared range."""
    rows = []
    for trial in record.trials:
        values, predicted = trial.whole_outcome, trial.model["outcome"]
        if values is None or predicted is None:
            continue
        gaps = [
            (values[name] - predicted[name]) / (outcome.high - outcome.low)
            for name, outcome in record.space.outcomes.items()
        ]
        rows.append((trial.number, float(np.sqrt(np.mean(np.square(gaps))))))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def answer_course(
    record: Record,
) -> tuple[list[int], list[float | None], list[float | None]]:
    """Trial numbers, the predicted probability of "new", and the answer.

    The answer is 1 (new), 0 (previous) or 0.5 (same). Only trials that were answered and count;
    None where nothing was predicted or the person could not say.
    """
    given = {"new": 1.0, "previous": 0.0, "same": 0.5}
    answered = [
        trial for trial in record.trials if trial.answered and trial.ending not in TAKEN_OUT
    ]
    return (
        [trial.number for trial in answered],
        [trial.model["chance_new"] for trial in answered],
        [None if trial.choice is None else given[trial.choice] for trial in answered],
    )


def outcome_courses(record: Record) -> dict[str, dict[str, list[float | None]]]:
    """For each outcome: per measured trial its number, value, prediction and 90 % interval.

    Prediction and interval end where the outcome ends: beyond its limits nothing is measured.
    """
    measured = [trial for trial in record.trials if trial.known_outcome]
    courses: dict[str, dict[str, list[float | None]]] = {}
    for name, outcome in record.space.outcomes.items():
        bands = [_band(trial, name, outcome) for trial in measured]
        courses[name] = {
            "trial": [float(trial.number) for trial in measured],
            "value": [trial.known_outcome.get(name) for trial in measured],
            "predicted": [band[0] for band in bands],
            "low": [band[1] for band in bands],
            "high": [band[2] for band in bands],
        }
    return courses


def _band(
    trial: Trial, name: str, outcome: Outcome
) -> tuple[float, float, float] | tuple[None, None, None]:
    """The mean that was predicted for an outcome of a trial, and its 90 % interval."""
    means, deviations = trial.model["outcome"], trial.model["deviation"]
    if means is None:
        return None, None, None
    mean, reach = float(means[name]), NORMAL_90 * float(deviations[name])
    least, most = outcome.accepted
    found, low, high = (
        min(max(value, least), most) for value in (mean, mean - reach, mean + reach)
    )
    return found, low, high


def advised_policies(record: Record, trials: Collection[int]) -> dict[int, FloatArray]:
    """The unit policy that would have been recommended after each of these trials.

    The learner is told the rounds again, so this takes as long as the session's own computations;
    trials after which nothing was learned yet are left out. Vetoes do not matter here.
    """
    ended = [trial for trial in record.trials if trial.ended and trial.ending != "undone"]
    state = sfihilo.begin(sfihilo.Settings.from_dict(dict(record.settings)), record.seed)
    allowed = Feasible(accepts=record.space.allows if record.space.constraints else None)
    found: dict[int, FloatArray] = {}
    for trial, told in zip(ended, rounds_of(record), strict=True):
        state = tell_round(state, told)
        if trial.number in trials:
            with suppress(sfihilo.NothingLearnedError):
                found[trial.number] = sfihilo.recommend(state, allowed).policy
    return found


def advised_now(record: Record, state: State) -> FloatArray:
    """The unit policy that is recommended now, whatever was vetoed."""
    allowed = Feasible(accepts=record.space.allows if record.space.constraints else None)
    return sfihilo.recommend(state, allowed).policy


def learned_rewards(state: State, space: Space, units: FloatArray) -> FloatArray:
    """The learned reward of unit policies (n, d_policy) now: rows mean, low, high (90 %).

    In standard deviations over the allowed policies, above their average.
    """
    posterior = state.posterior()
    reachable = posterior.reward_samples(np.clip(state.forward.mean(_policies(state, space)), 0, 1))
    rewards = posterior.reward_samples(np.clip(state.forward.mean(units), 0.0, 1.0))
    samples = (rewards - reachable.mean(axis=0)) / _scale(reachable)
    return np.stack([samples.mean(axis=1), *np.quantile(samples, INTERVAL, axis=1)])
