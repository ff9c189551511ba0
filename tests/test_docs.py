"""README.md, docs/, examples/ and the documentation site.

Python blocks of a page run one after another in one namespace, in an empty folder. Of the commands
in `console` and `sh` blocks, those of make and sfihilo must exist with every option that they show.
A block after the line `<!-- not run: reason -->` is only read, never run.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sfihilo
from sfihilo import experiment, querying
from sfihilo.cli import main as cli
from tools import pages
from tools.pages import Block, blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


def commands(block: Block) -> Iterator[str]:
    """Command lines of a block; in a console block only those after the prompt."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "console":
            if line.startswith("$ "):
                yield line.removeprefix("$ ")
        elif block.language in ("sh", "bash") and line.strip() and not line.startswith("#"):
            yield line


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_python_blocks_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    pages.run(path)
    drawn = [name for name in pages.pictures(path) if name.startswith(f"{path.stem}-")]
    assert [name for name in drawn if not Path(name).is_file()] == []


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))


def fault_of_sfihilo(words: list[str]) -> str | None:
    """What is wrong with a `sfihilo ...` command, by its own help."""
    command: list[str] = []
    helped = CliRunner().invoke(cli.app, ["--help"])
    for word in words:
        if word.startswith("-"):
            break
        inside = CliRunner().invoke(cli.app, [*command, word, "--help"], env=WIDE)
        if inside.exit_code != 0 or inside.output == helped.output:
            break
        command, helped = [*command, word], inside
    if not command and words[0] != "--version":
        return f"no command {words[0]}"
    shown = set(re.findall(r"--[a-z][a-z-]*", re.sub(r"\x1b\[[0-9;]*m", "", helped.output)))
    wrong = {word.partition("=")[0] for word in words if word.startswith("--")} - shown - {"--help"}
    return f"no option {sorted(wrong)}" if wrong else None


WIDE = {"COLUMNS": "300", "TERMINAL_WIDTH": "300", "NO_COLOR": "1"}


def fault(command: str) -> str | None:
    """What is wrong with a command line, or None."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    program, arguments = words[0].removeprefix(".venv/bin/"), words[1:]
    if program == "make":
        wanted = {word for word in arguments if "=" not in word}
        return f"no target {sorted(wanted - make_targets())}" if wanted - make_targets() else None
    if program == "sfihilo":
        return fault_of_sfihilo(arguments)
    if program.startswith("python") and arguments[0].endswith(".py"):
        return None if (ROOT / arguments[0]).is_file() else f"no file {arguments[0]}"
    return None


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_commands_exist(path: Path) -> None:
    faults = [
        f"line {block.line}: {command}: {problem}"
        for block in blocks(path.read_text(encoding="utf-8"))
        for command in commands(block)
        if (problem := fault(command))
    ]
    assert faults == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path: Path) -> None:
    text = pages.FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [link for link in LINK.findall(text) if "://" not in link]
    assert [link for link in targets if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=page_id)
def test_examples_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_blocks_are_read_as_written() -> None:
    page = (
        "text\n```python\nx = 1\n```\n\n<!-- not run: takes an hour -->\n"
        "```console\n$ make demo\nreward 1\n$ sfihilo study run \\\n  A\n```\n"
        "1. a list\n\n   ```sh\n   make test\n   ```\n"
    )
    first, second, third = blocks(page)
    assert first == Block("python", "x = 1\n", 3, runs=True)
    assert not second.runs
    assert list(commands(second)) == ["make demo", "sfihilo study run    A"]
    assert third == Block("sh", "make test\n", 16, runs=True)


def test_site_builds_without_warnings_and_without_the_network(tmp_path: Path) -> None:
    unreachable = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https")}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", DOCS, tmp_path / "html"],
        env={**os.environ, **unreachable, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    written = {path.relative_to(tmp_path / "html") for path in tmp_path.rglob("*.html")}
    wanted = {page.relative_to(DOCS).with_suffix(".html") for page in PAGES if DOCS in page.parents}
    assert wanted <= written
    assert Path("tutorial.html") in wanted


DIRECTIVE = re.compile(
    r"^\.\. auto(?:function|class|exception):: (?:\w+\.)*(\w+)(?:\(.*\))?$", re.MULTILINE
)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("learner.md", set(sfihilo.__all__) - {"Settings"}),
        ("settings.md", {"Settings"}),
        ("rules.md", {*querying.RULES, "Situation", "Decision"}),
    ],
)
def test_reference_lists_every_public_name(page: str, names: set[str]) -> None:
    listed = set(DIRECTIVE.findall((DOCS / "reference" / page).read_text(encoding="utf-8")))
    assert names - listed == set()


def test_reference_of_sessions_lists_each_public_name_once() -> None:
    text = (DOCS / "reference" / "experiment.md").read_text(encoding="utf-8")
    excluded = re.findall(r":exclude-members: (.*)", text)[0].split(", ")
    listed = [name for name in DIRECTIVE.findall(text) if name in experiment.__all__]
    assert listed
    assert sorted(listed) == sorted(excluded)  # the module's directive lists the others


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("make demo", None),
        ("make nothing", "no target ['nothing']"),
        ("sfihilo demo --queries 3", None),
        ("sfihilo demo --nothing", "no option ['--nothing']"),
        ("sfihilo nothing", "no command nothing"),
        ("sfihilo --version", None),
        ("python examples/nothing.py", "no file examples/nothing.py"),
        ("cd sfihilo", None),
    ],
)
def test_wrong_command_is_reported(command: str, found: str | None) -> None:
    assert fault(command) == found
