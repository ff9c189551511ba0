"""Real people: log loss of predicted choices, and the paired difference to logit."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from sfihilo.study.analysis.answer_loss import COIN
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import threshold_line
from sfihilo.study.real.predictors import WORDS

_COLOURS = {
    "single": style.LIGHT,
    "quadratic": style.SKY,
    "paper": style.GREY,
    "before": style.ORANGE,
    "logit": style.BLACK,
    "default": style.GREEN,
}
_LEAST_RATIO = 1.2  # of two labelled numbers of answers
_ORDER = {"development": 0, "all": 1, "confirmation": 2}


def real_people(table: pd.DataFrame) -> Figure:
    """A column per data set; of each, the confirmation people where they were evaluated."""
    sets = list(dict.fromkeys(table["set"]))
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 4.2)
        grid = figure.subplots(2, len(sets), sharex="col", sharey="row", squeeze=False)
        for column, name in enumerate(sets):
            here = table[table["set"] == name]
            people = max(set(here["people"]), key=lambda kind: _ORDER[kind])
            here = here[here["people"] == people]
            _losses(grid[0][column], here)
            _gaps(grid[1][column], here)
            grid[0][column].set_title(name)
            low, high = here["persons"].min(), here["persons"].max()
            count = f"{low}" if low == high else f"{low} to {high}"
            grid[1][column].set_xlabel(f"answers given\n{count} people,\n{people}")
            grid[1][column].set_xscale("log")
            grid[1][column].set_xticks(_apart(sorted(set(here["answers"]))))
            grid[1][column].xaxis.set_major_formatter("{x:.0f}")
            grid[1][column].xaxis.set_minor_locator(NullLocator())
        grid[0][0].set_ylabel("log loss of held-out choices")
        grid[1][0].set_ylabel("log loss minus logit's")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _apart(answers: list[int]) -> list[int]:
    """Those whose labels do not touch on a logarithmic axis."""
    kept = answers[:1]
    for count in answers[1:]:
        if count >= _LEAST_RATIO * kept[-1]:
            kept.append(count)
    return kept


def _losses(axes: Axes, table: pd.DataFrame) -> None:
    threshold_line(axes, COIN, "coin")
    for model, colour in _COLOURS.items():
        _line(axes, table[table["model"] == model], "log_loss", model, colour)


def _gaps(axes: Axes, table: pd.DataFrame) -> None:
    axes.axhline(0, color=_COLOURS["logit"], linewidth=1.0)
    axes.axhspan(0, 0.01, color=style.LIGHT, alpha=0.5, linewidth=0)  # the target
    for model in ("paper", "before", "default"):
        _line(axes, table[table["model"] == model], "log_loss_gap", model, _COLOURS[model])


def _line(axes: Axes, table: pd.DataFrame, measure: str, model: str, colour: str) -> None:
    """A line through the means, with one standard error up and down."""
    axes.errorbar(
        table["answers"],
        table[measure],
        yerr=table[f"{measure}_error"],
        color=colour,
        marker="o",
        markersize=2.5,
        linewidth=1.1,
        elinewidth=0.7,
        label=WORDS[model].replace("`", ""),
    )
