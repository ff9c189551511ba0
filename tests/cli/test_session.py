"""The command line: what a person sees, what a script reads, how it exits."""

import json
from pathlib import Path

import pytest

from sfihilo.experiment import Lab
from tests.cli import calls
from tests.cli.calls import loaded, run

ROOT = Path(__file__).parents[2]
SPACE = calls.SPACE.replace("[outcomes.comfort]\nlow = 0\nhigh = 10\n", "")  # one outcome


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "space.toml").write_text(SPACE)
    return folder


def begin() -> None:
    run("new", "space.toml", "--participant", "P07", "--seed", "7")


def one_trial(effort: float, choice: str | None) -> None:
    run("ask")
    run("measure", f"effort={effort}")
    if choice:
        run("choose", choice)


def test_a_session_from_the_shell(folder: Path) -> None:
    assert loaded("new", "space.toml", "-p", "P07", "--seed", "7") == {
        "session": "P07-1", "seed": 7, "db": "sfihilo.db",
    }  # fmt: skip
    first = loaded("ask")
    assert (first["trial"], first["status"], first["asks_choice"]) == (1, "asked", False)
    assert loaded("ask") == first
    assert loaded("measure", "effort=4")["status"] == "complete"
    second = loaded("ask", "--key", "k2")
    assert loaded("start")["status"] == "started"
    assert loaded("measure", "effort=7.5")["warnings"] == [
        "effort: 7.5 W/kg is outside the usual 3 to 7"
    ]
    assert loaded("choose", "previous")["choice"] == "previous"
    assert loaded("ask", "--key", "k2")["policy"] == second["policy"]
    assert loaded("undo", "--why", "typo") == {"undone": "chosen", "event": 7, "trial": 2}
    assert loaded("redo") == {"redone": "chosen", "event": 7, "trial": 2}
    shown = loaded("show")
    assert [trial["status"] for trial in shown["trials"]] == ["complete", "complete"]
    assert loaded("list")[0]["complete"] == 2
    advice = loaded("recommend", "--within", "x=0:4")
    assert 0 <= advice["policy"]["x"] <= 4
    assert set(advice["outcomes"]["effort"]) == {"value", "low", "high"}
    assert loaded("verify")["ok"]
    assert loaded("report", "-o", "r.html") == {"report": "r.html"}
    assert "P07-1" in (folder / "r.html").read_text()


def test_tables_for_people(folder: Path) -> None:
    begin()
    text = run("ask")
    assert "Trial 1 of P07-1" in text
    assert "Nm" in text
    assert "session measure effort=VALUE" in text
    run("measure", "effort=4")
    assert "from trial 1" in run("ask")
    run("measure", "effort=5")
    run("choose", "none")
    assert "cannot say" in run("show")
    assert "P07" in run("list")
    one_trial(6, "new")
    assert "95 % intervals" in run("recommend")
    assert "events, intact" in run("verify")


def test_operator_commands_change_the_session_as_they_say(folder: Path) -> None:
    begin()
    one_trial(4, None)
    run("veto", code=2)
    run("ask")
    assert loaded("veto", "--why", "no")["status"] == "vetoed"
    suggested = loaded("suggest", "x=3", "y=4", "--why", "physio")
    assert (suggested["source"], suggested["policy"]) == ("operator", {"x": 3.0, "y": 4.0})
    assert loaded("abort", "--why", "tired")["status"] == "aborted"
    assert loaded("repeat", "1")["repeats"] == 1
    run("measure", "effort=4")
    run("ask")
    assert loaded("measure", "--missing")["outcome"] is None
    run("choose", "same")
    assert loaded("amend", "5", "effort=5", "--why", "late")["outcome"] == {"effort": 5.0}
    assert loaded("amend", "5", "--choice", "new", "--why", "typo")["choice"] == "new"
    assert loaded("withdraw", "5", "--why", "sensor")["status"] == "withdrawn"
    assert loaded("interrupt", "--why", "lunch") == {"status": "interrupted"}
    assert loaded("resume") == {"status": "open"}
    assert loaded("ask")["source"] == "anchor"
    assert loaded("note", "mask changed") == {"status": "open"}
    assert loaded("close") == {"status": "closed"}
    assert "closed" in run("ask", code=2)


def test_export_and_restore(folder: Path) -> None:
    begin()
    one_trial(4, None)
    one_trial(5, "new")
    files = loaded("export", "--out", "out")
    assert {Path(name).suffix for name in files} >= {".csv", ".parquet", ".jsonl", ".tsv", ".md"}
    assert loaded("restore", "out/log.jsonl", "--out", "again.db")["events"] == 6
    assert loaded("verify", "--db", "again.db")["count"] == 6
    assert "exists" in run("restore", "out/log.jsonl", "--out", "again.db", code=2)


def test_the_example_space_runs(folder: Path) -> None:
    run("new", str(ROOT / "examples" / "space.toml"), "-p", "P01", "--seed", "1")
    assert "metabolic_rate" in run("ask")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["measure", "effort=9"], "expected 2 to 8 W/kg"),
        (["measure", "effort=nan"], "finite"),
        (["measure", "effort=4 W"], "expected a number"),
        (["measure", "effort"], "NAME=VALUE"),
        (["measure", "effort=4", "effort=5"], "twice"),
        (["measure", "comfort=4"], "comfort: expected one of effort"),
        (["measure"], "--missing"),
        (["measure", "effort=4", "--missing"], "--missing"),
        (["choose", "perhaps"], "choice: expected"),
        (["undo", "--session", "nobody"], "expected one of"),
        (["show", "--db", "nowhere.db"], "no file"),
        (["verify", "--db", "nowhere.db"], "no file"),
        (["recommend", "--within", "x=3"], "NAME=LOW:HIGH"),
        (["recommend", "--within", "z=3:4"], "expected names among"),
        (["suggest", "x=11", "y=1"], "finish, abort or veto"),
        (["export", "--out", "out", "--format", "xlsx"], "xlsx"),
        (["new", "none.toml", "-p", "P1"], "cannot be read"),
        (["new", "space.toml", "-p", "Jane Doe"], "expected a code"),
        (["redo"], "nothing to redo"),
    ],
)
def test_wrong_input_exits_with_2_and_a_reason(
    folder: Path, words: list[str], message: str
) -> None:
    begin()
    run("ask")
    output = run(*words, code=2)
    assert output.startswith("error: ")
    assert message in output


