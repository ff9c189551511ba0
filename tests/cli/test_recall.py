"""The named trial to compare with, in the shell, in `session run`, in exports and in the report."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sfihilo.cli.interactive.dialogue import Dialogue
from sfihilo.experiment import Lab
from tests.cli.calls import SPACE, loaded, run
from tests.cli.test_advice import Keys

EFFORTS = (4, 7, 3, 6.5, 5, 3.5, 6, 4.5, 7, 3, 5.5, 4)


@pytest.fixture
def recalling(folder: Path) -> Path:
    """A session in which the last three walks are recalled, after its first trial."""
    (folder / "space.toml").write_text(SPACE + 'recall = 3\nanswers = "seven"\n')
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    run("ask")
    run("measure", "effort=4", "comfort=5")
    return folder


def until_older(folder: Path) -> dict[str, Any]:
    """The open trial that is compared with an older one than the one before."""
    for effort in EFFORTS:
        run("ask")
        trial: dict[str, Any] = loaded("measure", f"effort={effort}", f"comfort={10 - effort}")
        if trial["ago"] > 1:
            return trial
        run("choose", "n", "slightly")
    raise AssertionError("no older trial was named")


def test_shell_says_which_trial_to_compare_with(recalling: Path) -> None:
    asked = run("ask")
    assert "Which of the last 3 walks to compare with is named after measuring." in asked
    assert "measure it first; the trial to compare it with is named then" in run(
        "choose", "n", code=2
    )
    first = run("measure", "effort=5", "comfort=5")
    assert "Compare with the one before, trial 1: x " in first
    run("choose", "p", "much")
    trial = until_older(recalling)
    other, words = trial["compare_with"], {2: "two", 3: "three"}[trial["ago"]]
    assert trial["trial"] - other == trial["ago"]
    shown = run("show")
    assert "Compared with one of the last 3 walks." in shown
    for text in (shown, run("ask")):
        assert f"Compare with trial {other}, {words} ago: x " in text
        assert f"this one (n) or trial {other}, {words} ago (p)" in " ".join(text.split())
    assert loaded("show")["recall"] == 3
    assert "Compare with" not in run("choose", "p", "clearly")
    assert f"trial {other}, clearly" in run("show")
    assert loaded("show")["trials"][-1]["choice"] == "previous"


def test_exports_and_report_name_the_compared_trial(recalling: Path) -> None:
    trial = until_older(recalling)
    run("choose", "p", "clearly")
    run("export", "-o", "out", "--format", "csv,parquet,bids")
    named = str(trial["compare_with"])
    for name in ("answers", "trials"):
        with (recalling / "out" / "P07-1" / f"{name}.csv").open() as file:
            last = list(csv.DictReader(file))[-1]
        assert (last["trial"], last["compare_with"]) == (str(trial["trial"]), named)
    (table,) = (recalling / "out" / "bids").glob("sub-*/ses-*/beh/*_beh.tsv")
    with table.open() as file:
        row = list(csv.DictReader(file, delimiter="\t"))[-1]
    assert (row["compare_with"], row["choice"], row["learned"]) == (named, "previous", "true")
    assert float(row["chance_new"]) == pytest.approx(trial["model"]["chance_new"])
    readme = (recalling / "out" / "P07-1" / "README.md").read_text()
    assert "seven answers offered, compared with one of the last 3 walks." in readme
    run("report", "-o", "r.html")
    html = (recalling / "r.html").read_text()
    assert f"trial {named}, clearly" in html
    assert "compared with one of the last 3 walks" in html


def test_session_run_shows_and_takes_the_named_trial(recalling: Path) -> None:
    trial = until_older(recalling)
    other = trial["compare_with"]
    with Lab(recalling / "sfihilo.db") as lab:
        session = lab.open("P07-1")
        keys: Any = Keys("?", "1", "q")
        Dialogue(session, keys, 0).run()
        answered = session.trials[-1]
        assert (answered.compare_with, answered.choice, answered.strength) == (other, "previous", 3)
    text = " ".join(keys.shown)
    assert f"or trial {other}, " in text
    assert f"[1] trial {other} much better" in text
    assert f"[p] trial {other}" in text
    assert f"the person prefers trial {other}" in text
    assert "[p] the one before" not in text


def test_recall_of_the_file_is_stored_and_one_says_nothing(folder: Path) -> None:
    (folder / "space.toml").write_text(SPACE + "recall = 4\nrecall_noise = 0.25\n")
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    with Lab(folder / "sfihilo.db") as lab:
        settings = lab.open("P07-1").record.settings
        assert (settings["recall"], settings["recall_noise"]) == (4, 0.25)
    (folder / "space.toml").write_text(SPACE + "recall = 1\n")
    run("new", "space.toml", "-p", "P08", "--seed", "7", "--db", "one.db")
    assert "recall" not in loaded("show", "--db", "one.db")
    assert "walks" not in run("ask", "--db", "one.db")
    assert "recall" not in json.dumps(loaded("show", "--db", "one.db"))
