"""The tables of `docs/best-setting.md`: how good the advice is, from stored results only.

`sfihilo study advice` writes them between two marks of the page; the rest of it is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray
from sfihilo.study.analysis.measures import AtQuery, Cell, Results, paired
from sfihilo.study.analysis.statistics import holm, paired_test
from sfihilo.study.design.panels import BEST, BEYOND, GLOBAL_PAIRS, LOOKAHEAD, RANDOM, Row
from sfihilo.study.pages import markdown
from sfihilo.study.run.result_files import read_results, write_atomically

PANEL = BEYOND["advice"]
COMPARED_AT = (60, 200)
BEGIN, END = "<!-- advice: begin -->", "<!-- advice: end -->"


@dataclass(frozen=True)
class Contender:
    """A preset with a rule, whose advice is compared with that of others."""

    preset: str
    rule: str
    label: str

    def cell(self, row: Row) -> Cell:
        """The contender's results in a row of the panel."""
        return Cell(self.preset, row.condition.name, self.rule)


SEEKER = Contender("default", BEST, "goal `best`")
OTHERS = (
    Contender("default", GLOBAL_PAIRS, "goal `understand`"),
    Contender("default", RANDOM, "Random"),
    Contender("paper", LOOKAHEAD, "preset `paper`"),
)
CONTENDERS = (SEEKER, *OTHERS)


def stored(folders: Sequence[Path]) -> Results:
    """The results of all folders together; where several have a query of a cell, the first counts.

    So a longer run of an earlier version adds only the queries that the newest one has not reached.
    """
    keys = ["preset", "condition", "rule", "query"]
    kept = pd.DataFrame(columns=keys)
    for folder in folders:
        table = read_results(folder)
        known = pd.MultiIndex.from_frame(table[keys]).isin(pd.MultiIndex.from_frame(kept[keys]))
        kept = table if kept.empty else pd.concat([kept, table[~known]])
    return Results.of(kept)


def write_tables(folders: Sequence[Path], page: Path) -> Path:
    """Replaces what stands between the marks of the page by the tables of these results."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: expected the marks {BEGIN} and {END}, got a page without them")
    block = "\n".join([*tables(stored(folders)), *markdown.earlier_preset(folders)])
    write_atomically(page, f"{before}{BEGIN}\n\n{block}\n{END}{after}".encode())
    return page


def tables(results: Results) -> Iterator[str]:
    """The gap of the advice per condition and contender, its share, and paired differences."""
    yield from _over_trials(results, "advice_gap", _mean)
    yield (
        "Share of what could be gained over the setting in the middle of every range (1: the best "
        "reachable one, 0: nothing gained), median and quartiles of the people:"
    )
    yield ""
    yield from _over_trials(results, "advice_share", _quartiles)
    yield "Mean reward of the settings tried so far:"
    yield ""
    yield from _over_trials(results, "asked_reward", _mean)
    for query in COMPARED_AT:
        lines = _differences(results, AtQuery("advice_gap", query))
        if lines:
            yield (
                f"Less gap with goal `best` after {query} trials, paired by person (p by Holm's "
                "method):"
            )
            yield ""
            yield from markdown.table(
                ("people", "", *(f"than {other.label}" for other in OTHERS)), lines
            )


def _over_trials(
    results: Results, metric: str, summary: Callable[[FloatArray], str]
) -> Iterator[str]:
    """A metric summarised over the people, one line per condition and contender."""
    queries = _queries(results, metric)
    yield from markdown.table(
        ("people", "", "asked by", *(f"{query} trials" for query in queries)),
        [line for row in PANEL for line in _condition(results, row, metric, queries, summary)],
    )


def _queries(results: Results, metric: str) -> list[int]:
    """After how many queries the advice was evaluated."""
    curves = [results.curves(each.cell(row), metric) for row in PANEL for each in CONTENDERS]
    return sorted({int(query) for curve in curves for query in curve.queries})


def _condition(
    results: Results,
    row: Row,
    metric: str,
    queries: Sequence[int],
    summary: Callable[[FloatArray], str],
) -> Iterator[tuple[str, ...]]:
    label = row.label
    for contender in CONTENDERS:
        cell = contender.cell(row)
        count = results.curves(cell, metric).count
        if count:
            values = [results.measure(cell, AtQuery(metric, query)) for query in queries]
            means = ["" if each.empty else summary(each.to_numpy()) for each in values]
            yield (label, f"n = {count}", contender.label, *means)
            label = ""


def _differences(results: Results, measure: AtQuery) -> list[tuple[str, ...]]:
    """For each condition, how much smaller the gap of goal best is than those of the others."""
    found: dict[tuple[str, str], tuple[str, float, int]] = {}
    for row in PANEL:
        best = results.measure(SEEKER.cell(row), measure)
        for contender in OTHERS:
            other, mine = paired(results.measure(contender.cell(row), measure), best)
            if len(mine) > 1:
                p_value = paired_test(other, mine).p_value
                found[row.label, contender.label] = _mean(other - mine), p_value, len(mine)
    corrected = dict(zip(found, holm([p for _, p, _ in found.values()]), strict=True))
    lines = []
    for row in PANEL:
        keys = [(row.label, contender.label) for contender in OTHERS]
        if any(key in found for key in keys):
            count = max(found[key][2] for key in keys if key in found)
            cells = [
                f"{found[key][0]}, p = {corrected[key]:.2g}" if key in found else "" for key in keys
            ]
            lines.append((row.label, f"n = {count}", *cells))
    return lines


def _mean(values: FloatArray) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ({values.std(ddof=1) / np.sqrt(len(values)):.3f})"


def _quartiles(values: FloatArray) -> str:
    """Median and quartiles: a share has no mean where hardly anything could be gained."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
