"""The presets side by side: learning curves and reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from sfihilo.study.analysis.calibration import last_query, reliability_of, shown_checkpoints
from sfihilo.study.analysis.measures import Cell, Results
from sfihilo.study.design.panels import KNOWN_RULES, preset_rule
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import mean_curve, threshold_line
from sfihilo.study.figures.results import users_text

PRESET_COLOURS = {"paper": style.GREY, "default": style.GREEN}


def preset_colour(preset: str) -> str:
    """Fixed for the two presets; anything else is red."""
    return PRESET_COLOURS.get(preset, style.RED)


def columns(results: Results) -> dict[str, dict[str, str]]:
    """Title of each column, and the rule that each preset shows in it.

    The presets' own rules share one column, even if they differ; every other rule has its own
    column.
    """
    own = {preset: preset_rule(preset) for preset in results.presets}
    ran = {preset: results.rules(preset, "base") for preset in results.presets}
    rules = sorted(
        {rule for preset in ran for rule in ran[preset] if rule != own[preset]},
        key=lambda rule: (KNOWN_RULES.index(rule) if rule in KNOWN_RULES else 9, rule),
    )
    found = {style.rule_name(rule): dict.fromkeys(results.presets, rule) for rule in rules}
    if any(own[preset] in ran[preset] for preset in ran):
        names = {style.rule_name(rule) for rule in own.values()}
        found[names.pop() if len(names) == 1 else "Each preset's own rule"] = own
    return found


def preset_curves(results: Results) -> Figure:
    """Preference error above and forward error below, one column per rule."""
    shown = columns(results)
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 4.0)
        grid = figure.subplots(2, max(1, len(shown)), sharex=True, sharey="row", squeeze=False)
        for column, (title, rules) in enumerate(shown.items()):
            draw_rule(grid[0][column], results, rules, "preference_error")
            draw_rule(grid[1][column], results, rules, "forward_rmse")
            grid[0][column].set_title(title)
            grid[1][column].set_xlabel("queries")
        for axes in (grid[0][0], grid[1][0]):  # shared, so only once everything is drawn
            axes.set_ylim(0, None)
            axes.set_xlim(0, None)
        grid[0][0].set_ylabel("preference error")
        grid[1][0].set_ylabel("forward RMSE")
        if not shown:
            style.not_run(grid[0][0])
            style.not_run(grid[1][0])
    return figure


def draw_rule(axes: Axes, results: Results, rules: Mapping[str, str], metric: str) -> None:
    """One metric under every preset, each by its rule."""
    counts = []
    scale = 100 if metric == "preference_error" else 1
    named = len(set(rules.values())) > 1
    for preset, rule in rules.items():
        curves = results.curves(Cell(preset, "base", rule), metric)
        if curves.count:
            counts.append(curves.count)
            mean_curve(
                axes,
                curves.queries,
                scale * curves.values,
                colour=preset_colour(preset),
                label=f"{preset} settings" + (f", {style.short_name(rule)}" if named else ""),
                line=style.PRESET_LINES.get(preset, "dotted"),
            )
    style.users_note(axes, users_text(counts))
    if metric == "preference_error" and counts:
        axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
        threshold_line(axes, 10, "10 %")
        axes.legend(loc="upper right")


def reliability(results: Results) -> Figure:
    """Stated confidence against the share that was right, after 200 queries and at the end."""
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH * 0.78, 3.3)
        ends = [last_query(results, own_cell(preset)) for preset in results.presets]
        checkpoints = shown_checkpoints(max(ends, default=0))
        row = figure.subplots(1, max(1, len(checkpoints)), sharey=True, squeeze=False)[0]
        if not checkpoints:
            style.not_run(row[0])
            return figure
        for axes, query in zip(row, checkpoints, strict=True):
            draw_reliability(axes, results, query)
        row[0].set_ylabel("share of predictions that were right")
        reliability_legend(row[-1], results, checkpoints)
    return figure


def reliability_legend(axes: Axes, results: Results, checkpoints: Sequence[int]) -> None:
    """Names the kinds of lines that are drawn."""
    better = Line2D([], [], color=style.BLACK, marker="o", markersize=3.5, linewidth=1.3)
    answer = Line2D([], [], color=style.BLACK, linewidth=0.7)
    keys = {"that one side is truly better": better}
    cells = [own_cell(preset) for preset in results.presets]
    if any(reliability_of(results, *at, "answer") for at in product(cells, checkpoints)):
        keys["that the person will answer so"] = answer
    axes.legend(
        list(keys.values()), list(keys), loc="lower right", title="confidence", title_fontsize=6.4
    )


def own_cell(preset: str) -> Cell:
    """The standard condition under a preset's own rule."""
    return Cell(preset, "base", preset_rule(preset))


def draw_reliability(axes: Axes, results: Results, query: int) -> None:
    """One checkpoint: one line per preset; below the diagonal is overconfident."""
    axes.plot([0.5, 1], [0.5, 1], color=style.BLACK, linewidth=0.7, linestyle=(0, (3, 3)))
    counts = []
    for place, preset in enumerate(results.presets, start=1):
        cell, colour = own_cell(preset), preset_colour(preset)
        better = reliability_of(results, cell, query, "better")
        answer = reliability_of(results, cell, query, "answer")
        if answer is not None:
            counts.append(len(answer.users))
            table = answer.pooled()
            axes.plot(table[:, 1], table[:, 2], color=colour, linewidth=0.7)
        if better is None:
            continue
        counts.append(len(better.users))
        table = better.pooled()
        axes.plot(table[:, 1], table[:, 2], color=colour, linewidth=1.5)
        sizes = 60 * table[:, 0] / table[:, 0].max() + 4
        axes.scatter(table[:, 1], table[:, 2], s=sizes, color=colour, linewidths=0, alpha=0.7)
        axes.annotate(
            f"{preset} settings, {style.short_name(cell.rule)}: ECE {better.error().estimate:.3f}",
            xy=(0, 1),
            xycoords="axes fraction",
            xytext=(5, -2 - 9 * place),
            textcoords="offset points",
            fontsize=6.6,
            fontweight="bold",
            color=colour,
        )
    axes.set_title(f"After {query:,} queries")
    axes.set_xlabel("stated confidence")
    style.users_note(axes, users_text(counts))
    axes.set_xlim(0.49, 1.01)
    axes.set_ylim(0.45, 1.14)  # the presets' names stand above the data
    axes.set_yticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
