"""The picture of the demonstration: one person, two query rules, labelled in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from sfihilo.history import FloatArray
from sfihilo.study.figures import style

LIKING = LinearSegmentedColormap.from_list("liking", ["#f7f4ee", "#f2dcae", "#e3b068", "#b8702a"])
TIME = LinearSegmentedColormap.from_list("time", ["#d6e6f4", "#6aaed6", "#0072B2", "#08306b"])


@dataclass(frozen=True, eq=False)
class Slice:
    """The reward along one outcome, relative to `here`, the other outcomes held."""

    outcome: int
    grid: FloatArray
    truth: FloatArray
    learned: FloatArray
    low: FloatArray
    high: FloatArray
    common: tuple[float, float]
    here: float


@dataclass(frozen=True, eq=False)
class Journey:
    """The course of one rule: errors and recommendations over time, policies, reward gaps.

    `gaps` is the true difference in liking between each new experience and the one before it.
    """

    rule: str
    questions: FloatArray
    forward_error: FloatArray
    preference_error: FloatArray
    reward: FloatArray
    policies: FloatArray
    gaps: FloatArray


@dataclass(frozen=True, eq=False)
class Person:
    """The truth about the simulated person that the picture is drawn on."""

    best_reward: float
    typical_reward: float
    settings: tuple[int, int]
    ground: FloatArray
    slices: tuple[Slice, ...]


TEXT = {
    "font.size": 8.5,
    "axes.titlesize": 9.2,
    "axes.labelsize": 8.2,
    "xtick.labelsize": 7.8,
    "ytick.labelsize": 7.8,
    "legend.fontsize": 8.0,
}
NAMES = {"global_pairs": "Asking the most telling question", "random": "Asking at random"}
COLOURS = {"global_pairs": style.BLUE, "random": style.GREY}


def picture(person: Person, journeys: Sequence[Journey]) -> Figure:
    """Learning curves above, the person's reward in the middle, the asked policies below."""
    with style.styled(TEXT):
        figure = style.new_figure(10.0, 10.4, layout=None)
        top, middle, bottom = style.stacked(figure, (1.08, 0.95, 1.2))
        draw_progress(top, person, journeys)
        draw_slices(middle, person)
        draw_questions(bottom, person, journeys)
    return figure


def heading(figure: SubFigure, title: str, text: str) -> None:
    """A row's title in words, with one plain sentence below it."""
    figure.text(0.012, 0.965, title, va="top", fontsize=13, fontweight="bold", color=style.BLACK)
    figure.text(0.012, 0.885, text, va="top", fontsize=8.6, color="#555555")


def row_of_axes(figure: SubFigure, widths: Sequence[float], top: float, right: float) -> list[Axes]:
    """A row of axes below the row's heading."""
    grid = figure.add_gridspec(
        1,
        len(widths),
        width_ratios=widths,
        top=top,
        bottom=0.15,
        left=0.065,
        right=right,
        wspace=0.32,
    )
    return [figure.add_subplot(grid[0, place]) for place in range(len(widths))]


def draw_progress(figure: SubFigure, person: Person, journeys: Sequence[Journey]) -> None:
    """Three learning curves: guessing preferences, predicting outcomes, recommending."""
    asked = int(journeys[0].questions[-1])
    heading(
        figure,
        f"Learning what one person wants from {asked} short questions",
        "A simulated person tries a device with eight settings, and after each trial says only "
        "whether it was better than the trial before.",
    )
    left, middle, right = row_of_axes(figure, (1, 1, 1), 0.70, 0.985)
    for journey in journeys:
        look: dict[str, Any] = {
            "color": COLOURS[journey.rule],
            "marker": "o",
            "markersize": 2.6,
            "linewidth": 1.8,
        }
        left.plot(journey.questions, 100 * journey.preference_error, **look)
        middle.plot(journey.questions, 100 * journey.forward_error, **look)
        right.plot(journey.questions, 100 * journey.reward / person.best_reward, **look)
    left.set_title("Wrong guesses about\nwhat the person prefers")
    middle.set_title("Error in predicting what\na setting does to the person")
    right.set_title("How much the person likes\nthe setting it recommends")
    left.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    middle.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    right.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    left.set_ylabel("of pairs guessed wrong")
    middle.set_ylabel("of each outcome's full range")
    right.set_ylabel("of the best possible")
    for axes in (left, middle):
        axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
    mark_references(right, person)
    for axes in (left, middle, right):
        axes.set_xlim(0, asked * 1.03)
        axes.set_xlabel("questions asked")
        axes.grid(axis="y", color="#ececec", linewidth=0.7)
        axes.set_axisbelow(True)
    figure.legend(
        handles=[
            Line2D([], [], color=COLOURS[j.rule], marker="o", markersize=3, label=NAMES[j.rule])
            for j in journeys
        ],
        loc="upper right",
        bbox_to_anchor=(0.99, 0.985),
    )


def mark_references(axes: Axes, person: Person) -> None:
    """The best possible setting and an average one, for scale."""
    typical = 100 * person.typical_reward / person.best_reward
    lines = ((100.0, "the best possible setting"), (typical, "a setting picked blindly"))
    low = min(axes.get_ylim()[0], typical - 6)
    axes.set_ylim(max(0, low), 106)
    for height, text in lines:
        axes.axhline(height, color=style.BLACK, linewidth=0.8, linestyle=(0, (3, 3)), zorder=1)
        axes.annotate(
            text,
            xy=(1, height),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            fontsize=7.4,
            color="#444444",
        )


