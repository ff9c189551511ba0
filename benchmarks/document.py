"""Puts the latest figures into docs/speed.md and docs/peers.md, each part between two comments.

`python -m benchmarks.document` does it again from benchmarks/latest.json and results/. A part whose
figures are not there stays as it is. Figures of one origin stand together below a line that says
what is known of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.clock import ROOT
from benchmarks.markdown import replace_part
from benchmarks.peers_page import clock_text, quality_text
from benchmarks.report import read_latest
from benchmarks.speed_page import (
    peers_headlines_text,
    speed_text,
    study_hours_text,
    study_took_text,
)


def write_pages(figures: dict[str, Any], results: Path, docs: Path) -> None:
    """Each part of the pages whose figures are there; the others stay as they are."""
    parts = {
        ("speed.md", "speed"): speed_text(figures),
        ("speed.md", "study hours"): study_hours_text(figures),
        ("speed.md", "study took"): study_took_text(results),
        ("speed.md", "peers"): peers_headlines_text(figures),
        ("peers.md", "times"): clock_text(figures),
        ("peers.md", "results"): quality_text(results / "peers"),
    }
    for (page, part), text in parts.items():
        if text:
            replace_part(docs / page, part, text)


def main() -> None:
    """Both pages, as far as there are figures."""
    write_pages(read_latest(), ROOT / "results", ROOT / "docs")


if __name__ == "__main__":
    main()
