import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sfihilo.cli import main as cli

runner = CliRunner()


def test_version() -> None:
    result = runner.invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"sfihilo {version('sfihilo')}\n"


def test_help_lists_the_parts_without_loading_them() -> None:
    script = (
        "import sys, sfihilo.cli.main\n"
        "try: sfihilo.cli.main.app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'matplotlib', 'pandas', 'pyarrow', 'optuna', 'fastapi'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    for part in ("demo", "study", "session"):
        assert part in done.stdout


@pytest.mark.parametrize("console", [True, False])
def test_demo_passes_its_options_on_and_points_to_an_installed_console(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, console: bool
) -> None:
    calls = []
    monkeypatch.setattr(cli, "load", lambda *_: lambda **options: calls.append(options))
    monkeypatch.setattr(cli, "has_console", lambda: console)
    arguments = ["demo", "--queries", "7", "--people", "3", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, arguments)
    assert result.exit_code == 0
    assert calls == [{"queries": 7, "people": 3, "out": tmp_path}]
    assert ("serve --demo" in result.output) == console


def test_console_is_found_where_its_packages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert cli.has_console()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not cli.has_console()


def test_demo_refuses_no_queries() -> None:
    assert runner.invoke(cli.app, ["demo", "--queries", "0"]).exit_code == 2


@pytest.mark.parametrize("part", ["study", "session"])
def test_part_reads_its_own_arguments(part: str) -> None:
    shown = runner.invoke(cli.app, [part, "--help"])
    assert shown.exit_code == 0
    assert "list" in shown.output
    result = runner.invoke(cli.app, [part, "list", "--nonsense"])
    assert result.exit_code == 2
    assert f"sfihilo {part} list" in result.output


@pytest.mark.parametrize("words", [["nonsense"], ["session", "nonsense"], ["--nonsense"]])
def test_wrong_usage_has_the_prefix_of_every_error(words: list[str]) -> None:
    result = runner.invoke(cli.app, words)
    assert result.exit_code == 2
    assert "\nerror: No such" in result.output


def test_shell_completion_reaches_the_commands_of_a_part() -> None:
    words = {
        "_SFIHILO_COMPLETE": "complete_bash",
        "COMP_WORDS": "sfihilo session re",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from sfihilo.cli.main import app; app(prog_name='sfihilo')"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **words},
    )
    assert {"recommend", "recover", "redo", "repeat", "report", "restore", "resume"} == set(
        done.stdout.split()
    )


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_pandas(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=without_pandas))
    result = runner.invoke(cli.app, ["study", "list"])
    assert result.exit_code == 1
    assert "pandas" in result.output
    assert "pip install 'sfihilo[study]'" in result.output


def test_fault_inside_a_part_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise ImportError("cannot import name 'x'")

    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=broken))
    result = runner.invoke(cli.app, ["study", "list"])
    assert isinstance(result.exception, ImportError)


def test_command_line_without_typer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "sfihilo.cli.main")
    with pytest.raises(SystemExit, match=r"pip install 'sfihilo\[cli\]'"):
        importlib.import_module("sfihilo.cli.main")


def test_console_script_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from sfihilo.cli.main import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("sfihilo ")
