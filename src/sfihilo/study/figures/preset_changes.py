"""The default preset against the paper's in every condition."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from sfihilo.study.analysis.calibration import calibration_end
from sfihilo.study.analysis.compare import differences
from sfihilo.study.analysis.measures import ERROR_AREA, FORWARD_AREA, POLICY_GAP, Results
from sfihilo.study.analysis.statistics import stars
from sfihilo.study.design.panels import condition_labels, preset_rule
from sfihilo.study.figures import style

DRAWN = (ERROR_AREA, FORWARD_AREA, POLICY_GAP, calibration_end("clean"))
_HEAD, _LINE = 0.95, 0.19  # inches


def preset_conditions(results: Results) -> Figure:
    """Paired change of each measure from the paper's preset, one line per condition."""
    table = own_differences(results)
    labels = condition_labels()
    places = [name for name in labels if name in set(table["condition"])]
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, _HEAD + _LINE * max(4, len(places)))
        row = figure.subplots(1, len(DRAWN), sharey=True)
        for axes, measure in zip(row, DRAWN, strict=True):
            axes.set_title(measure.short)
            draw_changes(axes, table[table["metric"] == measure.name], places)
        style.label_leftmost(row)
        if places:
            users = table.groupby("condition")["users"].max()
            row[0].set_yticks(
                range(len(places)), [f"{labels[name]} (n = {users[name]})" for name in places]
            )
            row[0].set_ylim(len(places) - 0.4, -0.6)
            figure.supxlabel(
                "change from the paper settings (left is better), 95 % interval; "
                "stars: Holm-corrected over the conditions",
                fontsize=7,
            )
    return figure


def own_differences(results: Results) -> pd.DataFrame:
    """Default minus paper by each preset's own rule, with the correction over all conditions."""
    rules = preset_rule("paper"), preset_rule("default")
    if {"paper", "default"} - set(results.presets):
        return pd.DataFrame(columns=["condition", "metric"])
    return differences(results.only("paper"), results.only("default"), DRAWN, rules)


def draw_changes(axes: Axes, rows: pd.DataFrame, places: list[str]) -> None:
    """One measure: a point with its interval per condition, and stars if it is significant."""
    if rows.empty:
        style.not_run(axes)
        return
    axes.axvline(0, color=style.BLACK, linewidth=0.7, linestyle=(0, (3, 3)), zorder=1)
    # A mean of zero has no relative change: its line stays empty.
    for row in rows[rows["condition"].isin(places) & rows["change"].notna()].itertuples():
        height, mean = places.index(row.condition), float(row.first)
        colour = change_colour(row.low, row.high, row.users)
        low, here, high = (100 * float(x) / mean for x in (row.low, row.difference, row.high))
        axes.plot([low, high], [height, height], color=colour, linewidth=1.2)
        axes.plot([here], [height], color=colour, marker="o", markersize=3.2)
        axes.annotate(
            stars(row.p_holm),
            xy=(here, height),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="center",
            fontsize=6,
            color=colour,
        )
    low, high = axes.get_xlim()
    axes.set_xlim(
        min(low, -1), max(high, 1)
    )  # a change below one percent is not worth a wider axis
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.grid(axis="y", color=style.LIGHT, linewidth=0.4)


def change_colour(low: float, high: float, users: int) -> str:
    """Green for better, red for worse, grey if the interval contains zero or has one user."""
    if users < 2 or low <= 0 <= high:
        return style.GREY
    return style.GREEN if high < 0 else style.RED
