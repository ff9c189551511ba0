"""Learning curves: the mean over users with a bootstrap band."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.typing import LineStyleType

from sfihilo.history import FloatArray
from sfihilo.study.analysis.statistics import LEVEL, resampled_means


def mean_band(values: FloatArray, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """Pointwise bootstrap interval of the mean over users, for curves (users, checkpoints)."""
    draws = resampled_means(values, 1000)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def mean_curve(
    axes: Axes,
    queries: FloatArray,
    values: FloatArray,
    *,
    colour: str,
    label: str,
    line: LineStyleType = "solid",
) -> None:
    """One mean curve with its band (no band for one user)."""
    if values.shape[0] > 1:
        low, high = mean_band(values)
        axes.fill_between(queries, low, high, color=colour, alpha=0.16, linewidth=0)
    axes.plot(queries, values.mean(axis=0), color=colour, label=label, linestyle=line)


def threshold_line(axes: Axes, height: float, text: str) -> None:
    """A dashed horizontal line with its label."""
    axes.axhline(height, color="#444444", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0)
    axes.annotate(
        text,
        xy=(1, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, 1.5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=5.6,
        color="#444444",
    )
