"""What the pages show, as JSON: a session for the operator, and for the participant.

Everything here is arranged from the record; nothing is computed that the library does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sfihilo.console.shown.wishes import open_requests, open_stop
from sfihilo.experiment import Record, Trial, UnsafePolicyError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output.digits import physical, physical_unit, policy_words, with_unit
from sfihilo.experiment.output.tables import trials_table
from sfihilo.experiment.record.answers import all_answers, strength_word
from sfihilo.experiment.record.fold import redo_target, undo_target
from sfihilo.experiment.record.kept import last_policy
from sfihilo.experiment.session.commit import now
from sfihilo.experiment.session.decide import pause_is_break
from sfihilo.experiment.session.requirements import require_reachable
from sfihilo.experiment.session.rounds import used_answers

GOALS = ["understand", "best"]
TIMES = ("asked_at", "started_at", "measured_at", "answered_at")


def session_row(record: Record) -> dict[str, Any]:
    """One line of the list of sessions."""
    current = record.current
    return {
        "session": record.session,
        "participant": record.participant,
        "status": record.status,
        "trials": len(record.trials),
        "comparisons": len(used_answers(record)),
        "goal": record.goal,
        "opened": record.opened,
        "active": record.active.wall,
        "last": record.number,
        "trial_status": None if current is None else current.status,
    }


def operator_view(record: Record, events: Sequence[Event]) -> dict[str, Any]:
    """A session as the operator sees it."""
    rows = trial_rows(record, events)
    current = record.current
    return {
        **session_row(record),
        "hash": events[-1].hash,
        "now": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "goals": GOALS,
        "grades": record.grades,
        "answers": answers(record),
        "seed": record.seed,
        **record.protocol.to_dict(),
        "space": record.space.to_dict(),
        "next": next_step(record),
        "trial": None if current is None else open_trial(record, current, rows),
        "trials": rows,
        "places": [
            {
                "policy": dict(place),
                "texts": {
                    name: physical(value, record.space.policy[name])
                    for name, value in place.items()
                },
                "words": place_words(record, place),
            }
            for place in record.positions
        ],
        "vetoes": [
            {"trial": veto.trial, "why": veto.why, "pain": veto.pain, "lifted": veto.lifted}
            for veto in record.vetoes
        ],
        "notes": [{"at": at, "actor": actor, "text": text} for at, actor, text in record.notes],
        "requests": open_requests(events),
        "stopped": open_stop(events),
        "undo": _target(undo_target(events)),
        "redo": _target(redo_target(events)),
        "can": allowed(record, events),
        "refused": record.refused,
        "functions": list(record.functions),
    }


def trial_rows(record: Record, events: Sequence[Event]) -> list[dict[str, Any]]:
    """All trials, the oldest first, with their times and words."""
    used = used_answers(record)
    table = trials_table(record, events).rows
    return [
        {
            "number": trial.number,
            "status": trial.status,
            "source": trial.source,
            "goal": trial.goal,
            "policy": dict(trial.policy),
            "words": policy_words(record.space, trial.policy),
            "outcome": None if trial.outcome is None else dict(trial.outcome),
            "outcome_words": outcome_words(record, trial),
            "outcome_texts": {
                name: physical((trial.outcome or {}).get(name), of)
                for name, of in record.space.outcomes.items()
            },
            "asks_choice": trial.asks_choice,
            "answered": trial.answered,
            "choice": trial.choice,
            "strength": trial.strength,
            "answer_word": strength_word(trial.strength, record.grades),
            "compare_with": trial.compare_with,
            "repeats": trial.repeats,
            "learned": trial.number in used,
            "warnings": list(trial.warnings),
            "why": trial.why,
            "pain": row["pain"],
            **{name: row[name] for name in TIMES},
        }
        for trial, row in zip(record.trials, table, strict=True)
    ]


def open_trial(record: Record, trial: Trial, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The trial that is not over: its setting in large, the change, what was predicted."""
    before = places_before(record, trial)
    model = trial.model
    return {
        **rows[trial.number - 1],
        "policy": [
            {
                "name": name,
                "unit": knob.unit,
                "value": trial.policy[name],
                "text": physical_unit(trial.policy[name], knob),
                "fixed": knob.fixed is not None,
                **_change(record, name, trial.policy[name], {p[name] for p in before if name in p}),
            }
            for name, knob in record.space.policy.items()
        ],
        "outcome": None
        if not trial.measured
        else [
            {"name": name, "unit": of.unit, "value": value, "text": physical_unit(value, of)}
            for name, of in record.space.outcomes.items()
            for value in [(trial.outcome or {}).get(name)]
        ],
        "predicted": None
        if model.get("outcome") is None
        else [
            {
                "name": name,
                "unit": of.unit,
                "value": model["outcome"][name],
                "deviation": model["deviation"][name],
                "text": physical_unit(model["outcome"][name], of),
            }
            for name, of in record.space.outcomes.items()
        ],
        "probability_new": model.get("chance_new"),
        "unsafe": None if trial.measured else unsafe(record, trial),
    }


