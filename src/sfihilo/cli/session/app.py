"""`sfihilo session`: a session with a person from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfihilo.cli.group import CommandGroup
from sfihilo.cli.output import Output
from sfihilo.cli.session import lab_file, operator
from sfihilo.cli.session.command import (
    DEFAULT_DB,
    Actor,
    Command,
    Compare,
    Db,
    GoalOption,
    Json,
    Key,
    Name,
    Number,
    Why,
    chosen_session,
    lab_at,
    readable_records,
    session_at,
    session_command,
    use_session,
    used_session,
)
from sfihilo.cli.session.steps import named_words, next_step, remarks
from sfihilo.cli.session.values import (
    CHOICE_HELP,
    STRENGTH_HELP,
    parse_choice,
    parse_comparisons,
    parse_outcome,
    parse_ranges,
    parse_strength,
    whole_outcome,
)
from sfihilo.cli.session.views import advice_tables, trial_table
from sfihilo.experiment.record.answers import offered
from sfihilo.experiment.session.lab import Lab

app = typer.Typer(
    name="session",
    cls=CommandGroup,
    help="Run a session with a real person.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def new(  # noqa: PLR0913 - one parameter per option
    space: Annotated[Path, typer.Argument(help="TOML file that describes the space.")],
    participant: Annotated[str, typer.Option("--participant", "-p", help="Code, not a name.")],
    seed: Annotated[int | None, typer.Option(help="Drawn and recorded if left out.")] = None,
    goal: GoalOption = None,
    name: Annotated[
        str | None, typer.Option("--session", "-s", help="A name for the session.")
    ] = None,
    db: Db = DEFAULT_DB,
    key: Key = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Begin a session in the space of a TOML file."""
    from sfihilo.cli.session.begin import begin

    output = Output(as_json)
    with begin(
        space, participant, db, seed=seed, goal=goal, name=name, key=key, actor=actor
    ) as begun:
        session, lab = begun
        seed = session.record.seed
        if output.json({"session": session.id, "seed": seed, "db": str(db)}):
            return
        output.say(
            f"Session {session.id} begun in {db} (seed {seed}, goal {session.record.goal}).",
            *_which_session(lab, db, session.id),
            next_step(session.record),
        )


def _which_session(lab: Lab, db: Path, name: str) -> list[str]:
    """A warning where the next command would not go to the session that was just begun."""
    try:
        meant = chosen_session(lab, db, None)
    except ValueError:
        return [f"Other sessions are open: 'session use {name}', or give --session {name}."]
    if meant == name:
        return []
    return [f"Commands go to {meant}: 'session use {name}', or give --session {name}."]


