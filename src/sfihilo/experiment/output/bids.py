"""A BIDS dataset of behavioural data (`beh`): one TSV and one sidecar per session.

Policy, outcomes, answer and prediction of a trial are in one row, since BIDS keeps one table per
run. Labels keep letters and digits only, as BIDS asks, and get a number where two would be alike;
the sidecars hold the names of the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sfihilo.experiment.output.export import ExportedSession, write_csv, write_text
from sfihilo.experiment.output.tables import Column, Row, Table, column_name
from sfihilo.experiment.output.text import printable
from sfihilo.experiment.record.record import Record

BIDS_VERSION = "1.10.0"
TASK = "preference"
MISSING = "n/a"


def write_bids(
    sessions: Mapping[str, ExportedSession], folder: Path, participants: Mapping[str, str]
) -> list[Path]:
    """Write a dataset of these sessions into a folder; returns the files.

    `participants` has the participant of every session of the lab's file: labels follow from all of
    them, so that a session has the same label whichever others are exported with it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = _write_head(folder)
    people: dict[str, int] = {}
    subjects, labels = unique_labels(participants.values()), unique_labels(participants)
    for name, exported in sessions.items():
        record = exported.record
        subject, label = subjects[record.participant], labels[name]
        people[subject] = people.get(subject, 0) + 1
        table = joined(exported.tables)
        place = folder / f"sub-{subject}" / f"ses-{label}" / "beh"
        place.mkdir(parents=True, exist_ok=True)
        stem = f"sub-{subject}_ses-{label}_task-{TASK}_beh"
        written.append(write_csv(table, place / f"{stem}.tsv", delimiter="\t", missing=MISSING))
        written.append(_write_json(place / f"{stem}.json", _sidecar(table, record)))
    rows = tuple(
        {"participant_id": f"sub-{subject}", "sessions": count} for subject, count in people.items()
    )
    columns = (
        Column("participant_id", "text", "participant's code"),
        Column("sessions", "integer", "number of sessions in this dataset"),
    )
    table = Table("participants", "", columns, rows)
    path = folder / "participants.tsv"
    written.append(write_csv(table, path, delimiter="\t", missing=MISSING))
    written.append(
        _write_json(folder / "participants.json", {"sessions": {"Description": columns[1].about}})
    )
    return written


def joined(made: Sequence[Table]) -> Table:
    """All tables of a session as one, one row per trial."""
    trials, outcomes, answers, model = made
    measured = {(row["trial"], row["outcome"]): row["value"] for row in outcomes.rows}
    answered = {row["trial"]: row for row in answers.rows}
    predicted = {row["trial"]: row for row in model.rows}
    skipped = {"session", "participant", "round"}
    names = [column.name.removeprefix("predicted_") for column in model.columns
             if column.name.startswith("predicted_")]  # fmt: skip
    own = {name: column_name(name, "outcome") for name in names}
    units = {column.name: column.unit for column in model.columns}
    columns = (
        *(column for column in trials.columns if column.name not in {"session", "participant"}),
        *(
            Column(own[name], "number", f"measured {name}", units[f"predicted_{name}"])
            for name in names
        ),
        *(column for column in answers.columns if column.name in ("choice", "strength", "learned")),
        *(
            column
            for column in model.columns
            if column.name not in skipped and column.name != "trial"
        ),
    )
    blank = {"choice": None, "strength": None, "learned": None}
    rows: list[Row] = [
        {
            **row,
            **{own[name]: measured.get((row["trial"], name)) for name in names},
            **predicted[row["trial"]],
            **answered.get(row["trial"], blank),
            "compare_with": row["compare_with"],
        }
        for row in trials.rows
    ]
    return Table("beh", "One row for each trial.", columns, tuple(rows))


def _write_head(folder: Path) -> list[Path]:
    description = {
        "Name": "Preference-based personalisation with SFIHILO",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "raw",
        "GeneratedBy": [{"Name": "sfihilo", "Version": version("sfihilo")}],
    }
    readme = write_text(
        folder / "README.md",
        "# Preference-based personalisation\n\n"
        "A device was personalised with SFIHILO: in each trial a policy was applied, outcomes\n"
        "were measured, and the person said whether they preferred this trial or the one named in\n"
        "`compare_with`. Each `beh.tsv` has one row per trial; the sidecar beside it explains\n"
        "every column with its unit. `n/a` is missing. Times are UTC; trials are in the order of\n"
        "their number.\n",
        b"# Preference-based",
    )
    return [_write_json(folder / "dataset_description.json", description), readme]


def _sidecar(table: Table, record: Record) -> dict[str, Any]:
    described: dict[str, Any] = {
        "TaskName": TASK,
        "TaskDescription": "Execute a policy, then compare it with the previous one.",
        "Instructions": "Which of the last two conditions do you prefer?",
        "ParticipantCode": printable(record.participant),
        "SessionName": printable(record.session),
    }
    for column in table.columns:
        entry: dict[str, Any] = {"Description": column.about}
        if column.unit:
            entry["Units"] = column.unit
        if column.levels:
            entry["Levels"] = dict(column.levels)
        described[column.name] = entry
    return described


def unique_labels(names: Iterable[str]) -> dict[str, str]:
    """A label for each name, in order; the second "ab" becomes "abx2".

    Upper and lower case count as equal: some file systems do not distinguish them.
    """
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        plain = label = re.sub(r"[^A-Za-z0-9]", "", name)[:40] or "x"
        number = 2
        while label.lower() in taken:
            label, number = f"{plain}x{number}", number + 1
        taken.add(label.lower())
        labels[name] = label
    return labels


def _write_json(path: Path, content: Mapping[str, Any]) -> Path:
    return write_text(path, json.dumps(content, indent=2) + "\n", b"{")
