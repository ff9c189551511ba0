"""What must hold before an event is written: valid arguments, and a record that allows it.

Each function raises ValueError with the reason. `Refusal` is raised for input that is recorded as
refused: values that are not plausible, and policies that are not safe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sfihilo.experiment.log.event import canonical
from sfihilo.experiment.record.answers import checked_strength
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.allowed import is_painful, way_out
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.measurement import (
    BadMeasurementError,
    Measurement,
    accepted,
    described,
)
from sfihilo.experiment.space.space import Policy
from sfihilo.history import CHOICES, Choice, known_choice

LONGEST_TEXT = 2000


class Draft(NamedTuple):
    """An event that may be written: its kind and its body."""

    kind: str
    body: Mapping[str, Any]


class Refusal(Exception):  # noqa: N818 - never leaves the session: it carries the error that does
    """Input that is refused and recorded: the error for the caller, the event for the log."""

    def __init__(self, error: ValueError, what: str, trial: int | None, given: object) -> None:
        super().__init__(str(error))
        self.error = error
        why = str(error)[:LONGEST_TEXT]
        body = {"what": what, "trial": trial, "given": described(given), "why": why}
        self.draft = Draft("refused", body)

    def key(self, key: str | None, actor: str | None) -> str | None:
        """A key of its own: the request's key stays free for the value that is accepted."""
        if key is None:
            return None
        content = canonical({"key": key, "body": self.draft.body, "actor": actor})
        return f"refused-{hashlib.sha256(content.encode()).hexdigest()}"


# What callers give, validated


def trial_number(trial: Trial | int, session: str) -> int:
    """The number of a trial of this session that is given as itself or as its number.

    Numbers are the same in every session: a trial of another one must not be taken for it.
    """
    if isinstance(trial, Trial):
        if trial.session != session:
            raise ValueError(
                f"trial: expected one of session {session}, got trial {trial.number} of "
                f"{trial.session}"
            )
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, int):
        raise ValueError(f"trial: expected a trial or its number, got {trial!r}")
    return trial


def answer(choice: object) -> Choice | None:
    """One of the known answers; None says that the person cannot say."""
    if isinstance(choice, str) or choice is None:
        return known_choice(choice)
    raise ValueError(f"choice: expected one of {', '.join(CHOICES)} or None, got {choice!r}")


def graded(record: Record, choice: object, strength: object) -> dict[str, Any]:
    """The answer as it is stored: with its strength, if it has one."""
    given = answer(choice)
    grade = checked_strength(strength, given, record.grades)
    return {"choice": given, **({} if grade is None else {"strength": grade})}


def short_text(value: object, what: str = "why") -> str:
    """A reason or a note."""
    if not isinstance(value, str):
        raise ValueError(f"{what}: expected a text, got {type(value).__name__}")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"{what}: expected at most {LONGEST_TEXT} characters, got {len(value)}")
    return value


def measurement(record: Record, number: int, outcome: object) -> Measurement:
    """The outcome as it is stored; raises Refusal if it is not plausible."""
    try:
        return accepted(record.space, outcome)
    except BadMeasurementError as error:
        raise Refusal(error, "measurement", number, outcome) from error


def reason(why: object, pain: bool = False) -> dict[str, Any]:
    """The part of an event's body that says why."""
    if not isinstance(pain, bool):
        raise ValueError(f"pain: expected True or False, got {pain!r}")
    return {"why": short_text(why), **({"pain": True} if pain else {})}


# What the record allows


def require_open(record: Record) -> None:
    """Raise if the session cannot be continued."""
    if record.closed:
        raise ValueError(f"session {record.session} is closed: it can be read, not continued")
    require_functions(record)


def require_functions(record: Record) -> None:
    """Raise if constraints that are functions were not given again."""
    if len(record.functions) != len(record.space.functions):
        raise ValueError(
            f"session {record.session} has constraints that are functions "
            f"({', '.join(record.functions)}): give them to Lab.open(..., functions=[...])"
        )


def require_none_open(record: Record) -> None:
    """Raise if a trial is not over."""
    current = record.current
    if current is not None:
        raise ValueError(
            f"trial {current.number} is {current.status}: finish, abort or veto it first"
        )


def require_reachable(record: Record, trial: Trial) -> None:
    """Raise if an open trial is unsafe: the device may have moved since it was asked.

    That happens when undo opens an earlier trial again, or when the device was placed elsewhere. A
    trial that caused pain is unsafe too, although undo opened it again.
    """
    problems = safety.problems(record.space, dict(trial.policy), record.positions)
    if is_painful(record, np.array(trial.unit))[0]:
        problems.append("it is near one that caused pain")
    if problems:
        raise safety.UnsafePolicyError(
            f"trial {trial.number}: it must not be applied from where the device may be now "
            f"({'; '.join(problems)}): abort, veto or undo it{way_out(record)}"
        )


def require_to_do(record: Record, trial: Trial) -> None:
    """Raise if a trial must not be done any more: it ended early, or it is ahead and unsafe.

    A complete one is returned to a script that repeats its calls: every later call of it is kept.
    """
    if trial.ending is not None:
        raise ValueError(
            f"trial {trial.number}: it is over ({trial.status}); ask with another key for a new one"
        )
    if not trial.measured:
        require_reachable(record, trial)


def open_trial(record: Record, number: int) -> Trial:
    """The trial, if it is not over."""
    require_open(record)
    trial = record.trial(number)
    if trial.ended:
        raise ValueError(f"trial {trial.number}: it is over ({trial.status})")
    return trial


def require_named(trial: Trial) -> None:
    """Raise if the person cannot be asked yet which trial was better."""
    if trial.awaits_name:
        raise ValueError(
            f"trial {trial.number}: measure it first; the trial to compare it with is named then"
        )


def require_no_break(record: Record, doing: str) -> None:
    """Raise if the person has a break."""
    if record.interrupted:
        raise ValueError(f"session {record.session} is interrupted: resume it before you {doing}")


def require_allowed(record: Record, policy: Policy) -> None:
    """Raise if a policy is unsafe from where the device may be, or near one that caused pain."""
    try:
        safety.check(record.space, policy, record.positions)
        if is_painful(record, record.space.to_unit(policy))[0]:
            words = safety.in_words(policy)
            raise safety.UnsafePolicyError(f"policy {words}: it is near one that caused pain")
    except safety.UnsafePolicyError as error:
        explained = safety.UnsafePolicyError(f"{error}{way_out(record)}")
        raise Refusal(explained, "policy", None, policy) from error
