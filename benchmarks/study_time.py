"""`python -m benchmarks.study_time`: how long the whole study takes, from a sample of its rounds.

The sample: for every condition and rule of the study, one round (tell + ask) and one round that
reselects hyperparameters, after each of a few numbers of comparisons. Between these the time is
interpolated, then summed over 1,000 queries, all runs of a user and 30 users, and divided by two
cores. Users and evaluation (a few seconds per run) are not included; the answers come from
`stand_in`, since the time hardly depends on them. The sample itself takes two to three minutes.

How long the study really took is in `results/<preset>/timings.jsonl`: one line per unit, in wall
time, users and evaluation included, with two workers side by side. `took` computes the time of the
whole study from these lines.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.clock import ended, environment, in_turn, medians, one_core
from benchmarks.floor import measure_rates, run_floor
from benchmarks.scenario import Told, state_after
from benchmarks.tables import TARGETS, headline_text, table, write_latest
from sfihilo import Response, ask, tell
from sfihilo.history import Choice
from sfihilo.refit import SHARPNESS_DELAY, is_checkpoint
from sfihilo.study.design.conditions import Preset, Unit, learner_settings
from sfihilo.study.design.panels import panel_rows, units_of
from sfihilo.study.run.progress import Forecast
from sfihilo.study.run.result_files import Store

QUERIES, USERS, WORKERS = 1000, 30, 2
AFTER = (25, 200, 500, 1000)


def whole_study(preset: Preset = "paper", users: int = USERS) -> list[Unit]:
    """Every unit of the paper's panels."""
    return units_of(panel_rows([]), range(users), preset)


def stand_in(policy_dim: int, outcome_dim: int, rounds: int) -> Told:
    """Random policies, outcomes that are smooth in them, and answers that follow one outcome."""
    rng = np.random.default_rng(0)
    policies = rng.uniform(size=(rounds, policy_dim))
    mixed = np.sin(3.0 * policies @ rng.normal(size=(policy_dim, outcome_dim)))
    outcomes = np.clip(0.5 + 0.3 * mixed + 0.05 * rng.normal(size=mixed.shape), 0.0, 1.0)
    responses: list[Response] = []
    for index, outcome in enumerate(outcomes):
        choice: Choice | None = None
        if index:
            choice = "new" if outcome[0] > outcomes[index - 1][0] else "previous"
        responses.append(Response(outcome, choice))
    return Told(policies, tuple(responses))


def run_seconds(unit: Unit, repeats: int) -> float:
    """Seconds of one whole run, interpolated."""
    settings = learner_settings(unit)
    told = stand_in(settings.policy_dim, settings.outcome_dim, QUERIES + SHARPNESS_DELAY + 3)
    usual, kernel, sharpness = [], [], []
    for after in AFTER:
        before = state_after(settings, told, after - 1)
        query, response = told.query(after), told.responses[after]
        at = tell(before, query, response)
        further, reply = told.query(after + 1), told.responses[after + 1]
        actions = {
            "reselect": lambda _, s=before, q=query, r=response: tell(s, q, r),
            "round": lambda _, s=at, q=further, r=reply: ask(tell(s, q, r)),
        }
        if (
            settings.inverse.inference == "variational"
        ):  # the paper's inference updates it in every round
            later = after + SHARPNESS_DELAY
            due, asked, reply_to = (
                state_after(settings, told, later - 1),
                told.query(later),
                told.responses[later],
            )
            actions["sharpness"] = lambda _, s=due, q=asked, r=reply_to: tell(s, q, r)
        seconds = medians(in_turn(actions, repeats))
        usual.append(seconds["round"])
        kernel.append(seconds["reselect"])
        sharpness.append(seconds.get("sharpness", 0.0))
    counts = np.arange(1, QUERIES + 1)
    checkpoints = [count for count in counts if is_checkpoint(int(count))]
    reselecting = np.add(kernel, sharpness)
    return float(
        np.interp(counts, AFTER, usual).sum() + np.interp(checkpoints, AFTER, reselecting).sum()
    )


def hours(seconds_of_a_user: Mapping[str, Sequence[float]]) -> float:
    """Hours of the whole study, from the seconds of one user's runs by rule."""
    total = sum(sum(values) for values in seconds_of_a_user.values())
    return total * USERS / WORKERS / 3600


