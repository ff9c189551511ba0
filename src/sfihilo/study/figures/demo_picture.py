"""The picture of the demonstration: two goals beside random trials, and the why of one person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from matplotlib.typing import LineStyleType

from sfihilo.history import IntArray
from sfihilo.study.demo import exoskeleton
from sfihilo.study.demo.courses import WAYS, Way
from sfihilo.study.demo.findings import Band, Summary, headline, percent
from sfihilo.study.demo.why import Slice, Why
from sfihilo.study.figures import style

NAMES: dict[Way, str] = {
    "best": "goal best",
    "understand": "goal understand",
    "random": "random trials",
}
COLOURS: dict[Way, str] = {"best": style.RED, "understand": style.BLUE, "random": style.GREY}
MEANINGS: dict[Way, str] = {
    "best": "seeks a good setting",
    "understand": "asks what tells most about the person",
    "random": "same models",
}
QUIET = "#5f5f5f"
SHOWN = 4  # slices
WHY_KEY: dict[str, Any] = {
    "ncols": 4,
    "columnspacing": 1.5,
    "loc": "upper right",
    "bbox_to_anchor": (0.992, 0.359),
}
TRUTH: LineStyleType = (0, (4, 2))
TEXT = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlepad": 22.0,
    "axes.labelsize": 9.2,
    "legend.fontsize": 9.2,
    "xtick.labelsize": 8.8,
    "ytick.labelsize": 8.8,
    "axes.edgecolor": "#999999",
    "xtick.color": "#999999",
    "ytick.color": "#999999",
    "xtick.labelcolor": "#333333",
    "ytick.labelcolor": "#333333",
}


def picture(summary: Summary) -> Figure:
    """What the goals are worth over all people, and below it the why of one of them."""
    with style.styled(TEXT):
        figure = style.new_figure(10.0, 8.6, layout=None)
        write_heads(figure, summary)
        write_key(figure)
        top = figure.add_gridspec(
            1, 3, top=0.735, bottom=0.505, wspace=0.36, left=0.062, right=0.945
        )
        draw_courses([figure.add_subplot(top[0, place]) for place in range(3)], summary)
        low = figure.add_gridspec(
            1,
            SHOWN + 1,
            width_ratios=[1.3, *[1.0] * SHOWN],
            top=0.315,
            bottom=0.112,
            wspace=0.16,
            left=0.118,
            right=0.985,
        )
        panels = [figure.add_subplot(low[0, place]) for place in range(SHOWN + 1)]
        draw_why(panels, summary.example["understand"].why)
        figure.legend(handles=why_key(), **WHY_KEY)
    return figure


def write_heads(figure: Figure, summary: Summary) -> None:
    """The finding as the title, what was simulated, the title of the lower row, and one advice."""
    example = summary.example["best"]
    heads = (
        (0.985, headline(summary), {"fontsize": 17, "fontweight": "bold", "linespacing": 1.2}),
        (
            0.896,
            f"{summary.people} simulated people try a {exoskeleton.NAME} with "
            f"{len(exoskeleton.SETTINGS)} settings and {len(exoskeleton.OUTCOMES)} measured "
            "outcomes; after each trial they only say whether it\nwas better than the "
            f"one before. Lines: mean of the {summary.people} people; bands: ± 1 standard "
            "error. Liking: 0 % worst setting, 100 % best.",
            {"color": QUIET, "linespacing": 1.35},
        ),
        (
            0.425,
            "And it tells why: what makes a trial good for one of these people",
            {"fontsize": 14, "fontweight": "bold"},
        ),
        (
            0.388,
            f"Goal understand, after {summary.queries} trials, for the person in the middle: "
            "half of the people were learned better, half worse.",
            {"color": QUIET},
        ),
        (
            0.030,
            f"Goal best advises this person: {exoskeleton.describe(example.advised)}. Worth "
            f"{percent(example.advice[-1])}.",
            {"color": COLOURS["best"]},
        ),
    )
    for height, text, look in heads:
        figure.text(0.012, height, text, va="top", **look)


def write_key(figure: Figure) -> None:
    """What each colour of the upper row is, in its colour."""
    words: list[Artist] = []
    for way in WAYS:
        name = {"color": COLOURS[way], "fontsize": 10.5, "fontweight": "bold"}
        meaning = {"color": QUIET, "fontsize": 10}
        pair: list[Artist] = [
            TextArea(NAMES[way], textprops=name),
            TextArea(MEANINGS[way], textprops=meaning),
        ]
        words.append(HPacker(children=pair, sep=6, align="baseline"))
    row = HPacker(children=words, sep=26, align="baseline")
    key = AnchoredOffsetbox(
        loc="upper left",
        child=row,
        pad=0,
        borderpad=0,
        frameon=False,
        bbox_to_anchor=(0.012, 0.836),
        bbox_transform=figure.transFigure,
    )
    figure.add_artist(key)


def draw_courses(panels: Sequence[Axes], summary: Summary) -> None:
    """Advice, liking of the trials, and wrong predictions over the number of trials."""
    advice, liking, wrong = panels
    draw_bands(advice, summary.advice)
    draw_bands(liking, summary.liking)
    draw_bands(wrong, summary.wrong)
    subtitle(advice, "The advised setting", "liking, of the best reachable")
    subtitle(liking, "The trials on the way", "mean liking so far, of the best reachable")
    subtitle(wrong, "Knowing the person", "pairs whose order it predicts wrong")
    lowest = min(summary.blind, *(float(band.mean.min()) for band in summary.liking.values()))
    for axes in (advice, liking):
        axes.set_ylim(min(0.35, lowest - 0.1), 1.0)
        axes.axhline(summary.blind, color=style.BLACK, linewidth=0.8, linestyle=(0, (2, 3)))
    advice.annotate(
        "a setting picked blindly",
        xy=(summary.queries, summary.blind),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8.8,
        color=QUIET,
    )
    wrong.set_ylim(0, None)
    for axes in panels:
        axes.set_xlim(0, summary.queries)
        axes.set_xlabel("trials")
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
        axes.grid(axis="y", color="#ececec", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    for axes, bands in zip(panels, (summary.advice, summary.liking, summary.wrong), strict=True):
        label_ends(axes, bands)


def subtitle(axes: Axes, title: str, text: str) -> None:
    """The title of a panel with its measure below it."""
    axes.set_title(title)
    axes.annotate(
        text,
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(0, 8),
        textcoords="offset points",
        fontsize=9.2,
        color=QUIET,
    )


def draw_bands(axes: Axes, bands: Mapping[Way, Band]) -> None:
    """One line with its band per way, labelled at its end."""
    for way in reversed(WAYS):
        band, colour = bands[way], COLOURS[way]
        low, high = band.mean - band.error, band.mean + band.error
        axes.fill_between(band.queries, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(band.queries, band.mean, color=colour, linewidth=2.4, solid_capstyle="round")


def label_ends(axes: Axes, bands: Mapping[Way, Band]) -> None:
    """The last value of each line at its right end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    apart = 0.085 * (high - low)
    ranked = sorted(WAYS, key=lambda way: bands[way].last)
    heights = [bands[way].last for way in ranked]
    for upper in range(1, len(heights)):
        heights[upper] = max(heights[upper], heights[upper - 1] + apart)
    shift = (sum(heights) - sum(bands[way].last for way in ranked)) / len(heights)
    for way, height in zip(ranked, heights, strict=True):
        axes.annotate(
            percent(bands[way].last),
            xy=(1, height - shift),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[way],
            fontweight="bold",
            annotation_clip=False,
        )


