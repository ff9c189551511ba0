"""The gap of the advice over trials, for both goals, Random and the paper's preset."""

from __future__ import annotations

from textwrap import fill

from matplotlib.figure import Figure

from sfihilo.study.analysis.measures import Results
from sfihilo.study.figures import style
from sfihilo.study.figures.curves import mean_curve
from sfihilo.study.figures.results import users_text
from sfihilo.study.pages.advice_page import OTHERS, PANEL, SEEKER

_UNDERSTAND, _RANDOM, _PAPER = OTHERS
_LINES = (
    (_RANDOM, style.BLACK),
    (_PAPER, style.SEQUENCE[1]),
    (_UNDERSTAND, style.SEQUENCE[0]),
    (SEEKER, style.SEQUENCE[2]),
)
_COLUMNS = 4


def advice_gap(results: Results) -> Figure:
    """One panel per condition: the mean gap with its bootstrap band."""
    rows = [row for row in PANEL if results.curves(SEEKER.cell(row), "advice_gap").count]
    lines = -(-max(len(rows), 1) // _COLUMNS)
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 2.2 * lines + 0.3)
        panels = figure.subplots(lines, _COLUMNS, sharey=True, squeeze=False).ravel()
        counts: list[int] = []
        for axes, row in zip(panels, rows, strict=False):
            for contender, colour in _LINES:
                curves = results.curves(contender.cell(row), "advice_gap")
                label = contender.label.replace("`", "")
                if curves.count:
                    counts.append(curves.count)
                    mean_curve(axes, curves.queries, curves.values, colour=colour, label=label)
            axes.set_title(_title(row.label), fontsize=7)
            axes.set_xlabel("trials")
        panels[0].set_ylim(bottom=0)  # of all panels, once all curves are drawn
        for axes in panels[len(rows) :]:
            axes.set_visible(False)
        panels[0].set_ylabel("reward missed by the advice")
        if rows:
            handles, labels = panels[0].get_legend_handles_labels()
            style.users_note(panels[0], users_text(counts))
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _title(label: str) -> str:
    """The label in lines that a panel is wide enough for."""
    return "\n".join(fill(line, 20) for line in label.replace(", ", ",\n").splitlines())