@dataclass(frozen=True)
class Took:
    """The timed units of the study, and the whole study extrapolated from them."""

    done: int
    whole: int
    by_rule: Mapping[str, tuple[int, float]]  # units, mean seconds
    guessed: int  # units whose condition and rule were never timed together
    hours: float


def took(timings: Iterable[Mapping[str, Any]], units: Sequence[Unit]) -> Took | None:
    """Extrapolates from the timed units, each counted once; None if there are none."""
    wanted = {(unit.condition.name, unit.rule, unit.user, unit.queries) for unit in units}
    seconds: dict[tuple[str, str, int], float] = {}
    for line in timings:
        key = (line["condition"], line["rule"], line["user"])
        if (*key, line["queries"]) in wanted:
            seconds[key] = line["seconds"]
    forecast = Forecast(WORKERS, list(units))
    by_rule: dict[str, list[float]] = defaultdict(list)
    for (condition, rule, _), value in seconds.items():
        forecast.learn(condition, rule, value)
        by_rule[rule].append(value)
    total = forecast.seconds_to_go()
    if total is None:
        return None
    known = {(condition, rule) for condition, rule, _ in seconds}
    return Took(
        done=len(seconds),
        whole=len(units),
        by_rule={rule: (len(values), fmean(values)) for rule, values in by_rule.items()},
        guessed=sum((unit.condition.name, unit.rule) not in known for unit in units),
        hours=total / 3600,
    )


def study_took_text(results: Path) -> str:
    """How long the study took, by its own record."""
    store = Store(results, "paper")
    found = took(store.read_timings(), whole_study())
    name = f"`results/{store.timings.relative_to(results)}`"
    if found is None:
        there = "has no times of it" if store.timings.exists() else "is not there"
        return f"{name} {there}: what the study really took is not known here."
    rows = [[rule, str(count), f"{mean:.1f}"] for rule, (count, mean) in found.by_rule.items()]
    guess = f" {found.guessed:,} of them are of a condition that was not timed under its rule and "
    guess += "count with the mean of others."
    return (
        f"{name} has the seconds of {found.done:,} of the study's {found.whole:,} units, measured "
        f"with two workers running side by side:\n\n"
        f"{table(['rule', 'units', 'mean seconds per unit'], rows)}\n\n"
        f"At these times the whole study ({USERS} users, all panels, paper preset, {QUERIES:,} "
        f"queries: {found.whole:,} units) takes {found.hours:.1f} hours with two workers "
        f"(target: {TARGETS['study_hours_paper']['study_hours_paper']})."
        f"{guess if found.guessed else ''}"
    )


def main() -> None:
    """Samples, prints, and writes the sums to benchmarks/latest.json."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=2)
    arguments.add_argument("--preset", choices=("paper", "default"), default="paper")
    chosen = arguments.parse_args()
    group = f"study_hours_{chosen.preset}"
    origin = environment()
    by_rule: dict[str, list[float]] = defaultdict(list)
    floors: dict[str, list[float]] = defaultdict(list)
    with one_core():
        rates = measure_rates()
        for unit in whole_study(chosen.preset, users=1):
            seconds = run_seconds(unit, chosen.repeats)
            by_rule[unit.rule].append(seconds)
            if chosen.preset == "paper":
                floors[unit.rule].append(run_floor(learner_settings(unit), QUERIES, rates))
            print(f"{unit.condition.name:18} {unit.rule:20} {seconds:7.1f} s per run", flush=True)
    for rule, values in by_rule.items():
        print(f"{rule:20} {len(values):3d} runs per user, {np.mean(values):.1f} s each")
    sample = {
        "repeats": chosen.repeats,
        "after": AFTER,
        "seconds_a_run": {rule: float(np.mean(values)) for rule, values in by_rule.items()},
    }
    figures = {group: hours(by_rule), f"study_sample_{chosen.preset}": sample}
    if floors:
        figures["study_floor_hours"] = hours(floors)
    write_latest(group, ended(origin), figures)
    print(f"\nThe whole study, {USERS} users on {WORKERS} cores, in hours:")
    print(headline_text(group, figures))


if __name__ == "__main__":
    main()
