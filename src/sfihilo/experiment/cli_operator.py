"""What an operator does besides asking and answering: start, abort, veto, correct, pause, note."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfihilo.experiment.chain import Event
from sfihilo.experiment.cli_common import (
    DEFAULT_DB,
    Actor,
    Db,
    Json,
    Key,
    Name,
    Number,
    Screen,
    Why,
    errors,
    session_at,
    trial_at,
    values_of,
)
from sfihilo.experiment.session import UNCHANGED

Reason = Annotated[str, typer.Option("--why", help="The reason, for the record.")]


def attach(app: typer.Typer) -> None:
    """Add these commands to the session's own."""
    for command in (
        start, suggest, repeat, abort, veto, amend, withdraw, redo, interrupt, resume, note, close,
        restore,
    ):  # fmt: skip
        app.command()(command)


def start(
    trial: Number = None, name: Name = None, db: Db = DEFAULT_DB, key: Key = None,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Note that the current policy is being applied."""
    with session_at(db, name, actor) as session:
        found = session.start(trial_at(session, trial), key=key)
        Screen(as_json).trial(session.record, found)


def suggest(
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE for each free parameter.")],
    why: Why = "",
    name: Name = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """A trial with a policy of your own; it is learned from like any other."""
    with session_at(db, name, actor) as session:
        found = session.suggest(values_of(values), why=why, key=key)
        Screen(as_json).trial(session.record, found)


def repeat(
    trial: Annotated[int, typer.Argument(help="The earlier trial.")],
    name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """An earlier trial's policy once more, to see how consistent the person is."""
    with session_at(db, name, actor) as session:
        Screen(as_json).trial(session.record, session.repeat(trial, key=key))


def abort(
    why: Reason, trial: Number = None, name: Name = None, db: Db = DEFAULT_DB, key: Key = None,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """End the current trial early."""
    with session_at(db, name, actor) as session:
        found = session.abort(trial_at(session, trial), why, key=key)
        Screen(as_json).trial(session.record, found)


def veto(
    why: Reason, trial: Number = None, name: Name = None, db: Db = DEFAULT_DB, key: Key = None,
    actor: Actor = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Refuse a proposed policy before it is applied."""
    with session_at(db, name, actor) as session:
        found = session.veto(trial_at(session, trial), why, key=key)
        Screen(as_json).trial(session.record, found)


def amend(  # noqa: PLR0913 - each is an option of the command
    trial: Annotated[int, typer.Argument(help="The trial to correct.")],
    values: Annotated[list[str] | None, typer.Argument(help="NAME=VALUE for each outcome.")] = None,
    choice: Annotated[str | None, typer.Option(help="new, previous, same or none.")] = None,
    why: Reason = "",
    name: Name = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Correct an outcome or an answer; the earlier record stays."""
    answer = UNCHANGED if choice is None else None if choice == "none" else choice
    with session_at(db, name, actor) as session:
        outcome = values_of(values) if values else UNCHANGED
        found = session.amend(trial, why=why, outcome=outcome, choice=answer, key=key)
        Screen(as_json).trial(session.record, found)


def withdraw(
    trial: Annotated[int, typer.Argument(help="The trial whose data do not count.")],
    why: Reason, name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Take the data of a trial out; they stay in the record."""
    with session_at(db, name, actor) as session:
        Screen(as_json).trial(session.record, session.withdraw(trial, why, key=key))


def redo(
    why: Why = "", name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Restore what was undone last."""
    with session_at(db, name, actor) as session:
        report_correction(session.redo(why, key=key), "redone", as_json)


def interrupt(
    why: Why = "", name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The person stops, for minutes or days."""
    with session_at(db, name, actor) as session:
        report_status(session.interrupt(why, key=key).status, as_json)


def resume(
    name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The person is back (asking does this too)."""
    with session_at(db, name, actor) as session:
        report_status(session.resume(key=key).status, as_json)


def note(
    text: Annotated[str, typer.Argument(help="What to write down.")],
    name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write something into the record."""
    with session_at(db, name, actor) as session:
        report_status(session.note(text, key=key).status, as_json)


def close(
    why: Why = "", name: Name = None, db: Db = DEFAULT_DB, key: Key = None, actor: Actor = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """End the session for good."""
    with session_at(db, name, actor) as session:
        if key is not None and name is None:  # repeated, it would close the next open session
            raise ValueError("--key: expected --session with it, so that a retry means the same")
        report_status(session.close(why, key=key).status, as_json)


def restore(
    lines: Annotated[Path, typer.Argument(help="An exported log.jsonl.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New file to make.")],
    as_json: Json = False,
) -> None:
    """Make a file of an exported log again, event for event."""
    from sfihilo.experiment.export import restore as rebuild

    screen = Screen(as_json)
    with errors():
        count = rebuild(lines, out)
    if not screen.json({"events": count, "db": str(out)}):
        screen.say(f"{count} events restored to {out}")


def report_correction(event: Event, verb: str, as_json: bool) -> None:
    """Say which event no longer counts, or counts again."""
    screen = Screen(as_json)
    trial = event.body.get("trial")
    if not screen.json({verb: event.kind, "event": event.number, "trial": trial}):
        screen.say(f"{verb}: {event.kind} of trial {trial} (event {event.number})")


def report_status(status: str, as_json: bool) -> None:
    """Say how the session stands now."""
    screen = Screen(as_json)
    if not screen.json({"status": status}):
        screen.say(f"The session is {status}.")
