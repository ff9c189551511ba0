"""What is done with the lab's file as a whole: export, report, verify, recover, restore."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from sfihilo.cli.output import DAMAGED, Output, fail
from sfihilo.cli.session.command import (
    DEFAULT_DB,
    SAVES_WHAT_IS_INTACT,
    Compare,
    Db,
    Json,
    Name,
    lab_at,
    session_at,
    session_errors,
)
from sfihilo.cli.session.values import parse_comparisons
from sfihilo.experiment.log.audit import verify as verify_file
from sfihilo.experiment.log.recovery import recover as recover_file
from sfihilo.experiment.output.text import counted

WHOLE_HASH = re.compile("[0-9a-f]{64}")
NewFile = Annotated[Path, typer.Option("--out", "-o", help="New file to write.")]


def attach(app: typer.Typer) -> None:
    """Add these commands to the session's own."""
    for function in (report, export, verify, head, recover, restore, template):
        app.command()(function)


def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")],
    sessions: Annotated[list[str] | None, typer.Argument(help="All if left out.")] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="Some of csv,parquet,jsonl,bids; all if left out."),
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Tables (CSV, Parquet), the whole log (JSONL), a BIDS dataset."""
    from sfihilo.experiment.output.export import FORMATS
    from sfihilo.experiment.output.export import export as write

    output = Output(as_json)
    with lab_at(db) as lab:
        with output.progress("Writing the tables"):
            # Each by its own option, or by commas.
            named = [name.strip() for name in ",".join(formats or FORMATS).split(",")]
            written = write(lab, out, sessions or None, named)
        if not output.json([str(path) for path in written]):
            output.say(f"{counted(len(written), 'file')} written to {out}")


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    compare: Compare = None,
    name: Name = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """One page that explains the person: what to set, why, how sure, every trial."""
    from sfihilo.experiment.output.report import write_report

    output = Output(as_json)
    with session_at(db, name) as session:
        with output.progress("Writing the report"):
            path = write_report(session, out, parse_comparisons(compare or []))
        if not output.json({"report": str(path)}):
            output.say(f"Report written to {path}")


def verify(
    head: Annotated[
        str | None, typer.Option("--head", help="Hash that 'session head' printed earlier.")
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Check the whole record; names the first bad event.

    The hashes show any accidental change. They have no key: who can write the file can compute
    them anew. A hash that was noted elsewhere (--head) shows that too.
    """
    output = Output(as_json)
    with session_errors():
        _require_file(db)
        with output.progress("Reading every event"):
            verdict = verify_file(db, None if head is None else whole_hash(head))
    output.json(vars(verdict))
    if not verdict.ok:
        place = "" if verdict.first_bad is None else f"event {verdict.first_bad}: "
        advice = f" ({SAVES_WHAT_IS_INTACT})" if head is None else ""
        fail(f"{db}: {place}{verdict.reason}{advice}", DAMAGED)
    if not as_json:
        output.say(f"{db}: {verdict.count} events, {verdict.reason}")


def whole_hash(text: str) -> str:
    """A hash as `session head` prints it; raises for a part of one, which would prove little."""
    if not WHOLE_HASH.fullmatch(text):
        raise ValueError(
            f"--head: expected all 64 digits that 'session head' prints, got {len(text)}: {text}"
        )
    return text


def head(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """The hash of the last event; noted elsewhere, it shows later that nothing was rewritten."""
    output = Output(as_json)
    with lab_at(db) as lab:
        count, last = lab.log.head()
    if not output.json({"events": count, "head": last}):
        output.say(f"Event {count} of {db}. Later:", f"session verify --head {last}")


def recover(out: NewFile, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Save the events before the first damaged one to a new file; the damaged one stays."""
    output = Output(as_json)
    with session_errors():
        _require_file(db)
        with output.progress("Reading what is intact"):
            saved = recover_file(db, out)
    if not output.json({"saved": saved, "out": str(out)}):
        output.say(f"{saved} intact events saved to {out}; {db} was left as it is")


def restore(
    lines: Annotated[Path, typer.Argument(help="An exported log.jsonl.")],
    out: NewFile,
    as_json: Json = False,
) -> None:
    """Make a lab's file from an exported log, event for event."""
    from sfihilo.experiment.output.export import restore as rebuild

    output = Output(as_json)
    with session_errors(), output.progress("Writing the events"):
        count = rebuild(lines, out)
    if not output.json({"events": count, "db": str(out)}):
        output.say(f"{count} events restored to {out}")


def template() -> None:
    """A commented example of a space file: `session template > space.toml`."""
    text = files("sfihilo.experiment").joinpath("space.toml").read_text(encoding="utf-8")
    typer.echo(text, nl=False)


def _require_file(db: Path) -> None:
    if not db.exists():
        raise ValueError(f"there is no file {db}: give --db")
