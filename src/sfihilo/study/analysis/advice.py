"""The tables of `docs/best-setting.md`: how good the advice is, from stored results only.

`sfihilo study advice` writes them between two marks of the page; the rest of it is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sfihilo.study.analysis import markdown
from sfihilo.study.analysis.measures import AtQuery, Cell, Results, paired
from sfihilo.study.analysis.statistics import holm, paired_test
from sfihilo.study.design.panels import BEST, BEYOND, GLOBAL_PAIRS, RANDOM, Row
from sfihilo.study.run.store import write_atomically

PANEL = BEYOND["advice"]
SHOWN = {BEST: "goal `best`", GLOBAL_PAIRS: "goal `understand`", RANDOM: "Random"}
BEGIN, END = "<!-- advice: begin -->", "<!-- advice: end -->"


def write_tables(results: Results, page: Path) -> Path:
    """Replaces what stands between the marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: expected the marks {BEGIN} and {END}, got a page without them")
    block = "\n".join(tables(results))
    write_atomically(page, f"{before}{BEGIN}\n\n{block}\n{END}{after}".encode())
    return page


def tables(results: Results) -> Iterator[str]:
    """The gap of the advice for each condition and rule, and paired differences."""
    queries = queries_with_results(results)
    yield from markdown.table(
        ("people", "", "rule", *(f"{query} trials" for query in queries), "reward while asking"),
        [line for row in PANEL for line in _condition(results, row, queries)],
    )
    last = queries[-1] if queries else 0
    yield f"Less gap with goal `best` after {last} trials, paired by person (p by Holm's method):"
    yield ""
    yield from markdown.table(
        ("people", "", *(f"than {SHOWN[rule]}" for rule in (GLOBAL_PAIRS, RANDOM))),
        _differences(results, AtQuery("advice_gap", last)),
    )


def queries_with_results(results: Results) -> list[int]:
    """After how many queries the advice was evaluated."""
    stored = [results.curves(cell_of(row, BEST), "advice_gap").queries for row in PANEL]
    return sorted({int(query) for queries in stored for query in queries})


def cell_of(row: Row, rule: str) -> Cell:
    """The results of a rule in a row of the panel."""
    return Cell("default", row.condition.name, rule)


def _condition(results: Results, row: Row, queries: Sequence[int]) -> Iterator[tuple[str, ...]]:
    label = row.label
    for rule, words in SHOWN.items():
        curves = results.curves(cell_of(row, rule), "advice_gap")
        if not curves.count:
            continue
        cells = [_mean(results, row, rule, AtQuery("advice_gap", query)) for query in queries]
        asked = results.curves(cell_of(row, rule), "asked_reward").values[:, -1].mean()
        yield (label, f"n = {curves.count}", words, *cells, f"{asked:.2f}")
        label = ""


def _mean(results: Results, row: Row, rule: str, measure: AtQuery) -> str:
    values = results.measure(cell_of(row, rule), measure)
    return "" if values.empty else _with_error(values.to_numpy())


def _differences(results: Results, measure: AtQuery) -> list[tuple[str, ...]]:
    """For each condition, how much smaller the gap of goal best is than those of the others."""
    found: dict[tuple[str, str], tuple[str, float, int]] = {}
    for row in PANEL:
        best = results.measure(cell_of(row, BEST), measure)
        for rule in (GLOBAL_PAIRS, RANDOM):
            other, mine = paired(results.measure(cell_of(row, rule), measure), best)
            if len(mine) > 1:
                p_value = paired_test(other, mine).p_value
                found[row.label, rule] = _with_error(other - mine), p_value, len(mine)
    corrected = dict(zip(found, holm([p for _, p, _ in found.values()]), strict=True))
    lines = []
    for row in PANEL:
        keys = [(row.label, rule) for rule in (GLOBAL_PAIRS, RANDOM)]
        if any(key in found for key in keys):
            count = max(found[key][2] for key in keys if key in found)
            cells = [
                f"{found[key][0]}, p = {corrected[key]:.2g}" if key in found else "" for key in keys
            ]
            lines.append((row.label, f"n = {count}", *cells))
    return lines


def _with_error(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ({values.std(ddof=1) / np.sqrt(len(values)):.3f})"
