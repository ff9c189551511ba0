"""The two tables of the study: estimates per condition and rule, and paired tests.

`summarise` computes `summary.csv` (means over users with bootstrap intervals), `significance`
computes `tests.csv` (paired t-tests, Holm-corrected within a panel, as in the caption of figure
`fig:final_results`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path

import pandas as pd

from sfihilo.history import FloatArray
from sfihilo.study.analysis.calibration import (
    KINDS,
    PooledError,
    calibration_at,
    calibration_end,
)
from sfihilo.study.analysis.measures import (
    ERROR_END,
    FORWARD_AREA,
    POLICY_GAP,
    QUERIES_TO_10,
    AtEnd,
    AtQuery,
    Cell,
    LateMean,
    MeanCurveCrossing,
    Measure,
    QueriesToTarget,
    Results,
    UserMeasure,
    advice_after,
    error_after,
    extrapolated,
    gap_error,
    paired,
)
from sfihilo.study.analysis.statistics import (
    Interval,
    change_interval,
    holm,
    paired_test,
)
from sfihilo.study.design.panels import ADVICE_AT, EVERY_PANEL, Row, for_preset, preset_rule
from sfihilo.study.run.result_files import write_atomically

COLUMNS = ["panel", "condition", "preset", "rule", "users", "metric", "mean", "low", "high"]

_SPEED = (MeanCurveCrossing(), QUERIES_TO_10, extrapolated(), ERROR_END)
_CALIBRATION = tuple(
    measure
    for kind in KINDS
    for measure in (
        calibration_at(kind, 200),
        calibration_end(kind),
        PooledError(kind, 200),
        PooledError(kind),
    )
)
_ERRORS = tuple(error_after(query) for query in (50, 100, 200, 500, 1000))
_GAPS = tuple(QueriesToTarget(gap_error(number)) for number in (2, 3, 4))
_FORWARD_LATE, _FORWARD_END = LateMean("forward_rmse"), AtEnd("forward_rmse")

SUMMARISED: dict[str, tuple[Measure, ...]] = {
    "A": (*_SPEED, *_ERRORS, AtEnd("preference_loss"), *_CALIBRATION),
    "B": (*_GAPS, *(AtEnd(gap_error(number)) for number in (1, 2, 3, 4))),
    "C": (*_SPEED, FORWARD_AREA),
    "D": (FORWARD_AREA, AtQuery("forward_rmse", 200), _FORWARD_END),
    "E": (*_SPEED, FORWARD_AREA),
    "F": (*_SPEED, *_ERRORS),
    "G": (_FORWARD_LATE, _FORWARD_END, FORWARD_AREA, ERROR_END),
    "H": _SPEED,
    "I": _SPEED,
    "gap": (POLICY_GAP,),
    "choices": (*_SPEED, FORWARD_AREA, POLICY_GAP),
    "ablation": (*_SPEED, *_ERRORS, FORWARD_AREA),
    "grades": (
        *_SPEED,
        *_ERRORS,
        FORWARD_AREA,
        POLICY_GAP,
        calibration_at("better", 100),
        *(advice_after(query) for query in ADVICE_AT),
    ),
}

# The measures that a panel shows and tests.
TESTED: dict[str, tuple[UserMeasure, ...]] = {
    "A": (QUERIES_TO_10, ERROR_END),
    "B": _GAPS,
    "C": (QUERIES_TO_10,),
    "D": (FORWARD_AREA,),
    "E": (QUERIES_TO_10,),
    "F": (ERROR_END,),
    "G": (_FORWARD_LATE,),
    "H": (ERROR_END,),
    "I": (ERROR_END,),
    "gap": (POLICY_GAP,),
    "grades": (QUERIES_TO_10, FORWARD_AREA, calibration_at("better", 100), advice_after(100)),
}
# These panels vary the condition under one rule; the others vary the rule in each condition.
BY_CONDITION = ("F", "G", "H", "I", "grades")


def summarise(results: Results) -> pd.DataFrame:
    """One row per panel, condition, preset, rule and measure: estimate and 95 % interval."""
    rows = []
    for preset in results.presets:
        for panel, measures in SUMMARISED.items():
            for row in for_preset(EVERY_PANEL[panel], preset):
                for rule in shown_rules(results, preset, panel, row):
                    cell = Cell(preset, row.condition.name, rule)
                    rows += [(panel, *record) for record in _records(results, cell, measures)]
        for condition in own_conditions(results, preset):
            for rule in results.rules(preset, condition):
                cell = Cell(preset, condition, rule)
                rows += [("own", *record) for record in _records(results, cell, SUMMARISED["A"])]
    return pd.DataFrame(rows, columns=COLUMNS)


def _records(
    results: Results, cell: Cell, measures: Sequence[Measure]
) -> Iterator[tuple[str, str, str, int, str, float, float, float]]:
    for measure in measures:
        found = measure.estimate(results, cell)
        if found is not None:
            yield (
                *(cell.condition, cell.preset, cell.rule, found.users, measure.name),
                *(found.interval.estimate, found.interval.low, found.interval.high),
            )


def shown_rules(results: Results, preset: str, panel: str, row: Row) -> list[str]:
    """The rules with results that a panel shows in a row; a user's own too where rules vary."""
    found = results.rules(preset, row.condition.name)
    if panel in BY_CONDITION:
        return [rule for rule in found if rule in row.rules]
    return found


