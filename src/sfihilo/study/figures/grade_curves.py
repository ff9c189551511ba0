"""Other answers than two: learning curves and the reward of the advice."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sfihilo.study.analysis.measures import Results
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import mean_curve, threshold_line
from sfihilo.study.figures.results import users_text
from sfihilo.study.pages.grades_page import PANEL, cell_of

_COLOURS = (style.BLACK, *style.SEQUENCE)


def graded_answers(results: Results) -> Figure:
    """Preference error, forward error and the reward of the advice, one line per condition."""
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 2.6)
        error, forward, advice = figure.subplots(1, 3)
        draw_metric(error, results, "preference_error", 100)
        draw_metric(forward, results, "forward_rmse")
        draw_metric(advice, results, "advice_reward")
        error.set_title("preference error")
        forward.set_title("forward RMSE")
        advice.set_title("reward of the advice")
        if error.lines:
            error.yaxis.set_major_formatter(PercentFormatter(decimals=0))
            threshold_line(error, 10, "10 %")
            handles, labels = error.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def draw_metric(axes: Axes, results: Results, metric: str, scale: float = 1) -> None:
    """One stored metric of every condition of the panel that has results."""
    counts = []
    for row, colour in zip(PANEL, _COLOURS, strict=True):
        curves = results.curves(cell_of(row), metric)
        if curves.count:
            counts.append(curves.count)
            mean_curve(axes, curves.queries, scale * curves.values, colour=colour, label=row.label)
    if not counts:
        style.not_run(axes)
        return
    axes.set_xlabel("queries")
    axes.set_xlim(0, None)
    style.users_note(axes, users_text(counts))
