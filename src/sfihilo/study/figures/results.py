"""The main figure, panels A to I (`fig:final_results`), and that of the final policy's gap.

The latter is figure `fig:policy_reward_gap` of the appendix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from sfihilo.study.analysis.crossing import find_crossing
from sfihilo.study.analysis.measures import FORWARD_AREA, POLICY_GAP, Cell, Results, UserMeasure
from sfihilo.study.analysis.statistics import stars
from sfihilo.study.analysis.summary import TESTED, find_test, panel_tests
from sfihilo.study.design.panels import KNOWN_RULES, PANELS, RANDOM, preset_rule
from sfihilo.study.figures import style
from sfihilo.study.figures.boxes import Box, Group, grouped_boxes
from sfihilo.study.figures.curves import mean_curve, threshold_line

TITLE = {
    "A": "Learning curves",
    "B": "By true reward gap",
    "C": "Outcome dimensionality",
    "D": "Forward model",
    "E": "Noise",
    "F": "Reward model",
    "G": "Motor adaptation",
    "H": "Missing outcomes",
    "I": "Extra outcomes",
}
GAPS = ("0.04\u20130.08", "0.08\u20130.16", "\u2265 0.16")  # bins 2 to 4
VARIANT_COLOURS = (style.GREY, style.ORANGE, style.BLUE)
NOTE_LENGTH, NOTE_HEIGHT = 0.24, 0.09  # of a panel's height: a note standing upright, and lying


def users_text(counts: Iterable[int]) -> str:
    """The number of users, or its range if cells differ."""
    found = sorted(set(counts))
    if not found:
        return ""
    return f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]}\u2013{found[-1]}"


def note_of(tests: pd.DataFrame, cell: Cell, against: Cell, measure: UserMeasure) -> str:
    """The change relative to the reference and its stars, as written above a box."""
    rows = find_test(tests, measure, cell, against)
    if rows.empty:
        return ""
    change, adjusted = float(rows["change"].iloc[0]), float(rows["p_holm"].iloc[0])
    if change != change:
        return ""
    percent = f"{100 * change:+.0f}%".replace("-", "\u2212")
    return ("0%" if percent[1:] == "0%" else percent) + stars(adjusted)


def rule_groups(
    results: Results, preset: str, panel: str, places: Sequence[tuple[str, str, UserMeasure]]
) -> list[Group]:
    """One box per rule at each place (label, condition, measure), with its change from Random."""
    tests = panel_tests(results, preset, panel)
    groups = []
    for label, condition, measure in places:
        boxes = []
        rules = results.rules(preset, condition)
        others = tuple(rule for rule in rules if rule not in KNOWN_RULES)
        for rule in rules:
            cell, random = Cell(preset, condition, rule), Cell(preset, condition, RANDOM)
            values = results.measure(cell, measure).to_numpy(dtype=float)
            if values.size:
                note = note_of(tests, cell, random, measure)
                boxes.append(
                    Box(values, style.rule_colour(rule, others), style.short_name(rule), note)
                )
        groups.append(Group(label, tuple(boxes)))
    return groups


def draw_groups(axes: Axes, groups: Sequence[Group], log: bool, upright: bool, room: float) -> None:
    """Boxes with the number of users, or the text that the panel was not run."""
    if not any(group.boxes for group in groups):
        style.not_run(axes)
        return
    grouped_boxes(axes, groups, log=log, upright=upright, headroom=room)
    style.users_note(axes, users_text(len(box.values) for group in groups for box in group.boxes))


def panel_learning(axes: Axes, results: Results, preset: str) -> None:
    """A: mean learning curves of the rules and where they cross 10 %."""
    counts, crossings = [], []
    rules = results.rules(preset, "base")
    others = tuple(rule for rule in rules if rule not in KNOWN_RULES)
    for rule in rules:
        curves = results.curves(Cell(preset, "base", rule), "preference_error")
        if not curves.count:
            continue
        counts.append(curves.count)
        colour, name = style.rule_colour(rule, others), style.rule_name(rule)
        mean_curve(axes, curves.queries, 100 * curves.values, colour=colour, label=name)
        crossing = find_crossing(curves.queries, curves.values.mean(axis=0))
        if crossing.kind == "observed":
            crossings.append((crossing.queries, colour))
    if not counts:
        style.not_run(axes)
        return
    mark_crossings(axes, crossings)
    finish_error_curves(axes, counts)


def mark_crossings(axes: Axes, crossings: Sequence[tuple[float, str]]) -> None:
    """A line from each crossing down to its number of queries, written below the curves.

    The first number stands left of its line and the others right of theirs, one above another, so
    that neighbours do not meet.
    """
    for place, (queries, colour) in enumerate(sorted(crossings)):
        axes.plot([queries, queries], [0, 10], color=colour, linewidth=0.9, linestyle=(0, (1, 1)))
        axes.annotate(
            f"{queries:.0f}",
            (queries, 0),
            xytext=(2 if place else -2, 2 + 7 * max(0, place - 1)),
            textcoords="offset points",
            ha="left" if place else "right",
            va="bottom",
            fontsize=6.2,
            fontweight="bold",
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )


def finish_error_curves(axes: Axes, counts: Sequence[int]) -> None:
    """Axes of preference-error curves: percent, from zero, with the 10 % line."""
    axes.set_ylim(0, None)
    axes.set_xlim(0, None)
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set_ylabel("preference error")
    axes.set_xlabel("queries")
    threshold_line(axes, 10, "10 %")
    style.users_note(axes, users_text(counts))


def mark_budget(axes: Axes, results: Results, preset: str) -> None:
    """A line at the number of queries that were run; counts above it are extrapolated.

    Its label is outside of the axes, where it cannot overlap a box or a note.
    """
    queries = results.curves(Cell(preset, "base", RANDOM), "preference_error").queries
    if len(queries) and axes.get_ylim()[1] > queries[-1] > axes.get_ylim()[0]:
        axes.axhline(queries[-1], color=style.BLACK, linewidth=0.5, linestyle=(0, (1, 2)), zorder=0)
        axes.annotate(
            f"{queries[-1]:,.0f} run",
            xy=(1, queries[-1]),
            xycoords=("axes fraction", "data"),
            xytext=(2, 0),
            textcoords="offset points",
            rotation=90,
            ha="left",
            va="center",
            fontsize=5.2,
            color="#555555",
            annotation_clip=False,
        )


def panel_gaps(axes: Axes, results: Results, preset: str) -> None:
    """B: queries to 10 % by the true reward gap of the test pairs."""
    places = [(label, "base", m) for label, m in zip(GAPS, TESTED["B"], strict=True)]
    draw_groups(axes, rule_groups(results, preset, "B", places), True, True, NOTE_LENGTH)
    mark_budget(axes, results, preset)
    axes.set_xlabel("true reward gap of the pair")
    axes.set_ylabel("queries to 10 % error")


def panel_conditions(axes: Axes, results: Results, preset: str, panel: str) -> None:
    """C and E: queries to 10 % in each condition of the panel."""
    places = [(row.label, row.condition.name, TESTED[panel][0]) for row in PANELS[panel]]
    draw_groups(axes, rule_groups(results, preset, panel, places), True, True, NOTE_LENGTH)
    mark_budget(axes, results, preset)
    axes.set_xlabel("outcomes and settings, d" if panel == "C" else "noise level")
    axes.set_ylabel("queries to 10 % error")


def panel_forward(axes: Axes, results: Results, preset: str) -> None:
    """D: area under the forward model's error curve."""
    groups = rule_groups(results, preset, "D", [("", "base", FORWARD_AREA)])
    draw_groups(axes, groups, False, False, NOTE_HEIGHT)
    axes.set_ylabel("forward RMSE, area under curve")
    if groups[0].boxes:
        low = min(float(box.values.min()) for box in groups[0].boxes)
        high = axes.get_ylim()[1]
        axes.set_ylim(low - 0.35 * (high - low), high)
        names = [box.name for box in groups[0].boxes]
        axes.set_xticks(range(len(names)), names)


