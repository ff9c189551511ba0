"""Exports: CSV and Parquet tables with a README per session, and the whole log as JSON lines.

The JSON lines carry every field of every event, hashes included, so that anyone can check the
chain, and `restore` creates the same log from them again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfihilo.experiment.files import replacing, sync_folder
from sfihilo.experiment.log import schema
from sfihilo.experiment.log.chain import check
from sfihilo.experiment.log.event import Event, canonical, check_name
from sfihilo.experiment.output.tables import Column, Table, tables
from sfihilo.experiment.output.text import cell, markdown, printable
from sfihilo.experiment.record.answers import offered
from sfihilo.experiment.record.fold import fold
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.lab import NAME, Lab, reading

FORMATS = ("csv", "parquet", "jsonl", "bids")
NOT_EXPORTED = "These sessions could not be read and were not exported:"
ARROW_TYPES = {"text": "string", "number": "float64", "integer": "int64", "boolean": "bool_"}


@dataclass(frozen=True)
class ExportedSession:
    """One session as it is exported: its record, its events, and the tables made of them."""

    record: Record
    events: tuple[Event, ...]
    tables: tuple[Table, ...]


def export(
    lab: Lab,
    folder: str | Path,
    sessions: Sequence[str] | None = None,
    formats: Iterable[str] = ("csv", "parquet", "jsonl"),
) -> list[Path]:
    """Write sessions (by default all) into a folder; returns the files that were written.

    The log is read once, in one transaction. A session that cannot be read is left out and named in
    `not-exported.txt`; one that was asked for by name raises ValueError instead. Existing files are
    replaced only by files of the same kind.
    """
    formats = tuple(formats)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"format: expected some of {', '.join(FORMATS)}, got {unknown}")
    folder = Path(folder)
    events = lab.log.snapshot()
    chosen, unreadable = _chosen(events, sessions)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    if "csv" in formats or "parquet" in formats:
        for place, session in zip(_places(chosen), chosen.values(), strict=True):
            written += _write_tables(session, events[-1], folder / place, formats)
    if "jsonl" in formats:
        written.append(write_jsonl(events, folder / "log.jsonl"))
    if "bids" in formats:
        from sfihilo.experiment.output.bids import write_bids

        begun = [event for event in events if event.number == 1]
        participants = {event.session: str(event.body.get("participant")) for event in begun}
        written += write_bids(chosen, folder / "bids", participants)
    if unreadable:
        lines = [f"{printable(name)}: {printable(why)}" for name, why in unreadable.items()]
        text = "\n".join([NOT_EXPORTED, *lines]) + "\n"
        written.append(write_text(folder / "not-exported.txt", text, NOT_EXPORTED.encode()))
    return written


def _chosen(
    events: Iterable[Event], wanted: Sequence[str] | None
) -> tuple[dict[str, ExportedSession], dict[str, str]]:
    """The sessions to export, and the reason for each that cannot be read."""
    grouped: dict[str, list[Event]] = {}
    for event in events:
        grouped.setdefault(event.session, []).append(event)
    absent = [name for name in wanted or () if name not in grouped]
    if absent:
        raise ValueError(f"session: expected one of {list(grouped)}, got {absent[0]!r}")
    chosen: dict[str, ExportedSession] = {}
    unreadable: dict[str, str] = {}
    for name in grouped if wanted is None else dict.fromkeys(wanted):
        own = tuple(grouped[name])
        try:
            with reading(name):
                record = fold(own)
                if not isinstance(record.participant, str):
                    raise ValueError(f"participant: expected a code, got {record.participant!r}")
                chosen[name] = ExportedSession(record, own, tables(record, own))
        except ValueError as error:
            if wanted is not None:
                raise
            unreadable[name] = str(error)
    if not chosen and not unreadable:
        raise ValueError("sessions: expected at least one, got none")
    return chosen, unreadable


def _places(names: Iterable[str]) -> list[str]:
    """A folder name for each session; a name of a foreign log never leads out of the folder."""
    taken = {"bids", "log.jsonl", "not-exported.txt"}
    places = []
    for name in names:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        place = name
        if not NAME.fullmatch(name) or place.lower() in taken:  # some file systems ignore case
            place = f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:40]}-{digest}"
        taken.add(place.lower())
        places.append(place)
    return places


def _write_tables(
    session: ExportedSession, last: Event, place: Path, formats: Sequence[str]
) -> list[Path]:
    place.mkdir(exist_ok=True)
    written = []
    for table in session.tables:
        if "csv" in formats:
            written.append(write_csv(table, place / f"{table.name}.csv"))
        if "parquet" in formats:
            written.append(write_parquet(table, place / f"{table.name}.parquet"))
    return [*written, write_readme(session, last, place / "README.md")]


def write_text(path: Path, text: str, mark: bytes) -> Path:
    """Write a text, in place of an earlier file that begins with `mark` or of none."""
    with replacing(path, mark) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def write_csv(table: Table, path: Path, *, delimiter: str = ",", missing: str = "") -> Path:
    """One table as text; numbers keep every digit, and no text is read as a formula."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_text(row[column.name], missing) for column in table.columns])
    return write_text(path, buffer.getvalue(), table.columns[0].name.encode())


