"""How every command speaks: errors and exit codes, JSON for scripts, tables for people.

Exit codes: 0 done, 1 the work failed, 2 wrong input or usage, 3 the record is damaged. An error is
one line on the standard error that begins with `error:`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import wrap
from typing import NoReturn

import typer

FAILED, WRONG_INPUT, DAMAGED = 1, 2, 3
WRONG_PATH = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
LINE_WIDTH = 80
WIDEST_CELL = 36
GAP = "  "
LONG_DECIMAL = re.compile(r"(?<![\w.])-?\d+\.\d{6,}(?:e[-+]?\d+)?(?![\w.])")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@contextmanager
def errors() -> Iterator[None]:
    """Turn wrong input and failures of the system into one line and an exit code."""
    try:
        yield
    except ValueError as error:
        fail(str(error), WRONG_INPUT)
    except OSError as error:
        reason = error.strerror or str(error)
        place = "" if error.filename is None else f"{error.filename}: "
        fail(f"{place}{reason}", WRONG_INPUT if isinstance(error, WRONG_PATH) else FAILED)


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong and leave."""
    typer.echo(f"error: {readable(message)}", err=True)
    raise typer.Exit(code)


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: control characters as escapes."""
    return "".join(
        mark
        if mark.isprintable()
        else " "
        if unicodedata.category(mark) == "Zs"
        else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )


def readable(message: str) -> str:
    """A message for people: printable, and with at most six digits of a long decimal number."""
    return LONG_DECIMAL.sub(lambda found: f"{float(found[0]):.6g}", printable(message))


@dataclass(frozen=True)
class Output:
    """Where a command's result goes: JSON for scripts, tables and sentences for people."""

    as_json: bool = False

    def json(self, value: object) -> bool:
        """Print JSON if that is wanted; returns whether it did."""
        if self.as_json:
            typer.echo(json.dumps(value))
        return self.as_json

    def say(self, *lines: str) -> None:
        """Lines for people."""
        for line in lines:
            typer.echo(readable(line))

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table for people; one that is too wide becomes several with the same first column."""
        self.say(title)
        for line in table_lines(headings, rows, line_width()):
            typer.echo(line)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show that work is going on, on the standard error of a person's terminal only."""
        if self.as_json or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(Text(f"{printable(what)} ...")):
            yield


def line_width() -> int:
    """The width of the terminal, or 80 columns where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else LINE_WIDTH


def table_lines(
    headings: Sequence[str], rows: Sequence[Sequence[object]], width: int = LINE_WIDTH
) -> list[str]:
    """The lines of a table, each within `width`; numbers stand to the right."""
    columns = [
        Column.of(heading, [row[place] for row in rows]) for place, heading in enumerate(headings)
    ]
    lines: list[str] = []
    for part in _parts(columns, width):
        lines += ["", *_part_lines(part)]
    return [*lines, ""]


@dataclass(frozen=True)
class Column:
    """The heading and the cells of a column, each as its lines."""

    heading: list[str]
    cells: list[list[str]]
    numeric: bool

    @staticmethod
    def of(heading: str, values: Sequence[object]) -> Column:
        texts = [printable(cell_text(value)) for value in values]
        filled = [text for text in texts if text]
        return Column(
            heading=printable(heading).replace("_", "_\n").split("\n"),
            cells=[wrap(text, WIDEST_CELL) or [""] for text in texts],
            numeric=bool(filled) and all(NUMBER.fullmatch(text) for text in filled),
        )

    @property
    def width(self) -> int:
        return max(shown_width(line) for cell in (self.heading, *self.cells) for line in cell)


def cell_text(value: object) -> str:
    """A value in a table cell."""
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def shown_width(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters take two, marks none."""
    return sum(
        0 if unicodedata.combining(mark) else 2 if unicodedata.east_asian_width(mark) in "WF" else 1
        for mark in text
    )


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Columns that fit side by side; the first column leads each part."""
    first, *others = columns
    part, taken = [first], first.width
    for column in others:
        if len(part) > 1 and taken + len(GAP) + column.width > width:
            yield part
            part, taken = [first], first.width
        part.append(column)
        taken += len(GAP) + column.width
    yield part


def _part_lines(columns: Sequence[Column]) -> Iterator[str]:
    height = max(len(column.heading) for column in columns)
    yield from _row([[""] * (height - len(c.heading)) + c.heading for c in columns], columns)
    yield "-" * (sum(column.width for column in columns) + len(GAP) * (len(columns) - 1))
    for place in range(len(columns[0].cells)):
        yield from _row([column.cells[place] for column in columns], columns)


def _row(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> Iterator[str]:
    for place in range(max(map(len, cells))):
        texts = [cell[place] if place < len(cell) else "" for cell in cells]
        yield GAP.join(
            " " * (column.width - shown_width(text)) + text
            if column.numeric
            else text + " " * (column.width - shown_width(text))
            for text, column in zip(texts, columns, strict=True)
        ).rstrip()
