"""Text from people and files, made safe for where it is shown: terminal, CSV, Markdown, HTML.

Notes, units and codes may hold anything, also in a log that somebody else wrote. Nothing here
refuses a text: a report of a session must never fail because of a note.
"""

from __future__ import annotations

import html
import unicodedata

FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Cc control, Cf invisible formatting (also the reversal of direction), Cs half of a character,
# Co private, Cn unassigned, Zl and Zp line separators
UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(value: object, keep: str = "") -> str:
    r"""The text with every character that does not print written as its escape, such as \x1b."""
    return "".join(
        character
        if character in keep or unicodedata.category(character) not in UNPRINTABLE
        else character.encode("unicode_escape").decode("ascii")
        for character in str(value)
    )


def terminal(value: object) -> str:
    """A text for a Rich table or console: `[m/s]` is shown as it is, control characters as text."""
    from rich.markup import escape

    return escape(printable(value))


def cell(value: object) -> str:
    """A text for CSV: a spreadsheet shows it and does not compute it as a formula."""
    text = printable(value, keep="\n")
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def markdown(value: object) -> str:
    """A text for one cell of a Markdown table."""
    return printable(value).replace("\\", "\\\\").replace("|", "\\|")


def hypertext(value: object) -> str:
    """A text for HTML."""
    return html.escape(printable(value, keep="\n"))


def label(value: object) -> str:
    """A text for a picture; matplotlib reads $...$ as mathematics otherwise."""
    return printable(value).replace("$", r"\$")


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 trial", "2 trials"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
