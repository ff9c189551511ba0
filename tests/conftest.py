"""Settings that every test shares."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Derandomised, so that a red run can be repeated; no deadline, so that a busy machine stays green.
settings.register_profile(
    "sfihilo",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sfihilo")

PACKAGE = Path(__file__).parents[1] / "src" / "sfihilo"
FOLDERS = {"forward", "inverse", "querying"}
MODULES = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
ABOUT_CORE = MODULES | {"hard_data", "properties"}


def is_core_test(path: Path) -> bool:
    """Whether a test file is about the core: in one of its folders, or named after a module."""
    here = Path(__file__).parent
    if path.parent != here:
        return path.parent.parent == here and path.parent.name in FOLDERS
    name = path.stem.removeprefix("test_")
    return any(name == part or name.startswith(part + "_") for part in ABOUT_CORE)


@pytest.fixture(autouse=True)
def _raise_on_floating_point_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """In core tests every overflow, division by zero, invalid operation and underflow raises."""
    if is_core_test(request.path):
        with np.errstate(all="raise"):
            yield
    else:
        yield


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files of a user in `tmp_path` are imported; the next test has its own of the same name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name, module in list(sys.modules.items()):
        if (tmp_path / (getattr(module, "__file__", None) or "")).parent == tmp_path:
            del sys.modules[name]
