"""The folder, lab and session of most tests; a file that needs another one has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfihilo.experiment import Lab, Session
from tests.experiment.people import EXOSKELETON, LEAN, memory_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, on memory where the system allows it."""
    with memory_folder() as made:
        yield made


@pytest.fixture
def lab(folder: Path) -> Iterator[Lab]:
    """A new file."""
    with Lab(folder / "lab.db") as opened:
        yield opened


@pytest.fixture
def session(lab: Lab) -> Session:
    """A new session."""
    return lab.create(EXOSKELETON, "P07", 7, settings=LEAN)
