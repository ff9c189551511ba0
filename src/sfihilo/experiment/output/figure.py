"""Pictures of a session, as PNG bytes; matplotlib is loaded only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfihilo.experiment.insight import (
    WINDOW,
    BestRange,
    Drive,
    answer_hits,
    outcome_errors,
    ranked,
)
from sfihilo.experiment.output.advice import Advice
from sfihilo.experiment.output.text import label
from sfihilo.experiment.record.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, WARM, QUIET = "#1f2933", "#1f6f8b", "#d1495b", "#9aa5b1"
DPI = 150


def learning(record: Record) -> bytes:
    """How well each answer and each outcome was predicted before it was known, per trial."""
    figure, (answers, outcomes) = _figure(1, 2, (9, 2.9))
    numbers, right = answer_hits(record)
    if len(numbers):
        answers.plot(numbers, _moving(right) * 100, color=ACCENT, lw=2)
        answers.plot(numbers, right * 100, ".", color=ACCENT, alpha=0.25, ms=5)
    answers.axhline(50, color=QUIET, ls="--", lw=1)
    answers.text(1.01, 50, "guessing", color=QUIET, ha="left", va="center", fontsize=8,
                 transform=answers.get_yaxis_transform())  # fmt: skip
    answers.set(ylim=(-4, 104), xlabel="trial", ylabel="%", title="Answers predicted right")
    numbers, errors = outcome_errors(record)
    if len(numbers):
        outcomes.plot(numbers, _moving(errors) * 100, color=WARM, lw=2)
        outcomes.plot(numbers, errors * 100, ".", color=WARM, alpha=0.25, ms=5)
        outcomes.set_ylim(0, None)
    outcomes.set(xlabel="trial", ylabel="% of range", title="Error of predicted outcomes")
    for axis in (answers, outcomes):
        _whole_trials(axis)
    return _png(figure)


def reward(record: Record, found: Sequence[Drive]) -> bytes:
    """The learned reward along each outcome, and the share of each outcome in its variation."""
    count = len(found)
    columns = min(count, 4)
    rows = -(-count // columns)
    figure, axes = _figure(rows, columns, (2.25 * columns + 0.3, 2.2 * rows + 0.2), sharey=True)
    flat = list(np.ravel(axes))
    measured: dict[str, list[float]] = {name: [] for name in record.space.outcomes}
    for trial in record.trials:
        for name, value in (trial.whole_outcome or {}).items():
            measured[name].append(value)
    for axis, drive in zip(flat, ranked(found), strict=False):
        middle, low, high = drive.curve
        axis.axhline(0, color=QUIET, lw=0.8)
        axis.fill_between(drive.values, low, high, color=ACCENT, alpha=0.18, lw=0)
        axis.plot(drive.values, middle, color=ACCENT, lw=2)
        shown = [v for v in measured[drive.name] if drive.values[0] <= v <= drive.values[-1]]
        axis.plot(shown, np.zeros(len(shown)), "|", color=INK, alpha=0.35, ms=6,
                  transform=axis.get_xaxis_transform(), clip_on=False)  # fmt: skip
        axis.set_title(f"{drive.name}  ({drive.share[0]:.0%})")
        axis.set_xlabel(label(drive.unit))
    for axis in flat[count:]:
        axis.set_visible(False)
    for axis in flat[::columns]:
        axis.set_ylabel("reward")
    return _png(figure)


def policies(record: Record, advice: Advice, ranges: Sequence[BestRange]) -> bytes:
    """The policy of each trial, the recommended value, and the range of the best value."""
    count = len(ranges)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure, axes = _figure(rows, columns, (3.0 * columns + 0.3, 2.1 * rows + 0.2), sharex=True)
    flat = list(np.ravel(axes))
    shown = [trial for trial in record.trials if trial.ending not in ("undone", "vetoed")]
    for axis, best in zip(flat, ranges, strict=False):
        knob = record.space.policy[best.name]
        axis.axhspan(best.low, best.high, color=WARM, alpha=0.13, lw=0)
        axis.axhline(advice.policy[best.name], color=WARM, lw=1.6)
        axis.plot([t.number for t in shown], [t.policy[best.name] for t in shown], "o",
                  color=ACCENT, ms=3.2, alpha=0.75, mew=0)  # fmt: skip
        axis.set(title=best.name, ylabel=label(knob.unit))
        if knob.log:
            axis.set_yscale("log")
        margin = 0.03 * (knob.high - knob.low)
        axis.set_ylim(knob.low if knob.log else knob.low - margin, knob.high + margin)
    for axis in flat[count:]:
        axis.set_visible(False)
    for axis in flat[max(count - columns, 0) : count]:
        axis.set_xlabel("trial")
        _whole_trials(axis)
        axis.tick_params(labelbottom=True)
    return _png(figure)


def _whole_trials(axis: Axes) -> None:
    """Ticks at whole numbers, also with a single trial: there is no trial 2.5."""
    from matplotlib.ticker import MaxNLocator

    whole = MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1)
    axis.xaxis.set_major_locator(whole)


def _moving(values: np.ndarray) -> np.ndarray:
    total = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - WINDOW, 0)
    averages: np.ndarray = (total[ends] - total[starts]) / (ends - starts)
    return averages


def _figure(
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, np.ndarray]:
    # No pyplot: it keeps figures in a global list, and a server draws in threads.
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ValueError("The report needs matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, axes if rows > 1 else axes[0]


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(QUIET)
    axis.tick_params(colors=INK, labelsize=8)
    axis.title.set(fontsize=9.5, color=INK)
    axis.xaxis.label.set(fontsize=8.5, color=INK)
    axis.yaxis.label.set(fontsize=8.5, color=INK)


def _png(figure: Figure) -> bytes:
    for axis in figure.axes:
        _plain(axis)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()
