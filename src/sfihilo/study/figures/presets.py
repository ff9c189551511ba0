"""The presets beside each other: learning curves, and whether stated confidence is deserved."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sfihilo.history import FloatArray
from sfihilo.study.conditions import LOOKAHEAD, RULES
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import mean_curve, threshold_line
from sfihilo.study.figures.results import users_text
from sfihilo.study.measures import Cell, Results

PRESET_COLOURS = {"paper": style.GREY, "default": style.GREEN}


def preset_colour(preset: str) -> str:
    """Fixed for the two presets; anything else is red."""
    return PRESET_COLOURS.get(preset, style.RED)


def preset_curves(results: Results) -> Figure:
    """Preference error above and forward error below, a column for each rule."""
    rules = sorted(
        {rule for preset in results.presets for rule in results.rules(preset, "base")},
        key=lambda rule: (RULES.index(rule) if rule in RULES else len(RULES), rule),
    )
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 4.0)
        grid = figure.subplots(2, max(1, len(rules)), sharex=True, sharey="row", squeeze=False)
        for column, rule in enumerate(rules):
            draw_rule(grid[0][column], results, rule, "preference_error")
            draw_rule(grid[1][column], results, rule, "forward_rmse")
            grid[0][column].set_title(style.rule_name(rule))
            grid[1][column].set_xlabel("queries")
        for axes in (grid[0][0], grid[1][0]):  # shared, so only once everything is drawn
            axes.set_ylim(0, None)
            axes.set_xlim(0, None)
        grid[0][0].set_ylabel("preference error")
        grid[1][0].set_ylabel("forward RMSE")
        if not rules:
            style.not_run(grid[0][0])
            style.not_run(grid[1][0])
    return figure


def draw_rule(axes: Axes, results: Results, rule: str, metric: str) -> None:
    """One metric of one rule under every preset."""
    counts = []
    scale = 100 if metric == "preference_error" else 1
    for preset in results.presets:
        curves = results.curves(Cell(preset, "base", rule), metric)
        if curves.count:
            counts.append(curves.count)
            mean_curve(
                axes,
                curves.queries,
                scale * curves.values,
                colour=preset_colour(preset),
                label=f"{preset} settings",
                line=style.PRESET_LINES.get(preset, "dotted"),
            )
    style.users_note(axes, users_text(counts))
    if metric == "preference_error" and counts:
        axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
        threshold_line(axes, 10, "10 %")
        axes.legend(loc="upper right")


def pooled_reliability(results: Results, cell: Cell, query: int) -> FloatArray:
    """Rows (pairs, confidence, share correct) of all users together, empty bins left out."""
    rows = []
    for name in sorted(key[3] for key in results.groups if key[:3] == tuple(cell)):
        if not (name.startswith("reliability_") and name.endswith("_count")):
            continue
        count, confidence, correct = (
            at_query(results, cell, name.replace("count", what), query)
            for what in ("count", "confidence", "correct")
        )
        if count.size:
            weights = count / count.sum()
            rows.append((count.sum(), weights @ confidence, weights @ correct))
    return np.array(rows, dtype=float).reshape(-1, 3)


def at_query(results: Results, cell: Cell, metric: str, query: int) -> FloatArray:
    """Values of the users that have this metric at a checkpoint (a bin may be empty for some)."""
    group = results.groups[(*cell, metric)]
    chosen = group[group["query"] == query].sort_values("user")["value"]
    values: FloatArray = chosen.to_numpy(dtype=float)
    return values


def reliability(results: Results, rule: str = LOOKAHEAD) -> Figure:
    """Stated confidence against how often it was right, after 200 queries and at the end."""
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH * 0.72, 2.9)
        last = [
            curves.queries[-1]
            for preset in results.presets
            if (curves := results.curves(Cell(preset, "base", rule), "ece")).count
        ]
        checkpoints = shown_checkpoints(int(max(last, default=0)))
        row = figure.subplots(1, max(1, len(checkpoints)), sharey=True, squeeze=False)[0]
        if not checkpoints:
            style.not_run(row[0])
        for axes, query in zip(row, checkpoints, strict=False):
            draw_reliability(axes, results, rule, query)
        row[0].set_ylabel("share of predictions that were right")
    return figure


def shown_checkpoints(end: int) -> list[int]:
    """After 200 queries and at the end, whichever of them exist."""
    return sorted({query for query in (200, end) if 0 < query <= end})


def draw_reliability(axes: Axes, results: Results, rule: str, query: int) -> None:
    """One checkpoint: a line for each preset; below the diagonal is overconfident."""
    axes.plot([0.5, 1], [0.5, 1], color=style.BLACK, linewidth=0.7, linestyle=(0, (3, 3)))
    counts = []
    for preset in results.presets:
        cell = Cell(preset, "base", rule)
        table = pooled_reliability(results, cell, query)
        if not len(table):
            continue
        errors = results.measure(cell, f"ece_at_{query}")
        counts.append(len(errors))
        axes.plot(
            table[:, 1],
            table[:, 2],
            color=preset_colour(preset),
            linestyle=style.PRESET_LINES.get(preset, "dotted"),
            label=f"{preset} settings, error {errors.mean():.3f}",
        )
        axes.scatter(
            table[:, 1],
            table[:, 2],
            s=60 * table[:, 0] / table[:, 0].max() + 4,
            color=preset_colour(preset),
            linewidths=0,
            alpha=0.7,
        )
    axes.set_title(f"After {query:,} queries")
    axes.set_xlabel("stated confidence")
    style.users_note(axes, users_text(counts))
    axes.set_xlim(0.49, 1.01)
    axes.set_ylim(0.45, 1.02)
    if counts:
        axes.legend(loc="upper left", title="calibration", title_fontsize=6.4)
