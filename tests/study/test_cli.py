"""The command: what a methods researcher types."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfihilo.cli.study import options
from sfihilo.cli.study.app import app
from sfihilo.study.design import panels
from sfihilo.study.design.conditions import Unit
from sfihilo.study.design.panels import EVERY_PANEL, Row
from sfihilo.study.run.engines import Engine, EngineError
from sfihilo.study.run.progress import Forecast
from sfihilo.study.run.result_files import Store, decode, encode, read_results
from tests.study.invented import invented, write_results
from tests.study.tiny import EVALUATION, PEOPLE, TINY, contents

LATER = ("evaluation", "users", "lean")  # what units of an older version do not say

RULE = '''
"""Query where the forward belief is least certain."""
from dataclasses import replace

import numpy as np

from sfihilo.querying import random


def most_uncertain(situation):
    pool = situation.pool()
    leverage = situation.forward.predict(pool).epistemic.mean(axis=1)
    return replace(random(situation), policy=pool[np.argmax(leverage)])


def squares(outcomes):
    return np.hstack([outcomes, outcomes**2])
'''


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same commands on a study that takes a second."""
    scale = options.Scale(
        users=2, queries=3, results=Path("results"), evaluation=EVALUATION, people=PEOPLE, lean=True
    )
    monkeypatch.setitem(options.SCALES, "smoke", scale)
    small = Row(TINY, ("random", "mutual_information"), 2, "d = 2")
    monkeypatch.setitem(EVERY_PANEL, "A", (small,))


def invoke(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_list_names_every_panel_and_condition() -> None:
    text = invoke("list")
    listed = json.loads(invoke("list", "--json"))
    assert set(listed) == set(EVERY_PANEL)
    for name, rows in EVERY_PANEL.items():
        assert panels.TITLES[name] in text
        for row in rows:
            assert row.condition.name in text


def test_list_shows_each_presets_own_rule() -> None:
    for preset, own in (("paper", "boundary_lookahead"), ("default", "global_pairs")):
        listed = json.loads(invoke("list", "--preset", preset, "--json"))
        assert listed["F"]["rows"][0]["rules"] == [own]


@pytest.mark.usefixtures("tiny")
def test_claims_and_comparison_say_what_is_missing(tmp_path: Path) -> None:
    assert "no results" in invoke("claims", "--results", str(tmp_path), code=2)
    assert "no results" in invoke("compare", str(tmp_path / "a"), str(tmp_path / "b"), code=2)


def test_dry_run_lists_what_is_left_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "results"
    record = json.loads(invoke("run", "A", "--dry-run", "--json", "--out", str(out)))
    assert record["units"] == len(record["left"]) == 90
    assert not out.exists()


def test_the_whole_smoke_study_is_every_condition_of_three_users() -> None:
    record = json.loads(invoke("run", "--scale", "smoke", "--dry-run", "--json"))
    assert record["units"] == 3 * 39


@pytest.mark.usefixtures("tiny")
def test_run_pack_export(tmp_path: Path) -> None:
    out = str(tmp_path / "results")
    arguments = ("run", "A", "--scale", "smoke", "--workers", "1", "--out", out, "--json")
    assert len(_last_json(invoke(*arguments))["finished"]) == 4
    assert _last_json(invoke(*arguments))["finished"] == []
    assert "tiny.parquet" in invoke("pack", "--results", out)
    packed = json.loads(invoke("pack", "--results", out, "--json"))["written"]
    assert {Path(name).name: Path(name).stat().st_size for name in packed} == {
        "tiny.parquet": next(iter(packed.values()))
    }
    for path in Store(tmp_path / "results", "paper").units.iterdir():
        path.unlink()
    left = json.loads(invoke(*arguments, "--dry-run"))
    assert left == {"units": 4, "left": []}
    assert "paper-tiny.csv" in invoke("export", "--results", out, "--out", str(tmp_path / "csv"))
    assert (tmp_path / "csv" / "paper-tiny.csv").stat().st_size > 1000


@pytest.mark.parametrize("command", ["tables", "figures", "claims"])
def test_commands_that_write_files_list_them_as_text_or_json(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfihilo.study.figures.style.write", _touched)
    monkeypatch.setattr("sfihilo.study.figures.truth_behavior", lambda: None)
    results = tmp_path / "results"
    write_results(results, invented(2, ["paper"], ["base"]))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    out = () if command == "tables" else ("--out", str(tmp_path / "out"))
    listed = invoke(command, "--results", str(results), *out).split()
    record = json.loads(invoke(command, "--results", str(results), *out, "--json"))
    after = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert listed == record["written"]
    assert {Path(name) for name in listed} == after - before, "nothing else may be written"


def _touched(figure: object, folder: Path, name: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    (folder / name).touch()
    return [folder / name]


def _last_json(text: str) -> dict[str, list[str]]:
    record: dict[str, list[str]] = json.loads(text[text.index("{") :])
    return record


@pytest.mark.usefixtures("tiny", "own_modules")
def test_a_users_own_rule_and_reward_model_from_a_short_file(tmp_path: Path) -> None:
    file = tmp_path / "my_rules.py"
    file.write_text(RULE, encoding="utf-8")
    results = tmp_path / "results"
    size = ("--scale", "smoke", "--users", "1", "--workers", "1")
    common = ("run", "A", *size, "--out", str(results))
    invoke(*common, "--rule", f"{file}:most_uncertain", "--rule", "random")
    invoke(*common, "--reward", f"{file}:squares")
    table = read_results(results)
    assert set(table["rule"]) == {"random", "my_rules:most_uncertain", "mutual_information"}
    assert set(table["condition"]) == {"tiny", "tiny-my_rules.squares"}


@pytest.mark.usefixtures("tiny", "own_modules")
def test_rule_that_fails_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def rule(situation):\n    raise ValueError('ouch')\n")
    text = invoke(
        *("run", "A", "--scale", "smoke", "--users", "1", "--out", str(tmp_path / "results")),
        *("--rule", f"{tmp_path}/broken.py:rule", "--workers", "1"),
        code=1,
    )
    assert "ouch" in text
    assert "\nerror: tiny--broken.rule--u000 failed\n" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "Z"), "panel: expected one of A, B,"),
        (("run", "diagnostics"), "nothing to run"),
        (("run", "A", "--scheduler", "tcp://127.0.0.1:1"), "only the dask engine"),
        (("run", "A", "--slurm", "partition"), "expected KEY=VALUE, got 'partition'"),
        (("run", "A", "--slurm", "=5"), "expected KEY=VALUE, got '=5'"),
        (("run", "A", "--slurm", "foo=1"), "only the slurm engine"),
        (("run", "A", "--slurm", "cluster=local"), "only the slurm engine"),
        (("run", "A", "--engine", "slurm"), "how many units run at once"),
        (("run", "A", "--engine", "slurm", "--slurm", "cluster=x"), "slurm or local, got 'x'"),
        (("run", "A", "--out", "a_file"), "expected a folder, got the file a_file"),
        (("run", "A", "--out", "a_file/inside"), "expected a folder, got the file a_file"),
        (("run", "A", "--dry-run", "--out", "a_file"), "expected a folder, got the file a_file"),
        (("pack", "--results", "nowhere"), "no units here"),
        (("export", "--results", "nowhere"), "no results"),
        (("figures", "--results", "nowhere"), "no results"),
        (("tables", "--results", "nowhere"), "no results"),
    ],
)
def test_wrong_usage_prints_one_error_line_and_exits_with_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_file").touch()
    assert_refused(*arguments, message=message)
    assert [path.name for path in tmp_path.iterdir()] == ["a_file"], "nothing may be written"


