"""What missing outcome numbers cost: complete data, partly measured outcomes, dropped trials.

    python -m tools.partial_outcomes run OUT.jsonl --dim 4 --people 12
    python -m tools.partial_outcomes table OUT.jsonl

Simulated people of the study under the default preset. Every person is learned four times:

complete   every outcome is measured
predicted  single numbers are missing at random, and the learner is told their clean values instead:
           what a perfect prediction of them would leave of the cost
partial    the same numbers are missing; the learner is told NaN for them
dropped    the same numbers are missing, and the learner is told nothing of such a trial

A person compares each trial with the last one that the learner was told of. That favours
"dropped": real people answer about the last trial, whether it was told or not.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfihilo import Response, State, ask, begin, tell
from sfihilo.history import BoolArray, FloatArray, generator
from sfihilo.study.design.conditions import (
    Condition,
    Unit,
    derived_seed,
    learner_settings,
    simulated_user,
)
from sfihilo.study.people.users import Experience
from sfihilo.study.run.evaluation import (
    EvaluationSettings,
    HeldOut,
    correct_probability,
    forward_rmse,
    hold_out,
    preference_errors,
)

KINDS = ("complete", "predicted", "partial", "dropped")
MEASURES = ("preference_error", "log_loss", "forward_rmse")
STUDY_SEED = 1511  # not the people of the published study
AT = (60, 150)


def unit_of(dim: int, person: int) -> Unit:
    """A person with as many policy parameters as outcomes."""
    condition = Condition(f"{dim}x{dim}", policy_dim=dim, outcome_dim=dim)
    evaluation = EvaluationSettings(pairs_per_bin=250, error_policies=1000)
    unit = Unit(condition, "global_pairs", "default", person, max(AT), STUDY_SEED)
    return replace(unit, evaluation=evaluation)


def shown(response: Response, missing: BoolArray, kind: str, clean: FloatArray) -> Response:
    """What the learner is told of a response in which these numbers are missing."""
    if kind == "complete" or response.outcome is None or not missing.any():
        return response
    if kind == "dropped" or missing.all():
        return Response(None, None)
    instead = clean if kind == "predicted" else np.nan
    return Response(np.where(missing, instead, response.outcome), response.choice)


def learn(unit: Unit, kind: str, share: float) -> Iterator[tuple[int, State]]:
    """The states after 0, 1, 2, ... comparisons' worth of trials."""
    user = simulated_user(unit)
    state = begin(learner_settings(unit), derived_seed(unit.study_seed, unit.user, "learner"))
    previous: Experience | None = None
    for round in range(unit.queries + 1):
        query = ask(state)
        new = user.experience(round, query.policy)
        missing = generator(user.seed, round, "missing").random(user.visible) < share
        clean = np.clip(user.outcomes(query.policy[None])[0], 0, 1)
        response = shown(user.answer(query, new, previous), missing, kind, clean)
        state = tell(state, query, response)
        if response.outcome is not None:
            previous = new
        yield round, state


def measured(unit: Unit, state: State, held_out: HeldOut) -> dict[str, float]:
    user = simulated_user(unit)
    correct = correct_probability(state.posterior(), user, held_out)
    clean = user.outcomes(held_out.policies)
    return {
        "preference_error": float(preference_errors(correct, held_out.bins).mean()),
        "log_loss": float(-np.log(np.maximum(correct, 1e-12)).mean()),
        "forward_rmse": forward_rmse(state.forward, user, held_out, clean),
    }


def run(out: Path, dim: int, people: range, share: float, kinds: list[str]) -> None:
    """One line per person, kind and number of queries."""
    for person in people:
        unit = unit_of(dim, person)
        held_out = hold_out(simulated_user(unit), unit.evaluation)
        for kind in kinds:
            for query, state in learn(unit, kind, share):
                if query in AT:
                    row = {"dim": dim, "person": person, "kind": kind, "query": query}
                    with out.open("a") as file:
                        file.write(json.dumps(row | measured(unit, state, held_out)) + "\n")


def table(paths: list[Path]) -> str:
    """Means over people, and paired differences to complete data with standard errors."""
    values: dict[tuple[int, int, str, str], dict[int, float]] = defaultdict(dict)
    for line in "".join(path.read_text() for path in paths).splitlines():
        row = json.loads(line)
        for measure in MEASURES:
            key = row["dim"], row["query"], measure, row["kind"]
            values[key][row["person"]] = row[measure]
    lines = [
        f"| dim | queries | measure | people | {' | '.join(KINDS)} |",
        "|---" * (4 + len(KINDS)) + "|",
    ]
    for dim, query, measure, _ in sorted(key for key in values if key[3] == "complete"):
        kinds = [values.get((dim, query, measure, kind), {}) for kind in KINDS]
        people = sorted(set.intersection(*(set(kind) for kind in kinds if kind)))
        if len(people) < 2:
            continue
        complete = np.array([kinds[0][person] for person in people])
        cells = [f"{complete.mean():.4f}"]
        for kind in kinds[1:]:
            if not kind:
                cells.append("not run")
                continue
            other = np.array([kind[person] for person in people])
            change = other - complete
            error = change.std(ddof=1) / np.sqrt(len(change))
            cells.append(f"{other.mean():.4f} ({change.mean():+.4f} ± {error:.4f})")
        lines.append(f"| {dim} | {query} | {measure} | {len(people)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--dim", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--people", type=int, default=12)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    given = parser.parse_args()
    if given.command == "table":
        print(table(given.files))
    else:
        people = range(given.first, given.first + given.people)
        run(given.files[0], given.dim, people, given.share, given.kinds)


if __name__ == "__main__":
    main()