def slice_limits(slices: Sequence[Slice]) -> tuple[float, float]:
    """One vertical range for all slices: all curves, and the bands over common outcomes."""
    values = [0.0]
    for cut in slices:
        happens = (cut.grid >= cut.common[0]) & (cut.grid <= cut.common[1])
        values += [*cut.truth, *cut.learned, *cut.low[happens], *cut.high[happens]]
    margin = 0.05 * (max(values) - min(values))
    return min(values) - margin, max(values) + margin


def draw_slices(figure: SubFigure, person: Person) -> None:
    """The learned reward with its uncertainty over the true one, along single outcomes."""
    heading(
        figure,
        "Why: what makes a trial good for this person",
        "Each plot changes one measured outcome and holds the others. The method never saw the "
        "dashed line: it only heard which of two trials was better.",
    )
    rows = row_of_axes(figure, [1.0] * len(person.slices), 0.77, 0.83)
    limits = slice_limits(person.slices)
    for axes, cut in zip(rows, person.slices, strict=True):
        for start, end in ((0.0, cut.common[0]), (cut.common[1], 1.0)):
            axes.axvspan(start, end, color="#f0f0f0", linewidth=0, zorder=0)
        axes.fill_between(cut.grid, cut.low, cut.high, color=style.SKY, alpha=0.3, linewidth=0)
        axes.plot(cut.grid, cut.learned, color=style.BLUE, linewidth=1.8)
        axes.plot(cut.grid, cut.truth, color=style.BLACK, linewidth=1.4, linestyle=(0, (4, 2)))
        axes.axhline(0, color=style.BLACK, linewidth=0.5, zorder=1)
        axes.plot([cut.here], [0], "o", color=style.BLUE)
        axes.set_xlim(0, 1)
        axes.set_ylim(*limits)
        axes.set_xticks([0, 1], ["low", "high"])
        axes.set_xlabel(f"measured outcome {cut.outcome + 1}")
        axes.set_yticks([])
    rows[0].set_ylabel("worse $\\leftarrow$ than advised $\\rightarrow$ better")
    rows[-1].legend(
        handles=[
            Line2D([], [], color=style.BLACK, linestyle=(0, (4, 2)), label="the truth"),
            Line2D([], [], color=style.BLUE, linewidth=1.8, label="learned from answers"),
            Patch(color=style.SKY, alpha=0.3, label="90 % sure"),
            Line2D([], [], color=style.BLUE, marker="o", linestyle="none", label="recommended"),
            Patch(color="#f0f0f0", label="hardly ever happens"),
        ],
        loc="lower left",
        bbox_to_anchor=(1.02, 0.1),
        fontsize=8,
    )


def draw_questions(figure: SubFigure, person: Person, journeys: Sequence[Journey]) -> None:
    """The asked policies of each rule on a map of two settings, and the gaps of its pairs."""
    heading(
        figure,
        "Where it asked",
        "A map of the two settings that matter most. Darker ground: liked more (averaged over the "
        "other settings). Each dot is one question, from early (light) to late (dark).",
    )
    panels = row_of_axes(figure, (1, 1, 1), 0.77, 0.985)
    for axes, journey in zip(panels, journeys, strict=False):
        draw_map(axes, person, journey)
    draw_gaps(panels[2], journeys)


def draw_map(axes: Axes, person: Person, journey: Journey) -> None:
    """One map with every asked policy on it."""
    across, up = person.settings
    axes.imshow(
        person.ground.T, origin="lower", extent=(0, 1, 0, 1), cmap=LIKING, interpolation="bilinear"
    )
    order = np.arange(len(journey.policies))
    axes.scatter(
        journey.policies[:, across],
        journey.policies[:, up],
        c=order,
        cmap=TIME,
        s=17,
        linewidths=0.4,
        edgecolors="white",
        clip_on=False,
        zorder=3,
    )
    axes.set_title(NAMES[journey.rule], color=COLOURS[journey.rule])
    axes.set_xticks([0, 1], ["low", "high"])
    axes.set_yticks([0, 1], ["low", "high"])
    axes.set_xlabel(f"setting {across + 1} of the device")
    axes.set_ylabel(f"setting {up + 1}")
    axes.spines[:].set_visible(False)


def running_median(values: FloatArray, width: int) -> FloatArray:
    """The median of each run of `width` values in a row."""
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    return np.asarray(np.median(windows, axis=1))


def draw_gaps(axes: Axes, journeys: Sequence[Journey]) -> None:
    """The running median of the true reward gap between compared trials."""
    for journey in journeys:
        width = max(1, min(40, len(journey.gaps) // 3))
        middle = np.arange(len(journey.gaps) - width + 1) + 1 + width / 2
        axes.plot(
            middle,
            100 * running_median(journey.gaps, width),
            color=COLOURS[journey.rule],
            linewidth=1.8,
        )
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_title("How unlike the two trials were")
    axes.set_xlabel("questions asked")
    axes.set_ylabel("difference in liking (running median)")
    axes.grid(axis="y", color="#ececec", linewidth=0.7)
