"""The BIDS dataset, judged by the official validator."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from sfihilo.experiment import Lab
from sfihilo.experiment.output.export import export
from tests.experiment.people import EXOSKELETON, LEAN, Person, memory_folder

VALIDATOR = Path(sysconfig.get_path("scripts")) / "bids-validator-deno"


def validated(folder: Path) -> tuple[int, list[dict[str, str]]]:
    """The validator's exit code and its errors."""
    assert VALIDATOR.exists(), "install the dev extra: pip install 'sfihilo[dev]'"
    ran = subprocess.run(
        [VALIDATOR, "--json", str(folder)], capture_output=True, text=True, check=False
    )
    issues = json.loads(ran.stdout)["issues"]["issues"]
    return ran.returncode, [issue for issue in issues if issue["severity"] == "error"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export")
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        for code, number in (("P07", 1), ("P07", 2), ("pilot_3", 3)):
            session = lab.create(EXOSKELETON, code, number, settings=LEAN)
            Person(EXOSKELETON, number).walk(session, 3)
            session.abort(session.ask(), "tired")
        export(lab, out, formats=["bids"])
    return out / "bids"


def test_validator_accepts_the_exported_dataset(dataset: Path) -> None:
    assert validated(dataset) == (0, [])


def test_validator_refuses_a_broken_dataset(dataset: Path, tmp_path: Path) -> None:
    """A check that always passes proves nothing."""
    broken = tmp_path / "bids"
    (broken / "sub-P07" / "beh").mkdir(parents=True)
    (broken / "dataset_description.json").write_text('{"Name": "x"}')
    (broken / "sub-P07" / "beh" / "trials.tsv").write_text("trial\n1\n")
    code, errors = validated(broken)
    assert code != 0
    assert errors


def test_rows_and_sidecar_belong_together(dataset: Path) -> None:
    (table,) = dataset.glob("sub-P07/ses-P071/beh/*_beh.tsv")
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    assert len(lines) == 5
    described = json.loads(table.with_suffix(".json").read_text())
    assert set(lines[0]) <= set(described)
    assert described["peak_torque"]["Units"] == "Nm"
    assert described["choice"]["Levels"]["same"] == "neither was preferred"
    row = dict(zip(lines[0], lines[-1], strict=True))
    assert (row["status"], row["metabolic_rate"], row["choice"]) == ("aborted", "n/a", "n/a")
    assert (dataset / "participants.tsv").read_text().splitlines()[1:] == [
        "sub-P07\t2",
        "sub-pilot3\t1",
    ]


def test_labels_that_would_be_the_same_get_a_number(tmp_path: Path) -> None:
    names = [("P-1", "a-b"), ("P-1", "ab"), ("p1", "A.B"), ("P1", "abx2")]
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        for code, name in names:
            session = lab.create(EXOSKELETON, code, 1, settings=LEAN, session=name)
            Person(EXOSKELETON, 1).walk(session, 1)
        export(lab, tmp_path, formats=["bids"])
    found = {}
    for path in (tmp_path / "bids").glob("sub-*/ses-*/beh/*.json"):
        sidecar = json.loads(path.read_text())
        place = path.relative_to(tmp_path / "bids").parts[:2]
        found[sidecar["ParticipantCode"], sidecar["SessionName"]] = place
    assert found == {
        ("P-1", "a-b"): ("sub-P1", "ses-ab"),
        ("P-1", "ab"): ("sub-P1", "ses-abx2"),
        ("p1", "A.B"): ("sub-p1x2", "ses-ABx3"),
        ("P1", "abx2"): ("sub-P1x3", "ses-abx2x2"),
    }
    assert validated(tmp_path / "bids") == (0, [])


def test_session_keeps_its_label_when_it_is_exported_alone(folder: Path) -> None:
    """Otherwise the data of P1 would take the place of those of P-1."""

    def people() -> dict[str, str]:
        found = sorted((folder / "bids").rglob("*_beh.json"))
        return {path.name: json.loads(path.read_text())["ParticipantCode"] for path in found}

    with Lab(folder / "lab.db") as lab:
        for code in ("P-1", "P1"):
            session = lab.create(EXOSKELETON, code, 1, settings=LEAN)
            Person(EXOSKELETON, 1).walk(session, 1)
        export(lab, folder, formats=["bids"])
        before = people()
        assert sorted(before.values()) == ["P-1", "P1"]
        export(lab, folder, ["P1-1"], formats=["bids"])
    assert people() == before