def assert_refused(*arguments: str, message: str) -> None:
    said = invoke(*arguments, code=2)
    assert message in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1, "one sentence"


MISTAKEN = {
    "divides.py": "1 / 0\n",
    "speaks_badly.py": "def :\n",
    "leaves.py": "raise SystemExit(3)\n",
    "needs.py": "import no_such_package\n",
    "functions.py": (
        "number = 3\ndef one(outcomes):\n    return outcomes[0]\n"
        "def raises(outcomes):\n    raise KeyError('ouch')\n"
    ),
    "random.py": "def rule(situation): ...\n",
}


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--rule", "nonsense", "expected random, mutual_information"),
        ("--rule", "nonsense:rule", "No module named 'nonsense'"),
        ("--rule", "missing.py:rule", "there is no file missing.py"),
        ("--rule", "functions.py", "expected file.py:function"),
        ("--rule", "functions.py:missing", "has no attribute 'missing'"),
        ("--rule", "functions.py:number", "cannot be called"),
        ("--rule", "divides.py:rule", "ZeroDivisionError: division by zero"),
        ("--rule", "speaks_badly.py:rule", "SyntaxError"),
        ("--rule", "leaves.py:rule", "SystemExit: 3"),
        ("--rule", "needs.py:rule", "No module named 'no_such_package'"),
        ("--rule", "random.py:rule", "another module is called random"),
        ("--reward", "nonsense", "expected rbf, landmarks, linear"),
        ("--reward", "functions.py", "expected file.py:function"),
        ("--reward", "functions.py:missing", "has no attribute 'missing'"),
        ("--reward", "divides.py:rule", "ZeroDivisionError: division by zero"),
        ("--reward", "functions.py:one", "shape (2, 8), got float64 of shape (8,)"),
        ("--reward", "functions.py:raises", "KeyError: 'ouch'"),
    ],
)
def test_a_rule_or_reward_that_cannot_be_used_is_refused_before_anything_is_written(
    option: str, name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for file, text in MISTAKEN.items():
        Path(file).write_text(text, encoding="utf-8")
    before = sys.path[:]
    assert_refused("run", "A", option, name, message=message)
    assert {path.name for path in tmp_path.iterdir()} == set(MISTAKEN)
    assert sys.path == before


@pytest.mark.usefixtures("tiny")
def test_an_engine_that_cannot_run_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    common = ("run", "A", "--scale", "smoke", "--out", str(out), "--engine")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_refused(*common, "slurm", "--workers", "1", message="there is no Slurm here")
    assert_refused(
        *(*common, "slurm", "--slurm", "cluster=local", "--slurm", "nonsense=1"),
        message="'nonsense' need to be prefixed",
    )
    assert_refused(*common, "dask", "--scheduler", "garbage", message="'garbage' cannot be reached")
    assert not out.exists()


@pytest.mark.usefixtures("tiny")
def test_engine_that_fails_during_the_run_prints_an_error_and_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(engine: Engine) -> None:
        raise EngineError("the scheduler went home")

    monkeypatch.setattr(Engine, "start", gone)
    said = invoke("run", "A", "--scale", "smoke", "--out", str(tmp_path), code=2)
    assert "error: the scheduler went home\n" in said


@pytest.mark.usefixtures("tiny")
def test_submitit_without_slurm_runs_one_unit_at_a_time_if_told_so(tmp_path: Path) -> None:
    out = tmp_path / "results"
    common = ("run", "A", "--scale", "smoke", "--users", "1", "--workers", "1", "--out", str(out))
    said = invoke(*common, "--engine", "slurm", "--slurm", "cluster=local", "--json")
    assert len(_last_json(said)["finished"]) == 2
    begun = sorted(path.stat().st_mtime for path in (out / "slurm").glob("*_submitted.pkl"))
    ended = sorted(path.stat().st_mtime for path in (out / "slurm").glob("*_result.pkl"))
    assert len(begun) == len(ended) == 2
    assert ended[0] <= begun[1]


@pytest.mark.usefixtures("tiny")
def test_forecast_uses_the_number_of_units_that_the_engine_runs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    class Noted(Forecast):
        def __init__(self, workers: int, left: list[Unit]) -> None:
            counted.append(workers)
            super().__init__(workers, left)

    monkeypatch.setattr(Engine, "ready", lambda engine: 7)
    monkeypatch.setattr("sfihilo.study.run.progress.Forecast", Noted)
    common = ("--scale", "smoke", "--users", "1", "--rule", "random", "--out", str(tmp_path))
    invoke("run", "A", *common, "--workers", "1")
    assert counted == [7]


@pytest.mark.usefixtures("tiny")
def test_pack_of_copied_units_writes_their_study_json(tmp_path: Path) -> None:
    out = tmp_path / "results"
    common = ("--scale", "smoke", "--users", "1", "--rule", "random", "--workers", "1")
    invoke("run", "A", *common, "--out", str(out))
    study = Store(out, "paper").study
    noted = study.read_bytes()
    study.unlink()
    assert "study.json" not in invoke("pack", "--results", str(out))
    assert study.read_bytes() == noted
    (unit,) = contents(Store(out, "paper"))
    other = Store(out, "default").units / unit
    other.parent.mkdir()
    other.write_bytes(_as_of_an_older_version(Store(out, "paper").units / unit))
    assert "default has no study.json" in invoke("pack", "--results", str(out))
    assert not Store(out, "default").study.exists()


def _as_of_an_older_version(path: Path) -> bytes:
    table, about = decode(path)
    return encode(table, {name: about[name] for name in about if name not in LATER})


def test_help_of_reward_mentions_a_file() -> None:
    said = invoke("run", "--help")
    assert " ".join(said.split("--reward")[1].split()).count("file.py:function") == 1


@pytest.mark.usefixtures("tiny")
def test_another_budget_needs_another_folder(tmp_path: Path) -> None:
    common = ("run", "A", "--scale", "smoke", "--users", "1", "--out", str(tmp_path))
    invoke(*common, "--rule", "random", "--workers", "1")
    assert "--out" in invoke(*common, "--queries", "4", code=2)


def test_interrupted_run_keeps_finished_units_and_exits_with_130(tmp_path: Path) -> None:
    # Tests in the background inherit a SIGINT that is ignored; a person's command does not.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "sfihilo.cli.study.app"]
    command += [
        "run",
        "A",
        "--scale",
        "smoke",
        "--rule",
        "random",
        "--queries",
        "25",
        "--out",
        str(tmp_path),
        "--workers",
        "1",
    ]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    units = Store(tmp_path, "paper").units
    with subprocess.Popen(
        [*command, "--users", "200"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            while not list(units.glob("*.parquet")):
                assert process.poll() is None
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "the same command continues" in said
    assert "Traceback" not in said
    assert list(units.glob("*.parquet"))


@pytest.mark.slow
def test_the_smoke_study(tmp_path: Path) -> None:
    invoke("run", "--scale", "smoke", "--out", str(tmp_path))
    table = read_results(tmp_path)
    assert table.groupby(["condition", "rule", "user"]).ngroups == 3 * 39
    assert table["value"].notna().all()
