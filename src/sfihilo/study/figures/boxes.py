"""Grouped boxplots over users, each box annotated with its change and significance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sfihilo.history import FloatArray
from sfihilo.study.figures import style


@dataclass(frozen=True, eq=False)
class Box:
    """One box: one number per user, its colour, its name for the legend, the note above it."""

    values: FloatArray
    colour: str
    name: str
    note: str = ""

    @property
    def finite(self) -> FloatArray:
        """The values that can be drawn."""
        return self.values[np.isfinite(self.values)]


@dataclass(frozen=True, eq=False)
class Group:
    """Boxes that share one label of the horizontal axis."""

    label: str
    boxes: tuple[Box, ...]


def positions(groups: Sequence[Group], gap: float = 0.9) -> list[list[float]]:
    """Horizontal positions: one unit apart within a group, and a gap between groups.

    A group without boxes keeps one position.
    """
    places: list[list[float]] = []
    start = 0.0
    for group in groups:
        places.append([start + index for index in range(max(1, len(group.boxes)))])
        start += max(1, len(group.boxes)) + gap
    return places


def spread(count: int, width: float = 0.24) -> FloatArray:
    """Fixed horizontal offsets (golden-ratio sequence) that separate the points of a box."""
    return width * (2 * ((np.arange(count) * 0.618034) % 1.0) - 1)


def draw_box(axes: Axes, place: float, box: Box) -> None:
    """Quartiles, whiskers to the last point within 1.5 quartile ranges, and every user."""
    finite = box.finite
    if finite.size == 0:
        return
    axes.boxplot(
        [finite],
        positions=[place],
        widths=0.72,
        showfliers=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": box.colour, "alpha": 0.28, "linewidth": 0},
        medianprops={"color": box.colour, "linewidth": 1.6, "solid_capstyle": "butt"},
        whiskerprops={"color": box.colour, "linewidth": 0.7},
        capprops={"color": box.colour, "linewidth": 0.7},
    )
    axes.plot(
        place + spread(finite.size),
        finite,
        linestyle="none",
        marker="o",
        markersize=1.7,
        markeredgewidth=0,
        alpha=0.65,
        color=box.colour,
    )


def say_not_run(axes: Axes, place: float) -> None:
    """Marks the position of a condition without results."""
    axes.text(
        place,
        0.04,
        "not run",
        transform=axes.get_xaxis_transform(),
        rotation=90,
        ha="center",
        va="bottom",
        fontsize=5.6,
        color=style.GREY,
    )


def write_notes(axes: Axes, groups: Sequence[Group], upright: bool) -> None:
    """Writes each note just above the points of its box; the axis limits must be set."""
    for group, places in zip(groups, positions(groups), strict=True):
        for box, place in zip(group.boxes, places, strict=False):
            if not box.note or box.finite.size == 0:
                continue
            axes.annotate(
                box.note,
                xy=(place, float(box.finite.max())),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                rotation=90 if upright else 0,
                fontsize=5.2,
                linespacing=0.95,
                color=style.BLACK,
                annotation_clip=False,
            )


def grouped_boxes(
    axes: Axes,
    groups: Sequence[Group],
    *,
    log: bool = False,
    upright: bool = False,
    headroom: float = 0.1,
) -> None:
    """Draws all groups; `headroom` is the share of the height that a note needs above its box."""
    for group, places in zip(groups, positions(groups), strict=True):
        for box, place in zip(group.boxes, places, strict=False):
            draw_box(axes, place, box)
        if not group.boxes:
            say_not_run(axes, places[0])
    centres = [float(np.mean(places)) for places in positions(groups)]
    axes.set_xticks(centres, [group.label for group in groups])
    axes.tick_params(axis="x", length=0)
    last = positions(groups)[-1][-1]
    axes.set_xlim(-0.9, last + 0.9)
    set_limits(axes, groups, log, headroom)
    write_notes(axes, groups, upright)


def set_limits(axes: Axes, groups: Sequence[Group], log: bool, headroom: float) -> None:
    """Sets vertical limits from the data with room for the notes, in linear or log scale."""
    boxes = [box for group in groups for box in group.boxes if box.finite.size]
    values = np.concatenate([box.finite for box in boxes])
    noted = np.array([box.finite.max() for box in boxes if box.note])
    if log:
        axes.set_yscale("log")
        low, high = np.log(values[values > 0].min()), np.log(values.max())
        bottom = low - 0.06 * max(high - low, 0.3)
        axes.set_ylim(np.exp(bottom), np.exp(top_limit(bottom, high, np.log(noted), headroom)))
        plain_log_ticks(axes)
    else:
        bottom, high = min(0.0, float(values.min())), float(values.max())
        axes.set_ylim(bottom, top_limit(bottom, high, noted, headroom))


def top_limit(bottom: float, high: float, noted: FloatArray, headroom: float) -> float:
    """The lowest upper limit above all data that leaves room for every note."""
    least = high + 0.05 * max(high - bottom, 1e-9)
    return float(max([least, *((noted - headroom * bottom) / (1 - headroom))]))


def plain_log_ticks(axes: Axes) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, written without exponents."""
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
