"""Invented results with the study's columns: smooth curves whose crossings are known by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray
from sfihilo.study.design.conditions import BASE, Condition, Preset, Unit
from sfihilo.study.design.panels import PANELS, for_preset
from sfihilo.study.run.result_files import Store, encode

UNIT = Unit(BASE, "random", "paper", 0)
QUERIES = (16, 25, 50, 100, 200, 500, 1000)
SPEED = {
    "random": 1.0,
    "mutual_information": 0.6,
    "boundary_lookahead": 0.4,
    "global_pairs": 0.4,
}


def error_curve(start: float, end: float) -> FloatArray:
    """A straight fall in log(1 + q), from the first checkpoint to the last."""
    place = np.log1p(np.array(QUERIES, dtype=float))
    share = (place - place[0]) / (place[-1] - place[0])
    return np.asarray(start + (end - start) * share)


def unit_rows(
    preset: str, condition: str, rule: str, user: int
) -> list[tuple[str, str, str, int, int, str, float]]:
    hard = 1 + 0.05 * user
    better = SPEED.get(rule, 0.5) * (0.8 if preset == "default" else 1.0)
    linear = condition == "linear"
    errors = error_curve(0.40, (0.14 if linear else 0.04) * hard * (0.5 + better))
    rows: list[tuple[str, str, str, int, int, str, float]] = []

    def add(query: int, metric: str, value: float) -> None:
        rows.append((preset, condition, rule, user, query, metric, float(value)))

    for query, error in zip(QUERIES, errors, strict=True):
        add(query, "preference_error", error)
        for number, factor in enumerate((1.6, 1.2, 0.8, 0.4), start=1):
            add(query, f"preference_error_gap{number}", min(0.5, factor * error))
        add(query, "forward_rmse", 0.05 + 0.1 / np.sqrt(query) * hard)
        add(query, "preference_loss", error)
        add(query, "ece", 0.03 + 0.001 * user)
        add(query, "ece_answer", 0.02 + 0.001 * user)
        add(query, "ece_better", 0.01 + 0.001 * user)
    for query in (200, QUERIES[-1]):
        for index in range(10):
            confidence = 0.525 + 0.05 * index
            for kind, off in (("", 0.03), ("_answer", 0.02), ("_better", 0.01)):
                name = f"reliability{kind}"
                add(query, f"{name}_{index:02d}_count", 20)
                add(query, f"{name}_{index:02d}_confidence", confidence)
                add(query, f"{name}_{index:02d}_correct", min(1.0, confidence + off))
    add(QUERIES[-1], "final_policy_gap", 0.05 * hard * better)
    return rows


def invented(
    users: int = 3,
    presets: Iterable[str] = ("paper",),
    conditions: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Every cell of every panel, or of some conditions only."""
    wanted = None if conditions is None else set(conditions)
    cells = {
        (preset, row.condition.name, rule)
        for preset in presets
        for rows in PANELS.values()
        for row in for_preset(rows, preset)
        for rule in row.rules
        if wanted is None or row.condition.name in wanted
    }
    rows = [
        row
        for preset, condition, rule in sorted(cells)
        for user in range(users)
        for row in unit_rows(preset, condition, rule, user)
    ]
    columns = ["preset", "condition", "rule", "user", "query", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def write_results(results: Path, table: pd.DataFrame, template: Unit = UNIT) -> Path:
    """Store a tidy table of one preset as the runner would."""
    preset: Preset = table["preset"].iloc[0]
    store = Store(results, preset)
    store.agree(template)
    for (condition, rule, user), rows in table.groupby(["condition", "rule", "user"]):
        unit = replace(
            template, condition=Condition(condition), rule=rule, preset=preset, user=int(user)
        )
        about = {
            "key": unit.key,
            "user_seed": 1,
            "learner_seed": 2,
            "condition": {"name": condition},
            "rule": rule,
            "user": int(user),
        }
        store.write(unit, encode(rows[["query", "metric", "value"]], about))
    return results / preset


def note_digest(results: Path, digest: str) -> None:
    """Writes the study.json of results that this version of the default preset computed."""
    path = Store(results, "default").study
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"preset_digest": digest}), encoding="utf-8")