def write_parquet(table: Table, path: Path) -> Path:
    """One table with typed columns; units and meanings go along as metadata."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ValueError("Parquet needs pyarrow: pip install 'sfihilo[experiment]'") from None
    described = pa.schema(
        [
            pa.field(
                column.name,
                getattr(pa, ARROW_TYPES[column.kind])(),
                metadata={"unit": column.unit, "about": column.about},
            )
            for column in table.columns
        ],
        metadata={"about": table.about},
    )
    arrays = {column.name: [row[column.name] for row in table.rows] for column in table.columns}
    with replacing(path, b"PAR1") as partial:
        parquet.write_table(pa.table(arrays, schema=described), partial)
    return path


def write_readme(session: ExportedSession, last: Event, path: Path) -> Path:
    """What the tables hold: every column, its unit, its values."""
    record = session.record
    lines = [
        f"# Session {printable(record.session)}",
        "",
        f"Participant {printable(record.participant)}, opened {printable(record.opened)}, "
        f"seed {printable(record.seed)}, "
        f"{len(record.trials)} trials, {record.status}. Goal: {printable(record.goal)}; "
        f"{offered(record.grades)} answers offered"
        + (f", compared with one of the last {record.recall} walks." if record.recall > 1 else "."),
        f"The record has {last.seq} events and ends with hash `{last.hash}`.",
        "Times are UTC; trials are ordered by number, never by clock. An empty cell is missing.",
        "A text that a spreadsheet would compute as a formula begins with ' in the CSV files.",
    ]
    for table in session.tables:
        lines += ["", f"## {table.name}", "", table.about, ""]
        lines += ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {column.name} | {column.kind} | {markdown(column.unit)} | {_meaning(column)} |"
            for column in table.columns
        ]
    return write_text(path, "\n".join(lines) + "\n", b"# Session ")


def write_jsonl(events: Iterable[Event], path: Path) -> Path:
    """The log as it is, one event per line."""
    lines = [canonical(event.to_dict()) + "\n" for event in events]
    return write_text(path, "".join(lines), b'{"actor":')


def restore(lines: str | Path, out: str | Path) -> int:
    """Create a log from an exported `log.jsonl`, event for event; returns their number.

    The lines are checked first: the number of a changed, lost or added one is in the error.
    """
    out = Path(out)
    if out.exists():
        raise ValueError(f"expected the name of a new file, but {out} exists")
    events = list(_read_jsonl(Path(lines)))
    verdict = check(events)
    if not verdict.ok:
        raise ValueError(f"{lines}: line {verdict.first_bad}: {verdict.reason}")
    partial = out.with_name(f".{out.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(schema.connect(partial, create=True)) as connection:
            schema.prepare(connection, partial, create=True, write=True)
            connection.execute("BEGIN IMMEDIATE")
            for event in events:
                schema.insert(connection, {**event.to_dict(), "body": canonical(event.body)})
            connection.execute("COMMIT")
        partial.rename(out)
        sync_folder(out.parent)
    finally:
        partial.unlink(missing_ok=True)
    return len(events)


def _read_jsonl(path: Path) -> Iterable[Event]:
    try:
        texts = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected JSON lines: {error}") from error
    for number, text in enumerate(texts, start=1):
        try:
            event = Event.from_dict(json.loads(text))
            for name in ("session", "kind", "key", "actor"):
                if getattr(event, name) is not None:
                    check_name(getattr(event, name), name)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is not an event: {error}") from error
        yield event


def _meaning(column: Column) -> str:
    if not column.levels:
        return column.about
    return f"{column.about}: " + "; ".join(f"`{key}` {text}" for key, text in column.levels.items())


def _text(value: Any, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return cell(value)
    return repr(value)
