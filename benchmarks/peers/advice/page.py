"""`python -m benchmarks.peers.advice.page`: the tables of the advice for docs/peers.md.

Rows come from results/peers/advice-*.csv (peers), results/advice/*.csv (our own rules run by
`benchmarks.peers.advice`) and the study's panel "advice" in results/advice (the same rules on the
same people, study seed 990017), with the columns shape, method, user, query, gap, asked. A method
is measured on the people that it has finished; every comparison is paired over the
people that both methods have finished.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.clock import ROOT
from benchmarks.peers.advice.methods import METHODS
from benchmarks.tables import table
from sfihilo.study.analysis.statistics import holm, paired_test
from sfihilo.study.design.panels import BEST, GLOBAL_PAIRS, LOOKAHEAD, RANDOM
from sfihilo.study.run.result_files import read_results

COLUMNS = ("shape", "method", "user", "query", "gap", "asked")
OWN = "best"
SHAPES, LONGEST = ("4x4", "4x6"), 60  # what peers were run on


class Difference(NamedTuple):
    """The gap of our rule minus that of another method, over the same people."""

    method: str
    people: int
    mean: float
    error: float
    p_value: float  # corrected by Holm over the methods of one shape and query count


# Each rule ran under one preset: Boundary Lookahead under the paper's.
PAPER = "paper"
OUR_RULES = {BEST: "best", GLOBAL_PAIRS: "understand", RANDOM: "random", LOOKAHEAD: PAPER}


def read_rows(results: Path) -> pd.DataFrame:
    """All rows of the untouched people; files with other columns are not of this kind."""
    paths = [*sorted((results / "peers").glob("advice-*.csv"))]
    paths += sorted((results / "advice").glob("*.csv"))
    parts = [pd.DataFrame(columns=list(COLUMNS)), panel_rows(results / "advice")]
    for path in paths:
        rows = pd.read_csv(path)
        if "-seed" not in path.stem and set(COLUMNS) <= set(rows.columns):
            parts.append(rows[list(COLUMNS)])
    found = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    twice = found.duplicated(["shape", "method", "user", "query"])
    if twice.any():
        first = found[twice].iloc[0]
        raise ValueError(
            "rows: expected one per shape, method, user and query, "
            f"got two of {first['shape']}, {first['method']}, user {first['user']}"
        )
    return found


def panel_rows(folder: Path) -> pd.DataFrame:
    """Our own rules' rows of the study's panel "advice", as far as peers have such a shape."""
    if not any(folder.glob("*/*.parquet")):
        return pd.DataFrame(columns=list(COLUMNS))
    stored = read_results(folder)
    names = {"advice_gap": "gap", "asked_reward": "asked"}
    keys = ["condition", "rule", "user", "query"]
    wide = stored[stored["metric"].isin(names)].pivot(index=keys, columns="metric", values="value")
    rows = wide.rename(columns=names).reset_index()
    rows["shape"] = rows["condition"].str.removeprefix("advice")
    rows["method"] = rows["rule"].map(OUR_RULES)
    kept = rows["shape"].isin(SHAPES) & rows["query"].le(LONGEST) & rows["user"].ge(1)
    return rows.loc[kept, list(COLUMNS)]


def ordered(methods: Iterable[str]) -> list[str]:
    """Our own methods first, in the order of METHODS; unknown ones are our own rules."""
    known = list(METHODS)
    present = set(methods)
    unknown = sorted(present - set(known))
    ours = [name for name in known if name in present and not METHODS[name].peer]
    return [*ours, *unknown, *(name for name in known if name in present and METHODS[name].peer)]


def label(method: str) -> str:
    """What a method is called in the table."""
    if method == PAPER:
        return "SFIHILO, preset `paper`"
    return METHODS[method].label if method in METHODS else f"SFIHILO, `{method}`"


def standard_error(values: pd.Series) -> float:
    """Of the mean; NaN for one person."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def gap_table(rows: pd.DataFrame, shape: str) -> str:
    """Mean (standard error) of the gap at each query count, and the mean reward while asking."""
    here = rows[rows["shape"] == shape]
    counts = sorted(here["query"].unique())
    cells = []
    for method in ordered(here["method"].unique()):
        own = here[here["method"] == method]
        last = own[own["query"] == counts[-1]]
        gaps = [own[own["query"] == count]["gap"] for count in counts]
        cells.append(
            [
                label(method),
                str(own["user"].nunique()),
                *(
                    f"{_mean(gap)} ({_plain(standard_error(gap))})" if len(gap) else ""
                    for gap in gaps
                ),
                f"{last['asked'].mean():.2f}".removeprefix("0") if len(last) else "",
            ]
        )
    titles = ["method", "people", *(str(count) for count in counts), "reward while asking"]
    return table(titles, cells)


