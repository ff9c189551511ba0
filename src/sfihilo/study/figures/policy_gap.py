"""The final policy's reward gap (figure `fig:policy_reward_gap`)."""

from __future__ import annotations

from matplotlib.figure import Figure

from sfihilo.study.analysis.measures import Results
from sfihilo.study.figures import style
from sfihilo.study.figures.results import NOTE_HEIGHT, draw_groups, rule_groups


def policy_reward_gap(results: Results, preset: str = "paper") -> Figure:
    """How much true reward the recommended policy misses, by rule."""
    with style.styled():
        figure = style.new_figure(style.HALF_WIDTH, 2.7)
        axes = figure.subplots()
        groups = rule_groups(results, preset, "gap", [("", "base", "final_policy_gap")])
        draw_groups(axes, groups, False, False, NOTE_HEIGHT)
        axes.set_title("Final policy")
        axes.set_ylabel("true reward missed (0 is best)")
        if groups[0].boxes:
            axes.set_xticks(range(len(groups[0].boxes)), [box.name for box in groups[0].boxes])
    return figure
