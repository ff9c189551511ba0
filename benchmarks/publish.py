"""`python -m benchmarks.publish`: writes the latest figures into docs/speed.md and docs/peers.md.

Each part of a page is between two comments and comes from benchmarks/latest.json or results/. A
part without figures stays as it is. The picture of docs/speed.md is drawn again too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.clock import ROOT
from benchmarks.peers.advice.page import advice_text
from benchmarks.study_time import study_took_text


def comments(part: str) -> tuple[str, str]:
    """The comments before and after a generated part of a page."""
    return (
        f"<!-- {part}: begin (written by benchmarks/publish.py) -->",
        f"<!-- {part}: end -->",
    )


def replace_part(path: Path, part: str, text: str) -> None:
    """Replaces everything between the two comments of a part by `text`."""
    whole, (begin, end) = path.read_text(), comments(part)
    if begin not in whole or end not in whole:
        raise ValueError(f"{path}: expected the comments {begin!r} and {end!r}")
    before, rest = whole.split(begin, 1)
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.split(end, 1)[1]}")


def write_pages(figures: dict[str, Any], results: Path, docs: Path) -> None:
    """Writes each part of the pages that has figures."""
    parts = {
        ("speed.md", "speed"): tables.speed_text(figures),
        ("speed.md", "proposals"): tables.proposals_text(figures),
        ("speed.md", "study hours"): tables.study_hours_text(figures),
        ("speed.md", "study took"): study_took_text(results),
        ("speed.md", "peers"): tables.peers_headlines_text(figures),
        ("peers.md", "times"): tables.peer_times_text(figures),
        ("peers.md", "results"): tables.peer_results_text(results / "peers"),
        ("peers.md", "advice"): advice_text(results),
    }
    for (page, part), text in parts.items():
        if text:
            replace_part(docs / page, part, text)


def growth_picture(figures: dict[str, Any], path: Path) -> None:
    """Draws milliseconds per round against comparisons told, both axes logarithmic."""
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
    axes.set_ylabel("ms per round (tell + ask), one core")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", lw=0.8)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def main() -> None:
    """Writes both pages and the picture, as far as there are figures."""
    figures = tables.read_latest()
    write_pages(figures, ROOT / "results", ROOT / "docs")
    if "rounds" in figures:
        growth_picture(figures, ROOT / "docs" / "images" / "growth.png")


if __name__ == "__main__":
    main()
