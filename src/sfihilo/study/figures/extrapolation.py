"""How queries to 10 % are determined (figure `fig:log_extrapolation`), on runs of the study."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sfihilo.history import FloatArray
from sfihilo.study.analysis.crossing import Crossing, find_crossings, log_fit
from sfihilo.study.analysis.measures import Cell, Results
from sfihilo.study.design.panels import INFORMATION, RANDOM, preset_rule
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import threshold_line


@dataclass(frozen=True, eq=False)
class Example:
    """One run: its condition, user, curve and estimated crossing."""

    condition: str
    user: int
    queries: FloatArray
    errors: FloatArray
    crossing: Crossing


def examples(results: Results, preset: str, rule: str, kind: str) -> list[Example]:
    """All runs of a rule whose crossing is of this kind, the default condition first."""
    names = results.conditions(preset)
    found = []
    for condition in sorted(names, key=lambda name: (name != "base", name)):
        curves = results.curves(Cell(preset, condition, rule), "preference_error")
        if not curves.count:
            continue
        crossings = find_crossings(curves.queries, curves.values)
        for user, errors, crossing in zip(curves.users, curves.values, crossings, strict=True):
            if crossing.kind == kind:
                found.append(Example(condition, int(user), curves.queries, errors, crossing))
        if found:
            break
    return found


def ran(results: Results, preset: str, rule: str) -> bool:
    """Whether a rule has results in any condition."""
    return any(rule in results.rules(preset, name) for name in results.conditions(preset))


def representative(found: list[Example]) -> Example | None:
    """The run whose estimate is the median."""
    if not found:
        return None
    return sorted(found, key=lambda example: example.crossing.queries)[len(found) // 2]


def log_extrapolation(results: Results, preset: str = "paper") -> Figure:
    """One column per rule: an observed crossing above, an extrapolated one below."""
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 3.9)
        rules = (RANDOM, INFORMATION, preset_rule(preset))
        grid = figure.subplots(2, len(rules))
        for line, kind in enumerate(("observed", "extrapolated")):
            for axes, rule in zip(grid[line], rules, strict=True):
                found = representative(examples(results, preset, rule, kind))
                if not ran(results, preset, rule):
                    style.not_run(axes)
                elif found is None:
                    style.not_run(axes, f"no {kind} crossing")
                else:
                    draw_example(axes, found, style.rule_colour(rule))
                if line == 0:
                    axes.set_title(style.rule_name(rule), color=style.rule_colour(rule))
            style.label_leftmost(grid[line], "preference error")
            style.panel_letter(grid[line][0], "AB"[line])
    return figure


def draw_example(axes: Axes, example: Example, colour: str) -> None:
    """Points, the fitted trend where one was needed, and a square at the estimate."""
    axes.plot(
        example.queries, 100 * example.errors, "o", color=colour, markersize=2.6, markeredgewidth=0
    )
    place = example.crossing.queries
    if example.crossing.kind == "extrapolated":
        slope, intercept = log_fit(example.queries, example.errors)
        seen = np.linspace(example.queries[0], example.queries[-1], 200)
        beyond = np.linspace(example.queries[-1], place, 100)
        axes.plot(seen, 100 * (slope * np.log1p(seen) + intercept), color=style.BLACK, linewidth=1)
        axes.plot(
            beyond, 100 * (slope * np.log1p(beyond) + intercept), color=style.GREY, linewidth=1
        )
    else:
        axes.plot(example.queries, 100 * example.errors, color=colour, linewidth=0.8, alpha=0.5)
    axes.plot([place], [10], "s", color=style.BLACK, markersize=4, zorder=5)
    observed = example.crossing.kind == "observed"
    axes.annotate(
        f"{place:,.0f}",
        (place, 10),
        # A curve comes from the upper left, an estimate may lie at the right edge.
        xytext=(2 if observed else 0, 4 if observed else 5),
        textcoords="offset points",
        ha="left" if observed else "center",
        fontsize=6.4,
        fontweight="bold",
    )
    axes.set_ylim(0, 45)
    axes.set_xlim(0, None)
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set_xlabel(f"queries   (condition {example.condition}, user {example.user})")
    threshold_line(axes, 10, "")
