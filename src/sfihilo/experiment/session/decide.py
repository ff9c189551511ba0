"""What may be done in a session now, and the event that says so (the "decide" half of a session).

Each function takes the record and what is wanted, and returns the event to write, or raises
ValueError with the reason. Nothing here reads or writes a file; `requirements` has the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.record.pauses import Moment, is_longer
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import TAKEN_OUT, Source, Trial
from sfihilo.experiment.session.proposals import Proposal
from sfihilo.experiment.session.requirements import (
    Draft,
    Refusal,
    graded,
    measurement,
    open_trial,
    reason,
    require_allowed,
    require_named,
    require_no_break,
    require_none_open,
    require_open,
    require_reachable,
    short_text,
)
from sfihilo.experiment.space.measurement import Measurement
from sfihilo.experiment.space.space import Policy

UNASKED = "no comparison is asked: "
UNCHANGED: Any = object()  # None is a value: "could not be measured", "cannot say"

# Trials


def proposed(
    record: Record, made: Proposal, source: Source, *, repeats: int | None = None, why: str = ""
) -> Draft:
    """A new trial. Every policy passes the safety check here before it is stored or shown."""
    require_open(record)
    require_none_open(record)
    require_allowed(record, made.policy)
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


def is_asked(event: Event) -> bool:
    """Whether an event is what `ask` writes; `repeat` writes a trial that repeats another one."""
    return event.kind == "asked" and event.body["repeats"] is None


def _comparison(record: Record) -> tuple[int | None, bool, list[str]]:
    """With which trial a new one is compared, whether the person is asked, and a warning if not."""
    anchor, walked = record.anchor_trial, record.last_walked
    if anchor is None:
        return None, False, []
    if record.reanchor_due:
        return anchor.number, False, []
    if walked is not None and walked.number != anchor.number:
        why = "was taken out" if walked.ending in TAKEN_OUT else "has no usable outcome"
        felt = "may have walked" if walked.ending in ("undone", "vetoed") else "walked"
        return anchor.number, False, [
            f"no comparison is asked: the person {felt} trial {walked.number} last, which {why}"
        ]  # fmt: skip
    # With a longer memory, the trial to compare with is named when the outcome is known.
    return anchor.number if record.recall == 1 else None, True, []


def suggestion(record: Record, policy: Mapping[str, float]) -> Policy:
    """The operator's policy with the fixed parameters, if it may be commanded now."""
    try:
        wanted = record.space.complete(policy)
    except ValueError as error:
        raise Refusal(error, "policy", None, policy) from error
    require_allowed(record, wanted)
    return wanted


def started(record: Record, number: int) -> Draft:
    """The policy is being applied."""
    require_open(record)
    trial = record.trial(number)
    if trial.started and record.left_open != number:  # after a break it is walked again
        raise ValueError(f"trial {number}: it was started already")
    open_trial(record, number)
    require_no_break(record, "start a trial")
    require_reachable(record, trial)
    return Draft("started", {"trial": number})


def measured(record: Record, number: int, outcome: object) -> Draft:
    """The outcome; says at once when the comparison cannot be used."""
    require_open(record)
    trial = record.trial(number)
    if trial.measured:
        raise ValueError(f"trial {number}: it was measured already; use amend")
    open_trial(record, number)
    require_no_break(record, "measure")
    if not trial.started:
        require_reachable(record, trial)
    found = measurement(record, number, outcome)
    warnings = [*found.warnings, *(_unused(record, trial, found) or _forgotten(record, trial))]
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


def _forgotten(record: Record, trial: Trial) -> list[str]:
    """A warning if the trial may have been walked before the last break."""
    if not record.reanchor_due or record.left_open != trial.number:
        return []
    return ["it was not started after the break, so the next trial is the same condition again"]


def chosen(
    record: Record,
    number: int,
    choice: object,
    strength: object = None,
    about: int | None = None,
) -> Draft:
    """The person's answer, if it was asked for; `about` is the trial that the caller compares with.

    None where the caller does not say: the answer is about the trial that the record names.
    """
    require_open(record)
    trial, given = record.trial(number), graded(record, choice, strength)
    if trial.answered:
        raise ValueError(f"trial {number}: it was answered already; use amend")
    if not trial.asks_choice:
        over = f"it is over ({trial.status}); " if trial.ended else ""
        raise ValueError(f"trial {number}: {over}no answer is expected: {_unasked(trial)}")
    open_trial(record, number)
    require_no_break(record, "answer")
    require_named(trial)
    if about is not None and about != trial.compare_with:
        raise ValueError(
            f"trial {number}: it is compared with trial {trial.compare_with} now, not with trial "
            f"{about}: ask again about that one"
        )
    return Draft("chosen", {"trial": number, **given})


def _unasked(trial: Trial) -> str:
    told = [text.removeprefix(UNASKED) for text in trial.warnings if text.startswith(UNASKED)]
    if told:
        return told[-1]
    if trial.compare_with is None:
        return "there is nothing to compare it with"
    return (
        f"the person did not walk trial {trial.compare_with} just before (there was a break, or a "
        "trial without a usable outcome), so there is nothing to compare it with"
    )


