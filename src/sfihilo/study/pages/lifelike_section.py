"""The part of `docs/real-people.md` about simulated people who are like real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import t

from sfihilo.study.analysis.lifelike import MEASURES, compared, lifelike_table
from sfihilo.study.pages.markdown import minus, section, table

_LEVEL = 0.05  # two-sided


def lifelike_section(results: Path) -> Iterator[str]:
    """The lines of this part; none where nothing was run."""
    measured = lifelike_table(results)
    rows = compared(measured) if len(measured) else measured
    if not len(rows):
        return
    users = sorted(set(rows["users"]))
    yield from section(
        "Simulated people who are like real ones",
        f"{users[0] if len(users) == 1 else f'{users[0]} to {users[-1]}'} simulated people in each "
        "row (d = 8). The default preset and the one before predict from the same queries, those "
        "of the default rule; the paper's preset asks by its own. Per cell: the default preset; "
        "the one before; the paper's; and in brackets the paired difference of the first two with "
        "its standard error. Significantly worse than the one before (paired t-test at "
        f"{_LEVEL:.0%}, not corrected for the number of rows): {_worse(rows)}.",
    )
    yield from table(
        ["people, queries", "users", *MEASURES.values()],
        (
            [
                f"{row['people']}, {row['query']}",
                row["users"],
                *(_cell(row, measure) for measure in MEASURES),
            ]
            for row in rows.to_dict("records")
        ),
    )


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
    return minus(f"{'; '.join(texts)}{unit} ({gap}, {error})")


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
