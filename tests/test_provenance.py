"""What computed a result: commit, versions, machine."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from sfihilo import provenance


def test_environment_contains_versions_blas_system_and_processor() -> None:
    found = provenance.environment(("numpy", "optuna"))
    assert set(found) == {"python", "numpy", "optuna", "blas", "system", "cpu"}
    assert found["numpy"] == np.__version__
    assert found["optuna"] == metadata.version("optuna")
    loaded = [info for info in threadpool_info() if info["user_api"] == "blas"]
    assert loaded
    for info in loaded:
        assert f"{info['internal_api']} {info['version']}" in found["blas"]


def test_version_of_a_package_that_is_not_installed_is_unknown() -> None:
    assert provenance.version("no-such-package") == "unknown"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit that contains a package with the module."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    package = tmp_path / "package"
    package.mkdir()
    (package / "provenance.py").write_text("1\n")
    (tmp_path / "notes.txt").write_text("1\n")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.test")
    _git(tmp_path, *identity, "commit", "-q", "-m", "first")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    return package


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_commit_is_that_of_the_checkout_and_marked_if_the_package_changed(checkout: Path) -> None:
    head = _git(checkout, "rev-parse", "HEAD")
    (checkout.parent / "notes.txt").write_text("2\n")  # outside of the package
    assert provenance.commit() == head
    (checkout / "provenance.py").write_text("2\n")
    assert provenance.commit() == f"{head}-changed"


def test_commit_is_unknown_for_a_package_that_the_checkout_does_not_track(checkout: Path) -> None:
    installed = checkout.parent / "installed"
    installed.mkdir()
    (installed / "provenance.py").write_text("1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "PACKAGE", installed)
        assert provenance.commit() == "unknown"


def test_commit_is_unknown_outside_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path / "nowhere")
    assert provenance.commit() == "unknown"
