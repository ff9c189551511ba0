"""What may be done in a session now, and the event that says so (the "decide" half of a session).

Each function takes the record and what is wanted, and returns the event to write, or raises
ValueError with the reason. Nothing here reads or writes a file. `Refusal` is raised for input that
is recorded as refused: values that are not plausible, and policies that are not safe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.session.answers import checked_strength
from sfihilo.experiment.session.proposals import Proposal, is_painful, way_out
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.trial import TAKEN_OUT, Source, Trial
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
UNCHANGED: Any = object()  # None is a value: "could not be measured", "cannot say"


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


def trial_number(trial: Trial | int) -> int:
    """The number of a trial that is given as itself or as its number."""
    if isinstance(trial, Trial):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, int):
        raise ValueError(f"trial: expected a trial or its number, got {trial!r}")
    return trial


def answer(choice: object) -> Choice | None:
    """One of the known answers; None says that the person cannot say."""
    if isinstance(choice, str) or choice is None:
        return known_choice(choice)
    raise ValueError(f"choice: expected one of {', '.join(CHOICES)} or None, got {choice!r}")


def _graded(record: Record, choice: object, strength: object) -> dict[str, Any]:
    """The answer as it is stored: with its strength, if it has one."""
    given = answer(choice)
    grade = checked_strength(strength, given, record.grades)
    return {"choice": given, **({} if grade is None else {"strength": grade})}


def short_text(value: object) -> str:
    """A reason or a note."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {type(value).__name__}")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"expected at most {LONGEST_TEXT} characters, got {len(value)}")
    return value


def _measurement(record: Record, number: int, outcome: object) -> Measurement:
    try:
        return accepted(record.space, outcome)
    except BadMeasurementError as error:
        raise Refusal(error, "measurement", number, outcome) from error


def _reason(why: object, pain: bool = False) -> dict[str, Any]:
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


def _open_trial(record: Record, number: int) -> Trial:
    require_open(record)
    trial = record.trial(number)
    if trial.ended:
        raise ValueError(f"trial {trial.number}: it is over ({trial.status})")
    return trial


def _require_no_break(record: Record, doing: str) -> None:
    if record.interrupted:
        raise ValueError(f"session {record.session} is interrupted: resume it before you {doing}")


def _comparison(record: Record) -> tuple[int | None, bool, list[str]]:
    """With which trial a new one is compared, whether the person is asked, and a warning if not."""
    anchor, walked = record.anchor_trial, record.last_walked
    if anchor is None:
        return None, False, []
    if record.reanchor_due:
        return anchor.number, False, []
    if walked is not None and walked.number != anchor.number:
        why = "was taken out" if walked.ending in TAKEN_OUT else "has no usable outcome"
        felt = "may have walked" if walked.ending == "undone" else "walked"
        return anchor.number, False, [
            f"no comparison is asked: the person {felt} trial {walked.number} last, which {why}"
        ]  # fmt: skip
    return anchor.number, True, []


# One function per event


def proposed(
    record: Record, made: Proposal, source: Source, *, repeats: int | None = None, why: str = ""
) -> Draft:
    """A new trial. Every policy passes the safety check here before it is stored or shown."""
    require_open(record)
    require_none_open(record)
    require_allowed(record, made.policy, np.array(made.unit))
    compare_with, asks_choice, warnings = _comparison(record)
    body = {
        "trial": len(record.trials) + 1,
        "round": made.round,
        "policy": dict(made.policy),
        "unit": list(made.unit),
        "source": source,
        "compare_with": compare_with,
        "asks_choice": asks_choice,
        "anchor": None if made.anchor is None else list(made.anchor),
        "repeats": repeats,
        "model": dict(made.model),
        "why": short_text(why),
    }
    kind = "suggested" if source == "operator" else "asked"
    return Draft(kind, {**body, "warnings": warnings} if warnings else body)


