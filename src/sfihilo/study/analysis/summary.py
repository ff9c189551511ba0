"""The study in two small tables: what each condition came to, and which differences are real.

`summarise` makes `summary.csv` (means over users with bootstrap intervals), `significance` makes
`tests.csv` (paired t-tests, Holm-corrected within a panel, as under figure `fig:final_results`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import nan
from pathlib import Path

import pandas as pd

from sfihilo.history import FloatArray
from sfihilo.study.analysis.calibration import KIND_OF_ERROR, last_query, reliability_of
from sfihilo.study.analysis.measures import Cell, Results, paired
from sfihilo.study.analysis.statistics import (
    Interval,
    change_interval,
    holm,
    mean_crossing,
    mean_interval,
    paired_test,
)
from sfihilo.study.design.panels import EVERY_PANEL, PANELS, Row, for_preset, own_rule
from sfihilo.study.run.store import read_results, write_atomically

COLUMNS = ["panel", "condition", "preset", "rule", "users", "metric", "mean", "low", "high"]
MEAN_CURVE = "queries_to_10_of_mean_curve"

_SPEED = (MEAN_CURVE, "queries_to_10", "extrapolated", "preference_error_end")
# A user's own error, and that of all users' pairs together (`pooled`, see `calibration`).
_CALIBRATION = tuple(
    f"{pooled}{name}_{when}"
    for name in KIND_OF_ERROR
    for pooled in ("", "pooled_")
    for when in ("at_200", "end")
)
_POOLED = re.compile(rf"pooled_({'|'.join(KIND_OF_ERROR)})_(?:at_(\d+)|end)")
_ERRORS = tuple(f"preference_error_at_{query}" for query in (50, 100, 200, 500, 1000))

PANEL_METRICS: dict[str, tuple[str, ...]] = {
    "A": (*_SPEED, *_ERRORS, "preference_loss_end", *_CALIBRATION),
    "B": (
        *(f"queries_to_10_gap{number}" for number in (2, 3, 4)),
        *(f"preference_error_gap{number}_end" for number in (1, 2, 3, 4)),
    ),
    "C": (*_SPEED, "forward_rmse_auc"),
    "D": ("forward_rmse_auc", "forward_rmse_at_200", "forward_rmse_end"),
    "E": (*_SPEED, "forward_rmse_auc"),
    "F": (*_SPEED, *_ERRORS),
    "G": ("forward_rmse_late", "forward_rmse_end", "forward_rmse_auc", "preference_error_end"),
    "H": _SPEED,
    "I": _SPEED,
    "gap": ("final_policy_gap",),
    "choices": (*_SPEED, "forward_rmse_auc", "final_policy_gap"),
    "ablation": (*_SPEED, *_ERRORS, "forward_rmse_auc"),
}

# What a panel's boxes show, and what its stars are about.
TESTED: dict[str, tuple[str, ...]] = {
    "A": ("queries_to_10", "preference_error_end"),
    "B": tuple(f"queries_to_10_gap{number}" for number in (2, 3, 4)),
    "C": ("queries_to_10",),
    "D": ("forward_rmse_auc",),
    "E": ("queries_to_10",),
    "F": ("preference_error_end",),
    "G": ("forward_rmse_late",),
    "H": ("preference_error_end",),
    "I": ("preference_error_end",),
    "gap": ("final_policy_gap",),
}
# These panels change the condition under one rule; the others change the rule in each condition.
BY_CONDITION = ("F", "G", "H", "I")


def summarise(results: Results) -> pd.DataFrame:
    """One row a panel, condition, preset, rule and metric: mean over users and 95 % interval."""
    rows = []
    for preset in results.presets:
        for panel, metrics in PANEL_METRICS.items():
            for row in for_preset(EVERY_PANEL[panel], preset):
                for rule in shown_rules(results, preset, panel, row):
                    cell = Cell(preset, row.condition.name, rule)
                    rows += [(panel, *one) for one in _cell_rows(results, cell, metrics)]
        for condition in own_conditions(results, preset):
            for rule in results.rules(preset, condition):
                cell = Cell(preset, condition, rule)
                rows += [("own", *one) for one in _cell_rows(results, cell, PANEL_METRICS["A"])]
    return pd.DataFrame(rows, columns=COLUMNS)


def _cell_rows(
    results: Results, cell: Cell, metrics: tuple[str, ...]
) -> Iterator[tuple[str, str, str, int, str, float, float, float]]:
    for metric in metrics:
        found = _measured(results, cell, metric)
        if found is not None:
            count, interval = found
            yield (
                *(cell.condition, cell.preset, cell.rule, count, metric),
                *(interval.estimate, interval.low, interval.high),
            )


def _measured(results: Results, cell: Cell, metric: str) -> tuple[int, Interval] | None:
    """How many users, and what they came to; None where nothing was run."""
    pooled = _POOLED.fullmatch(metric)
    if pooled:
        query = int(pooled[2]) if pooled[2] else last_query(results, cell)
        table = reliability_of(results, cell, query, KIND_OF_ERROR[pooled[1]])
        return None if table is None else (len(table.users), table.error())
    if metric == MEAN_CURVE:
        curves = results.curves(cell, "preference_error")
        if not curves.count:
            return None
        return curves.count, mean_crossing(curves.queries, curves.values).interval
    values = results.measure(cell, metric)
    return None if values.empty else (len(values), mean_interval(values.to_numpy()))


def shown_rules(results: Results, preset: str, panel: str, row: Row) -> list[str]:
    """The rules of a panel's row that have results, with rules of a user's own where rules vary."""
    found = results.rules(preset, row.condition.name)
    if panel in BY_CONDITION:
        return [rule for rule in found if rule in row.rules]
    return found


def own_conditions(results: Results, preset: str) -> list[str]:
    """Conditions with results that are in no panel: a user's own reward model."""
    known = {row.condition.name for rows in EVERY_PANEL.values() for row in rows}
    return [name for name in results.conditions(preset) if name not in known]