@app.command()
def use(
    name: Annotated[
        str | None, typer.Argument(help="Session or participant; forgets the choice if left out.")
    ] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Choose the session that commands go to while several are open."""
    output = Output(as_json)
    with lab_at(db) as lab:
        chosen = None if name is None else chosen_session(lab, db, name)
        use_session(db, chosen)
        if output.json({"session": chosen}):
            return
        if chosen is None:
            output.say("No session is chosen.")
        else:
            output.say(f"Commands go to {chosen}.", next_step(lab.record(chosen)))


@app.command(name="list")
def list_sessions(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """All sessions of the file."""
    output = Output(as_json)
    with lab_at(db) as lab:
        records = readable_records(lab)
        found = [
            {
                "session": record.session,
                "participant": record.participant,
                "opened": record.opened[:16] + "Z",
                "status": record.status,
                "goal": record.goal,
                "trials": len(record.trials),
                "complete": sum(trial.status == "complete" for trial in record.trials),
            }
            for record in records
        ]
        if not output.json(found):
            headings = list(found[0]) if found else ["session"]
            output.table(str(db), headings, [list(row.values()) for row in found])
            if (used := used_session(db)) is not None:
                output.say(f"Commands go to {used} (session use).")


@app.command()
def show(name: Name = None, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Every trial of a session, and what it waits for."""
    output = Output(as_json)
    with lab_at(db) as lab:
        record = lab.record(chosen_session(lab, db, name))
        state = {
            "session": record.session,
            "participant": record.participant,
            "status": record.status,
            "seed": record.seed,
            "goal": record.goal,
            "rule": record.settings["rule"] if record.goal_set is None else None,
            "answers": offered(record.grades),
            **({"recall": record.recall} if record.recall > 1 else {}),
            "space": record.space.to_dict(),
            "reanchor_due": record.reanchor_due,
            "trials": [trial.to_dict() for trial in record.trials],
        }
        if not output.json(state):
            about = f"Goal: {record.goal}. Answers offered: {offered(record.grades)}."
            recalled = f" Compared with one of the last {record.recall} walks."
            output.say(about + (recalled if record.recall > 1 else ""))
            title = f"Session {record.session}, participant {record.participant}, {record.status}"
            output.table(title, *trial_table(record))
            current = record.current
            output.say(
                *(named_words(record, current) if current is not None else ()), next_step(record)
            )


@app.command()
@session_command
def ask(command: Command) -> None:
    """The settings to apply now; asking again gives the same until the trial is over."""
    with command.output.progress("Computing the next settings"):
        trial = command.session.ask(key=command.key)
    command.show(trial, *remarks(command.record, trial))


@app.command()
@session_command
def measure(
    command: Command,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="NAME=VALUE for each outcome; NAME=none if not measured."),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Nothing could be measured.")] = False,
    trial: Number = None,
) -> None:
    """What was measured in the current trial, in the units of the space."""
    if missing == bool(values):
        raise ValueError("expected NAME=VALUE for each outcome, or --missing")
    outcome = None if missing else whole_outcome(command.record.space, parse_outcome(values or []))
    command.show(command.session.measure(command.trial(trial), outcome, key=command.key))


@app.command()
@session_command
def choose(
    command: Command,
    choice: Annotated[
        str,
        typer.Argument(
            help=f"What was better: {CHOICE_HELP}.",
            autocompletion=lambda: ["new", "previous", "same", "cannot"],
        ),
    ],
    strength: Annotated[
        str | None,
        typer.Argument(
            help=STRENGTH_HELP, autocompletion=lambda: ["slightly", "clearly", "much", "better"]
        ),
    ] = None,
    trial: Number = None,
) -> None:
    """What the person preferred: the new condition or the one that it is compared with."""
    answer, grade = parse_choice(choice), parse_strength(strength, command.record.grades)
    command.show(command.session.choose(command.trial(trial), answer, grade, key=command.key))


@app.command()
@session_command
def undo(command: Command, why: Why = "") -> None:
    """Take the last action back; it stays in the record."""
    command.show_correction(command.session.undo(why, key=command.key), "undone")


@app.command()
def recommend(
    within: Annotated[
        list[str] | None, typer.Option("--within", help="NAME=LOW:HIGH, narrower than the space.")
    ] = None,
    compare: Compare = None,
    name: Name = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """The settings to keep, how sure that is, and what they are expected to bring."""
    output = Output(as_json)
    with session_at(db, name) as session:
        with output.progress("Computing the recommendation"):
            advice = session.recommend(parse_ranges(within or []), parse_comparisons(compare or []))
        if not output.json(advice.to_dict()):
            advice_tables(output, session.record, advice)


@app.command()
def run(
    space: Annotated[
        Path | None, typer.Argument(help="TOML file of the space, to begin a session.")
    ] = None,
    participant: Annotated[
        str | None, typer.Option("--participant", "-p", help="Code, not a name.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="Length of a walk; 0: ended by a key only.")
    ] = 120,
    seed: Annotated[int | None, typer.Option(help="Drawn and recorded if left out.")] = None,
    goal: GoalOption = None,
    name: Name = None,
    db: Db = DEFAULT_DB,
    actor: Actor = None,
) -> None:
    """Do a whole session in the terminal, or go on with one that was left."""
    from sfihilo.cli.interactive.run import run_session

    run_session(space, participant, seconds, seed, goal, name, db, actor)


operator.attach(app)
lab_file.attach(app)
