"""The measured figures: their file, their targets, and the Markdown tables made of them.

`benchmarks/latest.json` has one group of figures per program, each with its origin: when, where and
at which commit it was measured. A text without figures is empty.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import ROOT

LATEST = ROOT / "benchmarks" / "latest.json"
# Group of figures measured together -> headline -> target.
TARGETS: dict[str, dict[str, str]] = {
    "speed": {
        "speedup_t250": "at least 5",
        "speedup_t1000": "at least 8",
        "speedup_tuned_t250": "against the tuned form of it",
        "speedup_tuned_t1000": "against the tuned form of it",
        "growth_250_1000": "at most 4",
        "growth_250_4000": "at most 16",
        "default_query_ms_t200": "at most 100 ms",
        "default_query_ms_t1000": "at most 300 ms",
        "peak_mb_t1000": "below 400 MB",
        "prepared_ms": "below 50 ms",
    },
    "study_hours_paper": {
        "study_hours_paper": "at most 4 hours",
        "study_floor_hours": "what its arithmetic alone takes",
    },
    "study_hours_default": {"study_hours_default": "none"},
    "peers": {"pairwisegp_t200": "at least 20", "optuna_t200": "at least 20"},
}
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


def read_latest() -> dict[str, Any]:
    """All figures, each group as it was measured last."""
    found: dict[str, Any] = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    return found


def write_latest(
    group: str, origin: dict[str, Any], figures: dict[str, Any], forget: tuple[str, ...] = ()
) -> None:
    """Writes a group's figures and their origin, and keeps those of the other groups.

    Figures whose names begin with one of `forget` are removed, measured again or not.
    """
    known = read_latest()
    kept = {name: value for name, value in known.items() if not name.startswith(forget)}
    origins = {**kept.get("origins", {}), group: origin}
    LATEST.write_text(json.dumps({**kept, **figures, "origins": origins}, indent=2) + "\n")


def origin_of(group: str, figures: dict[str, Any]) -> dict[str, Any] | None:
    """Where and when a group was measured, if the file says so."""
    # Older files store two of the origins elsewhere.
    older = {
        "speed": figures.get("environment"),
        "peers": figures.get("peers", {}).get("environment"),
    }
    found: dict[str, Any] | None = figures.get("origins", {}).get(group, older.get(group))
    return found


def headlines(group: str, figures: dict[str, Any]) -> list[tuple[str, float, str]]:
    """Name, value and target of the headlines that were measured."""
    targets = TARGETS[group].items()
    return [(name, figures[name], target) for name, target in targets if name in figures]


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def origin_text(origin: dict[str, Any] | None) -> str:
    """One line about the origin of figures, as far as it was recorded."""
    if origin is None:
        return "When, where and at which commit this was measured was not recorded."
    versions = {"Python": origin["python"], "NumPy": origin["numpy"], "SciPy": origin["scipy"]}
    named = ", ".join(f"{k} {v}" for k, v in {**versions, **origin.get("packages", {})}.items())
    load = f"load average {origin['load_average']:.1f}"
    if "load_average_after" in origin:
        load += f" before, {origin['load_average_after']:.1f} after"
    return (
        f"Measured {origin['time']} at commit {origin['commit']} on one core of "
        f"{origin['processor']} ({named}; {load})."
    )


def headline_text(group: str, figures: dict[str, Any]) -> str:
    """A group's headlines beside their targets."""
    rows = [[name, f"{value:.3g}", target] for name, value, target in headlines(group, figures)]
    return table(["figure", "value", "target"], rows)


def speed_text(figures: dict[str, Any]) -> str:
    """The figures of `benchmarks.speed`."""
    if "rounds" not in figures:
        return ""
    pieces = [
        origin_text(origin_of("speed", figures)),
        headline_text("speed", figures),
        rounds_text(figures["rounds"]),
        checkpoints_text(figures.get("checkpoints", [])),
        *(profile_text(profile) for profile in figures["profile"]),
        rates_text(figures["profile"]),
        waiting_text(figures),
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def rounds_text(rows: list[dict[str, Any]]) -> str:
    """The usual round at every t."""
    titles = ["t", "tell", "round", "round, default preset", "plain", "plain, tuned"]
    titles += ["times faster", "than tuned", "same policy", "as timed", "largest loss as timed"]
    titles += ["repeats of ours / of plain"]
    cells = [
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
            str(row["same_policy_as_timed"]),
            f"{row['worst_loss_as_timed']:.1%}",
            repeats_text(row),
        ]
        for row in rows
    ]
    title = "Milliseconds, each a median of as many repeats as the last column says:"
    return f"{title}\n\n{table(titles, cells)}"


