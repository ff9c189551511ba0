"""How honest the advice is, and what each goal knows about the reward.

    python -m tools.honest_advice run OUT.csv --shape 4x4 --people 30
    python -m tools.honest_advice table OUT.csv

Simulated people of the study under the default preset, of both goals. After some trials, for the
recommended setting:

truth, measured      how often the 95 % interval of an outcome holds its clean value, and a new
                     measurement of it (winner's curse included: the setting was chosen as best)
extrapolates         how often the advice says that the outcomes were not shown to be known there
error, error_flagged mean absolute error of the predicted outcomes without and with that flag
preference_error     share of held-out pairs of outcomes that are ordered wrong, balanced over gaps

Every row names the version of the default preset that computed it by `preset_digest`; a file holds
one version only.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo import State, recommend
from sfihilo.history import generator
from sfihilo.study.design.conditions import Condition, Unit, simulated_user
from sfihilo.study.people.users import SimulatedUser
from sfihilo.study.run.description import preset_digest
from sfihilo.study.run.evaluation import (
    EvaluationSettings,
    HeldOut,
    correct_probability,
    hold_out,
    preference_errors,
)
from sfihilo.study.run.simulate import unit_interaction

STUDY_SEED = 1611  # not the people of the published study
AT = (5, 10, 20, 40, 60)
RULES = {"best": "best", "understand": "global_pairs"}
EVALUATION = EvaluationSettings(pairs_per_bin=250, error_policies=1000)
COLUMNS = (
    "truth", "measured", "extrapolates", "error", "error_flagged", "preference_error",
)  # fmt: skip


def looked_at(state: State, user: SimulatedUser, held_out: HeldOut) -> dict[str, float]:
    """What the advice of a state says, against what is true."""
    best = recommend(state)
    clean = user.outcomes(best.policy[None])[0]
    noise = user.noise.measurement * generator(user.seed, state.round, "look").standard_normal(
        len(clean)
    )
    again = np.clip(clean + noise, 0, 1)
    inside = [
        np.mean((best.outcome_low <= value) & (value <= best.outcome_high))
        for value in (clean, again)
    ]
    error = float(np.abs(best.outcome - clean).mean())
    correct = correct_probability(state.posterior(), user, held_out)
    return {
        "truth": float(inside[0]),
        "measured": float(inside[1]),
        "extrapolates": float(best.extrapolates),
        "error": np.nan if best.extrapolates else error,
        "error_flagged": error if best.extrapolates else np.nan,
        "preference_error": float(preference_errors(correct, held_out.bins).mean()),
    }


def rows(shape: str, person: int) -> Iterator[dict[str, object]]:
    """One row per goal and number of trials."""
    policies, outcomes = (int(part) for part in shape.split("x"))
    condition = Condition(shape, policy_dim=policies, outcome_dim=outcomes)
    for goal, rule in RULES.items():
        unit = Unit(condition, rule, "default", person, max(AT), STUDY_SEED, EVALUATION)
        user = simulated_user(unit)
        held_out = hold_out(user, unit.evaluation)
        for query, state in unit_interaction(unit, user):
            if query in AT:
                about = {"shape": shape, "goal": goal, "person": person, "trials": query}
                found = looked_at(state, user, held_out)
                yield {**about, **found, "preset_digest": preset_digest("default")}


def finished(out: Path) -> pd.DataFrame:
    """The rows of the file; raises if another version of the default preset computed some."""
    if not out.exists():
        return pd.DataFrame({"shape": [], "person": []})
    done = pd.read_csv(out, dtype={"preset_digest": str})  # 92237e705863 is no number
    today = preset_digest("default")
    digests = done["preset_digest"].fillna("none") if "preset_digest" in done else ["none"]
    found = sorted(set(digests) - {today})
    if found:
        raise ValueError(
            f"{out}: expected rows of today's default preset ({today}), got {', '.join(found)}; "
            "choose another file"
        )
    return done


def run(out: Path, shape: str, people: int) -> None:
    """Append the people that the file does not have yet."""
    done = finished(out)
    for person in range(people):
        if ((done["shape"] == shape) & (done["person"] == person)).any():
            continue
        table = pd.DataFrame(list(rows(shape, person))).round(5)
        table.to_csv(out, mode="a", header=not out.exists(), index=False, lineterminator="\n")
        print(f"{shape}: person {person + 1} of {people}", flush=True)


def table(out: Path) -> None:
    """Print means over people as Markdown."""
    data = pd.read_csv(out)
    print("| parameters x outcomes, goal, trials | people | " + " | ".join(COLUMNS) + " |")
    print("| --- |" + " --- |" * (len(COLUMNS) + 1))
    for (shape, goal, trials), cell in data.groupby(["shape", "goal", "trials"]):
        values = [f"{cell[name].mean():.3f}" for name in COLUMNS]
        print(f"| {shape}, `{goal}`, {trials} | {len(cell)} | {' | '.join(values)} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", default="4x4")
    parser.add_argument("--people", type=int, default=30)
    given = parser.parse_args()
    if given.what == "table":
        table(given.out)
        return
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*", given.shape):
        parser.error(f"--shape: expected parameters x outcomes, such as 4x4, got {given.shape!r}")
    try:
        finished(given.out)
    except ValueError as error:
        sys.exit(str(error))
    run(given.out, given.shape, given.people)


if __name__ == "__main__":
    main()
