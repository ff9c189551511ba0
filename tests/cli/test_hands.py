"""What makes the shell commands easy and safe to type."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sfihilo.cli.session import operator
from sfihilo.cli.session.operator import amended
from sfihilo.experiment import Lab, Record
from tests.cli.calls import command_line, loaded, run

ROOT = Path(__file__).parents[2]


def begin(participant: str = "P07", *more: str) -> None:
    run("new", "space.toml", "-p", participant, "--seed", "7", *more)


def one_trial(effort: float, choice: str | None, *more: str) -> None:
    run("ask", *more)
    run("measure", f"effort={effort}", "comfort=5", *more)
    if choice:
        run("choose", choice, *more)


def test_one_letter_answers_are_recorded(folder: Path) -> None:
    begin()
    one_trial(4, None)
    for letter in ("n", "P", "Same", "c"):
        one_trial(5, letter)
    trials = loaded("show")["trials"]
    assert [trial["choice"] for trial in trials] == [None, "new", "previous", "same", None]
    assert trials[-1]["answered"]


def test_missing_outcomes_and_decimal_commas_are_typed_as_people_do(folder: Path) -> None:
    begin()
    for number, word in enumerate(("none", "missing", "None", "NA"), start=1):
        run("ask")
        run("measure", "effort=4,25", f"comfort={word}")
        if loaded("show")["trials"][-1]["asks_choice"]:
            run("choose", "n")
        assert loaded("show")["trials"][number - 1]["outcome"] == {"effort": 4.25, "comfort": None}


def test_error_about_a_missing_outcome_names_what_the_shell_takes(folder: Path) -> None:
    begin()
    run("ask")
    assert "give comfort=none" in run("measure", "effort=4", code=2)
    said = run("measure", "effrt=4", "comfort=3", code=2)
    assert "effrt: expected one of effort, comfort" in said
    assert "effort: expected a value" in said


def test_amend_changes_one_outcome_and_keeps_the_others(folder: Path) -> None:
    begin()
    one_trial(4, None)
    assert loaded("amend", "1", "effort=4.5")["outcome"] == {"effort": 4.5, "comfort": 5.0}
    assert loaded("amend", "1", "comfort=none")["outcome"] == {"effort": 4.5, "comfort": None}
    run("ask")
    assert "give comfort=none" in run("amend", "2", "effort=4", code=2)


def test_suggest_keeps_the_rest_of_the_last_settings(folder: Path) -> None:
    begin()
    assert "missing y" in run("suggest", "x=3", code=2)
    run("suggest", "x=3", "y=4")
    run("measure", "effort=4", "comfort=5")
    said = run("suggest", "x=2,5")
    assert "Kept from trial 1: y 4" in said
    assert loaded("show")["trials"][1]["policy"] == {"x": 2.5, "y": 4.0}
    run("veto", "--why", "no")  # never applied: the settings are still those of trial 1
    assert loaded("suggest", "y=6")["policy"] == {"x": 3.0, "y": 6.0}


def test_short_break_repeats_no_condition_and_a_long_one_says_why(folder: Path) -> None:
    begin()
    one_trial(4, None)
    for words in (["--short", "--why", "water"], ["5"]):
        assert "no condition is repeated" in run("break", *words)
        assert loaded("ask")["source"] == "learner"
        run("measure", "effort=4", "comfort=5")
        run("choose", "s")
    assert "walked again" in run("break", "90")
    assert "Next: session resume" in run("show")
    said = run("ask")
    assert "after a break" in said
    assert loaded("ask")["source"] == "anchor"


def test_veto_because_of_pain_holds_until_it_is_lifted(folder: Path) -> None:
    begin()
    one_trial(4, None)
    trial = loaded("ask")["trial"]
    run("veto", "--pain", "--why", "knee")
    with Lab("sfihilo.db") as lab:
        (veto,) = lab.record("P07-1").painful
    assert (veto.trial, veto.why, veto.pain) == (trial, "knee", True)
    run("lift", str(trial), "--why", "padding added")
    with Lab("sfihilo.db") as lab:
        assert lab.record("P07-1").painful == ()


def test_place_states_where_the_device_is(folder: Path) -> None:
    begin()
    run("suggest", "x=3", "y=4")
    run("measure", "effort=4", "comfort=5")
    said = run("place", "x=1,5", "--why", "set by hand")
    assert "Kept from trial 1: y 4" in said
    with Lab("sfihilo.db") as lab:
        assert lab.record("P07-1").positions == ({"x": 1.5, "y": 4.0},)
    assert "Kept from the stated place: x 1.5" in run("suggest", "y=2")


def test_head_noted_earlier_shows_a_rewritten_record(folder: Path) -> None:
    begin()
    noted = loaded("head")
    assert noted["events"] == 1
    assert noted["head"] in run("head")
    run("ask")
    assert "intact" in run("verify", "--head", noted["head"])
    Path("sfihilo.db").rename("first.db")
    run("new", "space.toml", "-p", "P07", "--seed", "8")
    assert "intact" in run("verify")
    assert "no event in it has the hash" in run("verify", "--head", noted["head"], code=3)


def test_every_step_says_what_comes_next(folder: Path) -> None:
    said = [
        run("new", "space.toml", "-p", "P07"), run("ask"), run("start"),
        run("measure", "effort=4", "comfort=5"), run("ask"), run("undo"), run("redo"),
        run("start"), run("measure", "effort=5", "comfort=6"), run("choose", "n"),
        run("note", "warm"), run("break"), run("resume"), run("show"), run("close"),
    ]  # fmt: skip
    following = [text.strip().splitlines()[-1] for text in said]
    assert all(line.startswith("Next: ") for line in following), following
    assert following[0] == "Next: session ask"
    assert following[2] == "Next: session measure effort=VALUE comfort=VALUE"
    assert "session choose n|p|s|c" in following[8]
    assert "this one (n) or the one before, trial 1 (p)" in following[8]


def test_nobody_is_asked_about_a_walk_without_any_outcome(folder: Path) -> None:
    begin()
    one_trial(4, None)
    run("ask")
    following = run("measure", "--missing").strip().splitlines()[-1]
    assert following.startswith("Next: session choose c, without asking: nothing was measured")
    assert "session amend 2" in following
    run("choose", "c")
    assert loaded("show")["trials"][1]["status"] == "complete"


def test_tables_of_the_example_stay_within_80_columns(folder: Path) -> None:
    run("new", str(ROOT / "examples" / "space.toml"), "-p", "P01", "--seed", "1")
    run("ask")
    run("measure", "metabolic_rate=4.123456", "comfort=5")
    run("ask")
    run("measure", "metabolic_rate=4.5", "comfort=6")
    run("choose", "n")
    for words in (["show"], ["list"], ["recommend"]):
        lines = run(*words).splitlines()
        assert max(map(len, lines)) <= 80, words
    assert "4.123" in run("show")


def test_brackets_and_control_characters_are_shown_not_obeyed(folder: Path) -> None:
    text = (folder / "space.toml").read_text().replace('"Nm"', '"[m/s]"')
    (folder / "bad.toml").write_text(text.replace('"W/kg"', '"\\u001b[2Jx"'))
    (folder / "space.toml").write_text(text.replace('"W/kg"', '"[red]W[/red]"'))
    begin()
    one_trial(4, None)
    said = run("ask") + run("measure", "effort=7.5", "comfort=5") + run("choose", "n")
    said += run("recommend")
    assert "[m/s]" in said
    assert "7.5 [red]W[/red]" in said
    run("note", "\x1b]0;owned\x07")
    run("ask")
    for words in (["measure", "effort=\x1b[1m", "comfort=5"], ["new", "bad.toml", "-p", "P1"]):
        said = run(*words, code=2)
        assert "\x1b" not in said
        assert r"\x1b[" in said


def test_several_open_sessions_must_be_named(folder: Path) -> None:
    begin("P07")
    begin("P08")
    for words in (["ask"], ["show"], ["undo"], ["recommend"], ["report", "-o", "r.html"], ["run"]):
        said = run(*words, code=2)
        assert "P07-1, P08-1" in said
        assert "session use NAME" in said
    assert loaded("ask", "-s", "P07-1")["session"] == "P07-1"
    assert loaded("ask", "-s", "P08")["session"] == "P08-1"  # the participant suffices
    assert "expected one of P07-1, P08-1, got 'P09'" in run("ask", "-s", "P09", code=2)
    begin("P08")
    assert "P08-1, P08-2" in run("ask", "-s", "P08", code=2)
    run("close", "-s", "P08-1")
    assert loaded("ask", "-s", "P08")["session"] == "P08-2"


def test_session_use_chooses_for_its_owner_only(folder: Path) -> None:
    begin("P07")
    begin("P08")
    assert "Commands go to P07-1" in run("use", "P07")
    assert stat.S_IMODE(os.stat("sfihilo.db.use").st_mode) == 0o600
    assert loaded("ask")["session"] == "P07-1"
    assert loaded("ask", "-s", "P08")["session"] == "P08-1"
    assert "Commands go to P07-1" in run("new", "space.toml", "-p", "P09")
    run("use")
    run("ask", code=2)
    assert not Path("sfihilo.db.use").exists()
    assert "P07-1, P08-1, P09-1" in run("ask", code=2)


def test_closed_session_of_use_is_named_and_not_replaced_by_another(folder: Path) -> None:
    begin("P01")
    begin("P02")
    run("use", "P02")
    run("close")
    for words in (["ask"], ["suggest", "x=1", "y=1"], ["close"]):
        said = run(*words, code=2)
        assert "session P02-1, chosen with 'session use', is closed: give --session" in said
    assert "P02-1" in run("show")  # it can still be read
    assert loaded("ask", "-s", "P01")["session"] == "P01-1"
    run("use", "P01")
    assert loaded("ask")["session"] == "P01-1"


def test_session_of_a_terminal_is_named_by_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin("P07")
    begin("P08")
    run("use", "P07")
    monkeypatch.setenv("SFIHILO_SESSION", "P08")
    assert loaded("ask")["session"] == "P08-1"


def test_new_session_beside_another_says_how_to_reach_it(folder: Path) -> None:
    begin("P07")
    assert "session use P08-1" in run("new", "space.toml", "-p", "P08")


@pytest.mark.parametrize(
    "words",
    [
        ["space.toml", "-p", "Jane Doe"],
        ["space.toml", "-p", "P1", "--session", "../x"],
        ["space.toml", "-p", "P1", "--seed", "-1"],
        ["absent.toml", "-p", "P1"],
        ["impossible.toml", "-p", "P1"],
    ],
)
def test_refused_new_session_leaves_no_file(folder: Path, words: list[str]) -> None:
    text = (folder / "space.toml").read_text().replace("x + y <= 15", "x + y <= -1")
    (folder / "impossible.toml").write_text(text)
    before = sorted(folder.iterdir())
    assert run("new", *words, code=2).startswith("error: ")
    assert sorted(folder.iterdir()) == before


def test_template_is_the_example_and_begins_a_session(folder: Path) -> None:
    text = run("template")
    assert text == (ROOT / "examples" / "space.toml").read_text(encoding="utf-8")
    Path("mine.toml").write_text(text)
    run("new", "mine.toml", "-p", "P01")
    with Lab("sfihilo.db") as lab:
        assert "peak_torque" in lab.record("P01-1").space.policy


def test_failure_of_the_disk_exits_with_1(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    begin()
    os.chmod("sfihilo.db", 0o400)
    assert run("ask", code=1).startswith("error: ")


def test_errors_go_to_the_standard_error(folder: Path) -> None:
    done = subprocess.run(
        command_line("session", "ask"), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no file sfihilo.db")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_offers_session_names(folder: Path) -> None:
    begin("P07")
    begin("P08")
    script = "from sfihilo.cli.main import app; app(prog_name='sfihilo')"
    words = {
        "_SFIHILO_COMPLETE": "complete_bash",
        "COMP_WORDS": "sfihilo session ask --session P0",
        "COMP_CWORD": "4",
    }
    done = subprocess.run(
        [command_line()[0], "-c", script],
        capture_output=True, text=True, check=True, env={**os.environ, **words},
    )  # fmt: skip
    assert done.stdout.split() == ["P07-1", "P08-1"]


def test_part_of_a_hash_is_refused_with_what_was_expected(folder: Path) -> None:
    begin("P07")
    whole = loaded("head")["head"]
    assert f"session verify --head {whole}" in run("head")
    assert "expected all 64 digits" in run("verify", "--head", whole[:12], code=2)


def test_report_in_an_absent_folder_names_the_folder(folder: Path) -> None:
    begin("P07")
    absent = folder / "absent"
    said = run("report", "--out", str(absent / "report.html"), code=2)
    assert f"{absent}: there is no such folder" in said.replace("\n", "")
    assert "partial" not in said


@pytest.mark.parametrize("ending", ["abort", "veto"])
def test_trial_to_end_is_named_by_its_number(folder: Path, ending: str) -> None:
    begin("P07")
    run("ask")
    assert "expected one number, got 1 and 2" in run(ending, "1", "-t", "2", "--why", "x", code=2)
    assert loaded(ending, "1", "--why", "x")["status"] in ("aborted", "vetoed")


def test_unsafe_settings_are_named_as_they_are_typed(folder: Path) -> None:
    begin("P07")
    said = run("suggest", "x=9", "y=9", code=2)
    assert "unsafe policy x=9.0, y=9.0: constraint 'x + y <= 15' does not hold" in said
    assert "{" not in said


def test_commands_with_one_unreadable_session_go_on_and_name_it(folder: Path) -> None:
    begin()
    with Lab("sfihilo.db") as lab:
        body = dict(next(iter(lab.log.events())).body) | {"space": {"policy": None}}
        lab.log.append("broken", "opened", body)
    called = subprocess.run(
        command_line("session", "list", "--json"), capture_output=True, text=True, check=True
    )
    assert [row["session"] for row in json.loads(called.stdout)] == ["P07-1"]
    assert "session broken is left out" in called.stderr
    assert "P07-1" in run("ask")
    assert "P07-1" in run("show", "--session", "P07")


def test_correction_at_the_same_moment_is_not_overwritten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not named stays as it is, also if another terminal corrects it just now."""
    begin()
    one_trial(4, None)

    def slow(record: Record, number: int, given: dict[str, Any]) -> dict[str, Any]:
        with Lab(folder / "sfihilo.db") as lab:
            lab.open("P07-1").amend(1, why="other", outcome={"effort": 4.0, "comfort": 9.0})
        return amended(record, number, given)

    monkeypatch.setattr(operator, "amended", slow)
    assert "now: session open, trial 1 is complete" in run("amend", "1", "effort=5", code=1)
    assert loaded("show")["trials"][0]["outcome"] == {"effort": 4.0, "comfort": 9.0}


def test_reason_that_speaks_of_pain_is_asked_about(folder: Path) -> None:
    """Only --pain keeps such settings away, so who forgets it is told."""
    begin()
    run("ask")
    said = run("veto", "--why", "pain in the shin")
    assert "If it hurt: session veto 1 --pain --why REASON" in " ".join(said.split())
    said = run("veto", "1", "--pain", "--why", "pain in the shin")
    assert "until 'session lift 1 --why REASON'" in " ".join(said.split())
    assert "If it hurt" not in said
    run("ask")
    assert "If it hurt" not in run("abort", "--why", "the shoe came off")