def draw_why(panels: Sequence[Axes], why: Why) -> None:
    """The drives of all outcomes, and the learned reward along the strongest of them."""
    order = np.argsort(-why.learned)
    draw_drives(panels[0], why, order)
    chosen = [int(outcome) for outcome in order[:SHOWN]]
    limits = slice_limits([why.slices[outcome] for outcome in chosen])
    for axes, outcome in zip(panels[1:], chosen, strict=True):
        draw_slice(axes, why.slices[outcome])
        axes.set_ylim(*limits)
        axes.set_xlabel(exoskeleton.OUTCOMES[outcome])
    panels[0].set_title("What drives liking", pad=9)
    panels[1].set_title("How liking changes", pad=9)
    panels[1].set_ylabel("worse  $\\leftarrow$   $\\rightarrow$  better")


def why_key() -> list[Artist]:
    """What the lines and marks of the lower row are."""
    return [
        Line2D([], [], color=style.BLUE, linewidth=2.4, label="learned"),
        Patch(color=style.BLUE, alpha=0.16, linewidth=0, label="90 % sure"),
        Line2D([], [], color=style.BLACK, linewidth=1.6, linestyle=TRUTH, label="the truth"),
        Line2D([], [], color=style.BLUE, marker="o", linestyle="none", label="advised"),
    ]


def draw_drives(axes: Axes, why: Why, order: IntArray) -> None:
    """The share of each outcome in what makes the reward differ, learned and true."""
    places = np.arange(len(order))
    axes.barh(places, why.learned[order], height=0.62, color=style.BLUE, alpha=0.75)
    axes.plot(why.truth[order], places, "|", color=style.BLACK, markersize=13, markeredgewidth=2.2)
    axes.set_yticks(places, [exoskeleton.OUTCOMES[outcome] for outcome in order])
    axes.invert_yaxis()
    axes.set_xlim(0, None)
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("share of all differences")


def draw_slice(axes: Axes, cut: Slice) -> None:
    """The reward along one outcome, relative to the advised one."""
    axes.fill_between(cut.grid, cut.low, cut.high, color=style.BLUE, alpha=0.16, linewidth=0)
    axes.plot(cut.grid, cut.learned, color=style.BLUE, linewidth=2.4)
    axes.plot(cut.grid, cut.truth, color=style.BLACK, linewidth=1.6, linestyle=TRUTH)
    axes.plot([cut.here], [0], "o", color=style.BLUE, markersize=7, clip_on=False, zorder=5)
    ends = min(cut.common[0], cut.here), max(cut.common[1], cut.here)
    axes.set_xlim(*ends)
    axes.set_xticks(ends, ["low", "high"])
    left, right = axes.get_xticklabels()
    left.set_horizontalalignment("left")
    right.set_horizontalalignment("right")
    axes.set_yticks([])


def slice_limits(slices: Sequence[Slice]) -> tuple[float, float]:
    """One vertical range for all slices: curves and bands over the outcomes that are common."""
    values = [0.0]
    for cut in slices:
        common = (cut.grid >= cut.common[0]) & (cut.grid <= cut.common[1])
        for curve in (cut.truth, cut.learned, cut.low, cut.high):
            values += [float(value) for value in curve[common]]
    margin = 0.05 * (max(values) - min(values))
    return min(values) - margin, max(values) + margin
