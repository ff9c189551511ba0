"""Numbers, tables, figures, commands and where results are from, as Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sfihilo.study.analysis.calibration import Reliability
from sfihilo.study.analysis.quantities import Measured
from sfihilo.study.analysis.statistics import stars
from sfihilo.study.pages.verdicts import ALL_USERS
from sfihilo.study.run.description import preset_digest
from sfihilo.study.run.result_files import Store


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table, followed by an empty line."""
    yield _line(head)
    yield _line(["---"] * len(head))
    for row in rows:
        yield _line(row)
    yield ""


def _line(cells: Iterable[object]) -> str:
    # An empty cell is one space wide.
    return "|" + "|".join(f" {cell} " if str(cell) else " " for cell in cells) + "|"


def section(title: str, *paragraphs: str, level: int = 2) -> Iterator[str]:
    """A heading and its paragraphs, each followed by an empty line."""
    for text in (f"{'#' * level} {title}", *paragraphs):
        yield text
        yield ""


def number(measured: Measured) -> str:
    """An estimate with its interval, in the unit of its scale."""
    interval, scale = measured.interval, measured.scale
    low, high = interval.low, interval.high
    if scale == "queries":
        text = f"{interval.estimate:,.0f} [{low:,.0f}, {high:,.0f}]"
    elif scale == "share":
        text = f"{100 * interval.estimate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    else:
        unit = "%" if scale == "change" else "points"
        text = f"{100 * interval.estimate:+.0f} {unit} [{100 * low:+.0f}, {100 * high:+.0f}]"
    text = minus(text)
    return f"{text}; {measured.note}" if measured.note else text


def plain(value: float, sign: str = "") -> str:
    """Three digits, without an exponent."""
    shape = f"{sign},.0f" if abs(value) >= 100 else f"{sign}.3g"
    return minus(format(value, shape))


def relative(change: float) -> str:
    """A relative change in percent; empty if it does not exist."""
    return "" if change != change else minus(f"{change:+.0%}")


def marks(p_value: float) -> str:
    """The stars of a p-value, in a character that does not mean emphasis."""
    return stars(p_value).replace("*", "∗")


def calibration(table: Reliability | None) -> str:
    """A pooled calibration error with its interval and number of users."""
    if table is None:
        return "not run yet"
    error = table.error()
    return f"{error.estimate:.3f} [{error.low:.3f}, {error.high:.3f}], {len(table.users)} users"


def minus(text: str) -> str:
    """The text with the sign of numbers in the place of hyphens."""
    return text.replace("-", "−")


def command(panel: str, preset: str) -> str:
    """The command that completes a panel; it skips what is done."""
    return f"sfihilo study run {panel} --preset {preset} --users {ALL_USERS}"


def earlier_preset(folders: Iterable[Path]) -> Iterator[str]:
    """A sentence that names the folders whose default preset is not today's, if there are any."""
    stated = {folder: Store(folder, "default").common() for folder in folders}
    today = preset_digest("default")
    # Results without a digest are from before there were digests.
    earlier = [
        f"`{folder.as_posix()}`"
        for folder, common in stated.items()
        if common and common.get("preset_digest") != today
    ]
    if earlier:
        yield (
            f"The rows of the default preset in {' and '.join(earlier)} were computed with an "
            "earlier version of it ([which](default-preset.md#why-these-priors))."
        )
        yield ""


def figure(results: Path, out: Path, name: str, words: str) -> Iterator[str]:
    """A figure, if its file exists."""
    path = results / "figures" / f"{name}.png"
    if path.exists():
        yield f"![{words}]({Path(os.path.relpath(path, out.parent)).as_posix()})"
        yield ""
