"""What a command loads: a session command is typed hundreds of times in a study."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import sfihilo
from tests.cli.calls import run

CORE = ("forward", "inverse", "querying")

HEAVY = (
    "matplotlib", "pandas", "pyarrow", "optuna", "rich", "asyncio", "dask",
    "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.special",
    "scipy.stats", "sfihilo.learner", "sfihilo.settings",
)  # fmt: skip
SCRIPT = f"""
import sys
sys.argv[0] = "sfihilo"
from sfihilo.cli.main import app
try:
    app()
except SystemExit as left:
    assert not left.code, left.code
print("loaded:", *[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["list"],
        ["start"],
        ["measure", "effort=4", "comfort=5"],
        ["choose", "n"],
        ["undo"],
    ],
)
def test_session_commands_load_no_heavy_library(folder: Path, words: list[str]) -> None:
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    run("ask")
    run("measure", "effort=4", "comfort=5")
    run("ask")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "session", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "loaded:"


def test_session_command_costs_a_few_times_the_import_of_numpy(folder: Path) -> None:
    """Processor time, compared with a process that imports NumPy on the same busy machine."""
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    run("ask")
    numpy = processor_seconds("import numpy")
    show = processor_seconds(SCRIPT, "session", "show")
    assert show < 6 * numpy, (show, numpy)


def test_core_names_submodules_of_scipy_in_full() -> None:
    """`import scipy` and `scipy.special.ndtr(...)`: SciPy loads a submodule when it is used."""
    package = Path(sfihilo.__file__).parent
    core = [*package.glob("*.py"), *(p for part in CORE for p in (package / part).glob("*.py"))]
    eager = re.compile(r"^(from scipy\.|import scipy\.)", re.M)
    assert [path.name for path in core if eager.search(path.read_text(encoding="utf-8"))] == []


def processor_seconds(*words: str) -> float:
    """The least processor time of three runs."""
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", *words],
            check=True, capture_output=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)
