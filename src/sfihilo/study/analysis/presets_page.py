"""The part of `docs/results.md` that puts the default preset beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from sfihilo.study.analysis.calibration import (
    KIND_OF_ERROR,
    Reliability,
    last_query,
    reliability_of,
    shown_checkpoints,
)
from sfihilo.study.analysis.compare import compare
from sfihilo.study.analysis.markdown import command, figure, number, plain
from sfihilo.study.analysis.measures import Cell, Results
from sfihilo.study.analysis.quantities import crossing
from sfihilo.study.analysis.statistics import stars
from sfihilo.study.analysis.verdicts import SIGNIFICANT
from sfihilo.study.design.conditions import BASE
from sfihilo.study.design.panels import condition_labels, own_rule
from sfihilo.study.figures.style import rule_name

PRESETS = ("paper", "default")
MEASURE_WORDS = {
    "queries_to_10": "queries to 10 % error",
    "preference_error_at_100": "preference error after 100",
    "preference_error_at_200": "preference error after 200",
    "preference_error_at_1000": "preference error after 1,000",
    "preference_error_auc": "preference error, area under the curve",
    "forward_rmse_auc": "forward RMSE, area under the curve",
    "final_policy_gap": "reward missed by the final policy",
    "ece_better_at_200": "calibration error after 200, truly better",
    "ece_better_end": "calibration error at the end, truly better",
    "ece_at_200": "calibration error after 200, answer against the truth",
    "ece_end": "calibration error at the end, answer against the truth",
}
ELSEWHERE = (
    "queries_to_10",
    "preference_error_auc",
    "forward_rmse_auc",
    "final_policy_gap",
    "ece_end",
)


def presets_section(results: Path, out: Path, table: Results, shared: int) -> Iterator[str]:
    """The two presets on the same people: standard condition in full, every other in one line."""
    yield "## The default preset against the paper's"
    yield ""
    yield (
        "The same simulated users, paired. Each preset asks by its own rule: "
        f"{rule_name(own_rule('paper'))} and {rule_name(own_rule('default'))}."
    )
    yield ""
    yield from _crossings(table)
    if not shared:
        yield "Not run yet: the two presets share no users so far. This runs it:"
        yield ""
        yield f"```sh\n{command('A', 'default')}\n```"
        yield ""
        return
    differences = compare(results / PRESETS[0], results / PRESETS[1])
    yield "### Standard condition (d = 8, default noise)"
    yield ""
    base = differences[differences["condition"] == "base"]
    yield from _differences(base)
    yield from _elsewhere(differences[differences["rule"] == own_rule("paper")])
    yield from figure(results, out, "preset_conditions", "Change in every condition")


def _elsewhere(table: pd.DataFrame) -> Iterator[str]:
    """One line a condition: how each measure changes, and whether anything is worse."""
    labels = condition_labels()
    places = [name for name in labels if name in set(table["condition"]) and name != BASE.name]
    if not places:
        return
    yield "### Every other condition, own rules"
    yield ""
    worse = table[(table["low"] > 0) & (table["p_holm"] < SIGNIFICANT)]
    named = [
        f"{labels.get(row.condition, row.condition)} ({MEASURE_WORDS[row.metric]})"
        for row in worse.itertuples()
    ]
    yield (
        "Where the default preset is significantly worse in any measure of "
        f"`sfihilo study compare`: {', '.join(named) or 'nowhere'}."
    )
    yield ""
    yield "| condition | users | " + " | ".join(MEASURE_WORDS[name] for name in ELSEWHERE) + " |"
    yield "| --- | --- |" + " --- |" * len(ELSEWHERE)
    for place in places:
        rows = {row.metric: row for row in table[table["condition"] == place].itertuples()}
        texts = [_change(rows[name]) if name in rows else "" for name in ELSEWHERE]
        users = max(row.users for row in rows.values())
        yield f"| {labels[place]} | {users} | {' | '.join(texts)} |"
    yield ""


def _change(row: Any) -> str:
    """Both means, the change, and its stars."""
    change = "" if row.change != row.change else f", {row.change:+.0%}".replace("-", "−")
    marks = "" if row.p_holm != row.p_holm else f" {_marks(row.p_holm)}".rstrip()
    return f"{plain(row.first)} → {plain(row.second)}{change}{marks}"


def _marks(chance: float) -> str:
    return stars(chance).replace("*", "∗")  # plain asterisks would mean emphasis


def shared_users(table: Results) -> set[int]:
    """Users of the standard condition that both presets have learned by their own rules."""
    one, two = (
        set(table.curves(Cell(preset, "base", own_rule(preset)), "preference_error").users.tolist())
        for preset in PRESETS
    )
    return one & two


def _crossings(table: Results) -> Iterator[str]:
    """Where the mean curves of both presets cross."""
    yield "| mean curve reaches 10 % after | queries | users |"
    yield "| --- | --- | --- |"
    for preset in PRESETS:
        rule = own_rule(preset)
        found = crossing(Cell(preset, "base", rule))(table)
        here, users = (number(found), found.users) if found else ("not run yet", 0)
        yield f"| `{preset}`, {rule_name(rule)} | {here} | {users} |"
    yield ""


def _differences(table: pd.DataFrame) -> Iterator[str]:
    yield "| rule | measure | users | `paper` | `default` | difference | change | p (Holm) |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in table.itertuples():
        rules = [rule_name(name) for name in dict.fromkeys((row.rule, row.against_rule))]
        gap = f"{plain(row.difference, '+')} [{plain(row.low, '+')}, {plain(row.high, '+')}]"
        change = "" if row.change != row.change else f"{row.change:+.0%}".replace("-", "−")
        chance = "" if row.p_holm != row.p_holm else f"{row.p_holm:.2g} {_marks(row.p_holm)}"
        yield (
            f"| {' / '.join(rules)} | {MEASURE_WORDS.get(row.metric, row.metric)} | {row.users} "
            f"| {plain(row.first)} | {plain(row.second)} | {gap} | {change} | {chance.strip()} |"
        )
    yield ""


def calibration_section(table: Results) -> Iterator[str]:
    """Whether the presets' stated confidence is deserved."""
    yield "## Calibration"
    yield ""
    yield (
        "Expected calibration error over the held-out pairs of all users together: of the "
        "probability that one side is *truly better*, against the truth; of the predicted "
        "*answer*, against answers as noisy as this person's; and of the answer against the truth, "
        "which is surer than any answer."
    )
    yield ""
    yield "| preset and rule | queries | truly better | answer | answer, against the truth |"
    yield "| --- | --- | --- | --- | --- |"
    for preset in PRESETS:
        cell = Cell(preset, "base", own_rule(preset))
        checkpoints = shown_checkpoints(last_query(table, cell))
        for query in checkpoints:
            tables = [reliability_of(table, cell, query, kind) for kind in KIND_OF_ERROR.values()]
            texts = " | ".join(_calibration_error(one) for one in tables)
            yield f"| `{preset}`, {rule_name(cell.rule)} | {query:,} | {texts} |"
        if not checkpoints:
            yield f"| `{preset}`, {rule_name(cell.rule)} | | not run yet | | |"
    yield ""


def _calibration_error(table: Reliability | None) -> str:
    if table is None:
        return "not run yet"
    error = table.error()
    return f"{error.estimate:.3f} [{error.low:.3f}, {error.high:.3f}], {len(table.users)} users"
