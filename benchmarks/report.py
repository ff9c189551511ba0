"""The figures of a benchmark as a table, as JSON and as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.clock import ROOT

LATEST = ROOT / "benchmarks" / "latest.json"
# Headline -> what must hold (issue "Speed").
TARGETS = {
    "speedup_t250": "at least 5",
    "speedup_t1000": "at least 8",
    "speedup_tuned_t250": "against the tuned form of it",
    "speedup_tuned_t1000": "against the tuned form of it",
    "growth_250_1000": "at most 4",
    "growth_250_4000": "at most 16",
    "peak_mb_t1000": "below 400",
    "prepared_ms": "below 50",
    "pairwisegp_t200": "at least 20",
    "optuna_t200": "at least 20",
}


def write_latest(figures: dict[str, Any], forget: tuple[str, ...] = ()) -> None:
    """Add to what an earlier benchmark (the peers, say) left there, but for names to forget."""
    known = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    kept = {name: value for name, value in known.items() if not name.startswith(forget)}
    LATEST.write_text(json.dumps({**kept, **figures}, indent=2) + "\n")


def print_headlines(figures: dict[str, Any]) -> None:
    """Name, figure, target."""
    print()
    for name, target in TARGETS.items():
        if name in figures:
            print(f"{name:20} {figures[name]:10.1f}   {target}")


def print_table(figures: dict[str, Any]) -> None:
    """Everything that `benchmarks.speed` measured."""
    print("\nOne round (tell + ask), milliseconds, one core")
    titles = ("t", "tell", "round", "default", "tuned", "plain", "faster")
    print(" ".join(f"{title:>8}" for title in titles), " same policy")
    for row in figures["rounds"]:
        print(
            f"{row['t']:8d} {row['tell_ms']:8.1f} {row['round_ms']:8.1f} {row['default_ms']:8.1f} "
            f"{row['tuned_ms']:8.1f} {row['plain_ms']:8.1f} {row['speedup']:7.1f}x"
            f"  {row['same_policy']}/{row['of']}"
            f" (worst loss {row['worst_loss']:.1e}, scores within {row['worst_difference']:.1e})"
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
    for count, value in figures["checkpoint_tell_ms"].items():
        print(f"\nA tell that reselects hyperparameters, t={count}: {value:.0f} ms")
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
    print_headlines(figures)


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
