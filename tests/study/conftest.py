"""What all tests of the study share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def without_collecting() -> Iterator[None]:
    """statsmodels collects garbage in every correction: 0.1 s each in a process as full as ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda *generation: 0)
        yield