def panel_models(axes: Axes, results: Results, preset: str) -> None:
    """F: learning curves with a nonlinear and with a linear reward."""
    colours = (style.rule_colour(preset_rule(preset)), style.RED)
    draw_variants(axes, results, preset, "F", "preference_error", colours)


def panel_drift(axes: Axes, results: Results, preset: str) -> None:
    """G: forward error against the current map while the person adapts."""
    draw_variants(axes, results, preset, "G", "forward_rmse", VARIANT_COLOURS)


def draw_variants(
    axes: Axes, results: Results, preset: str, panel: str, metric: str, colours: Sequence[str]
) -> None:
    """Mean curves of a panel's conditions under the preset's rule, with changes from the first."""
    tests = panel_tests(results, preset, panel)
    measure = TESTED[panel][0]
    first = Cell(preset, PANELS[panel][0].condition.name, preset_rule(preset))
    counts = []
    for row, colour in zip(PANELS[panel], colours, strict=True):
        cell = Cell(preset, row.condition.name, preset_rule(preset))
        curves = results.curves(cell, metric)
        if not curves.count:
            continue
        counts.append(curves.count)
        note = note_of(tests, cell, first, measure)
        label = f"{row.label}  {note}".rstrip()
        scale = 100 if metric == "preference_error" else 1
        mean_curve(axes, curves.queries, scale * curves.values, colour=colour, label=label)
    if not counts:
        style.not_run(axes)
        return
    if metric == "preference_error":
        finish_error_curves(axes, counts)
    else:
        axes.set_xlabel("queries")
        axes.set_ylabel("forward RMSE, current map")
        axes.set_xlim(0, None)
        style.users_note(axes, users_text(counts))
    axes.legend(loc="best")


