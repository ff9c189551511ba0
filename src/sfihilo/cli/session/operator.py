"""What an operator does besides asking and answering: start, abort, veto, correct, pause, note."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sfihilo.cli.session.command import Command, Number, PlainNumber, Why, session_command
from sfihilo.cli.session.steps import next_step
from sfihilo.cli.session.values import (
    CHOICE_HELP,
    STRENGTH_HELP,
    parse_choice,
    parse_outcome,
    parse_policy,
    parse_strength,
    whole_outcome,
)
from sfihilo.experiment.output.digits import physical_unit
from sfihilo.experiment.record.kept import certain_settings, kept_settings, last_policy
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.allowed import way_out
from sfihilo.experiment.session.session import UNCHANGED

if TYPE_CHECKING:
    from sfihilo.settings import Goal

Reason = Annotated[str, typer.Option("--why", help="The reason, for the record.")]
Pain = Annotated[
    bool, typer.Option("--pain", help="Because of pain: such settings are avoided until 'lift'.")
]
PAIN_WORDS = re.compile(r"\b(pain|hurt|ache|aching|sore|schmerz|weh\b)", re.IGNORECASE)


def attach(app: typer.Typer) -> None:
    """Add these commands to the session's own."""
    for function in (
        start, suggest, repeat, abort, veto, lift, place, amend, withdraw, redo, interrupt, resume,
        note, goal, close,
    ):  # fmt: skip
        app.command()(session_command(function))
    app.command(name="break")(session_command(take_break))


def start(command: Command, trial: Number = None) -> None:
    """Record that the current settings are being applied."""
    command.show(command.session.start(command.trial(trial), key=command.key))


def suggest(
    command: Command,
    values: Annotated[
        list[str], typer.Argument(help="NAME=VALUE; what is left out stays as in the last trial.")
    ],
    why: Why = "",
) -> None:
    """A trial with settings of your own; it is learned from like any other."""
    with command.as_read() as record:
        policy, kept = completed(record, parse_policy(values))
        trial = command.session.suggest(policy, why=why, key=command.key)
    command.show(trial, *kept)


def completed(record: Record, given: dict[str, float]) -> tuple[dict[str, float], list[str]]:
    """The given settings with the rest of the last policy, and a sentence about what was kept."""
    source, kept = kept_settings(record, given)
    return {**kept, **given}, _kept_words(record, source, kept)


def completed_place(record: Record, given: dict[str, float]) -> tuple[dict[str, float], list[str]]:
    """A stated place with the settings that are certain; raises where one that is not is left out.

    A place that is filled in by a guess would remove the true one.
    """
    certain = certain_settings(record)
    unsure = [name for name in record.space.free if name not in given and name not in certain]
    if unsure:
        raise ValueError(
            f"place: expected {', '.join(f'{name}=VALUE' for name in unsure)} too, since it is not "
            f"certain{way_out(record)}"
        )
    kept = {name: value for name, value in certain.items() if name not in given}
    source, last = last_policy(record)
    if any(last.get(name) != value for name, value in kept.items()):
        source = "where the device is"
    return {**kept, **given}, _kept_words(record, source, kept)


def _kept_words(record: Record, source: str, kept: dict[str, float]) -> list[str]:
    words = ", ".join(
        f"{name} {physical_unit(value, record.space.policy[name])}" for name, value in kept.items()
    )
    return [f"Kept from {source}: {words}."] if kept else []


def repeat(command: Command, trial: Annotated[int, typer.Argument(help="Earlier trial.")]) -> None:
    """The settings of an earlier trial once more, to see how consistent the person is."""
    command.show(command.session.repeat(trial, key=command.key))


def abort(
    command: Command,
    why: Reason,
    number: PlainNumber = None,
    pain: Pain = False,
    trial: Number = None,
) -> None:
    """End the current trial early; with --pain, also a trial that is over."""
    meant = (command.hurt if pain else command.trial)(number, trial)
    ended = command.session.abort(meant, why, pain=pain, key=command.key)
    command.show(ended, *avoided(command.record, ended), *pain_meant(ended, why, pain))


def veto(
    command: Command,
    why: Reason,
    number: PlainNumber = None,
    pain: Pain = False,
    trial: Number = None,
) -> None:
    """Refuse proposed settings before they are applied."""
    meant = (command.hurt if pain else command.trial)(number, trial)
    refused = command.session.veto(meant, why, pain=pain, key=command.key)
    command.show(refused, *avoided(command.record, refused), *pain_meant(refused, why, pain))


def avoided(record: Record, trial: Trial) -> list[str]:
    """What pain that a trial caused means for the next ones."""
    if trial.number not in [veto.trial for veto in record.painful]:
        return []
    return [
        f"Pain is recorded: settings near trial {trial.number} are neither asked nor recommended "
        f"until 'session lift {trial.number} --why REASON'."
    ]


