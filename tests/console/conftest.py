"""A console for the tests of one module: they use their own sessions."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.console.running import Running, create, serving


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(Path(tmp_path_factory.mktemp("console")) / "study.db") as started:
        yield started


@pytest.fixture(scope="module")
def operator(running: Running) -> httpx.Client:
    return running.client("operator")


@pytest.fixture
def session(operator: httpx.Client) -> str:
    return create(operator)
