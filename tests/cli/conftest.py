"""A folder with a space file, on memory where the system allows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import SPACE
from tests.experiment.people import memory_folder


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory of a test, with space.toml in it."""
    with memory_folder() as made:
        (made / "space.toml").write_text(SPACE)
        monkeypatch.chdir(made)
        monkeypatch.delenv("SFIHILO_DB", raising=False)
        monkeypatch.delenv("SFIHILO_SESSION", raising=False)
        yield made
