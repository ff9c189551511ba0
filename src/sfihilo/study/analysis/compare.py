"""Two result sets on the same users: which one needs fewer questions, and how sure that is.

A result set is a preset's folder (`results/paper`), or a results folder that holds one preset.
Every row compares one measure of one condition and rule, paired by user; where the presets ask by
different rules of their own, those are compared too. Holm's correction is over all conditions and
rules of a measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from sfihilo.study.analysis.measures import Cell, Results, paired
from sfihilo.study.analysis.statistics import difference_interval, holm, paired_test, stars
from sfihilo.study.design.panels import own_rule
from sfihilo.study.run.store import Store

MEASURES = (
    "queries_to_10",
    "preference_error_at_100",
    "preference_error_at_200",
    "preference_error_at_1000",
    "preference_error_auc",
    "forward_rmse_auc",
    "final_policy_gap",
    "ece_better_at_200",
    "ece_better_end",
    "ece_at_200",
    "ece_end",
)
# With unlike budgets, ends and areas mean different things.
WITHIN_BUDGET = tuple(name for name in MEASURES if "_at_" in name)
COLUMNS = [
    *("condition", "rule", "against_rule", "metric", "users", "first", "second"),
    *("difference", "low", "high", "change", "p", "effect", "hedges"),
]


def compare(first: Path, second: Path, rules: tuple[str, str] | None = None) -> pd.DataFrame:
    """Second minus first for every shared condition, rule, user and measure.

    With `rules`, one rule of the first set is held against another one of the second.
    """
    table = differences(read_set(first), read_set(second), shared_measures(first, second), rules)
    if table.empty:
        raise ValueError(f"{first} and {second} share no users in any condition and rule")
    return table


def differences(
    one: Results,
    two: Results,
    measures: Sequence[str] = MEASURES,
    rules: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """The same for results of one preset each that are read already; no rows if they share none."""
    records = []
    for condition in sorted(set(conditions(one)) & set(conditions(two))):
        for rule, other in rule_pairs(one, two, condition, rules):
            cells = Cell(preset(one), condition, rule), Cell(preset(two), condition, other)
            records += cell_records(one, two, cells, measures)
    table = pd.DataFrame(records, columns=COLUMNS)
    table["p_holm"] = nan
    for _, rows in table.groupby("metric").groups.items():
        table.loc[rows, "p_holm"] = holm(table.loc[rows, "p"].to_numpy(dtype=float))
    return table


def read_set(path: Path) -> Results:
    """The results of one preset, wherever `path` points at it."""
    store = store_of(path)
    table = store.read()
    if table.empty:
        raise ValueError(f"{path}: no results of a study here")
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


def shared_measures(first: Path, second: Path) -> tuple[str, ...]:
    """The measures that two studies can be compared by; refuses studies of other people."""
    one, two = store_of(first).common(), store_of(second).common()
    for name in ("study_seed", "users", "evaluation"):
        # Units of an early version do not say everything; what both say must agree.
        if name in one and name in two and one[name] != two[name]:
            raise ValueError(
                f"{first} and {second} cannot be paired: their {name} differ "
                f"({one[name]} and {two[name]})"
            )
    return MEASURES if one.get("queries") == two.get("queries") else WITHIN_BUDGET


def preset(results: Results) -> str:
    """The only preset of a set."""
    return results.presets[0]


def conditions(results: Results) -> list[str]:
    """The conditions of a set."""
    return results.conditions(preset(results))


def rule_pairs(
    one: Results, two: Results, condition: str, rules: tuple[str, str] | None
) -> list[tuple[str, str]]:
    """Which rule of the first set is held against which rule of the second."""
    mine, theirs = one.rules(preset(one), condition), two.rules(preset(two), condition)
    if rules is not None:
        return [rules] if rules[0] in mine and rules[1] in theirs else []
    own = own_rule(preset(one)), own_rule(preset(two))
    pairs = [(rule, rule) for rule in mine if rule in theirs]
    return pairs + ([own] if own not in pairs and own[0] in mine and own[1] in theirs else [])


def cell_records(
    one: Results, two: Results, cells: tuple[Cell, Cell], measures: Sequence[str]
) -> list[tuple[str | float, ...]]:
    """One record a measure that both cells have for some users in common."""
    records: list[tuple[str | float, ...]] = []
    for name in measures:
        before, after = paired(one.measure(cells[0], name), two.measure(cells[1], name))
        if not before.size:
            continue
        test = paired_test(after, before)
        interval = difference_interval(after, before)
        change = after.mean() / before.mean() - 1 if before.mean() else nan
        records.append(
            (
                *(cells[0].condition, cells[0].rule, cells[1].rule, name, test.users),
                *(float(before.mean()), float(after.mean()), interval.estimate),
                *(interval.low, interval.high, float(change)),
                *(test.p_value, test.effect, test.hedges),
            )
        )
    return records


def as_text(table: pd.DataFrame) -> str:
    """The comparison as a person reads it: means, paired difference, interval, stars."""
    width = 2 + max([len("rule"), *(len(_rule_text(row)) for row in table.itertuples())])
    lines = [
        f"{'condition':<18}{'rule':<{width}}{'measure':<26}{'users':>5}{'first':>11}{'second':>11}"
        f"{'change':>9}{'difference [95 % interval]':>36}  {'p (Holm)':>9}"
    ]
    for row in table.itertuples():
        spread = f"{row.difference:+.4g} [{row.low:.4g}, {row.high:.4g}]"
        change = "" if row.change != row.change else f"{row.change:+.1%}"
        chance = "no test" if row.p_holm != row.p_holm else f"{row.p_holm:.3g} {stars(row.p_holm)}"
        lines.append(
            f"{row.condition:<18}{_rule_text(row):<{width}}{row.metric:<26}{row.users:>5}{row.first:>11.4g}"
            f"{row.second:>11.4g}{change:>9}{spread:>36}  {chance:<9}".rstrip()
        )
    return "\n".join(lines)


def _rule_text(row: Any) -> str:
    return row.rule if row.rule == row.against_rule else f"{row.rule} / {row.against_rule}"


def as_json(table: pd.DataFrame) -> str:
    """The same for a script; what could not be tested is null."""
    text: str = table.to_json(orient="records", indent=1)
    return text