def comparisons(results: Results, preset: str, panel: str) -> Iterator[tuple[Cell, Cell]]:
    """The pairs of cells that a panel compares: each with its reference."""
    rows = PANELS[panel]
    if panel in BY_CONDITION:
        cells = [Cell(preset, row.condition.name, own_rule(preset)) for row in rows]
        yield from ((cell, cells[0]) for cell in cells[1:])
        if panel == "G":
            yield cells[2], cells[1]  # how close the learned decay comes to the known one
        return
    for row in rows:
        rules = results.rules(preset, row.condition.name)
        for place, rule in enumerate(rules):
            for reference in rules[:place]:
                name = row.condition.name
                yield Cell(preset, name, rule), Cell(preset, name, reference)


def panel_tests(results: Results, preset: str, panel: str) -> pd.DataFrame:
    """Every comparison of a panel; Holm's correction over all of them together."""
    records = []
    for cell, reference in comparisons(results, preset, panel):
        for metric in TESTED[panel]:
            one, two = paired(results.measure(cell, metric), results.measure(reference, metric))
            if one.size:
                records.append(_test_record(panel, cell, reference, metric, one, two))
    table = pd.DataFrame(records, columns=TEST_COLUMNS)
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table


def tested(tests: pd.DataFrame, metric: str, cell: Cell, reference: Cell) -> pd.DataFrame:
    """The test of this comparison among a panel's, one row; none if the panel does not test it."""
    return tests[
        (tests["metric"] == metric)
        & (tests["condition"] == cell.condition)
        & (tests["rule"] == cell.rule)
        & (tests["against_condition"] == reference.condition)
        & (tests["against_rule"] == reference.rule)
    ]


TEST_COLUMNS = [
    *("panel", "preset", "condition", "rule", "against_condition", "against_rule", "metric"),
    *("users", "mean", "against_mean", "change", "change_low", "change_high"),
    *("p", "effect", "hedges"),
]


def _test_record(
    panel: str, cell: Cell, reference: Cell, metric: str, one: FloatArray, two: FloatArray
) -> tuple[str | float, ...]:
    test = paired_test(one, two)
    change = change_interval(one, two) if two.mean() else Interval(nan, nan, nan)
    return (
        *(panel, cell.preset, cell.condition, cell.rule, reference.condition, reference.rule),
        *(metric, test.users, test.first_mean, test.second_mean),
        *(change.estimate, change.low, change.high, test.p_value, test.effect, test.hedges),
    )


def significance(results: Results) -> pd.DataFrame:
    """The tests of all panels and presets, one below the other."""
    tables = [panel_tests(results, preset, name) for preset in results.presets for name in TESTED]
    tables = [table for table in tables if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=TEST_COLUMNS)


def write_tables(results: Path) -> list[Path]:
    """`summary.csv` and `tests.csv` beside the results that they are made of."""
    table = Results.of(read_results(results))
    written = []
    for name, content in (("summary", summarise(table)), ("tests", significance(table))):
        path = results / f"{name}.csv"
        write_atomically(path, content.to_csv(index=False, float_format="%.6g").encode())
        written.append(path)
    return written
