"""`sfihilo session`: a session with a person from the command line.

Exit codes: 0 done, 1 refused (the message says why), 2 wrong usage, 3 the record is damaged.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sfihilo.cli import operator as cli_operator
from sfihilo.cli.session_common import (
    DEFAULT_DB,
    INTEGRITY_ERROR,
    Actor,
    Db,
    Desk,
    Json,
    Key,
    Name,
    Number,
    Screen,
    Why,
    at_desk,
    errors,
    fail,
    interval_rows,
    lab_at,
    newest,
    session_at,
    values_of,
)
from sfihilo.experiment.log.recovery import recover as recover_file
from sfihilo.experiment.log.store import verify as verify_file
from sfihilo.experiment.session.border import counted
from sfihilo.experiment.session.record import Protocol
from sfihilo.experiment.space.parameter import finite_number
from sfihilo.experiment.space.space import read_toml, space_from_tables
from sfihilo.settings import Settings

app = typer.Typer(
    name="session",
    help="Run a session with a real person.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
LEARNER_OPTIONS = ("preset", "rule", "measurement_noise", "reward_noise")
PROTOCOL_OPTIONS = ("drift", "reanchor", "break_minutes")


@app.command()
def new(
    space: Annotated[Path, typer.Argument(help="TOML file that describes the space.")],
    participant: Annotated[str, typer.Option("--participant", "-p", help="Code, no name.")],
    seed: Annotated[int | None, typer.Option(help="Random if left out; it is recorded.")] = None,
    name: Annotated[str | None, typer.Option("--session", "-s", help="Name of your own.")] = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Begin a session in the space of a TOML file."""
    screen = Screen(as_json)
    with errors():
        tables = read_toml(space)
        described = space_from_tables(tables, str(space))
        settings, protocol = session_options(tables.get("session", {}), str(space))
    with lab_at(db, make=True, actor=actor) as lab:
        begun = lab.log.begun(key) if key is not None and seed is None else None
        if seed is None:  # a retry means the seed that was drawn the first time
            seed = secrets.randbelow(2**31) if begun is None else int(begun.body["seed"])
        session = lab.create(
            described, participant, seed,
            settings=settings, protocol=protocol, session=name, key=key,
        )  # fmt: skip
        if not screen.json({"session": session.id, "seed": seed, "db": str(db)}):
            screen.say(f"Session {session.id} begun in {db} (seed {seed}). Next: session ask")