def panel_misspecified(axes: Axes, results: Results, preset: str, panel: str) -> None:
    """H and I: final preference error when outcomes are missing or superfluous."""
    tests = panel_tests(results, preset, panel)
    measure = TESTED[panel][0]
    complete = Cell(preset, PANELS[panel][0].condition.name, preset_rule(preset))
    groups = []
    for row in PANELS[panel]:
        cell = Cell(preset, row.condition.name, preset_rule(preset))
        values = 100 * results.measure(cell, measure).to_numpy(dtype=float)
        note = note_of(tests, cell, complete, measure)
        box = Box(values, style.rule_colour(preset_rule(preset)), "", note)
        groups.append(Group(row.label, (box,) if values.size else ()))
    draw_groups(axes, groups, False, False, NOTE_HEIGHT)
    if any(group.boxes for group in groups):
        axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
        axes.set_ylim(0, None)
    words = "missing" if panel == "H" else "superfluous"
    axes.set_xlabel(f"{words} outcomes, of d = 10" if panel == "H" else f"{words} outcomes")
    axes.set_ylabel("preference error at the end")


DRAW: dict[str, Callable[[Axes, Results, str], None]] = {
    "A": panel_learning,
    "B": panel_gaps,
    "C": lambda axes, results, preset: panel_conditions(axes, results, preset, "C"),
    "D": panel_forward,
    "E": lambda axes, results, preset: panel_conditions(axes, results, preset, "E"),
    "F": panel_models,
    "G": panel_drift,
    "H": lambda axes, results, preset: panel_misspecified(axes, results, preset, "H"),
    "I": lambda axes, results, preset: panel_misspecified(axes, results, preset, "I"),
}
# Each line of the figure: its panels and their widths.
LAYOUT = (
    {"A": 1.0, "B": 1.0, "C": 1.45},
    {"D": 0.75, "E": 1.25, "F": 1.0},
    {"G": 1.0, "H": 1.0, "I": 1.0},
)


def final_results(results: Results, preset: str = "paper") -> Figure:
    """All nine panels; a panel without results is marked as not run."""
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 7.4)
        strip, *lines = style.stacked(figure, (0.17, 1, 1, 1))
        drawn: dict[str, Axes] = {}
        for line, panels in zip(lines, LAYOUT, strict=True):
            row = line.subplots(1, len(panels), width_ratios=list(panels.values()))
            for name, axes in zip(panels, row, strict=True):
                DRAW[name](axes, results, preset)
                if not axes.lines:  # an empty panel needs no labels
                    axes.set(xlabel="", ylabel="")
                axes.set_title(TITLE[name])
                style.panel_letter(axes, name)
                drawn[name] = axes
        share_misspecified_scale(drawn)
        rule_legend(strip, results, preset)
    return figure


def share_misspecified_scale(drawn: dict[str, Axes]) -> None:
    """Gives panels H and I the same vertical scale."""
    pair = [drawn[name] for name in ("H", "I") if drawn[name].lines]
    if len(pair) == 2:
        top = max(axes.get_ylim()[1] for axes in pair)
        for axes in pair:
            axes.set_ylim(0, top)


def rule_legend(figure: SubFigure, results: Results, preset: str) -> None:
    """One legend for all panels, above them, with the meaning of the marks."""
    rules = results.rules(preset, "base")
    others = tuple(rule for rule in rules if rule not in KNOWN_RULES)
    handles = [
        Patch(color=style.rule_colour(rule, others), label=style.rule_name(rule)) for rule in rules
    ]
    figure.legend(handles=handles, loc="upper left", ncols=len(handles), columnspacing=1.4)
    lines = (
        (
            0.99,
            0.62,
            "right",
            "* p < 0.05, ** p < 0.01, *** p < 0.001: paired t-test, Holm-corrected in a panel",
        ),
        (
            0.012,
            0.14,
            "left",
            f"{preset.capitalize()} settings. Boxes and points: users. Bands: 95 % bootstrap "
            "interval of the mean. "
            "Percentages: change of the mean from Random (F\u2013I: from the first).",
        ),
    )
    for x, y, side, text in lines:
        figure.text(x, y, text, ha=side, fontsize=5.8, color="#555555")


def policy_reward_gap(results: Results, preset: str = "paper") -> Figure:
    """The true reward that the recommended policy misses, by rule."""
    with style.styled():
        figure = style.new_figure(style.HALF_WIDTH, 2.7)
        axes = figure.subplots()
        groups = rule_groups(results, preset, "gap", [("", "base", POLICY_GAP)])
        draw_groups(axes, groups, False, False, NOTE_HEIGHT)
        axes.set_title("Final policy")
        axes.set_ylabel("true reward missed (0 is best)")
        if groups[0].boxes:
            axes.set_xticks(range(len(groups[0].boxes)), [box.name for box in groups[0].boxes])
    return figure
