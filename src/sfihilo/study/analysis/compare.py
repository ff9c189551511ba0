"""Paired comparison of two result sets on the same users.

A result set is a preset's folder (`results/paper`), or a results folder with a single preset.
Each row compares one measure of one condition and rule, paired by user; if the presets have
different rules of their own, these are compared too. Holm's correction covers all conditions and
rules of a measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from sfihilo.study.analysis.calibration import calibration_at, calibration_end
from sfihilo.study.analysis.measures import (
    ERROR_AREA,
    FORWARD_AREA,
    POLICY_GAP,
    QUERIES_TO_10,
    AtQuery,
    Cell,
    Results,
    UserMeasure,
    error_after,
    paired,
)
from sfihilo.study.analysis.statistics import difference_interval, holm, paired_test, stars
from sfihilo.study.design.panels import preset_rule
from sfihilo.study.run.result_files import Store

COMPARED: tuple[UserMeasure, ...] = (
    QUERIES_TO_10,
    error_after(100),
    error_after(200),
    error_after(1000),
    ERROR_AREA,
    FORWARD_AREA,
    POLICY_GAP,
    calibration_at("better", 200),
    calibration_end("better"),
    calibration_at("clean", 200),
    calibration_end("clean"),
)
# Runs of different lengths can be compared only at checkpoints that both have.
WITHIN_BUDGET = tuple(measure for measure in COMPARED if isinstance(measure, AtQuery))
COLUMNS = [
    *("condition", "rule", "against_rule", "metric", "users", "first", "second"),
    *("difference", "low", "high", "change", "p", "effect", "hedges"),
]


def compare(first: Path, second: Path, rules: tuple[str, str] | None = None) -> pd.DataFrame:
    """Second minus first for every shared condition, rule, user and measure.

    `rules` compares one rule of the first set with another rule of the second.
    """
    stores = store_of(first), store_of(second)
    measures = shared_measures(*stores)
    table = differences(_read(stores[0]), _read(stores[1]), measures, rules)
    if table.empty:
        raise ValueError(f"{first} and {second} share no users in any condition and rule")
    return table


def differences(
    first: Results,
    second: Results,
    measures: Sequence[UserMeasure] = COMPARED,
    rules: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """The same for results in memory, of one preset each; no rows if they share no users."""
    records = []
    for condition in sorted(set(conditions(first)) & set(conditions(second))):
        for rule, other in rule_pairs(first, second, condition, rules):
            cells = Cell(preset(first), condition, rule), Cell(preset(second), condition, other)
            records += cell_records(first, second, cells, measures)
    table = pd.DataFrame(records, columns=COLUMNS)
    table["p_holm"] = nan
    for _, rows in table.groupby("metric").groups.items():
        table.loc[rows, "p_holm"] = holm(table.loc[rows, "p"].to_numpy(dtype=float))
    return table


def _read(store: Store) -> Results:
    table = store.read()
    if table.empty:
        raise ValueError(f"{store.packed}: no results of a study here")
    return Results.of(table)


def store_of(path: Path) -> Store:
    """The store behind a preset's folder, or behind a results folder with a single preset."""
    direct = Store(path.parent, path.name)
    if any(folder.is_dir() and any(folder.glob("*.parquet")) for folder in _folders(direct)):
        return direct
    inside = {child.name for child in _children(path)} | {
        child.name for child in _children(path / "units")
    }
    found = [name for name in sorted(inside) if not Store(path, name).read().empty]
    if len(found) == 1:
        return Store(path, found[0])
    if found:
        raise ValueError(
            f"{path} holds {', '.join(found)}: name one of them, e.g. {path / found[0]}"
        )
    raise ValueError(f"{path}: no results of a study here")


def _folders(store: Store) -> tuple[Path, Path]:
    return store.packed, store.units


def _children(path: Path) -> list[Path]:
    return [child for child in path.iterdir() if child.is_dir()] if path.is_dir() else []


def shared_measures(first: Store, second: Store) -> tuple[UserMeasure, ...]:
    """The measures by which two studies can be compared; refuses studies of different users."""
    stated, other = first.common(), second.common()
    for name in ("study_seed", "users", "evaluation"):
        # Units of an early version do not state everything; what both state must agree.
        if name in stated and name in other and stated[name] != other[name]:
            raise ValueError(
                f"{first.packed} and {second.packed} cannot be paired: their {name} differ "
                f"({stated[name]} and {other[name]})"
            )
    return COMPARED if stated.get("queries") == other.get("queries") else WITHIN_BUDGET


def preset(results: Results) -> str:
    """The only preset of a set."""
    return results.presets[0]


def conditions(results: Results) -> list[str]:
    """The conditions of a set."""
    return results.conditions(preset(results))


def rule_pairs(
    first: Results, second: Results, condition: str, rules: tuple[str, str] | None
) -> list[tuple[str, str]]:
    """Pairs of a rule of the first set and the rule of the second that it is compared with."""
    ran = first.rules(preset(first), condition), second.rules(preset(second), condition)
    if rules is not None:
        return [rules] if rules[0] in ran[0] and rules[1] in ran[1] else []
    pairs = [(rule, rule) for rule in ran[0] if rule in ran[1]]
    own = preset_rule(preset(first)), preset_rule(preset(second))
    return pairs + ([own] if own not in pairs and own[0] in ran[0] and own[1] in ran[1] else [])


def cell_records(
    first: Results, second: Results, cells: tuple[Cell, Cell], measures: Sequence[UserMeasure]
) -> list[tuple[str | float, ...]]:
    """One record per measure that both cells have for some common users."""
    records: list[tuple[str | float, ...]] = []
    for measure in measures:
        before, after = paired(first.measure(cells[0], measure), second.measure(cells[1], measure))
        if not before.size:
            continue
        test = paired_test(after, before)
        interval = difference_interval(after, before)
        change = after.mean() / before.mean() - 1 if before.mean() else nan
        records.append(
            (
                *(cells[0].condition, cells[0].rule, cells[1].rule, measure.name, test.users),
                *(float(before.mean()), float(after.mean()), interval.estimate),
                *(interval.low, interval.high, float(change)),
                *(test.p_value, test.effect, test.hedges),
            )
        )
    return records


def as_text(table: pd.DataFrame) -> str:
    """The comparison as a text table: means, paired difference, interval, stars."""
    width = 2 + max([len("rule"), *(len(_rule_text(row)) for row in table.itertuples())])
    lines = [
        f"{'condition':<18}{'rule':<{width}}{'measure':<26}{'users':>5}{'first':>11}{'second':>11}"
        f"{'change':>9}{'difference [95 % interval]':>36}  {'p (Holm)':>9}"
    ]
    for row in table.itertuples():
        spread = f"{row.difference:+.4g} [{row.low:.4g}, {row.high:.4g}]"
        change = "" if row.change != row.change else f"{row.change:+.1%}"
        p_value = "no test" if row.p_holm != row.p_holm else f"{row.p_holm:.3g} {stars(row.p_holm)}"
        lines.append(
            f"{row.condition:<18}{_rule_text(row):<{width}}{row.metric:<26}{row.users:>5}{row.first:>11.4g}"
            f"{row.second:>11.4g}{change:>9}{spread:>36}  {p_value:<9}".rstrip()
        )
    return "\n".join(lines)


def _rule_text(row: Any) -> str:
    return row.rule if row.rule == row.against_rule else f"{row.rule} / {row.against_rule}"


def as_json(table: pd.DataFrame) -> str:
    """The comparison as JSON; a p-value that does not exist is null."""
    text: str = table.to_json(orient="records", indent=1)
    return text