@app.command(name="list")
def list_sessions(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """All sessions of the file."""
    screen = Screen(as_json)
    with lab_at(db) as lab:
        records = [lab.record(name) for name in lab.sessions()]
        found = [
            {
                "session": record.session,
                "participant": record.participant,
                "opened": record.opened[:16] + "Z",
                "status": record.status,
                "trials": len(record.trials),
                "complete": sum(trial.status == "complete" for trial in record.trials),
            }
            for record in records
        ]
        if not screen.json(found):
            headings = ["session", "participant", "opened", "status", "trials", "complete"]
            screen.table(str(db), headings, [list(row.values()) for row in found])


@app.command()
def show(name: Name = None, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Every trial of a session, and where it stands."""
    screen = Screen(as_json)
    with lab_at(db) as lab:
        record = lab.record(name or newest(lab))
        rows = [trial.to_dict() for trial in record.trials]
        state = {
            "session": record.session,
            "participant": record.participant,
            "status": record.status,
            "seed": record.seed,
            "space": record.space.to_dict(),
            "reanchor_due": record.reanchor_due,
            "trials": rows,
        }
        if screen.json(state):
            return
        space = record.space
        headings = ["trial", "source", "status", *space.policy, *space.outcomes, "with", "choice"]
        screen.table(
            f"Session {record.session}, participant {record.participant}, {record.status}",
            headings,
            [
                [
                    trial.number,
                    trial.source,
                    trial.status,
                    *trial.policy.values(),
                    *((trial.outcome or {}).get(outcome) for outcome in space.outcomes),
                    trial.compare_with if trial.asks_choice else None,
                    (trial.choice or "cannot say") if trial.answered else None,
                ]
                for trial in record.trials
            ],
        )


@app.command()
@at_desk
def ask(desk: Desk) -> None:
    """The policy to set now; asking again gives the same until the trial is over."""
    desk.show(desk.session.ask(key=desk.key))


@app.command()
@at_desk
def measure(
    desk: Desk,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="NAME=VALUE for each outcome; NAME=missing if not measured."),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Nothing could be measured.")] = False,
    trial: Number = None,
) -> None:
    """What was measured in the current trial, in the units of the space."""
    if missing == bool(values):
        raise ValueError("expected NAME=VALUE for each outcome, or --missing")
    outcome = None if missing else values_of(values or [])
    desk.show(desk.session.measure(desk.trial(trial), outcome, key=desk.key))


@app.command()
@at_desk
def choose(
    desk: Desk,
    choice: Annotated[str, typer.Argument(help="new, previous, same or none (cannot say).")],
    trial: Number = None,
) -> None:
    """What the person preferred: the new condition or the previous one."""
    answer: Any = None if choice == "none" else choice
    desk.show(desk.session.choose(desk.trial(trial), answer, key=desk.key))


@app.command()
@at_desk
def undo(desk: Desk, why: Why = "") -> None:
    """Take the last action back; it stays in the record."""
    desk.show_correction(desk.session.undo(why, key=desk.key), "undone")


@app.command()
def recommend(
    within: Annotated[
        list[str] | None, typer.Option("--within", help="NAME=LOW:HIGH, narrower than the space.")
    ] = None,
    name: Name = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """The policy to settle on, with what it is expected to bring."""
    screen = Screen(as_json)
    with session_at(db, name) as session:
        advice = session.recommend(ranges(within or []))
        if screen.json(advice.to_dict()):
            return
        space = session.record.space
        rows: list[list[object]] = [
            [name, value, space.policy[name].unit] for name, value in advice.policy.items()
        ]
        screen.table(
            f"Recommended after {counted(advice.trials, 'trial')}", ["set", "value", "unit"], rows
        )
        units = {name: outcome.unit for name, outcome in space.outcomes.items()}
        screen.table(
            "Expected, with 95 % intervals",
            ["outcome", "value", "low", "high", "unit"],
            interval_rows(advice.outcomes, units),
        )
        if advice.extrapolates:
            screen.say("Careful: less is known about this policy than about any that was tried.")
        if not advice.one_step:
            screen.say("It is more than one allowed step away: approach it in steps.")


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")],
    sessions: Annotated[list[str] | None, typer.Argument(help="All if left out.")] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Some of csv,parquet,jsonl,bids.")
    ] = "csv,parquet,jsonl,bids",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Tables (CSV, Parquet), the whole log (JSONL), a BIDS dataset."""
    from sfihilo.experiment.output.export import export as write

    screen = Screen(as_json)
    with lab_at(db) as lab:
        written = write(lab, out, sessions or None, formats.split(","))
        if not screen.json([str(path) for path in written]):
            screen.say(f"{len(written)} files written to {out}")


@app.command()
def verify(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Check the whole record; names the first bad event."""
    screen = Screen(as_json)
    with errors():
        if not db.exists():
            raise ValueError(f"there is no file {db}")
        verdict = verify_file(db)
    screen.json(vars(verdict))
    if not verdict.ok:
        place = "" if verdict.first_bad is None else f"event {verdict.first_bad}: "
        fail(f"{db}: {place}{verdict.reason}", INTEGRITY_ERROR)
    if not as_json:
        screen.say(f"{db}: {verdict.count} events, {verdict.reason}")


@app.command()
def recover(
    out: Annotated[Path, typer.Option("--out", "-o", help="New file for what is intact.")],
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Save the events before the first damaged one to a new file; the damaged one stays."""
    screen = Screen(as_json)
    with errors():
        if not db.exists():
            raise ValueError(f"there is no file {db}")
        saved = recover_file(db, out)
    if not screen.json({"saved": saved, "out": str(out)}):
        screen.say(f"{saved} intact events saved to {out}; {db} was left as it is")


@app.command()
def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    name: Name = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """One page that explains the person: what to set, why, how sure, every trial."""
    from sfihilo.experiment.output.report import write_report

    screen = Screen(as_json)
    with session_at(db, name) as session:
        path = write_report(session, out)
        if not screen.json({"report": str(path)}):
            screen.say(f"Report written to {path}")


def ranges(pairs: list[str]) -> dict[str, tuple[float, float]]:
    """NAME=LOW:HIGH arguments."""
    found = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        low, colon, high = text.partition(":")
        try:
            found[name] = (float(low), float(high))
        except ValueError:
            colon = ""
        if not colon:
            raise ValueError(f"--within: expected NAME=LOW:HIGH, got {pair!r}")
    return found


def session_options(table: Any, where: str) -> tuple[Settings, Protocol]:
    """The optional table [session] of the TOML file."""
    known = (*LEARNER_OPTIONS, *PROTOCOL_OPTIONS)
    if not isinstance(table, dict) or set(table) - set(known):
        raise ValueError(f"{where}: [session] expected some of {', '.join(known)}, got {table!r}")
    preset = table.get("preset", "default")
    if preset not in ("default", "paper"):
        raise ValueError(f"{where}: preset: expected default or paper, got {preset!r}")
    settings = Settings.paper() if preset == "paper" else Settings()
    noise = {
        name: finite_number(table[f"{name}_noise"], f"{where}: {name}_noise")
        for name in ("measurement", "reward")
        if f"{name}_noise" in table
    }
    settings = replace(
        settings,
        rule=str(table.get("rule", settings.rule_name)),
        noise=replace(settings.noise, **noise),
    )
    return settings, Protocol(**{name: table[name] for name in PROTOCOL_OPTIONS if name in table})


cli_operator.attach(app)