def aborted(record: Record, number: int, why: str, pain: bool) -> Draft:
    """The trial ends early; pain may also be felt when it is over."""
    require_open(record)
    if pain is True and record.trial(number).ended:
        return Draft("pain", {"trial": number, **reason(why, pain)})
    open_trial(record, number)
    return Draft("aborted", {"trial": number, **reason(why, pain)})


def vetoed(record: Record, number: int, why: str, pain: bool) -> Draft:
    """The policy is refused before it is applied; pain may also be felt when the trial is over."""
    require_open(record)
    if pain and record.trial(number).ended:
        return Draft("pain", {"trial": number, **reason(why, pain)})
    trial = open_trial(record, number)
    if trial.started or trial.measured or trial.answered:
        raise ValueError(f"trial {number}: it was {trial.status}; abort it instead")
    return Draft("vetoed", {"trial": number, **reason(why, pain)})


def lifted(record: Record, number: int, why: str) -> Draft:
    """A veto because of pain no longer holds."""
    require_open(record)
    record.trial(number)
    if number not in [veto.trial for veto in record.painful]:
        raise ValueError(f"trial {number}: there is no veto because of pain to lift")
    return Draft("lifted", {"trial": number, **reason(why)})


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
    body: dict[str, Any] = {"trial": number, **reason(why)}
    if choice is not UNCHANGED:
        body |= graded(record, choice, strength)
        _require_answered(trial)
    if outcome is not UNCHANGED:
        found = measurement(record, number, outcome)
        body["outcome"] = found.values
        last = record.newest is not None and record.newest.number == number
        warnings = [*found.warnings, *(_unused(record, trial, found) if last else ())]
        body |= {"warnings": warnings} if warnings else {}
    return Draft("amended", body)


def _require_answered(trial: Trial) -> None:
    """Raise unless there is an answer to correct: `choose` asks whether the person still knows."""
    if trial.answered:
        return
    if not trial.asks_choice:
        raise ValueError(f"trial {trial.number}: no answer is expected: {_unasked(trial)}")
    require_named(trial)
    over = f"it is over ({trial.status}) and has no answer to correct"
    raise ValueError(f"trial {trial.number}: {over if trial.ended else 'use choose to answer it'}")


def withdrawn(record: Record, number: int, why: str) -> Draft:
    """The data of the trial do not count."""
    require_open(record)
    trial = record.trial(number)
    if trial.ending in TAKEN_OUT:
        raise ValueError(f"trial {number}: it was {trial.ending} already")
    return Draft("withdrawn", {"trial": number, **reason(why)})


# The session


def corrected(record: Record, kind: str, target: Event | None, why: str) -> Draft:
    """An action is undone (`withdrawn`) or restored (`redone`)."""
    require_open(record)
    if target is None:
        verb = "undo" if kind == "withdrawn" else "redo"
        raise ValueError(f"{verb}: there is nothing to {verb}")
    return Draft(kind, {"event": target.number, "kind": target.kind, **reason(why)})


def placed(record: Record, policy: Mapping[str, float], why: str) -> Draft:
    """The operator's statement where the device is; any place within the bounds is possible."""
    require_open(record)
    place = record.space.complete(policy)
    record.space.check_bounds(place)
    return Draft("placed", {"policy": place, **reason(why)})


def interrupted(record: Record, why: str) -> Draft:
    """A break begins."""
    require_open(record)
    if record.interrupted:
        raise ValueError(f"session {record.session} is interrupted already")
    return Draft("interrupted", reason(why))


def resumed(record: Record) -> Draft:
    """A break ends."""
    require_open(record)
    if not record.interrupted:
        raise ValueError(f"session {record.session} is not interrupted")
    return Draft("resumed", {})


def pause_is_break(record: Record, now: Moment) -> bool:
    """Whether the person took no part for over `break_minutes`, and nobody recorded a break."""
    limit = record.protocol.break_minutes
    if record.closed or record.interrupted or limit is None or _untouched(record):
        return False
    return now.is_after_break(record.active, limit)


def unnoticed_break(record: Record, now: Moment) -> Draft | None:
    """The break that nobody recorded, if there was one."""
    limit = record.protocol.break_minutes
    if limit is None or not pause_is_break(record, now):
        return None
    pause = now.since(record.active)
    if pause is not None and is_longer(pause, limit):
        return interrupted(record, f"nothing for {pause.total_seconds() / 60:.0f} min")
    if pause is None:
        return interrupted(record, "the computer was started anew")
    return interrupted(record, "the computer was started anew, or slept, or its clock was set")


def _untouched(record: Record) -> bool:
    """Whether nothing was shown and the device is at its start, where power off puts it too."""
    return not record.trials and all(place == record.space.start for place in record.positions)


def noted(record: Record, text: str) -> Draft:
    """A note."""
    require_open(record)
    return Draft("note", {"text": short_text(text, "note")})


def goal_set(record: Record, goal: object, why: str) -> Draft:
    """What the queries are for from the next trial on."""
    from sfihilo.settings import GOALS  # loaded by those who change it, not by every command

    require_open(record)
    if goal not in GOALS:
        raise ValueError(f"goal: expected {' or '.join(GOALS)}, got {goal!r}")
    return Draft("goal", {"goal": goal, **reason(why)})


def closed(record: Record, why: str) -> Draft:
    """The session ends for good."""
    require_open(record)
    return Draft("closed", reason(why))
