"""Tables, JSON lines and back."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Space
from sfihilo.experiment.output.export import export, restore
from sfihilo.experiment.output.tables import OWN_COLUMNS, tables
from sfihilo.experiment.space.space import RESERVED, RESERVED_PREFIXES
from tests.experiment.people import EXOSKELETON, LEAN, Person, finish, good


@pytest.fixture
def lab(folder: Path) -> Iterator[Lab]:
    """Two people; one session with everything that may happen in it."""
    with Lab(folder / "lab.db", actor="operator") as lab:
        session = lab.create(EXOSKELETON, "P07", 7, settings=LEAN)
        Person(EXOSKELETON, 1).walk(session, 4)
        session.measure(session.ask(), None)
        session.choose(5, "new")
        session.veto(session.ask(), "no")
        session.abort(session.start(session.ask()), "tired")
        session.ask()
        session.undo("wrong")
        session.measure(session.ask(), {"metabolic_rate": 7.9, "comfort": None})
        session.interrupt()
        session.measure(session.ask(), good(session))
        finish(session, None, 0.2)
        finish(lab.create(EXOSKELETON, "P08", 8, settings=LEAN))
        yield lab


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_tables_hold_what_happened(lab: Lab, folder: Path) -> None:
    export(lab, folder / "out", formats=["csv"])
    trials = read(folder / "out" / "P07-1" / "trials.csv")
    record = lab.record("P07-1")
    assert [row["status"] for row in trials] == [trial.status for trial in record.trials]
    for row, trial in zip(trials, record.trials, strict=True):
        assert {name: float(row[name]) for name in trial.policy} == dict(
            trial.policy
        )  # every digit
    outcomes = read(folder / "out" / "P07-1" / "outcomes.csv")
    found = {(row["trial"], row["outcome"]): row for row in outcomes}
    assert found["5", "comfort"]["value"] == ""
    assert found["9", "metabolic_rate"]["value"] == "7.9"
    assert "outside the usual" in found["9", "metabolic_rate"]["warning"]
    assert found["9", "comfort"]["value"] == ""
    answers = {row["trial"]: row for row in read(folder / "out" / "P07-1" / "answers.csv")}
    assert (answers["5"]["choice"], answers["5"]["learned"]) == ("new", "false")
    assert (answers["11"]["choice"], answers["11"]["learned"]) == ("cannot_say", "false")
    assert answers["2"]["learned"] == "true"
    model = read(folder / "out" / "P07-1" / "model.csv")
    assert len({row["fingerprint"] for row in model}) >= 6
    assert model[0]["chance_new"] == ""
    assert 0 <= float(model[3]["chance_new"]) <= 1


def test_parquet_equals_csv(lab: Lab, folder: Path) -> None:
    from pyarrow import parquet

    export(lab, folder / "out", ["P07-1"], ["csv", "parquet"])
    place = folder / "out" / "P07-1"
    for table in tables(lab.record("P07-1"), list(lab.log.events("P07-1"))):
        stored = parquet.read_table(place / f"{table.name}.parquet")
        assert stored.to_pylist() == list(table.rows)
        assert stored.column_names == list(read(place / f"{table.name}.csv")[0])
        for column in table.columns:
            assert stored.schema.field(column.name).metadata[b"unit"].decode() == column.unit


def test_the_readme_names_every_column_and_unit(lab: Lab, folder: Path) -> None:
    export(lab, folder / "out", ["P07-1"], ["csv"])
    text = (folder / "out" / "P07-1" / "README.md").read_text()
    for table in tables(lab.record("P07-1"), list(lab.log.events("P07-1"))):
        for column in table.columns:
            assert f"| {column.name} | {column.kind} | {column.unit} |" in text
    assert "| peak_torque | number | Nm |" in text
    assert lab.log.head()[1] in text


def test_json_lines_come_back_as_the_same_file(lab: Lab, folder: Path) -> None:
    export(lab, folder / "out", formats=["jsonl"])
    count = restore(folder / "out" / "log.jsonl", folder / "again.db")
    with Lab(folder / "again.db") as again:
        assert again.log.head() == lab.log.head()
        assert count == lab.log.head()[0]
        assert list(again.log.events()) == list(lab.log.events())
        assert again.verify().ok
        assert again.open("P08-1").ask().unit == lab.open("P08-1").ask().unit


def test_changed_lines_are_refused(lab: Lab, folder: Path) -> None:
    export(lab, folder / "out", formats=["jsonl"])
    lines = (folder / "out" / "log.jsonl").read_text().splitlines()
    changed = lines.copy()
    body = json.loads(changed[5])
    body["actor"] = "somebody"
    changed[5] = json.dumps(body)
    for bad, number in (
        (changed, 6),
        ([*lines[:3], *lines[4:]], 4),
        ([*lines[:3], lines[2], *lines[3:]], 4),
        ([*lines[:7], "{}"], 8),
        ([*lines[:7], "not json"], 8),
    ):
        (folder / "bad.jsonl").write_text("\n".join(bad))
        with pytest.raises(ValueError, match=f"line {number}"):
            restore(folder / "bad.jsonl", folder / "bad.db")
        assert not (folder / "bad.db").exists()


def test_restoring_overwrites_nothing(lab: Lab, folder: Path) -> None:
    export(lab, folder / "out", formats=["jsonl"])
    with pytest.raises(ValueError, match="exists"):
        restore(folder / "out" / "log.jsonl", folder / "lab.db")


def test_export_of_unknown_format_or_session_is_refused(lab: Lab, folder: Path) -> None:
    with pytest.raises(ValueError, match="xlsx"):
        export(lab, folder / "out", formats=["xlsx"])
    with pytest.raises(ValueError, match="expected one of"):
        export(lab, folder / "out", ["P99"])


def test_no_identity_is_exported(lab: Lab, folder: Path) -> None:
    lab.identify("P07", {"name": "Zaphod Beeblebrox"})
    for path in export(lab, folder / "out", formats=["csv", "parquet", "jsonl", "bids"]):
        assert b"Zaphod" not in path.read_bytes()


def test_withdrawn_outcomes_are_marked_and_pain_told_later_has_its_reason(
    lab: Lab, folder: Path
) -> None:
    session = lab.open("P07-1")
    session.withdraw(1, "loose sensor")
    session.veto(2, "the knee, in the evening", pain=True)
    export(lab, folder / "out", formats=["csv"])
    place = folder / "out" / session.id
    rows = read(place / "outcomes.csv")
    assert {row["learned"] for row in rows if row["trial"] == "1"} == {"false"}
    assert {row["learned"] for row in rows if row["trial"] == "2"} == {"true"}
    second = read(place / "trials.csv")[1]
    assert (second["pain"], second["pain_reason"]) == ("holds", "the knee, in the evening")


def test_parameters_and_outcomes_named_like_columns_have_columns_of_their_own(
    lab: Lab, folder: Path
) -> None:
    """An outcome "pain" is measured in many labs."""
    names = sorted(OWN_COLUMNS - {"pain"})
    space = Space({name: Parameter(0, 1) for name in names}, {"pain": Outcome(0, 10)})
    session = lab.create(space, "P2", 1, settings=LEAN)
    trial = session.measure(session.suggest(dict.fromkeys(names, 0.25)), {"pain": 3})
    export(lab, folder / "out", [session.id], formats=["csv", "parquet", "bids"])
    (row,) = read(folder / "out" / session.id / "trials.csv")
    assert [row[f"policy_{name}"] for name in names] == ["0.25"] * len(names)
    assert (row["goal"], row["pain"]) == ("understand", "")
    (beh,) = (folder / "out").rglob("*_beh.tsv")
    heading, values = (line.split("\t") for line in beh.read_text().splitlines())
    assert len(set(heading)) == len(heading)
    told = dict(zip(heading, values, strict=True))
    assert (told["outcome_pain"], told["pain"]) == ("3.0", "n/a")
    assert trial.known_outcome == {"pain": 3.0}


def test_every_column_is_a_reserved_name_or_avoided(lab: Lab) -> None:
    session = lab.open("P07-1")
    record = session.record
    for table in tables(record, session.events):
        own = {column.name for column in table.columns} - set(record.space.policy)
        free = {name for name in own if not name.startswith(RESERVED_PREFIXES)}
        assert free <= RESERVED | OWN_COLUMNS
