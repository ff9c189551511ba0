"""Puts the latest figures into docs/speed.md and docs/peers.md, between two comments of theirs.

`python -m benchmarks.document` does it again from benchmarks/latest.json and results/peers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import ROOT

BEGIN, END = "<!-- figures: begin (written by benchmarks/document.py) -->", "<!-- figures: end -->"
METHODS = {
    "random": "Random (paper settings)",
    "mutual_information": "Mutual Information (paper settings)",
    "boundary_lookahead_paper": "Boundary Lookahead (paper settings)",
    "default": "SFIHILO default",
    "pairwisegp_bald": "PairwiseGP + BALD, on our forward model",
    "pairwisegp_eubo": "PairwiseGP + EUBO, adapted to executed outcomes",
    "optuna": "Optuna PreferentialGPSampler",
}


def replace_between(path: Path, text: str) -> None:
    """Everything between the two comments becomes `text`."""
    whole = path.read_text()
    if BEGIN not in whole or END not in whole:
        raise ValueError(f"{path}: expected the comments {BEGIN!r} and {END!r}")
    before, rest = whole.split(BEGIN, 1)
    path.write_text(f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{rest.split(END, 1)[1]}")


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine(environment: dict[str, Any]) -> str:
    """One line about where the figures come from."""
    return (
        f"Measured {environment['time']} at commit {environment['commit']} on one core of "
        f"{environment['processor']} (Python {environment['python']}, NumPy "
        f"{environment['numpy']}, SciPy {environment['scipy']}; load average "
        f"{environment['load_average']:.1f} at the start)."
    )


def speed_text(figures: dict[str, Any]) -> str:
    """The tables of docs/speed.md."""
    rounds = [
        [
            str(row["t"]),
            f"{row['tell_ms']:.1f}",
            f"{row['round_ms']:.1f}",
            f"{row['default_ms']:.1f}",
            f"{row['plain_ms']:.0f}",
            f"{row['tuned_ms']:.0f}",
            f"{row['speedup']:.1f}",
            f"{row['speedup_tuned']:.1f}",
            f"{row['same_policy']} of {row['of']}",
        ]
        for row in figures["rounds"]
    ]
    titles = ["t", "tell", "round", "round, default preset", "plain", "plain, tuned"]
    titles += ["times faster", "than tuned", "same policy"]
    pieces = [machine(figures["environment"]), "Milliseconds:", table(titles, rounds)]
    for profile in figures["profile"]:
        parts = [[label, f"{value:.1f}"] for label, value in profile["parts_ms"].items()]
        parts.append(["the whole round, without the profiler", f"{profile['round_ms']:.1f}"])
        parts.append(["floor of the arithmetic", f"{profile['floor_ms']:.1f}"])
        pieces.append(f"Where the time of a round goes at t = {profile['t']}:")
        pieces.append(table(["part", "ms"], parts))
    rates = figures["profile"][-1]["rates_per_second"]
    pieces.append(
        f"Rates behind the floor: matrix products {rates['single'] / 1e9:.0f} GFLOP/s in single, "
        f"{rates['double'] / 1e9:.0f} in double precision; {rates['exponential'] / 1e9:.2f}e9 "
        f"exponentials and {rates['cosine'] / 1e9:.2f}e9 cosines a second (single precision)."
    )
    waiting = figures["waiting"]
    memory = figures.get("waiting_in_memory", {}).get("prepared_ms")
    pieces.append(
        f"From the answer to the next query: {waiting['prepared_ms']:.0f} ms if prepared "
        f"(worst {waiting['prepared_worst_ms']:.0f}), {waiting['unprepared_ms']:.0f} ms if not"
        + ("." if memory is None else f"; without the disk {memory:.1f} ms if prepared.")
    )
    names = [name for name in HEADLINES if name in figures]
    pieces.append(table(["figure", "value"], [[n, f"{figures[n]:.3g}"] for n in names]))
    return "\n\n".join(pieces)


HEADLINES = (
    "speedup_t250",
    "speedup_t1000",
    "speedup_tuned_t250",
    "speedup_tuned_t1000",
    "growth_250_1000",
    "growth_250_4000",
    "peak_mb_t1000",
    "prepared_ms",
    "study_hours_paper",
    "pairwisegp_t200",
    "optuna_t200",
)


def clock_text(figures: dict[str, Any]) -> str:
    """The peers' table of times."""
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
    return f"{machine(figures['peers']['environment'])}\n\nMilliseconds a round:\n\n" + table(
        titles, rows
    )


def quality_text(folder: Path) -> str:
    """The peers' table of results, over the people for whom every method is done."""
    records: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in METHODS}
    for path in sorted(folder.glob("*-*.json")):
        record = json.loads(path.read_text())
        records[record["method"]][record["user"]] = record
    found = {name: done for name, done in records.items() if done}
    users = sorted(set.intersection(*(set(done) for done in found.values()))) if found else []
    if not users:
        return "No person has been finished by every method yet."
    rows = [_quality_row(name, [found[name][user] for user in users]) for name in found]
    queries = found[next(iter(found))][users[0]]["options"]["queries"]
    titles = ["method", "error at 100, %", f"error at {queries}, %", "queries to 10 %"]
    titles += [f"forward RMSE at {queries}", "final gap", "seconds a query"]
    text = f"{len(users)} people, {queries} queries each; mean ± standard error over people."
    return f"{text}\n\n{table(titles, rows)}"


def _quality_row(name: str, records: list[dict[str, Any]]) -> list[str]:
    gap = _mean([record["final_gap"] for record in records], 3)
    seconds = f"{np.mean([record['seconds_a_query'] for record in records]):.2f}"
    if not records[0]["curve"]:
        own = _mean([record["notes"]["mean_gap_of_best_trials"] for record in records], 3)
        return [METHODS[name], "-", "-", "-", "-", f"{gap} (its set: {own})", seconds]
    at = {
        count: [100 * _at(record["curve"], count)["error"] for record in records]
        for count in (100, records[0]["options"]["queries"])
    }
    errors = [_mean(values, 1) for values in at.values()]
    rmse = _mean([record["curve"][-1]["rmse"] for record in records], 4)
    return [METHODS[name], *errors, _crossing(records), rmse, gap, seconds]


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


def main() -> None:
    """Both pages, as far as there are figures."""
    latest = ROOT / "benchmarks" / "latest.json"
    figures = json.loads(latest.read_text()) if latest.exists() else {}
    if "rounds" in figures:
        replace_between(ROOT / "docs" / "speed.md", speed_text(figures))
    pieces = [clock_text(figures)] if "peers" in figures else []
    folder = ROOT / "results" / "peers"
    if folder.exists():
        pieces.append(quality_text(folder))
    if pieces:
        replace_between(ROOT / "docs" / "peers.md", "\n\n".join(pieces))


if __name__ == "__main__":
    main()
