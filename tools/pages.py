"""`python -m tools.pages`: runs docs/tutorial.md and puts its pictures into docs/images/.

Python blocks of a page run one after another in one namespace. A block after the line
`<!-- not run: reason -->` is only read, never run.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*\Z")
PICTURE = re.compile(r"!\[[^\]]*\]\((?:\.\./)?images/([^)]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where its text begins."""

    language: str
    text: str
    line: int
    runs: bool


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks with a language, in order."""
    for match in FENCE.finditer(page):
        before = page[: match.start()]
        yield Block(
            language=match[2],
            text=textwrap.dedent(match[3]),
            line=before.count("\n") + 2,
            runs=not NOT_RUN.search(before),
        )


def run(path: Path) -> None:
    """Runs the Python blocks of a page in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python" and block.runs:
            # Empty lines in front, so that a traceback names the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
            exec(code, namespace)


def pictures(path: Path) -> list[str]:
    """Names of the pictures of docs/images that a page shows."""
    return PICTURE.findall(path.read_text(encoding="utf-8"))


def main() -> None:
    """Draws the pictures of the tutorial again."""
    os.environ["MPLBACKEND"] = "agg"
    page = ROOT / "docs" / "tutorial.md"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(page)
        for name in pictures(page):
            shutil.copy(name, ROOT / "docs" / "images" / name)
            print(f"docs/images/{name}")
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
