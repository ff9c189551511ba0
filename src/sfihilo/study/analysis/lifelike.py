"""Simulated people who are like real ones: the default preset, the default before, and the paper's.

The default preset's query rule works with the posterior of the default before, so that one session
gives the predictions of both: metrics that begin with `rule_` are those of the default before.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from sfihilo.study.design.panels import EVERY_PANEL, preset_rule
from sfihilo.study.run.result_files import Store

MEASURES = {
    "preference_error": "error",
    "log_loss_answer": "log loss",
    "ece_answer": "ECE",
    "slope_answer": "slope",
}
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
    """One row per condition and query: means of each model, and default minus before."""
    lines = []
    for row in EVERY_PANEL["lifelike"]:
        here = table[table["condition"] == row.condition.name]
        for query in sorted(set(here["query"])):
            models = {
                str(model): part.set_index("user")[list(MEASURES)]
                for model, part in here[here["query"] == query].groupby("model")
            }
            if not {"default", "before"} <= set(models):
                continue
            gaps = (models["default"] - models["before"]).dropna()  # people whom both have
            if len(gaps) < _LEAST_USERS:
                continue
            line: dict[str, object] = {"people": row.label, "query": query, "users": len(gaps)}
            for measure in MEASURES:
                line |= {f"{name}_{measure}": part[measure].mean() for name, part in models.items()}
                line |= {f"gap_{measure}": gaps[measure].mean()}
                line |= {f"gap_error_{measure}": gaps[measure].sem()}
            lines.append(line)
    return pd.DataFrame(lines)