def checkpoints_text(rows: list[dict[str, Any]]) -> str:
    """Rounds that reselect hyperparameters."""
    if not rows:
        return ""
    titles = ["preset", "t", "usual round", "reselects the kernel", "reselects the sharpness"]
    names = ("usual_ms", "kernel_ms", "sharpness_ms")
    cells = [
        [row["preset"], str(row["t"]), *(f"{row[name]:.1f}" for name in names)] for row in rows
    ]
    return (
        f"Rounds that reselect hyperparameters, in milliseconds (medians of {rows[0]['repeats']}); "
        f"the paper's inference moves the sharpness in every round:\n\n{table(titles, cells)}"
    )


def profile_text(profile: dict[str, Any]) -> str:
    """Milliseconds of each part of a round."""
    parts = [[label, f"{value:.1f}"] for label, value in profile["parts_ms"].items()]
    parts.append(["the whole round, without the profiler", f"{profile['round_ms']:.1f}"])
    parts.append(["floor of the arithmetic", f"{profile['floor_ms']:.1f}"])
    title = f"Where the time of a round goes at t = {profile['t']}:"
    return f"{title}\n\n{table(['part', 'ms'], parts)}"


def rates_text(profiles: list[dict[str, Any]]) -> str:
    """The measured rates of arithmetic behind the floor."""
    if not profiles:
        return ""
    rates = profiles[-1]["rates_per_second"]
    return (
        f"Rates behind the floor: matrix products {rates['single'] / 1e9:.0f} GFLOP/s in single, "
        f"{rates['double'] / 1e9:.0f} in double precision; {rates['exponential'] / 1e9:.2f}e9 "
        f"exponentials and {rates['cosine'] / 1e9:.2f}e9 cosines per second (single precision)."
    )


def waiting_text(figures: dict[str, Any]) -> str:
    """How long a person waits for the next query."""
    waiting = figures["waiting"]
    memory = figures.get("waiting_in_memory", {}).get("prepared_ms")
    return (
        f"From the answer to the next query: {waiting['prepared_ms']:.0f} ms if prepared "
        f"(worst {waiting['prepared_worst_ms']:.0f}), {waiting['unprepared_ms']:.0f} ms if not"
        + ("." if memory is None else f"; without the disk {memory:.1f} ms if prepared.")
    )


def proposals_text(figures: dict[str, Any]) -> str:
    """The figures of `benchmarks.proposals`."""
    if "proposals" not in figures:
        return ""
    rows = figures["proposals"]
    titles = ["t", "`tell` + `ask`", "`chance_new`", "the whole proposal"]
    names = ("query_ms", "chance_new_ms", "proposal_ms")
    cells = [[str(row["t"]), *(f"{row[name]:.0f}" for name in names)] for row in rows]
    title = f"Milliseconds, default preset, d = 8, medians of {rows[0]['repeats']}:"
    return f"{origin_text(origin_of('proposals', figures))}\n\n{title}\n\n{table(titles, cells)}"


def study_hours_text(figures: dict[str, Any]) -> str:
    """The whole study extrapolated, for each preset that was sampled."""
    pieces = []
    for preset in ("paper", "default"):
        group = f"study_hours_{preset}"
        if group not in figures:
            continue
        pieces += [origin_text(origin_of(group, figures)), headline_text(group, figures)]
        sample = figures.get(f"study_sample_{preset}")
        if sample is not None:
            means = sample["seconds_a_run"].items()
            pieces.append(
                f"Every time is a median of {sample['repeats']}; seconds per run, mean over "
                f"conditions: {', '.join(f'{rule} {value:.0f}' for rule, value in means)}."
            )
    return "\n\n".join(pieces)


def peers_headlines_text(figures: dict[str, Any]) -> str:
    """The headlines of the peers."""
    if not headlines("peers", figures):
        return ""
    origin = origin_text(origin_of("peers", figures))
    return f"{origin}\n\n{headline_text('peers', figures)}"


def repeats_text(row: dict[str, Any]) -> str:
    """How often our round and the plain one were timed."""
    return f"{row['repeats']} / {row['plain_repeats']}"


def peer_times_text(figures: dict[str, Any]) -> str:
    """Milliseconds per round, ours and of each peer."""
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
    title = "Milliseconds per round" + ("" if repeats is None else f", medians of {repeats}")
    return f"{origin_text(origin_of('peers', figures))}\n\n{title}:\n\n{table(titles, rows)}"


def peer_results_text(folder: Path) -> str:
    """Results of every method, over the people for whom every method that was run has finished."""
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
    titles += [f"forward RMSE at {queries}", "final gap", "seconds per query", "computed at commit"]
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
