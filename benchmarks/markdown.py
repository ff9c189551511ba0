"""What both pages of figures are made of: parts between comments, tables, and lines of origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report import headlines


def comments(part: str) -> tuple[str, str]:
    """What stands before and after a part of a page that is written here."""
    return (
        f"<!-- {part}: begin (written by benchmarks/document.py) -->",
        f"<!-- {part}: end -->",
    )


def replace_part(path: Path, part: str, text: str) -> None:
    """Everything between the part's two comments becomes `text`."""
    whole, (begin, end) = path.read_text(), comments(part)
    if begin not in whole or end not in whole:
        raise ValueError(f"{path}: expected the comments {begin!r} and {end!r}")
    before, rest = whole.split(begin, 1)
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.split(end, 1)[1]}")


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def origin_text(origin: dict[str, Any] | None) -> str:
    """One line about where figures come from, as far as it was recorded."""
    if origin is None:
        return "When, where and at which commit this was measured was not recorded."
    versions = {"Python": origin["python"], "NumPy": origin["numpy"], "SciPy": origin["scipy"]}
    named = ", ".join(f"{k} {v}" for k, v in {**versions, **origin.get("packages", {})}.items())
    load = f"load average {origin['load_average']:.1f}"
    if "load_average_after" in origin:
        load += f" before, {origin['load_average_after']:.1f} after"
    return (
        f"Measured {origin['time']} at commit {origin['commit']} on one core of "
        f"{origin['processor']} ({named}; {load})."
    )


def headline_text(group: str, figures: dict[str, Any]) -> str:
    """A group's headlines beside their targets; the origin is said by who calls."""
    rows = [[name, f"{value:.3g}", target] for name, value, target in headlines(group, figures)]
    return table(["figure", "value", "target"], rows)
