"""Simulated people who are like real ones: the default preset, the one before, and the paper's.

The default preset's query rule works with the posterior of the default before, so that one session
gives the predictions of both: metrics that begin with `rule_` are those of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import t

from sfihilo.study.design.panels import EVERY_PANEL, preset_rule
from sfihilo.study.run.result_files import Store

MEASURES = {
    "preference_error": "error",
    "log_loss_answer": "log loss",
    "ece_answer": "ECE",
    "slope_answer": "slope",
}
_LEVEL = 0.05  # two-sided
_LEAST_USERS = 3  # of a row that is shown


def lifelike_table(results: Path) -> pd.DataFrame:
    """Columns condition, query, model, user and one per measure; empty where nothing was run."""
    tables = [
        _measured(results, "paper", "paper", ""),
        _measured(results, "default", "default", ""),
    ]
    tables.append(_measured(results, "default", "before", "rule_"))
    tables = [table for table in tables if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _measured(results: Path, preset: str, model: str, prefix: str) -> pd.DataFrame:
    table = Store(results, preset).read()
    table = table[table["rule"] == preset_rule(preset)]
    names = {f"{prefix}{measure}": measure for measure in MEASURES}
    table = table[table["metric"].isin(names)].assign(metric=table["metric"].map(names))
    wide = table.pivot_table(
        index=["condition", "query", "user"], columns="metric", values="value"
    ).reset_index()
    # Checkpoints of the learning curve alone have no log loss.
    return wide.dropna().assign(model=model) if len(wide) else wide


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """One row per condition and query: means of each model, and default minus the one before."""
    lines = []
    for row in EVERY_PANEL["lifelike"]:
        here = table[table["condition"] == row.condition.name]
        for query in sorted(set(here["query"])):
            models = {
                str(model): part.set_index("user")[list(MEASURES)]
                for model, part in here[here["query"] == query].groupby("model")
            }
            if not {"default", "before"} <= set(models) or len(models["default"]) < _LEAST_USERS:
                continue
            gaps = models["default"] - models["before"]
            line: dict[str, object] = {"people": row.label, "query": query, "users": len(gaps)}
            for measure in MEASURES:
                line |= {f"{name}_{measure}": part[measure].mean() for name, part in models.items()}
                line |= {f"gap_{measure}": gaps[measure].mean()}
                line |= {f"gap_error_{measure}": gaps[measure].sem()}
            lines.append(line)
    return pd.DataFrame(lines)


def lifelike_section(results: Path) -> Iterator[str]:
    """The part of the page about these people; nothing where nothing was run."""
    table = lifelike_table(results)
    rows = compared(table) if len(table) else table
    if not len(rows):
        return
    yield "## Simulated people who are like real ones"
    yield ""
    users = sorted(set(rows["users"]))
    yield (
        f"{users[0] if len(users) == 1 else f'{users[0]} to {users[-1]}'} simulated people in each "
        "row (d = 8). The default preset and the one before predict from the same queries, those "
        "of the default rule; the paper's preset asks by its own. Per cell: the default preset; "
        "the one before; the paper's; and in brackets the paired difference of the first two with "
        "its standard error. Significantly worse than the one before (paired t-test at "
        f"{_LEVEL:.0%}, not corrected for the number of rows): {_worse(rows)}."
    )
    yield ""
    yield "| people, queries | users | " + " | ".join(MEASURES.values()) + " |"
    yield "| --- | --- |" + " --- |" * len(MEASURES)
    for row in rows.to_dict("records"):
        cells = " | ".join(_cell(row, measure) for measure in MEASURES)
        yield f"| {row['people']}, {row['query']} | {row['users']} | {cells} |"
    yield ""


def _cell(row: dict[str, float], measure: str) -> str:
    scale, form = (
        (100, "{:.1f}") if measure in ("preference_error", "ece_answer") else (1, "{:.2f}")
    )
    if measure == "log_loss_answer":
        form = "{:.3f}"
    means = [
        row.get(f"{model}_{measure}", float("nan")) for model in ("default", "before", "paper")
    ]
    texts = ["not run" if mean != mean else form.format(scale * mean) for mean in means]
    gap = form.replace(":", ":+").format(scale * row[f"gap_{measure}"])
    error = form.format(scale * row[f"gap_error_{measure}"])
    unit = " %" if scale == 100 else ""
    return f"{'; '.join(texts)}{unit} ({gap}, {error})".replace("-", "\u2212")


def _worse(rows: pd.DataFrame) -> str:
    """Where error, log loss or ECE are significantly larger than before."""
    found = []
    limit = t.ppf(1 - _LEVEL / 2, rows["users"] - 1)
    for measure in ("preference_error", "log_loss_answer", "ece_answer"):
        worse = rows[rows[f"gap_{measure}"] > limit * rows[f"gap_error_{measure}"]]
        found += [
            f"{row['people']}, {row['query']} ({MEASURES[measure]})"
            for row in worse.to_dict("records")
        ]
    return "; ".join(found) or "nowhere"
