"""The parts of docs/peers.md; a part without figures is an empty text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import origin_text, table
from benchmarks.report import origin_of

METHODS = {
    "random": "Random (paper settings)",
    "mutual_information": "Mutual Information (paper settings)",
    "boundary_lookahead_paper": "Boundary Lookahead (paper settings)",
    "boundary_lookahead_default": "Boundary Lookahead (default settings)",
    "default": "SFIHILO default",
    "pairwisegp_bald": "PairwiseGP + BALD, on our forward model",
    "pairwisegp_eubo": "PairwiseGP + EUBO, adapted to executed outcomes",
    "optuna": "Optuna PreferentialGPSampler",
}


def clock_text(figures: dict[str, Any]) -> str:
    """The peers' table of times."""
    if "peers" not in figures:
        return ""
    names = ("paper", "default", "pairwisegp_bald", "pairwisegp_eubo", "optuna")
    titles = [
        "t",
        "ours, paper",
        "ours, default",
        "PairwiseGP + BALD",
        "PairwiseGP + EUBO",
        "Optuna",
    ]
    rows = [
        [str(row["t"]), *(f"{row[f'{name}_ms']:.0f}" for name in names)]
        for row in figures["peers"]["rounds"]
    ]
    repeats = figures["peers"].get("repeats")
    title = "Milliseconds a round" + ("" if repeats is None else f", medians of {repeats}")
    return f"{origin_text(origin_of('peers', figures))}\n\n{title}:\n\n{table(titles, rows)}"


def quality_text(folder: Path) -> str:
    """The peers' table of results, over the people whom every method that was run has finished."""
    records: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in METHODS}
    for path in sorted(folder.glob("*-*.json")):
        record = json.loads(path.read_text())
        records[record["method"]][record["user"]] = record
    found = {name: done for name, done in records.items() if done}
    if not found:
        return ""
    users = sorted(set.intersection(*(set(done) for done in found.values())))
    if not users:
        return "No person has been finished by every method yet."
    queries = found[next(iter(found))][users[0]]["options"]["queries"]
    titles = ["method", "error at 100, %", f"error at {queries}, %", "queries to 10 %"]
    titles += [f"forward RMSE at {queries}", "final gap", "seconds a query", "computed at commit"]
    rows = [
        _quality_row(name, [found[name][user] for user in users])
        if name in found
        else [METHODS[name], "not run", *["-"] * (len(titles) - 2)]
        for name in METHODS
    ]
    text = f"{len(users)} people, {queries} queries each; mean ± standard error over people."
    return f"{text}\n\n{table(titles, rows)}"


def _quality_row(name: str, records: list[dict[str, Any]]) -> list[str]:
    gap = _mean([record["final_gap"] for record in records], 3)
    seconds = f"{np.mean([record['seconds_a_query'] for record in records]):.2f}"
    commits = ", ".join(sorted({record.get("commit", "unknown") for record in records}))
    if not records[0]["curve"]:
        own = _mean([record["notes"]["mean_gap_of_best_trials"] for record in records], 3)
        return [METHODS[name], "-", "-", "-", "-", f"{gap} (its set: {own})", seconds, commits]
    at = {
        count: [100 * _at(record["curve"], count)["error"] for record in records]
        for count in (100, records[0]["options"]["queries"])
    }
    errors = [_mean(values, 1) for values in at.values()]
    rmse = _mean([record["curve"][-1]["rmse"] for record in records], 4)
    return [METHODS[name], *errors, _crossing(records), rmse, gap, seconds, commits]


def _at(curve: list[dict[str, float]], queries: int) -> dict[str, float]:
    return min(curve, key=lambda point: abs(point["queries"] - queries))


def _mean(values: list[float], digits: int) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def _crossing(records: list[dict[str, Any]]) -> str:
    """Where the mean curve first reaches 10 %, if it does."""
    queries = [point["queries"] for point in records[0]["curve"]]
    mean = np.mean([[point["error"] for point in record["curve"]] for record in records], axis=0)
    below = np.flatnonzero(mean <= 0.10)
    if len(below) == 0:
        return f"> {queries[-1]:.0f}"
    index = int(below[0])
    if index == 0:
        return f"{queries[0]:.0f}"
    share = (mean[index - 1] - 0.10) / (mean[index - 1] - mean[index])
    return f"{queries[index - 1] + share * (queries[index] - queries[index - 1]):.0f}"
