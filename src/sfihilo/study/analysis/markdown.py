"""How the study's figures are written on a page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sfihilo.study.analysis.quantities import Measured
from sfihilo.study.analysis.verdicts import ALL_USERS


def number(measured: Measured) -> str:
    """An estimate with its interval, in the words of its scale."""
    interval, scale = measured.interval, measured.scale
    low, high = interval.low, interval.high
    if scale == "queries":
        text = f"{interval.estimate:,.0f} [{low:,.0f}, {high:,.0f}]"
    elif scale == "share":
        text = f"{100 * interval.estimate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    else:
        unit = "%" if scale == "change" else "points"
        text = f"{100 * interval.estimate:+.0f} {unit} [{100 * low:+.0f}, {100 * high:+.0f}]"
    text = text.replace("-", "−")
    return f"{text}; {measured.note}" if measured.note else text


def command(panel: str, preset: str) -> str:
    """What finishes a panel; it skips what is done."""
    return f"sfihilo study run {panel} --preset {preset} --users {ALL_USERS}"


def plain(value: float, sign: str = "") -> str:
    """Three digits, and never an exponent where a person would write none."""
    shape = f"{sign},.0f" if abs(value) >= 100 else f"{sign}.3g"
    return format(value, shape).replace("-", "−")


def figure(results: Path, out: Path, name: str, words: str) -> Iterator[str]:
    """A picture, where it was drawn."""
    path = results / "figures" / f"{name}.png"
    if path.exists():
        yield f"![{words}]({Path(os.path.relpath(path, out.parent)).as_posix()})"
        yield ""
