"""The layout of the package: what may import what, and what may be in a file."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import is_core_test

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sfihilo"

# A part imports only parts that stand before it.
ORDER = (
    "checks",
    "history",
    "forward",
    "inverse",
    "feasible",
    "querying",
    "final_policy",
    "recommendation",
    "settings",
    "state",
    "refit",
    "imputation",
    "learner",
    "compared_trial",
    "comparisons",
    "saved",
    "provenance",
    "study",
    "experiment",
    "console",
    "cli",
)
STRANGERS = {("study", "experiment"), ("experiment", "study")}
CORE = ORDER[: ORDER.index("saved") + 1]
HEAVY = (
    "matplotlib",
    "pandas",
    "pyarrow",
    "optuna",
    "sklearn",
    "statsmodels",
    "fastapi",
    "starlette",
    "uvicorn",
    "jinja2",
    "typer",
    "rich",
    "pydantic",
    "dask",
    "loky",
    "pylsl",
)


def part_of(module: str) -> str:
    """`sfihilo.study.people.users` -> `study`; the package itself -> ``."""
    return module.removeprefix("sfihilo").removeprefix(".").partition(".")[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(path: Path, tree: ast.AST) -> Iterator[str]:
    """Full names of the modules that a file imports, at any depth; strings of lazy imports too."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "sfihilo":
                yield from (f"sfihilo.{alias.name}" for alias in node.names)
            else:
                yield module
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"sfihilo(\.\w+)+", node.value)
        ):
            yield node.value


def parts_imported(path: Path, tree: ast.AST) -> set[str]:
    """Parts of the package that a file imports; a name of `sfihilo` itself is `learner`."""
    modules = {name for name in imported(path, tree) if name.partition(".")[0] == "sfihilo"}
    parts = {part_of(name) for name in modules}
    return {part if part in ORDER else "learner" for part in parts} - {""}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def source_id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_no_source_file_has_more_than_400_lines() -> None:
    lengths = {source_id(path): len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_source_folder_has_more_than_fourteen_modules() -> None:
    count = Counter(path.parent for path in sources() if path.name != "__init__.py")
    assert {str(folder): many for folder, many in count.items() if many > 14} == {}


@pytest.mark.parametrize(
    ("path", "core"),
    [
        ("forward/test_forward.py", True),
        ("inverse/test_average.py", True),
        ("querying/test_pairs.py", True),
        ("test_learner.py", True),
        ("test_hard_data.py", True),
        ("test_docs.py", False),
        ("experiment/session/test_lab.py", False),
    ],
)
def test_core_tests_raise_on_floating_point_errors(path: str, core: bool) -> None:
    assert (ROOT / "tests" / path).is_file()
    assert is_core_test(ROOT / "tests" / path) == core


def test_every_module_has_its_place_in_the_order() -> None:
    parts = {part_of(module_name(path)) for path in sources()} - {""}
    assert parts <= set(ORDER)


@pytest.mark.parametrize("path", sources(), ids=source_id)
def test_imports_go_only_downwards(path: Path) -> None:
    part = part_of(module_name(path))
    if not part:  # sfihilo/__init__.py re-exports the core
        return
    used = parts_imported(path, ast.parse(path.read_text(encoding="utf-8"))) - {part}
    assert {name for name in used if ORDER.index(name) > ORDER.index(part)} == set()
    assert {name for name in used if (part, name) in STRANGERS} == set()


def test_package_init_imports_only_the_core() -> None:
    path = PACKAGE / "__init__.py"
    used = parts_imported(path, ast.parse(path.read_text(encoding="utf-8")))
    assert used <= set(CORE)


@pytest.mark.parametrize(
    ("file", "text", "parts"),
    [
        ("forward.py", "from .history import History", {"history"}),
        ("forward.py", "import sfihilo.study.people.users", {"study"}),
        ("study/users.py", "from .. import learner", {"learner"}),
        ("study/users.py", "from sfihilo import Settings", {"learner"}),
        ("study/users.py", "from ..experiment.space import Space", {"experiment"}),
        ("study/users.py", "def f():\n    from .noise import x", {"study"}),
        ("study/users.py", "load('sfihilo.cli.session.app')", {"cli"}),
        ("study/__init__.py", "from .users import sample_user", {"study"}),
        ("study/users.py", "import numpy as np", set()),
    ],
)
def test_import_reader_finds_every_kind_of_import(file: str, text: str, parts: set[str]) -> None:
    assert parts_imported(PACKAGE / file, ast.parse(text)) == parts


def run_fresh(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_importing_the_package_loads_no_heavy_library() -> None:
    script = (
        "import sys, sfihilo\n"
        "print('sfihilo.learner' in sys.modules)\n"
        "sfihilo.begin, sfihilo.load\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])\n"
        "print('sfihilo.learner' in sys.modules)"
    )
    assert run_fresh(script).split("\n")[:3] == ["False", "", "True"]


def test_package_gives_every_public_name_and_part() -> None:
    script = (
        "import sfihilo\n"
        "for name in (*sfihilo.__all__, 'forward', 'inverse', 'querying', 'settings'):\n"
        "    assert name in dir(sfihilo) and getattr(sfihilo, name) is not None, name\n"
        "assert sorted(sfihilo._HOMES) == sfihilo.__all__\n"
        "try: sfihilo.nothing\n"
        "except AttributeError as error: print(error)"
    )
    assert run_fresh(script) == "module 'sfihilo' has no attribute 'nothing'\n"


@pytest.mark.parametrize("path", sources(), ids=source_id)
def test_no_module_pickles_or_uses_global_random_state(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    modules = set(imported(path, ast.parse(text)))
    assert not modules & {"pickle", "cPickle", "dill", "shelve", "random"}
    assert not re.search(r"np\.random\.(seed|rand|randn|normal|uniform|choice|random)\(", text)


def project_files() -> list[Path]:
    """Text files that belong to the project: what git tracks or would track."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:  # an unpacked archive
        paths = [path for path in ROOT.rglob("*") if not hidden(path)]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def hidden(path: Path) -> bool:
    inside = path.relative_to(ROOT).parts
    return any(
        part.startswith((".venv", ".git")) or part.endswith(("cache", ".egg-info"))
        for part in inside
    )


# Written in pieces, so that this file does not offend against itself.
FORBIDDEN = {
    "registry address": re.compile(
        r"(https?://[^ ]*/(simple|packages)/|--(extra-)?index" r"-url|find-links|file:/" r"//)"
    ),
    "path of one machine": re.compile(r"(?<![\w.~-])/(work|home|root|Users|opt)/" r"[\w.-]+"),
    "folder beside the project": re.compile(r"\.\./" r"shared"),
}


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_files_name_no_place_outside_the_project(kind: str) -> None:
    offences = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path == Path(__file__) or "vendor" in path.parts:  # packages of others, as published
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN[kind].search(line):
                offences.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert offences == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("registry address", "--extra-index" + "-url https://example.test"),
        ("registry address", "https://example.test/" + "simple/numpy"),
        ("registry address", "numpy @ file:///wheels/numpy.whl"),
        ("path of one machine", "open('/home/me/data.csv')"),
        ("folder beside the project", "see ../shared/DESIGN.md"),
    ],
)
def test_pattern_finds_forbidden_places(kind: str, line: str) -> None:
    assert FORBIDDEN[kind].search(line)


def test_constraints_are_names_and_versions_only() -> None:
    for path in (ROOT / "constraints.txt", ROOT / "tools" / "constraints-numpy1.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+|#.*|", line), line