def test_a_refused_number_is_recorded(folder: Path) -> None:
    begin()
    run("ask")
    run("measure", "effort=nan", code=2)
    run("measure", "effort=4 W", code=2)
    run("export", "--out", "out", "--format", "jsonl")
    lines = (folder / "out/log.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds.count("refused") == 2


@pytest.mark.parametrize(
    "named", [["--format", "csv,jsonl"], ["--format", "csv", "--format", "jsonl"]]
)
def test_formats_are_named_by_commas_or_one_by_one(folder: Path, named: list[str]) -> None:
    begin()
    run("export", "--out", "out", *named)
    assert (folder / "out/log.jsonl").exists()
    assert list((folder / "out").rglob("*.csv"))
    assert not list((folder / "out").rglob("*.parquet"))


@pytest.mark.parametrize("words", [["nonsense"], ["new"], ["ask", "--nonsense"], ["repeat", "x"]])
def test_wrong_usage_exits_with_2(folder: Path, words: list[str]) -> None:
    run(*words, code=2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("colour = 1", "expected some of"),
        ("preset = 'best'", "default or paper"),
        ("rule = 'cleverest'", "cleverest"),
        ("break_minutes = 0", "break_minutes"),
        ("break_minutes = 'long'", "break_minutes: expected a number"),
        ("drift = 'yes'", "true or false"),
        ("measurement_noise = 'some'", "expected a number"),
        ("measurement_noise = 2", "[session] NoiseSettings.measurement: expected"),
    ],
)
def test_bad_session_options(folder: Path, table: str, message: str) -> None:
    text = SPACE.replace('rule = "random"', table)
    (folder / "space.toml").write_text(text)
    assert message in run("new", "space.toml", "-p", "P1", code=2)


def test_session_options_reach_the_learner(folder: Path) -> None:
    options = "preset = 'paper'\nmeasurement_noise = 0.08\ndrift = true\nreanchor = false"
    (folder / "space.toml").write_text(SPACE.replace('rule = "random"', options))
    begin()
    with Lab(folder / "sfihilo.db") as lab:
        record = lab.record("P07-1")
    assert record.settings["preset"] == "paper"
    assert record.settings["noise"]["measurement"] == 0.08
    assert record.settings["recency"]["variant"] == "learned"
    assert (record.protocol.drift, record.protocol.reanchor) == (True, False)


def test_a_damaged_record_exits_with_3_and_names_the_event(folder: Path) -> None:
    begin()
    one_trial(4, None)
    one_trial(5, "new")
    raw = bytearray((folder / "sfihilo.db").read_bytes())
    place = raw.index(b'"choice":"new"')
    raw[place + 10 : place + 13] = b"old"
    (folder / "sfihilo.db").write_bytes(raw)
    assert "event 6" in run("verify", code=3)
    assert json.loads(run("verify", "--json", code=3).splitlines()[0])["first_bad"] == 6
    assert "changed" in run("show", code=3)
    (folder / "junk.db").write_text("this is no database at all, and never was one")
    run("show", "--db", "junk.db", code=3)
    said = run("verify", "--db", "junk.db", code=3)
    assert said.count("junk.db") == 1
    assert "'session recover' saves what is intact" in said


def test_an_answer_to_the_first_trial_is_refused_with_the_reason(folder: Path) -> None:
    begin()
    one_trial(4, None)
    assert "there is nothing to compare it with" in run("choose", "new", code=2)
    shown = loaded("show")["trials"][0]
    assert (shown["choice"], shown["outcome"]) == (None, {"effort": 4.0})


def test_an_empty_file_is_not_taken_for_an_intact_record(folder: Path) -> None:
    Path("empty.db").write_bytes(b"")
    for command in ("list", "show", "ask"):
        assert "is empty" in run(command, "--db", "empty.db", code=3)
    assert Path("empty.db").read_bytes() == b""


def test_a_table_in_a_pipe_is_as_wide_as_it_needs(folder: Path) -> None:
    begin()
    one_trial(4, None)
    assert "effort" in run("show")
    assert "participant P07" in run("show")


def test_what_is_intact_is_recovered_from_a_damaged_file(folder: Path) -> None:
    begin()
    one_trial(4, None)
    one_trial(6.25, "new")
    with Lab(folder / "sfihilo.db") as lab:
        whole = len(list(lab.log.events()))
    content = bytearray(Path("sfihilo.db").read_bytes())
    place = content.rindex(b"6.25")
    content[place] = ord("7")
    Path("damaged.db").write_bytes(content)
    said = run("ask", "--db", "damaged.db", code=3)
    assert "session recover" in said
    saved = loaded("recover", "--db", "damaged.db", "--out", "rescued.db")["saved"]
    assert 0 < saved < whole
    assert "intact" in run("verify", "--db", "rescued.db")
    assert "exists" in run("recover", "--db", "damaged.db", "--out", "rescued.db", code=2)