def suggestion(record: Record, policy: Mapping[str, float]) -> Policy:
    """The operator's policy with the fixed parameters, if it may be commanded now."""
    try:
        wanted = record.space.complete(policy)
    except ValueError as error:
        raise Refusal(error, "policy", None, policy) from error
    require_allowed(record, wanted, record.space.to_unit(wanted))
    return wanted


def require_allowed(record: Record, policy: Policy, unit: Any) -> None:
    """Raise if a policy is unsafe from where the device may be, or near one that caused pain."""
    try:
        safety.check(record.space, policy, record.positions)
        if is_painful(record, unit)[0]:
            words = safety.in_words(policy)
            raise safety.UnsafePolicyError(f"policy {words}: it is near one that caused pain")
    except safety.UnsafePolicyError as error:
        explained = safety.UnsafePolicyError(f"{error}{way_out(record)}")
        raise Refusal(explained, "policy", None, policy) from error


def started(record: Record, number: int) -> Draft:
    """The policy is being applied."""
    require_open(record)
    trial = record.trial(number)
    if trial.started:
        raise ValueError(f"trial {number}: it was started already")
    _open_trial(record, number)
    _require_no_break(record, "start a trial")
    require_reachable(record, trial)
    return Draft("started", {"trial": number})


def measured(record: Record, number: int, outcome: object) -> Draft:
    """The outcome; says at once when the comparison cannot be used."""
    require_open(record)
    trial = record.trial(number)
    if trial.measured:
        raise ValueError(f"trial {number}: it was measured already; use amend")
    _open_trial(record, number)
    _require_no_break(record, "measure")
    if not trial.started:
        require_reachable(record, trial)
    found = _measurement(record, number, outcome)
    warnings = [*found.warnings, *_unused(record, trial, found)]
    return Draft("measured", {"trial": number, "outcome": found.values, "warnings": warnings})


def _unused(record: Record, trial: Trial, found: Measurement) -> list[str]:
    """A warning if nothing can be compared with this trial: too little of it was measured."""
    walked = replace(trial, measured=True, answered=True, outcome=found.values)
    anchor = record.with_trial(walked).anchor_trial
    if anchor is not None and anchor.number == trial.number:
        return []
    missing = [name for name, value in (found.values or {}).items() if value is None]
    answer_too = "the answer to this trial is not used and " if trial.asks_choice else ""
    return [
        f"not measured: {', '.join(missing) or 'any outcome'}; {answer_too}the next trial is not "
        "compared with it, unless the outcome comes before (amend)"
    ]


def chosen(record: Record, number: int, choice: object, strength: object = None) -> Draft:
    """The person's answer, if it was asked for."""
    require_open(record)
    trial, given = record.trial(number), _graded(record, choice, strength)
    if trial.answered:
        raise ValueError(f"trial {number}: it was answered already; use amend")
    if not trial.asks_choice:
        over = f"it is over ({trial.status}); " if trial.ended else ""
        raise ValueError(f"trial {number}: {over}no answer is expected: {_unasked(trial)}")
    _open_trial(record, number)
    _require_no_break(record, "answer")
    return Draft("chosen", {"trial": number, **given})


def _unasked(trial: Trial) -> str:
    if trial.compare_with is None:
        return "there is nothing to compare it with"
    return (
        f"the person did not walk trial {trial.compare_with} just before (there was a break, or a "
        "trial without a usable outcome), so there is nothing to compare it with"
    )


def aborted(record: Record, number: int, why: str, pain: bool) -> Draft:
    """The trial ends early."""
    _open_trial(record, number)
    return Draft("aborted", {"trial": number, **_reason(why, pain)})


def vetoed(record: Record, number: int, why: str, pain: bool) -> Draft:
    """The policy is refused before it is applied; pain may also be felt when the trial is over."""
    require_open(record)
    if pain and record.trial(number).ended:
        return Draft("pain", {"trial": number, **_reason(why, pain)})
    trial = _open_trial(record, number)
    if trial.started or trial.measured or trial.answered:
        raise ValueError(f"trial {number}: it was {trial.status}; abort it instead")
    return Draft("vetoed", {"trial": number, **_reason(why, pain)})


