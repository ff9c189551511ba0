"""A study small enough for tests; ``tiny.py FOLDER USERS WORKERS`` runs one to be killed."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil

from sfihilo.study.design.conditions import Condition, Preset, Unit
from sfihilo.study.people.users import HeadSettings, UserSettings
from sfihilo.study.run.description import Provenance
from sfihilo.study.run.engines import Engine
from sfihilo.study.run.evaluation import EvaluationSettings
from sfihilo.study.run.result_files import Store
from sfihilo.study.run.runner import Plan, Report, Watcher, run

TINY = Condition("tiny", policy_dim=2, outcome_dim=2)
PEOPLE = UserSettings(
    outcome=HeadSettings(64, 0.35, 0.65), reward=HeadSettings(64, 0.5, 0.8), calibration=200
)
EVALUATION = EvaluationSettings(
    pairs_per_bin=20, pair_policies=300, error_policies=50, pool_policies=200, pool_samples=2
)
PROVENANCE = Provenance("test", "test")


def children_named(word: str) -> list[psutil.Process]:
    """Our living descendants with this word in their command."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end, or be a zombie, meanwhile
            if word in " ".join(child.cmdline()):
                found.append(child)
    return found


def tiny_unit(
    rule: str = "random",
    user: int = 0,
    condition: Condition = TINY,
    queries: int = 12,
    preset: Preset = "paper",
) -> Unit:
    return Unit(
        condition,
        rule,
        preset,
        user,
        queries=queries,
        evaluation=EVALUATION,
        users=PEOPLE,
        lean=True,
    )


def tiny_units(users: int = 2, queries: int = 12) -> list[Unit]:
    rules = ("random", "boundary_lookahead")
    return [tiny_unit(rule, user, queries=queries) for user in range(users) for rule in rules]


def run_units(
    units: list[Unit],
    store: Store,
    engine: Engine = Engine(workers=1),
    watcher: Watcher | None = None,
) -> Report:
    """Runs the units with a provenance that does not depend on the commit."""
    return run(Plan(units, store, engine, provenance=PROVENANCE), watcher)


def contents(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(store.units.glob("*.parquet"))}


if __name__ == "__main__":
    folder, users, workers = sys.argv[1:]
    report = run_units(
        tiny_units(int(users), queries=20),
        Store(Path(folder), "paper"),
        Engine(workers=int(workers)),
    )
    sys.exit(1 if report.failed else 0)
