"""The default preset against the paper's in every condition: where it is better, where worse."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sfihilo.study.compare import differences
from sfihilo.study.figures import style
from sfihilo.study.measures import Results
from sfihilo.study.panels import condition_labels, own_rule
from sfihilo.study.statistics import stars

SHOWN = {
    "preference_error_auc": "preference error",
    "forward_rmse_auc": "forward error",
    "final_policy_gap": "reward missed",
    "ece_end": "calibration error",
}
_HEAD, _LINE = 0.95, 0.19  # inches


def preset_conditions(results: Results) -> Figure:
    """Paired change of each measure from the paper's preset, a line for each condition."""
    table = own_differences(results)
    labels = condition_labels()
    places = [name for name in labels if name in set(table["condition"])]
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, _HEAD + _LINE * max(4, len(places)))
        row = figure.subplots(1, len(SHOWN), sharey=True)
        for axes, (metric, title) in zip(row, SHOWN.items(), strict=True):
            axes.set_title(title)
            draw_changes(axes, table[table["metric"] == metric], places)
        if places:
            users = table.groupby("condition")["users"].max()
            row[0].set_yticks(
                range(len(places)), [f"{labels[name]} (n = {users[name]})" for name in places]
            )
            row[0].set_ylim(len(places) - 0.4, -0.6)
            figure.supxlabel(
                "change from the paper settings (left is better), 95 % interval", fontsize=7
            )
    return figure


def own_differences(results: Results) -> pd.DataFrame:
    """Default minus paper by each preset's own rule, with the correction over all conditions."""
    rules = own_rule("paper"), own_rule("default")
    if {"paper", "default"} - set(results.presets):
        return pd.DataFrame(columns=["condition", "metric"])
    return differences(results.only("paper"), results.only("default"), tuple(SHOWN), rules)


def draw_changes(axes: Axes, rows: pd.DataFrame, places: list[str]) -> None:
    """One measure: a point and its interval for each condition, stars where it is significant."""
    if rows.empty:
        style.not_run(axes)
        return
    for row in rows.itertuples():
        if row.condition not in places:
            continue
        height, mean = places.index(row.condition), float(row.first)
        colour = style.GREEN if row.high < 0 else style.RED if row.low > 0 else style.GREY
        low, here, high = (100 * float(x) / mean for x in (row.low, row.difference, row.high))
        axes.plot([low, high], [height, height], color=colour, linewidth=1.2)
        axes.plot([here], [height], color=colour, marker="o", markersize=3.2)
        axes.annotate(
            stars(row.p_holm) if row.p_holm == row.p_holm else "",
            xy=(here, height),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="center",
            fontsize=6,
            color=colour,
        )
    axes.axvline(0, color=style.BLACK, linewidth=0.7, linestyle=(0, (3, 3)))
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.grid(axis="y", color=style.LIGHT, linewidth=0.4)
