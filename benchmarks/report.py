"""The figures of a benchmark as a table, as JSON and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.clock import ROOT

LATEST = ROOT / "benchmarks" / "latest.json"
# Group of figures measured together -> headline -> what must hold (issue "Speed").
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


def read_latest() -> dict[str, Any]:
    """All figures, each group as it was last measured."""
    found: dict[str, Any] = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    return found


def write_latest(
    group: str, origin: dict[str, Any], figures: dict[str, Any], forget: tuple[str, ...] = ()
) -> None:
    """A group's figures and their origin, beside what other groups left there.

    What begins with a name to forget goes, measured again or not.
    """
    known = read_latest()
    kept = {name: value for name, value in known.items() if not name.startswith(forget)}
    origins = {**kept.get("origins", {}), group: origin}
    LATEST.write_text(json.dumps({**kept, **figures, "origins": origins}, indent=2) + "\n")


def origin_of(group: str, figures: dict[str, Any]) -> dict[str, Any] | None:
    """Where and when a group was measured, if the file says so."""
    # Files from before there were origins have two of them elsewhere.
    older = {
        "speed": figures.get("environment"),
        "peers": figures.get("peers", {}).get("environment"),
    }
    found: dict[str, Any] | None = figures.get("origins", {}).get(group, older.get(group))
    return found


def headlines(group: str, figures: dict[str, Any]) -> list[tuple[str, float, str]]:
    """Name, figure and target of those that were measured."""
    targets = TARGETS[group].items()
    return [(name, figures[name], target) for name, target in targets if name in figures]


def print_headlines(group: str, figures: dict[str, Any]) -> None:
    """Name, figure, target."""
    print()
    for name, value, target in headlines(group, figures):
        print(f"{name:24} {value:10.2f}   target: {target}")


def print_table(figures: dict[str, Any]) -> None:
    """Everything that `benchmarks.speed` measured."""
    print("\nOne round (tell + ask), milliseconds, one core")
    titles = ("t", "tell", "round", "default", "tuned", "plain", "faster", "repeats")
    print(" ".join(f"{title:>8}" for title in titles), " same policy")
    for row in figures["rounds"]:
        print(
            f"{row['t']:8d} {row['tell_ms']:8.1f} {row['round_ms']:8.1f} {row['default_ms']:8.1f} "
            f"{row['tuned_ms']:8.1f} {row['plain_ms']:8.1f} {row['speedup']:7.1f}x"
            f" {repeats_text(row):>8}  {row['same_policy']}/{row['of']}"
            f" (worst loss {row['worst_loss']:.1e}, scores within {row['worst_difference']:.1e};"
            f" as timed {row['same_policy_as_timed']}, {row['worst_loss_as_timed']:.1e})"
        )
    for profile in figures["profile"]:
        print(f"\nWhere the time goes at t={profile['t']} ({profile['round_ms']:.1f} ms)")
        for label, value in profile["parts_ms"].items():
            print(f"  {label:40} {value:8.1f} ms")
        rates = profile["rates_per_second"]
        print(
            f"  floor of the arithmetic {profile['floor_ms']:.1f} ms"
            f" ({rates['single'] / 1e9:.0f} GFLOP/s single, {rates['double'] / 1e9:.0f} double);"
            f" all leverages would add {profile['full_leverage_ms']:.1f} ms"
        )
    print_checkpoints(figures["checkpoints"])
    waiting = figures["waiting"]
    print(
        f"\nFrom the answer to the next query: {waiting['prepared_ms']:.0f} ms if prepared"
        f" (worst {waiting['prepared_worst_ms']:.0f}), {waiting['unprepared_ms']:.0f} ms not;"
        f" same queries: {waiting['same_queries']}"
    )
    if "waiting_in_memory" in figures:
        print(f"Without the disk: {figures['waiting_in_memory']['prepared_ms']:.1f} ms if prepared")
    if "run" in figures:
        run = figures["run"]
        print(
            f"\nA whole run to t={run['comparisons']:.0f}:"
            f" {run['seconds']:.0f} s, {run['peak_mb']:.0f} MB"
        )
    print_headlines("speed", figures)


def print_checkpoints(rows: list[dict[str, Any]]) -> None:
    """Rounds that reselect hyperparameters, beside the usual ones."""
    print("\nRounds that reselect hyperparameters, milliseconds")
    titles = ("preset", "t", "usual", "kernel", "sharpness")
    print(" ".join(f"{title:>10}" for title in titles))
    names = ("usual_ms", "kernel_ms", "sharpness_ms")
    for row in rows:
        print(f"{row['preset']:>10} {row['t']:10d}", *(f"{row[name]:10.1f}" for name in names))


def repeats_text(row: dict[str, Any]) -> str:
    """Of ours and of the plain transcription."""
    return f"{row['repeats']} / {row['plain_repeats']}"


def growth_picture(figures: dict[str, Any], path: Path) -> None:
    """Milliseconds a round against comparisons told, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = figures["rounds"]
    counts = [row["t"] for row in rows]
    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    lines = (
        ("plain_ms", "plain NumPy, as the paper is written", "#999999", "s"),
        ("tuned_ms", "plain NumPy, tuned", "#c8c8c8", "D"),
        ("round_ms", "SFIHILO, paper settings", "#0b6e99", "o"),
        ("default_ms", "SFIHILO, default settings", "#d1711f", "^"),
    )
    for key, label, colour, marker in lines:
        values = [row[key] for row in rows]
        axes.loglog(counts, values, marker=marker, color=colour, label=label, lw=1.6, ms=4.5)
    anchor = next(row for row in rows if row["t"] == min(250, max(counts)))
    linear = [anchor["round_ms"] * count / anchor["t"] for count in counts if count >= anchor["t"]]
    axes.loglog(
        [count for count in counts if count >= anchor["t"]],
        linear,
        ls=":",
        color="black",
        lw=1,
        label="linear growth from t = 250",
    )
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    ticks = [value * 10**power for power in range(5) for value in (1, 2, 5)]
    low, high = axes.get_ylim()
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("comparisons told")
    axes.set_ylabel("ms a round (tell + ask), one core")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", lw=0.8)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200)
    plt.close(figure)
