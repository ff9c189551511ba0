"""What the commands of `sfihilo session` share: options, the open file, the chosen session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from sfihilo.cli.output import DAMAGED, FAILED, Output, errors, fail, printable
from sfihilo.cli.session.steps import named_words, next_step, outcome_words, trial_rows
from sfihilo.experiment.files import replacing
from sfihilo.experiment.log.errors import DamagedError, KeyConflictError, LogError, NotALogError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.lab import Lab
from sfihilo.experiment.session.session import Session

DEFAULT_DB = Path("sfihilo.db")
SAVES_WHAT_IS_INTACT = "'session recover' saves what is intact"


def complete_session(context: typer.Context, incomplete: str) -> list[str]:
    """Names of sessions for the shell's completion."""
    with suppress(Exception):  # completion never disturbs the operator with an error
        db = Path(context.params.get("db") or os.environ.get("SFIHILO_DB") or DEFAULT_DB)
        if db.exists():
            with Lab(db, read_only=True) as lab:
                return [name for name in lab.sessions() if name.startswith(incomplete)]
    return []


Db = Annotated[Path, typer.Option("--db", help="File of the lab.", envvar="SFIHILO_DB")]
Name = Annotated[
    str | None,
    typer.Option(
        "--session", "-s",
        help="Session, or its participant if that is unique; needed when several are open.",
        envvar="SFIHILO_SESSION",
        autocompletion=complete_session,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts instead of tables.")]
Actor = Annotated[str | None, typer.Option("--actor", help="Who does this (a role or code).")]
Key = Annotated[
    str | None, typer.Option("--key", help="A command repeated with the same key is done once.")
]
Number = Annotated[
    int | None, typer.Option("--trial", "-t", help="Trial; the current one if left out.")
]
GoalOption = Annotated[
    str | None,
    typer.Option(
        "--goal",
        help="understand (what this person values) or best (a good setting soon).",
        autocompletion=lambda: ["understand", "best"],
    ),
]
PlainNumber = Annotated[int | None, typer.Argument(metavar="[TRIAL]", help="The same as --trial.")]
Compare = Annotated[
    list[str] | None,
    typer.Option(
        "--compare",
        help="NAME:PARAMETER=VALUE,...: how likely the advice is preferred to these settings; "
        "what is left out stays as in the last trial.",
    ),
]
Why = Annotated[str, typer.Option("--why", help="The reason, for the record.")]


@contextmanager
def session_errors() -> Iterator[None]:
    """Errors of sessions as one line and an exit code."""
    with errors():
        try:
            yield
        except (DamagedError, NotALogError) as error:
            advice = f"'session verify' says where, {SAVES_WHAT_IS_INTACT}"
            fail(f"{error} ({advice})", DAMAGED)
        except KeyConflictError:
            raise  # a ValueError: wrong input
        except LogError as error:
            fail(str(error), FAILED)


@contextmanager
def lab_at(db: Path, *, make: bool = False, actor: str | None = None) -> Iterator[Lab]:
    """The file of the lab; only `new` and `run` make one."""
    with session_errors():
        if not make and not db.exists():
            raise ValueError(f"there is no file {db}: begin with 'session new', or give --db")
        if not make and db.stat().st_size == 0:
            raise DamagedError(f"{db} is empty: no session was ever stored in it, or all were lost")
        with Lab(db, actor=actor) as lab:
            yield lab


@contextmanager
def session_at(db: Path, name: str | None, actor: str | None = None) -> Iterator[Session]:
    """The named session, or the only one that can be meant."""
    with lab_at(db, actor=actor) as lab:
        yield lab.open(chosen_session(lab, db, name))


def chosen_session(lab: Lab, db: Path, name: str | None) -> str:
    """The session that a command is about; raises where several could be meant.

    In this order: a session's name, a participant with one session (or one that is not closed),
    the session of `session use`, the only session that is not closed, the only session.
    """
    names = lab.sessions()
    if name in names:
        return str(name)
    if not names:
        raise ValueError(f"there is no session in {db}: begin with 'session new'")
    if name is None and (used := used_session(db)) in names:
        return str(used)
    records = readable_records(lab)
    candidates = [record for record in records if name in (None, record.participant)]
    unfinished = [record.session for record in candidates if not record.closed]
    meant = unfinished or [record.session for record in candidates]
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise ValueError(f"session: expected one of {', '.join(names)}, got {name!r}")
    state = "open" if unfinished else "there (all closed)"
    raise ValueError(
        f"several sessions are {state}: {', '.join(meant)}. Give --session NAME, "
        "or choose one with 'session use NAME'"
    )


def readable_records(lab: Lab) -> list[Record]:
    """The record of every session that can be read; a warning names each other one."""
    records, unreadable = lab.records()
    if unreadable and not records:
        lab.record(next(iter(unreadable)))  # raises the reason
    for name, why in unreadable.items():
        typer.echo(printable(f"Warning: session {name} is left out: {why}"), err=True)
    return list(records.values())


def use_file(db: Path) -> Path:
    """Where `session use` keeps its choice."""
    return Path(f"{db}.use")


def used_session(db: Path) -> str | None:
    """The session that was chosen with `session use`, if any."""
    try:
        return use_file(db).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def use_session(db: Path, name: str | None) -> None:
    """Remember a choice, readable by its owner only, or forget it."""
    path = use_file(db)
    if name is None:
        path.unlink(missing_ok=True)
        return
    with replacing(path, b"") as draft:
        draft.write_text(f"{name}\n", encoding="utf-8")


def require_used_is_open(record: Record, db: Path) -> None:
    """Raise if the choice of `session use` was closed: the next one must not be guessed."""
    if record.closed and used_session(db) == record.session:
        raise ValueError(
            f"session {record.session}, chosen with 'session use', is closed: give --session NAME, "
            "or choose another one with 'session use NAME'"
        )


@dataclass(frozen=True)
class Command:
    """A call of a command: the open session, the shared options, and where its result goes."""

    session: Session
    db: Path
    named: bool
    key: str | None
    output: Output

    @property
    def record(self) -> Record:
        return self.session.record

    def as_read(self) -> AbstractContextManager[Record]:
        """The record that completes what was typed; nothing is written if it changes meanwhile."""
        return self.session.expecting(self.record.number, self.key)

    def trial(self, *numbers: int | None) -> int:
        """The number of the trial that is meant: the given one, or else the current one."""
        given = {number for number in numbers if number is not None}
        if len(given) > 1:
            raise ValueError(f"trial: expected one number, got {' and '.join(map(str, numbers))}")
        if given:
            return given.pop()
        current = self.record.current or self.record.newest
        if current is None:
            raise ValueError("there is no trial yet: begin with 'session ask'")
        return current.number

    def hurt(self, *numbers: int | None) -> int:
        """The trial that caused pain: the given one, the current one, or else the last walk.

        A trial that was vetoed hurt nobody; one that was undone may have been walked or not.
        """
        last = self.record.last_walked
        if self.record.current is not None or last is None or set(numbers) != {None}:
            return self.trial(*numbers)
        if last.ending == "undone":
            raise ValueError(
                f"trial: expected the number of the trial that hurt, since it is not certain "
                f"whether trial {last.number}, which was undone, was walked"
            )
        return last.number

    def show(self, trial: Trial, *remarks: str) -> None:
        """A trial, remarks about it, and the next step."""
        if self.output.json(trial.to_dict()):
            return
        record = self.record
        self.output.table(
            f"Trial {trial.number} of {record.session}, participant {record.participant}: "
            f"{trial.status}",
            ["set", "value", "unit", "change"],
            trial_rows(record, trial),
        )
        warnings = [f"warning: {warning}" for warning in trial.warnings]
        if trial.measured:
            warnings.insert(0, f"Measured: {outcome_words(record, trial)}")
        self.output.say(*warnings, *named_words(record, trial), *remarks, next_step(record))

    def show_correction(self, event: Event, verb: str) -> None:
        """Which event no longer counts, or counts again."""
        trial = event.body.get("trial")
        if not self.output.json({verb: event.kind, "event": event.number, "trial": trial}):
            self.output.say(
                f"{verb}: {event.kind} of trial {trial} (event {event.number})",
                next_step(self.record),
            )

    def show_status(self, did: str) -> None:
        """What was done, the status of the session, and the next step."""
        record = self.record
        if not self.output.json({"status": record.status}):
            self.output.say(
                f"{did} Session {record.session} is {record.status}.", next_step(record)
            )


def options(
    name: Name = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Options shared by all session commands. Never called; `session_command` copies them."""


def session_command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command with the shared `options`; it gets a Command instead of them."""

    @wraps(function)
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
            if name is None and key is None:
                require_used_is_open(session.record, db)
            function(Command(session, db, name is not None, key, Output(as_json)), **arguments)

    _, *own = signature(function, eval_str=True).parameters.values()
    shared = signature(options, eval_str=True).parameters.values()
    named = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (*own, *shared)]
    run.__signature__ = signature(function).replace(parameters=named)  # type: ignore[attr-defined]
    return run
