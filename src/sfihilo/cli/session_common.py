"""What all commands of `sfihilo session` share: options, the open file, errors, tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sfihilo.experiment.log.errors import DamagedError, LogError, NotALogError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.session.lab import Lab
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.session.trial import Trial

USER_ERROR, INTEGRITY_ERROR = 1, 3

Db = Annotated[Path, typer.Option("--db", help="The lab's file.", envvar="SFIHILO_DB")]
Name = Annotated[
    str | None, typer.Option("--session", "-s", help="Session; the newest open one if left out.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts instead of tables.")]
Actor = Annotated[str | None, typer.Option("--actor", help="Who does this (a role or code).")]
Key = Annotated[
    str | None, typer.Option("--key", help="Repeating a command with the same key does it once.")
]
Number = Annotated[
    int | None, typer.Option("--trial", "-t", help="Trial; the current one if left out.")
]
Why = Annotated[str, typer.Option("--why", help="The reason, for the record.")]
DEFAULT_DB = Path("sfihilo.db")


@contextmanager
def errors() -> Iterator[None]:
    """Errors as one line and an exit code: 1 the user's, 3 the record's."""
    try:
        yield
    except (DamagedError, NotALogError) as problem:
        advice = "'session verify' says where, 'session recover' saves what is intact"
        fail(f"{problem} ({advice})", INTEGRITY_ERROR)
    except (LogError, ValueError, OSError) as problem:
        fail(str(problem), USER_ERROR)


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong and leave."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def lab_at(db: Path, *, make: bool = False, actor: str | None = None) -> Iterator[Lab]:
    """The lab's file; only `new` makes one."""
    with errors():
        if not make and not db.exists():
            raise ValueError(f"there is no file {db}: begin with 'session new', or give --db")
        if not make and db.stat().st_size == 0:
            raise DamagedError(f"{db} is empty: no session was ever stored in it, or all were lost")
        with Lab(db, actor=actor) as lab:
            yield lab


@contextmanager
def session_at(db: Path, name: str | None, actor: str | None = None) -> Iterator[Session]:
    """The named session, or the newest open one."""
    with lab_at(db, actor=actor) as lab:
        yield lab.open(name or newest(lab))


def newest(lab: Lab) -> str:
    """The newest session that is not closed, or else the newest."""
    names = lab.sessions()
    if not names:
        raise ValueError(f"there is no session in {lab.log.path}: begin with 'session new'")
    for name in reversed(names):
        if not lab.record(name).closed:
            return name
    return names[-1]


def values_of(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE arguments; 'missing' as a value says that it could not be measured.

    What is no number is passed on as it is: the session refuses it, and keeps a record of that.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"expected NAME=VALUE, got {pair!r}")
        if name in found:
            raise ValueError(f"{name}: given twice")
        try:
            found[name] = None if text == "missing" else float(text)
        except ValueError:
            found[name] = text
    return found


def options(
    name: Name = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """What everything that is done to a session can be told; only the signature is used."""


@dataclass(frozen=True)
class Desk:
    """An open session, and how a command was called: what it works with."""

    session: Session
    named: bool
    key: str | None
    screen: Screen

    def trial(self, number: int | None) -> int:
        """The trial of that number, or the current one."""
        if number is not None:
            return number
        current = self.session.record.current or self.session.record.newest
        if current is None:
            raise ValueError("there is no trial yet: ask for one")
        return current.number

    def show(self, trial: Trial) -> None:
        """A trial, and what it waits for."""
        self.screen.trial(self.session.record, trial)

    def show_correction(self, event: Event, verb: str) -> None:
        """Which event no longer counts, or counts again."""
        trial = event.body.get("trial")
        if not self.screen.json({verb: event.kind, "event": event.number, "trial": trial}):
            self.screen.say(f"{verb}: {event.kind} of trial {trial} (event {event.number})")

    def show_status(self, did: str) -> None:
        """What was done, and how the session stands now."""
        status = self.session.record.status
        if not self.screen.json({"status": status}):
            self.screen.say(f"{did} The session is {status}.")


def at_desk(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the shared `options` besides its own; it gets them as a Desk."""

    @wraps(command)
    def run(
        *,
        name: str | None,
        db: Path,
        key: str | None,
        actor: str | None,
        as_json: bool,
        **arguments: Any,
    ) -> None:
        with session_at(db, name, actor) as session:
            command(Desk(session, name is not None, key, Screen(as_json)), **arguments)

    _, *own = signature(command, eval_str=True).parameters.values()
    shared = signature(options, eval_str=True).parameters.values()
    named = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (*own, *shared)]
    run.__signature__ = signature(command).replace(parameters=named)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class Screen:
    """Where a command's result goes: JSON for scripts, tables for people."""

    as_json: bool

    def json(self, value: object) -> bool:
        """Print JSON if that is wanted; says whether it did."""
        if self.as_json:
            typer.echo(json.dumps(value))
        return self.as_json

    def say(self, text: str) -> None:
        """A line for people."""
        Console(highlight=False).print(text, markup=False, soft_wrap=True)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table for people; values that are numbers stand to the right."""
        self.say(title)  # a title of the table itself would be wrapped to the table's width
        table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
        for place, heading in enumerate(headings):
            numeric = any(isinstance(row[place], int | float) for row in rows)
            justify: Any = "right" if numeric else "left"
            table.add_column(heading.replace("_", "_\n"), justify=justify, no_wrap=True)
        for row in rows:
            table.add_row(*(shown(value) for value in row))
        console = Console(highlight=False)
        # A number is never broken: a table that is too wide for the terminal runs over its edge.
        wide = console.options.update(max_width=10_000)
        console.width = max(console.width, console.measure(table, options=wide).maximum)
        console.print(table)

    def trial(self, record: Record, trial: Trial) -> None:
        """One trial, with what is to be done next."""
        if self.json(trial.to_dict()):
            return
        rows = [
            [name, value, record.space.policy[name].unit] for name, value in trial.policy.items()
        ]
        self.table(f"Trial {trial.number} of {record.session}", ["set", "value", "unit"], rows)
        for warning in trial.warnings:
            self.say(f"warning: {warning}")
        self.say(todo(record, trial))


def todo(record: Record, trial: Trial) -> str:
    """What a trial waits for, in words."""
    if trial.ended:
        return f"This trial is {trial.status}."
    waits = []
    if not trial.measured:
        waits.append(f"measure {', '.join(record.space.outcomes)}")
    if trial.asks_choice and not trial.answered:
        waits.append(f"ask: do you prefer this one, or trial {trial.compare_with}?")
    return "Next: " + "; ".join(waits)


def shown(value: object) -> str:
    """A value in a table cell."""
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def interval_rows(intervals: Mapping[str, Any], units: Mapping[str, str]) -> list[list[object]]:
    """Rows of name, value, low, high, unit."""
    return [
        [name, found.value, found.low, found.high, units[name]] for name, found in intervals.items()
    ]
