"""Sessions out of the file: CSV and Parquet tables with a README, and the whole log as JSON lines.

The JSON lines carry every field of every event, hashes included, so that anyone can check the
chain, and `restore` makes the same file of them again.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sfihilo.experiment.log import schema
from sfihilo.experiment.log.chain import check
from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.output.tables import Column, Table, tables
from sfihilo.experiment.session.lab import Lab

FORMATS = ("csv", "parquet", "jsonl", "bids")
ARROW_TYPES = {"text": "string", "number": "float64", "integer": "int64", "boolean": "bool_"}


def export(
    lab: Lab,
    folder: str | Path,
    sessions: Sequence[str] | None = None,
    formats: Iterable[str] = ("csv", "parquet", "jsonl"),
) -> list[Path]:
    """Write sessions (all unless told) into a folder; returns the files that were written."""
    formats = tuple(formats)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"format: expected some of {', '.join(FORMATS)}, got {unknown}")
    folder = Path(folder)
    names = list(lab.sessions() if sessions is None else sessions)
    if not names:
        raise ValueError("sessions: expected at least one, got none")
    written: list[Path] = []
    for name in names:
        events = list(lab.log.events(name))
        made = tables(lab.record(name), events)
        if "csv" in formats or "parquet" in formats:
            place = folder / name
            place.mkdir(parents=True, exist_ok=True)
            for table in made:
                if "csv" in formats:
                    written.append(write_csv(table, place / f"{table.name}.csv"))
                if "parquet" in formats:
                    written.append(write_parquet(table, place / f"{table.name}.parquet"))
            written.append(write_readme(lab, name, made, place / "README.md"))
    folder.mkdir(parents=True, exist_ok=True)
    if "jsonl" in formats:
        written.append(write_jsonl(lab.log.events(), folder / "log.jsonl"))
    if "bids" in formats:
        from sfihilo.experiment.output.bids import write_bids

        written += write_bids(lab, folder / "bids", names)
    return written


def write_csv(table: Table, path: Path, *, delimiter: str = ",", missing: str = "") -> Path:
    """One table as text; numbers keep every digit."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        for row in table.rows:
            writer.writerow([_text(row[column.name], missing) for column in table.columns])
    return path


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
    parquet.write_table(pa.table(arrays, schema=described), path)
    return path


def write_readme(lab: Lab, session: str, made: Iterable[Table], path: Path) -> Path:
    """What the tables hold: every column, its unit, its values."""
    record = lab.record(session)
    count, head = lab.log.head()
    lines = [
        f"# Session {session}",
        "",
        f"Participant {record.participant}, opened {record.opened}, seed {record.seed}, "
        f"{len(record.trials)} trials, {record.status}.",
        f"The record has {count} events and ends with hash `{head}`.",
        "Times are UTC; trials are ordered by number, never by clock. An empty cell is missing.",
    ]
    for table in made:
        lines += ["", f"## {table.name}", "", table.about, ""]
        lines += ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {column.name} | {column.kind} | {column.unit} | {_meaning(column)} |"
            for column in table.columns
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_jsonl(events: Iterable[Event], path: Path) -> Path:
    """The log as it is, one event a line."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        for event in events:
            file.write(canonical(event.to_dict()) + "\n")
    return path


def restore(lines: str | Path, out: str | Path) -> int:
    """Make a log of an exported `log.jsonl`, event for event; how many there were.

    The lines are checked first: a changed, lost or added one is refused by its number.
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
            yield Event.from_dict(json.loads(text))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: line {number} is no event: {error}") from error


def _meaning(column: Column) -> str:
    if not column.levels:
        return column.about
    return f"{column.about}: " + "; ".join(f"`{key}` {text}" for key, text in column.levels.items())


def _text(value: Any, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
