"""The part of `docs/real-people.md` about simulated people who are like real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

from sfihilo.study.analysis.lifelike import MEASURES, compared, lifelike_table
from sfihilo.study.analysis.statistics import holm
from sfihilo.study.pages.markdown import minus, section, table

_LEVEL = 0.05  # two-sided


def lifelike_section(results: Path) -> Iterator[str]:
    """The lines of this part; none where nothing was run."""
    measured = lifelike_table(results)
    rows = compared(measured) if len(measured) else measured
    if not len(rows):
        return
    users = sorted(set(rows["users"]))
    alone, corrected = _worse(rows)
    yield from section(
        "Simulated people who are like real ones",
        f"{users[0] if len(users) == 1 else f'{users[0]} to {users[-1]}'} simulated people in each "
        "row (d = 8). The default preset and the default before predict from the same queries, "
        "those of the default rule; the paper's preset asks by its own. Per cell: the default "
        "preset; the default before; the paper's; and in brackets the paired difference of the "
        "first two with its standard error. Significantly worse than the default before (paired "
        f"t-test at {_LEVEL:.0%}, not corrected for the number of cells): {alone}. With Holm's "
        f"correction: {corrected}.",
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


def _worse(rows: pd.DataFrame) -> tuple[str, str]:
    """Where error, log loss or ECE are significantly larger than before: tests alone, and by Holm.

    Holm's correction is over all cells of these measures, better ones included.
    """
    names, gaps, p_values = [], [], []
    for measure in ("preference_error", "log_loss_answer", "ece_answer"):
        gap, error = (rows[f"{kind}_{measure}"].to_numpy(float) for kind in ("gap", "gap_error"))
        with np.errstate(divide="ignore", invalid="ignore"):  # no difference at all: 0 / 0
            ratio = np.abs(gap) / error
        p_values.append(2 * t.sf(np.nan_to_num(ratio, nan=0.0), rows["users"] - 1))
        gaps.append(gap)
        names += [
            f"{people}, {query} ({MEASURES[measure]})"
            for people, query in zip(rows["people"], rows["query"], strict=True)
        ]
    alone = np.concatenate(p_values)
    larger = np.concatenate(gaps) > 0
    alone_text, corrected_text = (
        "; ".join(np.array(names)[larger & (values < _LEVEL)]) or "nowhere"
        for values in (alone, holm(alone))
    )
    return alone_text, corrected_text
