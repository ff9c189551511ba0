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

from sfihilo.study import cli, panels
from sfihilo.study.cli import app, duration
from sfihilo.study.panels import EVERY_PANEL, Row
from sfihilo.study.store import Store, read_results
from tests.study.tiny import EVALUATION, PEOPLE, TINY

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
    scale = cli.Scale(
        users=2, queries=3, results=Path("results"), evaluation=EVALUATION, people=PEOPLE, lean=True
    )
    monkeypatch.setitem(cli.SCALES, "smoke", scale)
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
    assert "global_pairs" not in invoke("list")
    listed = json.loads(invoke("list", "--preset", "default", "--json"))
    assert listed["F"]["rows"][0]["rules"] == ["global_pairs"]


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
    for path in Store(tmp_path / "results", "paper").units.iterdir():
        path.unlink()
    left = json.loads(invoke(*arguments, "--dry-run"))
    assert left == {"units": 4, "left": []}
    assert "paper-tiny.csv" in invoke("export", "--results", out, "--out", str(tmp_path / "csv"))
    assert (tmp_path / "csv" / "paper-tiny.csv").stat().st_size > 1000


def _last_json(text: str) -> dict[str, list[str]]:
    record: dict[str, list[str]] = json.loads(text[text.index("{") :])
    return record


@pytest.mark.usefixtures("tiny")
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


@pytest.mark.usefixtures("tiny")
def test_a_rule_that_fails_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def rule(situation):\n    raise ValueError('ouch')\n")
    text = invoke(
        *("run", "A", "--scale", "smoke", "--users", "1", "--out", str(tmp_path / "results")),
        *("--rule", f"{tmp_path}/broken.py:rule", "--workers", "1"),
        code=1,
    )
    assert "ouch" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "Z"), "unknown panel 'Z'"),
        (("run", "diagnostics"), "nothing to run"),
        (("run", "A", "--rule", "missing.py:rule"), "there is no file missing.py"),
        (("run", "A", "--scheduler", "tcp://127.0.0.1:1"), "only the dask engine"),
        (("run", "A", "--slurm", "partition"), "KEY=VALUE"),
        (("pack", "--results", "nowhere"), "no units here"),
        (("export", "--results", "nowhere"), "no results"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str) -> None:
    assert message in invoke(*arguments, code=2)


@pytest.mark.usefixtures("tiny")
def test_another_budget_needs_another_folder(tmp_path: Path) -> None:
    common = ("run", "A", "--scale", "smoke", "--users", "1", "--out", str(tmp_path))
    invoke(*common, "--rule", "random", "--workers", "1")
    assert "--out" in invoke(*common, "--queries", "4", code=2)


def test_ctrl_c_stops_in_order_and_keeps_what_is_done(tmp_path: Path) -> None:
    # Tests in the background inherit a SIGINT that is ignored; a person's command does not.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "sfihilo.study.cli"]
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
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert list(units.glob("*.parquet"))


@pytest.mark.slow
def test_the_smoke_study(tmp_path: Path) -> None:
    invoke("run", "--scale", "smoke", "--out", str(tmp_path))
    table = read_results(tmp_path)
    assert table.groupby(["condition", "rule", "user"]).ngroups == 3 * 39
    assert table["value"].notna().all()


def test_durations_are_no_more_precise_than_known() -> None:
    assert [duration(s) for s in (None, 12.4, 600, 9000)] == [
        "unknown time",
        "12 s",
        "10 min",
        "2.5 h",
    ]
