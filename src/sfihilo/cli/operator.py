"""What an operator does besides asking and answering: start, abort, veto, correct, pause, note."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfihilo.cli.session_common import (
    Desk,
    Json,
    Number,
    Screen,
    Why,
    at_desk,
    errors,
    values_of,
)
from sfihilo.experiment.session.session import UNCHANGED

Reason = Annotated[str, typer.Option("--why", help="The reason, for the record.")]


def attach(app: typer.Typer) -> None:
    """Add these commands to the session's own."""
    for command in (
        start, suggest, repeat, abort, veto, amend, withdraw, redo, interrupt, resume, note, close,
    ):  # fmt: skip
        app.command()(at_desk(command))
    app.command()(restore)


def start(desk: Desk, trial: Number = None) -> None:
    """Note that the current policy is being applied."""
    desk.show(desk.session.start(desk.trial(trial), key=desk.key))


def suggest(
    desk: Desk,
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE for each free parameter.")],
    why: Why = "",
) -> None:
    """A trial with a policy of your own; it is learned from like any other."""
    desk.show(desk.session.suggest(values_of(values), why=why, key=desk.key))


def repeat(desk: Desk, trial: Annotated[int, typer.Argument(help="The earlier trial.")]) -> None:
    """An earlier trial's policy once more, to see how consistent the person is."""
    desk.show(desk.session.repeat(trial, key=desk.key))


def abort(desk: Desk, why: Reason, trial: Number = None) -> None:
    """End the current trial early."""
    desk.show(desk.session.abort(desk.trial(trial), why, key=desk.key))


def veto(desk: Desk, why: Reason, trial: Number = None) -> None:
    """Refuse a proposed policy before it is applied."""
    desk.show(desk.session.veto(desk.trial(trial), why, key=desk.key))


def amend(
    desk: Desk,
    trial: Annotated[int, typer.Argument(help="The trial to correct.")],
    values: Annotated[list[str] | None, typer.Argument(help="NAME=VALUE for each outcome.")] = None,
    choice: Annotated[str | None, typer.Option(help="new, previous, same or none.")] = None,
    why: Reason = "",
) -> None:
    """Correct an outcome or an answer; the earlier record stays."""
    answer = UNCHANGED if choice is None else None if choice == "none" else choice
    outcome = values_of(values) if values else UNCHANGED
    desk.show(desk.session.amend(trial, why=why, outcome=outcome, choice=answer, key=desk.key))


def withdraw(
    desk: Desk,
    trial: Annotated[int, typer.Argument(help="The trial whose data do not count.")],
    why: Reason,
) -> None:
    """Take the data of a trial out; they stay in the record."""
    desk.show(desk.session.withdraw(trial, why, key=desk.key))


def redo(desk: Desk, why: Why = "") -> None:
    """Restore what was undone last."""
    desk.show_correction(desk.session.redo(why, key=desk.key), "redone")


def interrupt(desk: Desk, why: Why = "") -> None:
    """The person stops, for minutes or days."""
    desk.session.interrupt(why, key=desk.key)
    desk.show_status("The pause is recorded.")


def resume(desk: Desk) -> None:
    """The person is back (asking does this too)."""
    desk.session.resume(key=desk.key)
    desk.show_status("Welcome back.")


def note(desk: Desk, text: Annotated[str, typer.Argument(help="What to write down.")]) -> None:
    """Write something into the record."""
    desk.session.note(text, key=desk.key)
    desk.show_status("Noted.")


def close(desk: Desk, why: Why = "") -> None:
    """End the session for good."""
    if desk.key is not None and not desk.named:  # repeated, it would close the next open session
        raise ValueError("--key: expected --session with it, so that a retry means the same")
    desk.session.close(why, key=desk.key)
    desk.show_status("Closed.")


def restore(
    lines: Annotated[Path, typer.Argument(help="An exported log.jsonl.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New file to make.")],
    as_json: Json = False,
) -> None:
    """Make a file of an exported log again, event for event."""
    from sfihilo.experiment.output.export import restore as rebuild

    screen = Screen(as_json)
    with errors():
        count = rebuild(lines, out)
    if not screen.json({"events": count, "db": str(out)}):
        screen.say(f"{count} events restored to {out}")
