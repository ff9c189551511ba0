"""The common style of all figures: colours, fonts, names, and writing to disk.

Colours are Okabe and Ito's (distinct for all common kinds of colour blindness) and mean the same
thing in every figure; a marker or a line style repeats what a colour says, for grey printers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.typing import LineStyleType

BLACK, GREY, LIGHT = "#222222", "#8a8a8a", "#d9d9d9"
ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)

RULE_COLOURS = {
    "random": GREY,
    "mutual_information": ORANGE,
    "boundary_lookahead": BLUE,
    "global_pairs": GREEN,
}
RULE_NAMES = {
    "random": "Random",
    "mutual_information": "Mutual Information",
    "boundary_lookahead": "Boundary Lookahead",
    "global_pairs": "Global Pair Lookahead",
}
SHORT_NAMES = {"mutual_information": "MI", "boundary_lookahead": "BL", "global_pairs": "GPL"}
RULE_MARKERS = {
    "random": "o",
    "mutual_information": "s",
    "boundary_lookahead": "D",
    "global_pairs": "^",
}
PRESET_LINES: dict[str, LineStyleType] = {"paper": (0, (4, 1.6)), "default": "solid"}
OTHER_COLOURS = (PINK, RED, SKY, BLACK)
SEQUENCE = (BLUE, ORANGE, GREEN, RED, PINK, SKY)

FULL_WIDTH, HALF_WIDTH = 7.2, 3.5
DOTS = 300

PARAMETERS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "axes.titlesize": 7.6,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.labelsize": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": BLACK,
    "axes.labelcolor": BLACK,
    "xtick.labelsize": 6.4,
    "ytick.labelsize": 6.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 6.4,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.3,
    "figure.dpi": 100,
    "pdf.fonttype": 42,
    "svg.hashsalt": "sfihilo",
}


def rule_name(rule: str) -> str:
    """The title of a rule; a user's own `module:function` is named by its function."""
    plain = rule.rpartition(":")[2]
    return RULE_NAMES.get(rule, plain.replace("_", " ").capitalize())


def short_name(rule: str) -> str:
    """The short title of a rule."""
    return SHORT_NAMES.get(rule, rule_name(rule))


def rule_colour(rule: str, others: tuple[str, ...] = ()) -> str:
    """The colour of a rule; a user's own rules, listed in `others`, take the free colours."""
    if rule in RULE_COLOURS:
        return RULE_COLOURS[rule]
    place = others.index(rule) if rule in others else 0
    return OTHER_COLOURS[place % len(OTHER_COLOURS)]


@contextmanager
def styled(changes: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Draws with this module's parameters and restores the previous ones."""
    parameters: Any = {**PARAMETERS, **changes}
    with mpl.rc_context(parameters):
        yield


def new_figure(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """An empty figure without a window and outside of pyplot."""
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def stacked(figure: Figure, heights: Sequence[float]) -> list[SubFigure]:
    """Subfigures below one another."""
    parts: Any = figure.subfigures(len(heights), 1, height_ratios=list(heights))
    return list(parts)


def panel_letter(axes: Axes, letter: str) -> None:
    """The bold letter at the upper left, outside of the axes."""
    axes.annotate(
        letter,
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(-24, 7),
        textcoords="offset points",
        fontsize=9.5,
        fontweight="bold",
        annotation_clip=False,
    )


def not_run(axes: Axes, reason: str = "not run") -> None:
    """Marks a panel as empty, with the reason."""
    # Hidden, not removed: ticks may be shared with a neighbour that has data.
    axes.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#f6f6f6")
    axes.text(
        0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=8
    )


def label_leftmost(row: Sequence[Axes], label: str = "") -> None:
    """Labels the vertical scale only on the leftmost panel that has data."""
    drawn = [axes for axes in row if axes.lines]
    for axes in drawn:
        axes.tick_params(labelleft=axes is drawn[0])
    for axes in drawn[:1]:
        axes.set_ylabel(label)


def users_note(axes: Axes, text: str) -> None:
    """The number of users of a panel, above its upper right corner."""
    axes.annotate(
        text,
        xy=(1, 1),
        xycoords="axes fraction",
        xytext=(0, 7.5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=5.8,
        color=GREY,
        annotation_clip=False,
    )


def write_png(figure: Figure, folder: Path, name: str, dots: int | None = None) -> Path:
    """Writes one PNG atomically, without metadata: the same data give the same bytes."""
    return _save(figure, folder / f"{name}.png", {"Software": None}, dots or DOTS)


def write(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes a figure as PNG and PDF, without dates."""
    dates = {"CreationDate": None, "ModDate": None}
    return [
        write_png(figure, folder, name),
        _save(figure, folder / f"{name}.pdf", dates, DOTS),
    ]


def _save(figure: Figure, path: Path, metadata: dict[str, None], dots: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{path.name}")
    with styled():
        figure.savefig(part, metadata=metadata, dpi=dots)
    os.replace(part, path)
    return path