def own_conditions(results: Results, preset: str) -> list[str]:
    """Conditions with results that belong to no panel: a user's own reward model."""
    known = {row.condition.name for rows in EVERY_PANEL.values() for row in rows}
    return [name for name in results.conditions(preset) if name not in known]


def comparisons(results: Results, preset: str, panel: str) -> Iterator[tuple[Cell, Cell]]:
    """The pairs of cells that a panel compares: each with its reference."""
    rows = EVERY_PANEL[panel]
    if panel in BY_CONDITION:
        cells = [Cell(preset, row.condition.name, preset_rule(preset)) for row in rows]
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
    """All tests of a panel, Holm-corrected together; computed once per `Results`."""
    return results.computed_once(
        ("tests", preset, panel), lambda: _panel_tests(results, preset, panel)
    )


def _panel_tests(results: Results, preset: str, panel: str) -> pd.DataFrame:
    records = []
    for cell, reference in comparisons(results, preset, panel):
        for measure in TESTED[panel]:
            values, base = paired(
                results.measure(cell, measure), results.measure(reference, measure)
            )
            if values.size:
                record = _test_record(cell, reference, measure, values, base)
                records.append((panel, *record))
    table = pd.DataFrame(records, columns=TEST_COLUMNS)
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table


def find_test(
    tests: pd.DataFrame, measure: UserMeasure, cell: Cell, reference: Cell
) -> pd.DataFrame:
    """The row of this comparison in a panel's tests; no row if the panel does not test it."""
    return tests[
        (tests["metric"] == measure.name)
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
    cell: Cell, reference: Cell, measure: UserMeasure, values: FloatArray, base: FloatArray
) -> tuple[str | float, ...]:
    test = paired_test(values, base)
    change = change_interval(values, base) if base.mean() else Interval(nan, nan, nan)
    return (
        *(cell.preset, cell.condition, cell.rule, reference.condition, reference.rule),
        *(measure.name, test.users, test.first_mean, test.second_mean),
        *(change.estimate, change.low, change.high, test.p_value, test.effect, test.hedges),
    )


def significance(results: Results) -> pd.DataFrame:
    """The tests of all panels and presets, one below the other."""
    tables = [panel_tests(results, preset, name) for preset in results.presets for name in TESTED]
    tables = [table for table in tables if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=TEST_COLUMNS)


def write_tables(results: Results, folder: Path) -> list[Path]:
    """Writes `summary.csv` and `tests.csv` into a folder."""
    written = []
    for name, content in (("summary", summarise(results)), ("tests", significance(results))):
        path = folder / f"{name}.csv"
        write_atomically(path, content.to_csv(index=False, float_format="%.6g").encode())
        written.append(path)
    return written