def unsafe(record: Record, trial: Trial) -> str | None:
    """Why the settings of an open trial must not be applied now, if so."""
    try:
        require_reachable(record, trial)
    except UnsafePolicyError as error:
        return str(error)
    return None


def places_before(record: Record, trial: Trial) -> Sequence[Mapping[str, float]]:
    """Where the device may be before the open trial is applied; once it was, the last setting."""
    if not trial.started and not trial.measured and not trial.answered:
        places = [place for place in record.positions if place != trial.policy]
        if places or record.positions:
            return places or record.positions
    return [last_policy(record, before=trial.number)[1]]


def _change(record: Record, name: str, value: float, places: set[float]) -> dict[str, Any]:
    """How a setting differs from where it is now; `unsure` if that may be several values."""
    knob = record.space.policy[name]
    unsure = len({physical(place, knob) for place in places}) > 1
    if unsure or not places:
        nothing = {"before": None, "before_text": None, "change": None, "change_text": None}
        return {**nothing, "unsure": unsure}
    before = min(places)
    change = value - before
    text = physical(abs(change), knob)
    sign = "+" if change > 0 else "−"
    shown = "0" if text == "0" else f"{sign}{with_unit(text, knob)}"
    return {
        "before": before,
        "before_text": physical_unit(before, knob),
        "change": change,
        "change_text": shown,
        "unsure": False,
    }


def answers(record: Record) -> list[dict[str, Any]]:
    """Every answer that can be given."""
    return [
        {"choice": choice, "strength": strength, "word": strength_word(strength, record.grades)}
        for choice, strength in all_answers(record.grades)
    ]


def outcome_words(record: Record, trial: Trial) -> str:
    """What was measured, in one line."""
    if not trial.measured:
        return ""
    measured = trial.outcome or {}
    return ", ".join(
        f"{name} {physical_unit(measured.get(name), of)}"
        for name, of in record.space.outcomes.items()
    )


def place_words(record: Record, place: Mapping[str, float]) -> str:
    """A place of the device in one line; the start of a session may name only some settings."""
    return ", ".join(
        f"{name} {physical_unit(place[name], record.space.policy[name])}"
        for name in record.space.free
        if name in place
    )


def next_step(record: Record) -> str:
    """What the operator does next."""
    current = record.current
    if record.closed:
        return "closed"
    if record.interrupted:
        return "resume"
    if current is None:
        return "ask"
    walking = current.started and not current.measured
    if not walking and pause_is_break(record, now()):
        return "pause"  # a page left open over night says nothing about what may be set now
    if current.measured:
        return "choose"
    return "measure" if walking else "start"


def allowed(record: Record, events: Sequence[Event]) -> dict[str, bool]:
    """Which actions the record allows now, as far as its state tells."""
    usable = not record.closed and len(record.functions) == len(record.space.functions)
    going = usable and not record.interrupted
    current = record.current
    none_open = going and current is None
    fresh = current is not None and not (current.started or current.measured or current.answered)
    asks = current is not None and current.asks_choice and not current.answered
    return {
        "ask": none_open,
        "suggest": none_open,
        "repeat": none_open and bool(record.trials),
        "start": going and current is not None and not current.started and not current.measured,
        "measure": going and current is not None and not current.measured,
        "choose": going and asks,
        "abort": usable and current is not None,
        "veto": usable and fresh,
        "lift": usable and bool(record.painful),
        "amend": usable and bool(record.trials),
        "withdraw": usable and bool(record.trials),
        "undo": usable and undo_target(events) is not None,
        "redo": usable and redo_target(events) is not None,
        "place": usable,
        "interrupt": going,
        "resume": usable and record.interrupted,
        "note": usable,
        "goal": usable,
        "close": usable,
    }


def _target(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {"number": event.number, "kind": event.kind, "trial": event.body.get("trial")}


def participant_view(record: Record, events: Sequence[Event]) -> dict[str, Any]:
    """A session as the participant sees it: no names, no history, no measured numbers."""
    current = record.current
    asked = (
        current is not None
        and current.asks_choice
        and not current.answered
        and current.measured
        and bool(current.known_outcome)
    )
    if record.closed:
        state = "over"
    elif next_step(record) in ("resume", "pause"):
        state = "paused"
    elif asked:
        state = "question"
    elif current is not None and current.started and not current.measured:
        state = "walk"
    else:
        newest = record.newest
        state = "answered" if current is None and newest and newest.answered else "wait"
    return {
        "state": state,
        "last": record.number,
        "trial": None if current is None else current.number,
        "grades": record.grades,
        "answers": answers(record) if state == "question" else [],
        "requested": bool(open_requests(events)),
        "stopped": open_stop(events) is not None,
    }