def differences(rows: pd.DataFrame, shape: str, query: int, own: str = OWN) -> list[Difference]:
    """Our rule against every other method, with p-values corrected by Holm."""
    here = rows[(rows["shape"] == shape) & (rows["query"] == query)]
    wide = here.pivot(index="user", columns="method", values="gap")
    if own not in wide:
        return []
    found = []
    for method in ordered(wide.columns):
        both = wide[[own, method]].dropna() if method != own else wide.iloc[:0]
        if len(both) < 2:
            continue
        test = paired_test(both[own], both[method])
        error = standard_error(both[own] - both[method])
        found.append(Difference(method, len(both), test.difference, error, test.p_value))
    corrected = holm([each.p_value for each in found])
    return [each._replace(p_value=float(p)) for each, p in zip(found, corrected, strict=True)]


def difference_table(rows: pd.DataFrame, shape: str, own: str = OWN) -> str:
    """One row per method, one column per query count; empty without our own rule's rows."""
    counts = sorted(rows[rows["shape"] == shape]["query"].unique())
    by_count = [differences(rows, shape, count, own) for count in counts]
    if not any(by_count):
        return ""
    cells = []
    for method in ordered({each.method for found in by_count for each in found}):
        at = [next((one for one in found if one.method == method), None) for found in by_count]
        people = max(one.people for one in at if one is not None)
        cells.append([label(method), str(people), *(_difference(one) for one in at)])
    return table([f"{label(own)} minus", "people", *(str(count) for count in counts)], cells)


def _difference(found: Difference | None) -> str:
    if found is None:
        return ""
    p_value = "< .001" if found.p_value < 0.001 else f"= {_plain(found.p_value)}"
    return f"{_plain(found.mean, '+')} ({_plain(found.error)}), p {p_value}"


def _mean(values: pd.Series) -> str:
    return _plain(float(values.mean()))


def _plain(value: float, sign: str = "") -> str:
    """Three digits after the point, without the zero before it."""
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def advice_text(results: Path, own: str = OWN) -> str:
    """Both tables of every shape; empty if nothing was run."""
    rows = read_rows(results)
    pieces = []
    for shape in sorted(rows["shape"].unique()):
        settings, outcomes = shape.split("x")
        pieces.append(f"**{settings} parameters, {outcomes} outcomes**: gap, mean (standard error)")
        pieces.append(gap_table(rows, shape))
        compared = difference_table(rows, shape, own)
        if compared:
            pieces.append(
                "Difference of the gaps on the same people, mean (standard error), two-sided "
                "paired t-test corrected by Holm over the methods of a column; below zero ours is "
                "better:"
            )
            pieces.append(compared)
    return "\n\n".join(pieces)


def main() -> None:
    """Prints the tables; `python -m benchmarks.publish` writes them into the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--results", type=Path, default=ROOT / "results")
    arguments.add_argument("--own", default=OWN, help="the rule that the others are compared with")
    chosen = arguments.parse_args()
    print(advice_text(chosen.results, chosen.own))


if __name__ == "__main__":
    main()
