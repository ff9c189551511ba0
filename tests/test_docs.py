"""What README.md, docs/ and examples/ say works.

Python blocks of a page run one after another in one namespace, in an empty folder. Of the commands
in `console` and `sh` blocks, those of make and sfihilo must exist with every option that they show.
A block after the line `<!-- not run: reason -->` is only read, never run.
"""

import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfihilo.cli import main as cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*\Z")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    runs: bool


def blocks(page: str) -> Iterator[Block]:
    for match in FENCE.finditer(page):
        before = page[: match.start()]
        yield Block(
            language=match[1],
            text=match[2],
            line=before.count("\n") + 2,
            runs=not NOT_RUN.search(before),
        )


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
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python" and block.runs:
            # Empty lines in front, so that a traceback names the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
            exec(code, namespace)


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
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
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
    )
    first, second = blocks(page)
    assert first == Block("python", "x = 1\n", 3, runs=True)
    assert not second.runs
    assert list(commands(second)) == ["make demo", "sfihilo study run    A"]


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
def test_faults_are_found(command: str, found: str | None) -> None:
    assert fault(command) == found
