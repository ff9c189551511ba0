"""`sfihilo session run`: one person's session in one terminal.

Every step is written by the durable Session before the next screen is shown, so the loop can end at
any moment (Ctrl-C, a closed terminal, a kill) and goes on from the record.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from sfihilo.cli.interactive.dialogue import Dialogue
from sfihilo.cli.interactive.terminal import Terminal
from sfihilo.cli.output import errors
from sfihilo.cli.session.begin import begin, read_space
from sfihilo.cli.session.command import lab_at, readable_records, session_at
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.space.parameter import finite_number

if TYPE_CHECKING:
    from sfihilo.settings import Goal

GOES_ON = "'sfihilo session run' goes on from here."


def run_session(
    space: Path | None,
    participant: str | None,
    seconds: float,
    seed: int | None,
    goal: str | None,
    name: str | None,
    db: Path,
    actor: str | None,
) -> None:
    """Open or begin the session, run the loop, and say how to go on."""
    with errors():
        finite_number(seconds, "--seconds")
    with _opened(space, participant, seed, goal, name, db, actor) as session:
        if goal is not None and session.record.goal != goal:
            session.set_goal(cast("Goal", goal))
        with _orderly_signals():
            dialogue = Dialogue(session, Terminal(), seconds)
            try:
                dialogue.run()
            except KeyboardInterrupt:
                typer.echo(f"\nStopped. {_stored(dialogue)}")
                raise typer.Exit(130) from None
        typer.echo(f"Left. {_stored(dialogue)}")


def _stored(dialogue: Dialogue) -> str:
    """What the operator can rely on after leaving."""
    return f"Everything {'else ' if dialogue.lost else ''}is stored. {GOES_ON}"


@contextmanager
def _opened(
    space: Path | None,
    participant: str | None,
    seed: int | None,
    goal: str | None,
    name: str | None,
    db: Path,
    actor: str | None,
) -> Iterator[Session]:
    """A new session, or the one that is meant; a participant's open session is continued."""
    if space is None:
        with session_at(db, name or participant, actor) as session:
            _require_theirs(session, participant)
            yield session
        return
    with errors():
        if participant is None:
            raise ValueError("--participant: expected a code together with a space file")
        unfinished = _unfinished(space, participant, name, db)
        if unfinished is None:
            name = _new_name(name, participant, db)
    if unfinished is not None:
        typer.echo(f"Goes on with {unfinished}, which is open ('session new' begins another).")
        with session_at(db, unfinished, actor) as session:
            yield session
        return
    with begin(space, participant, db, seed=seed, goal=goal, name=name, actor=actor) as begun:
        session, _ = begun
        typer.echo(f"Session {session.id} begun in {db} (seed {session.record.seed}).")
        yield session


def _new_name(name: str | None, participant: str, db: Path) -> str | None:
    """The name of a new session; SFIHILO_SESSION only chooses one, perhaps another person's."""
    if name is None or name != os.environ.get("SFIHILO_SESSION"):
        return name
    if name == participant:
        return None
    raise ValueError(
        f"the variable SFIHILO_SESSION is {name}, which is no open session of {participant} in "
        f"{db}: unset it to begin a session"
    )


def _require_theirs(session: Session, participant: str | None) -> None:
    """Raise if the session is another person's: SFIHILO_SESSION may still name it."""
    theirs = session.record.participant
    if participant not in (None, theirs):
        raise ValueError(
            f"--participant: expected {theirs}, whose session {session.id} was named (by --session "
            f"or the variable SFIHILO_SESSION), got {participant}"
        )


def _unfinished(space: Path, participant: str, name: str | None, db: Path) -> str | None:
    """The participant's open session in this space, if there is one; raises if it differs."""
    described, _, _ = read_space(space)
    if not db.exists():
        return None
    with lab_at(db) as lab:
        records = readable_records(lab)
    theirs = [
        record
        for record in records
        if record.participant == participant
        and not record.closed
        and name in (None, record.session, participant)
    ]
    if not theirs:
        return None
    if len(theirs) > 1:
        names = ", ".join(record.session for record in theirs)
        raise ValueError(f"{participant} has several open sessions: {names}. Give --session NAME")
    if theirs[0].space.to_dict() != described.to_dict():
        raise ValueError(
            f"{theirs[0].session} is open with another space than {space}: close it first "
            f"('session close --session {theirs[0].session}'), or run it without a space file"
        )
    return theirs[0].session


@contextmanager
def _orderly_signals() -> Iterator[None]:
    """A terminated process restores the terminal; what was acknowledged is stored already.

    Ctrl-C stops also where the parent process, such as a background shell, ignores it.
    """

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    wanted = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    before = {number: signal.signal(number, leave) for number in wanted if number is not None}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