def lifted(record: Record, number: int, why: str) -> Draft:
    """A veto because of pain no longer holds."""
    require_open(record)
    record.trial(number)
    if number not in [veto.trial for veto in record.painful]:
        raise ValueError(f"trial {number}: there is no veto because of pain to lift")
    return Draft("lifted", {"trial": number, **_reason(why)})


def amended(
    record: Record, number: int, why: str, outcome: object, choice: object, strength: object = None
) -> Draft:
    """A corrected outcome or answer."""
    require_open(record)
    trial = record.trial(number)
    if choice is UNCHANGED and strength is not None:
        raise ValueError("amend: expected a choice together with the strength, got none")
    if outcome is UNCHANGED and choice is UNCHANGED:
        raise ValueError("amend: expected an outcome or a choice, got neither")
    if trial.ending in TAKEN_OUT:
        raise ValueError(f"trial {number}: it was {trial.ending}; nothing to amend")
    body: dict[str, Any] = {"trial": number, **_reason(why)}
    if choice is not UNCHANGED:
        body |= _graded(record, choice, strength)
        if not trial.answered and not trial.asks_choice:
            raise ValueError(f"trial {number}: no answer is expected: {_unasked(trial)}")
    if outcome is not UNCHANGED:
        body["outcome"] = _measurement(record, number, outcome).values
    return Draft("amended", body)


def withdrawn(record: Record, number: int, why: str) -> Draft:
    """The data of the trial do not count."""
    require_open(record)
    trial = record.trial(number)
    if trial.ending in TAKEN_OUT:
        raise ValueError(f"trial {number}: it was {trial.ending} already")
    return Draft("withdrawn", {"trial": number, **_reason(why)})


def corrected(record: Record, kind: str, target: Event | None, why: str) -> Draft:
    """An action is undone (`withdrawn`) or restored (`redone`)."""
    require_open(record)
    if target is None:
        verb = "undo" if kind == "withdrawn" else "redo"
        raise ValueError(f"{verb}: there is nothing to {verb}")
    return Draft(kind, {"event": target.number, "kind": target.kind, **_reason(why)})


def placed(record: Record, policy: Mapping[str, float], why: str) -> Draft:
    """The operator's statement where the device is; any place within the bounds is possible."""
    require_open(record)
    place = record.space.complete(policy)
    record.space.check_bounds(place)
    return Draft("placed", {"policy": place, **_reason(why)})


def interrupted(record: Record, why: str) -> Draft:
    """A break begins."""
    require_open(record)
    if record.interrupted:
        raise ValueError(f"session {record.session} is interrupted already")
    return Draft("interrupted", _reason(why))


def resumed(record: Record) -> Draft:
    """A break ends."""
    require_open(record)
    if not record.interrupted:
        raise ValueError(f"session {record.session} is not interrupted")
    return Draft("resumed", {})


def unnoticed_break(record: Record, now: datetime) -> Draft | None:
    """The break that nobody recorded, if the person took no part for over `break_minutes`."""
    pause = record.protocol.break_minutes
    if record.interrupted or pause is None or not record.trials:
        return None
    minutes = (now - datetime.fromisoformat(record.active)).total_seconds() / 60
    return interrupted(record, f"nothing for {minutes:.0f} min") if minutes > pause else None


def noted(record: Record, text: str) -> Draft:
    """A note."""
    require_open(record)
    return Draft("note", {"text": short_text(text)})


def goal_set(record: Record, goal: object, why: str) -> Draft:
    """What the queries are for from the next trial on."""
    from sfihilo.settings import GOALS  # loaded by those who change it, not by every command

    require_open(record)
    if goal not in GOALS:
        raise ValueError(f"goal: expected {' or '.join(GOALS)}, got {goal!r}")
    return Draft("goal", {"goal": goal, **_reason(why)})


def closed(record: Record, why: str) -> Draft:
    """The session ends for good."""
    require_open(record)
    return Draft("closed", _reason(why))
