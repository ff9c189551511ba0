"""`python -m benchmarks.study_hours`: what the whole study will take, from a sample of its rounds.

The sample: for every condition and rule of the study, one round (tell + ask) and one round that
reselects hyperparameters, after each of a few numbers of comparisons. Between these the cost is
interpolated, then summed over 1,000 queries, all runs of a user and 30 users, and divided by two
cores. Users and evaluation (a few seconds a run) are not in it; the person is a stand-in, since
time hardly depends on who answers. The sample itself takes two to three minutes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks import document
from benchmarks.clock import ended, environment, in_turn, medians, one_core
from benchmarks.floor import measure_rates, run_floor
from benchmarks.report import print_headlines, write_latest
from benchmarks.scenario import Told, state_after
from benchmarks.study_took import QUERIES, USERS, WORKERS, whole_study
from sfihilo import Response, ask, tell
from sfihilo.history import Choice
from sfihilo.learner import SHARPNESS_DELAY, is_checkpoint
from sfihilo.study.design.conditions import Unit, learner_settings

AFTER = (25, 200, 500, 1000)


def stand_in(policy_dim: int, outcome_dim: int, rounds: int) -> Told:
    """Random policies, outcomes that bend with them, and answers that follow one outcome."""
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
        if settings.inverse.inference == "variational":  # the other moves it in every round
            later = after + SHARPNESS_DELAY
            due, asked, heard = (
                state_after(settings, told, later - 1),
                told.query(later),
                told.responses[later],
            )
            actions["sharpness"] = lambda _, s=due, q=asked, r=heard: tell(s, q, r)
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


def main() -> None:
    """Sum over the study."""
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
            print(f"{unit.condition.name:18} {unit.rule:20} {seconds:7.1f} s a run", flush=True)
    for rule, values in by_rule.items():
        print(f"{rule:20} {len(values):3d} runs a user, {np.mean(values):.1f} s each")
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
    print_headlines(group, figures)
    document.main()


def hours(seconds_of_a_user: Mapping[str, Sequence[float]]) -> float:
    """Of the whole study, from the seconds of one user's runs by rule."""
    total = sum(sum(values) for values in seconds_of_a_user.values())
    return total * USERS / WORKERS / 3600


if __name__ == "__main__":
    main()
