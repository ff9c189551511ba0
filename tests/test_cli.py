import importlib
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


def test_demo_passes_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    calls = []
    monkeypatch.setattr(cli, "load", lambda *_: lambda **options: calls.append(options))
    result = runner.invoke(cli.app, ["demo", "--queries", "7", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert calls == [{"queries": 7, "out": tmp_path}]


def test_demo_refuses_no_queries() -> None:
    assert runner.invoke(cli.app, ["demo", "--queries", "0"]).exit_code == 2


@pytest.mark.parametrize("part", ["study", "session"])
def test_a_part_reads_all_its_arguments_itself(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(cli, "load", lambda *_: lambda **options: calls.append(options))
    arguments = ["run", "A", "--scale", "smoke", "--help", "-x", "last"]
    result = runner.invoke(cli.app, [part, *arguments])
    assert result.exit_code == 0
    assert calls == [{"args": arguments, "prog_name": f"sfihilo {part}"}]
    assert runner.invoke(cli.app, [part, "--help"]).exit_code == 0
    assert calls[-1]["args"] == ["--help"]


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