def pain_meant(trial: Trial, why: str, pain: bool) -> list[str]:
    """How to say that a trial hurt, where the reason speaks of pain and nothing else does."""
    if pain or not PAIN_WORDS.search(why):
        return []
    return [
        f"Only noted: similar settings may come again. If it hurt: session veto {trial.number} "
        "--pain --why REASON keeps them away."
    ]


def lift(
    command: Command,
    trial: Annotated[int, typer.Argument(help="Trial that was refused or aborted with --pain.")],
    why: Reason,
) -> None:
    """Allow settings near a trial again that were avoided because of pain."""
    command.show(command.session.lift(trial, why, key=command.key))


def place(
    command: Command,
    values: Annotated[
        list[str], typer.Argument(help="NAME=VALUE; what is certain can be left out.")
    ],
    why: Why = "",
) -> None:
    """State where the device is, after it was set by hand or when the record is unsure."""
    with command.as_read() as record:
        policy, kept = completed_place(record, parse_policy(values))
        command.session.place(policy, why=why, key=command.key)
    command.show_status(" ".join(["The place of the device is recorded.", *kept]))


def amend(
    command: Command,
    trial: Annotated[int, typer.Argument(help="Trial to correct.")],
    values: Annotated[
        list[str] | None, typer.Argument(help="NAME=VALUE; other outcomes stay as they are.")
    ] = None,
    choice: Annotated[str | None, typer.Option(help=f"{CHOICE_HELP}.")] = None,
    strength: Annotated[str | None, typer.Option(help=STRENGTH_HELP)] = None,
    why: Reason = "",
) -> None:
    """Correct an outcome or an answer; the earlier record stays."""
    answer = UNCHANGED if choice is None else parse_choice(choice)
    with command.as_read() as record:
        outcome = amended(record, trial, parse_outcome(values)) if values else UNCHANGED
        grade = parse_strength(strength, record.grades)
        corrected = command.session.amend(
            trial, why=why, outcome=outcome, choice=answer, strength=grade, key=command.key
        )
    command.show(corrected)


def amended(record: Record, number: int, given: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a trial with the given values in place of the earlier ones."""
    trial: Trial = record.trial(number)
    before = trial.outcome if trial.outcome is not None else dict.fromkeys(record.space.outcomes)
    return whole_outcome(record.space, {**before, **given} if trial.measured else given)


def withdraw(
    command: Command,
    trial: Annotated[int, typer.Argument(help="Trial whose data do not count.")],
    why: Reason,
) -> None:
    """Take the data of a trial out; they stay in the record."""
    command.show(command.session.withdraw(trial, why, key=command.key))


def redo(command: Command, why: Why = "") -> None:
    """Restore what was undone last."""
    command.show_correction(command.session.redo(why, key=command.key), "redone")


def take_break(
    command: Command,
    minutes: Annotated[float | None, typer.Argument(min=0, help="How long it will be.")] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Too short to forget the last condition.")
    ] = False,
    why: Why = "",
) -> None:
    """The person pauses; only after a long break the last condition is walked again."""
    command.show_status(pause(command, is_short(command.record, minutes, short), why))


def is_short(record: Record, minutes: float | None, short: bool = False) -> bool:
    """Whether a break is too short for the last condition to be forgotten."""
    limit = record.protocol.break_minutes
    return short or (minutes is not None and limit is not None and minutes < limit)


def pause(command: Command, short: bool, why: str) -> str:
    """Record a break; returns what that means for the next trial."""
    if short:
        command.session.note(f"short break: {why}" if why else "short break", key=command.key)
        return "The short break is noted; no condition is repeated after it."
    command.session.interrupt(why, key=command.key)
    again = command.record.protocol.reanchor and command.record.anchor_trial is not None
    return "The break is recorded." + (
        " After it the last condition is walked again, since it can no longer be compared from "
        "memory." if again else ""
    )  # fmt: skip


def interrupt(command: Command, why: Why = "") -> None:
    """The person stops, for hours or days (like `break` without minutes)."""
    command.show_status(pause(command, False, why))


def resume(command: Command) -> None:
    """The person is back (`ask` does this too)."""
    command.session.resume(key=command.key)
    command.show_status("The break is over.")


def note(command: Command, text: Annotated[str, typer.Argument(help="Text to record.")]) -> None:
    """Write something into the record."""
    command.session.note(text, key=command.key)
    command.show_status("Noted.")


def goal(
    command: Command,
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="GOAL",
            help="understand (what this person values) or best (a good setting soon).",
            autocompletion=lambda: ["understand", "best"],
        ),
    ],
    why: Why = "",
) -> None:
    """Set what the questions are for from the next trial on; nothing learned is lost."""
    record = command.session.set_goal(cast("Goal", wanted), why=why, key=command.key)
    if not command.output.json({"goal": record.goal}):
        command.output.say(f"The goal is now: {record.goal}.", next_step(record))


def close(command: Command, why: Why = "") -> None:
    """End the session for good."""
    if command.key is not None and not command.named:
        # Repeated without a name, it would close the next open session.
        raise ValueError("--key: expected --session with it, so that a retry means the same")
    command.session.close(why, key=command.key)
    command.show_status("Closed.")
