"""The source distribution and the wheel: what they carry, and that the installed package works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist", "_build")

LOOP = """
import sfihilo
from sfihilo import Response, Settings, ask, begin, recommend, tell
state = begin(Settings(policy_dim=2, outcome_dim=2), seed=0)
for number in range(3):
    query = ask(state)
    state = tell(state, query, Response(query.policy, "new" if number else None))
print(sfihilo.__file__, len(recommend(state).policy))
"""


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> str:
    """Standard output of a command that must succeed; `path` becomes the PYTHONPATH."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    extra = {} if path is None else {"PYTHONPATH": str(path)}
    done = subprocess.run(
        command, cwd=cwd, env={**inherited, **extra}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from the sdist, as pip would."""
    folder = tmp_path_factory.mktemp("packaging")
    # A copy, since setuptools writes beside what it builds.
    shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    if (ROOT / ".ci").is_dir():
        shutil.copytree(ROOT / ".ci", folder / "source" / ".ci")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist")
    run(*build, "source", cwd=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    [inside] = folder.iterdir()
    return inside


def test_sdist_carries_docs_examples_tests_and_every_linked_picture(unpacked: Path) -> None:
    for folder, pattern in (
        ("docs", "**/*.md"),
        ("docs/images", "*.png"),
        ("examples", "*"),
        ("tests", "**/*.*"),
        ("benchmarks", "**/*.*"),
        ("tools", "*"),
        ("src", "**/*.py"),
    ):
        wanted = {
            path.relative_to(ROOT)
            for path in (ROOT / folder).glob(pattern)
            if path.is_file()
            and not {"__pycache__", "_build"} & set(path.parts)
            and not any(part.endswith(".egg-info") for part in path.parts)
        }
        missing = {str(path) for path in wanted if not (unpacked / path).exists()}
        assert wanted, folder
        assert missing == set()
    for name in ("LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "constraints.txt"):
        assert (unpacked / name).is_file(), name


def test_sdist_passes_the_layout_tests(unpacked: Path) -> None:
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    found = run(*command, "tests/test_layout.py", cwd=unpacked, path=unpacked / "src")
    assert " passed" in found


def test_wheel_carries_the_package_its_data_and_its_licence(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = opened.read(metadata).decode()
    source = ROOT / "src"
    data = {
        str(path.relative_to(source))
        for pattern in ("*.py", "*.toml", "py.typed", "*.html", "*.js", "*.css", "*.svg", "LICENSE")
        for path in (source / "sfihilo").rglob(pattern)
    }
    assert len([name for name in data if name.endswith((".html", ".js", ".css"))]) > 30
    assert data <= names
    assert {name.split("/")[0] for name in names} == {"sfihilo", Path(metadata).parts[0]}
    assert "License-Expression: MIT\n" in text
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Project-URL" not in text  # there is no public address yet


def test_installed_wheel_runs_the_loop_and_the_command(built: Path, tmp_path: Path) -> None:
    """In a new environment that sees our dependencies but not our editable installation."""
    [wheel] = built.glob("*.whl")
    venv.create(tmp_path / "new", with_pip=False, symlinks=True)
    python = tmp_path / "new" / "bin" / "python"
    [library] = (tmp_path / "new" / "lib").glob("python*/site-packages")
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    file, dimensions = run(python, "-c", LOOP, cwd=tmp_path).split()
    assert Path(file).is_relative_to(tmp_path / "new")
    assert dimensions == "2"
    assert "session" in run(tmp_path / "new" / "bin" / "sfihilo", "--help", cwd=tmp_path)
