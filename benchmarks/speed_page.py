"""The parts of docs/speed.md; a part without figures is an empty text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.markdown import headline_text, origin_text, table
from benchmarks.report import TARGETS, headlines, origin_of, repeats_text
from benchmarks.study_took import QUERIES, USERS, took, whole_study
from sfihilo.study.run.store import Store


def speed_text(figures: dict[str, Any]) -> str:
    """What `benchmarks.speed` measured, for docs/speed.md."""
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
    """A round at every t."""
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
    """Where the time of a round goes."""
    parts = [[label, f"{value:.1f}"] for label, value in profile["parts_ms"].items()]
    parts.append(["the whole round, without the profiler", f"{profile['round_ms']:.1f}"])
    parts.append(["floor of the arithmetic", f"{profile['floor_ms']:.1f}"])
    title = f"Where the time of a round goes at t = {profile['t']}:"
    return f"{title}\n\n{table(['part', 'ms'], parts)}"


def rates_text(profiles: list[dict[str, Any]]) -> str:
    """The rates that the floor was computed with."""
    if not profiles:
        return ""
    rates = profiles[-1]["rates_per_second"]
    return (
        f"Rates behind the floor: matrix products {rates['single'] / 1e9:.0f} GFLOP/s in single, "
        f"{rates['double'] / 1e9:.0f} in double precision; {rates['exponential'] / 1e9:.2f}e9 "
        f"exponentials and {rates['cosine'] / 1e9:.2f}e9 cosines a second (single precision)."
    )


def waiting_text(figures: dict[str, Any]) -> str:
    """How long a person waits."""
    waiting = figures["waiting"]
    memory = figures.get("waiting_in_memory", {}).get("prepared_ms")
    return (
        f"From the answer to the next query: {waiting['prepared_ms']:.0f} ms if prepared "
        f"(worst {waiting['prepared_worst_ms']:.0f}), {waiting['unprepared_ms']:.0f} ms if not"
        + ("." if memory is None else f"; without the disk {memory:.1f} ms if prepared.")
    )


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
                f"Every time is a median of {sample['repeats']}; seconds a run, mean over "
                f"conditions: {', '.join(f'{rule} {value:.0f}' for rule, value in means)}."
            )
    return "\n\n".join(pieces)


def study_took_text(results: Path) -> str:
    """What the study noted of its own time."""
    store = Store(results, "paper")
    found = took(store.read_timings(), whole_study())
    name = f"`results/{store.timings.relative_to(results)}`"
    if found is None:
        there = "has no times of it" if store.timings.exists() else "is not there"
        return f"{name} {there}: what the study really took is not known here."
    rows = [[rule, str(count), f"{mean:.1f}"] for rule, (count, mean) in found.by_rule.items()]
    guess = f" {found.guessed:,} of them are of a condition that was not timed under its rule and "
    guess += "count with the mean of others."
    return (
        f"{name} has the seconds of {found.done:,} of the study's {found.whole:,} units, measured "
        f"with two workers running side by side:\n\n"
        f"{table(['rule', 'units', 'mean seconds a unit'], rows)}\n\n"
        f"At these times the whole study ({USERS} users, all panels, paper preset, {QUERIES:,} "
        f"queries: {found.whole:,} units) takes {found.hours:.1f} hours with two workers "
        f"(target: {TARGETS['study_hours_paper']['study_hours_paper']})."
        f"{guess if found.guessed else ''}"
    )


def peers_headlines_text(figures: dict[str, Any]) -> str:
    """How many times faster than the peers, for docs/speed.md."""
    if not headlines("peers", figures):
        return ""
    origin = origin_text(origin_of("peers", figures))
    return f"{origin}\n\n{headline_text('peers', figures)}"
