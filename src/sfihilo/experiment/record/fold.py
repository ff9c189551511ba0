"""From events to the record: one reducer per kind of event (the "evolve" half of a session).

`apply` is one step of the fold. An event that was undone stays in the log and is stepped over, but
never for safety: where the device may be follows from the whole history (see `places`). `decide`
has the other half: which events may be written now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.record.pauses import Moment
from sfihilo.experiment.record.places import TRIAL_MADE, corrects, places, taken_back
from sfihilo.experiment.record.protocol import Protocol, Veto
from sfihilo.experiment.record.questions import felt_between, not_comparable, not_last, unasked
from sfihilo.experiment.record.recalled import walks_ago
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Ending, Trial
from sfihilo.experiment.space.space import Space, function_name

ACTIONS = TRIAL_MADE | {
    "started", "measured", "chosen", "amended", "aborted", "vetoed", "pain", "lifted",
}  # fmt: skip
# What undo takes back; a withdrawn trial is one too. `placed` and `goal` are not: another place or
# goal corrects them.
WITH_THE_PERSON = TRIAL_MADE | {"started", "measured", "chosen", "resumed"}
# The pause since the last of these may have been a break. A note says nothing about that, and an
# old trial may be aborted or vetoed before the person comes.
WALKED = frozenset({"started", "measured", "chosen"})  # what says that a trial was walked
NONE_NAMED = "no comparison is asked: no trial that the person recalls has a usable outcome"
PAIN_HOLDS = "that it caused pain was undone; its neighbourhood is avoided until `lift`"


def fold(events: Sequence[Event], functions: Iterable[Callable[..., bool]] = ()) -> Record:
    """The record that a session's events tell."""
    if not events or events[0].kind != "opened":
        raise ValueError(
            f"expected a session that begins with 'opened', got "
            f"{events[0].kind if events else 'no event'!r}"
        )
    with _readable(events):
        record = opened(events[0], functions)
        undone = taken_back(events)
        for event in events[1:]:
            record = step_over(record, event) if event.number in undone else apply(record, event)
        return replace(record, positions=places(events, record.space.start))


def advance(record: Record, events: Sequence[Event], new: int) -> Record:
    """The record of all `events`, from the record of all but the `new` last ones."""
    fresh = events[len(events) - new :]
    if any(corrects(event) for event in fresh):
        return fold(events, record.space.functions)
    with _readable(fresh):
        for event in fresh:
            record = apply(record, event)
        return replace(record, positions=places(events, record.space.start))


@contextmanager
def _readable(events: Sequence[Event]) -> Iterator[None]:
    """Raise ValueError, whatever is wrong with the content of events that others wrote."""
    try:
        yield
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"session {events[0].session!r}: expected events of a session, got "
            f"{type(error).__name__} {error}"
        ) from error


def opened(event: Event, functions: Iterable[Callable[..., bool]] = ()) -> Record:
    """The record of a session that has just begun."""
    body = event.body
    given, stored = tuple(functions), list(body["space"]["functions"])
    names = [function_name(function) for function in given]
    if given and list(map(_own_name, names)) != list(map(_own_name, stored)):
        raise ValueError(
            f"functions: expected {', '.join(stored) or 'none'}, as the session was created with, "
            f"got {', '.join(names)}"
        )
    space = Space.from_dict(body["space"], given)
    return Record(
        session=event.session,
        participant=body["participant"],
        space=space,
        settings=body["settings"],
        protocol=Protocol(**body["protocol"]),
        seed=body["seed"],
        opened=event.wall,
        functions=tuple(stored),
        number=event.number,
        wall=event.wall,
        active=Moment.of(event),
        positions=(space.start,) if space.start else (),
    )


def _own_name(name: str) -> str:
    """A function's name without its module, which differs between a script and a notebook."""
    return re.split(r"[:.]", name)[-1]


def is_action(event: Event) -> bool:
    """Whether `undo` can take the event back."""
    return event.kind in ACTIONS or (event.kind == "withdrawn" and "trial" in event.body)


def undo_target(events: Sequence[Event]) -> Event | None:
    """The last action that is still in force."""
    gone = taken_back(events)
    for event in reversed(events):
        if is_action(event) and event.number not in gone:
            return event
    return None


def redo_target(events: Sequence[Event]) -> Event | None:
    """The last action that was undone, unless something else was done since."""
    undone: list[int] = []
    for event in events:
        if is_action(event):
            undone.clear()
        elif event.kind == "withdrawn":
            undone.append(event.body["event"])
        elif event.kind == "redone" and undone:
            undone.pop()
    return next((event for event in events if undone and event.number == undone[-1]), None)


def apply(record: Record, event: Event) -> Record:
    """The record after one more event."""
    try:
        reducer = REDUCERS[event.kind]
    except KeyError:
        raise ValueError(
            f"event {event.number} of session {record.session}: unknown kind {event.kind!r}; "
            "was it written by a newer version?"
        ) from None
    return _written(reducer(record, event), event)


def _written(record: Record, event: Event) -> Record:
    active = Moment.of(event) if event.kind in WITH_THE_PERSON else record.active
    return replace(record, number=event.number, wall=event.wall, active=active)


def step_over(record: Record, event: Event) -> Record:
    """The record after an event that was undone: the person may have walked all the same.

    What caused pain is avoided until it is lifted, also if the event that said so was undone.
    """
    if event.kind in TRIAL_MADE:
        record = _made(record, event)
        record = _changed(record, len(record.trials), ending="undone")
    if event.kind in WALKED:
        record = _changed(record, event.body["trial"], walk_undone=True)
    if event.kind == "chosen":
        record = _changed(record, event.body["trial"], answer_undone=True)
    if event.kind in ("aborted", "vetoed", "pain") and event.body.get("pain"):
        number = event.body["trial"]
        warnings = record.trial(number).warnings
        record = _avoided(_changed(record, number, warnings=(*warnings, PAIN_HOLDS)), event)
    return _written(record, event)


def _changed(record: Record, number: int, **changes: Any) -> Record:
    return record.with_trial(replace(record.trial(number), **changes))


def _made(record: Record, event: Event) -> Record:
    body = event.body
    number = len(record.trials) + 1
    if body["trial"] != number:
        raise ValueError(
            f"event {event.number}: expected trial {number} to be made, got {body['trial']!r}"
        )
    trial = Trial(
        session=record.session,
        number=number,
        round=body["round"],
        policy={name: body["policy"][name] for name in record.space.policy},
        unit=tuple(body["unit"]),
        source=body["source"],
        compare_with=body["compare_with"],
        asks_choice=body["asks_choice"],
        model=body["model"],
        repeats=body["repeats"],
        warnings=tuple(body.get("warnings", ())),
        goal=record.goal,
    )
    return replace(record, trials=(*record.trials, trial))


def _started(record: Record, event: Event) -> Record:
    """Begin a walk; it is not compared if the person may have walked a later trial before it."""
    number = event.body["trial"]
    left_open = None if record.left_open == number else record.left_open
    record = replace(_changed(record, number, started=True), left_open=left_open)
    return not_last(record, record.trial(number))


def _measured(record: Record, event: Event) -> Record:
    body, number = event.body, event.body["trial"]
    record = _changed(
        record,
        number,
        measured=True,
        **_outcome(record, body),
    )
    record = _named(record, body)
    walked_since = record.trial(number).known_outcome and record.left_open != number
    return replace(record, reanchor_due=record.reanchor_due and not walked_since)


def _outcome(record: Record, body: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome of an event with its warnings; those about an earlier outcome no longer hold."""
    trial, new = record.trial(body["trial"]), tuple(body.get("warnings", ()))
    others = [warning for warning in trial.warnings if warning not in trial.outcome_warnings]
    return {
        "outcome": _ordered(record, body["outcome"]),
        "warnings": (*others, *new),
        "outcome_warnings": new,
    }


def _named(record: Record, body: Mapping[str, Any]) -> Record:
    """Store the trial to compare with, if it was named with the outcome."""
    if "compare_with" not in body:
        return record
    number, named = body["trial"], body["compare_with"]
    trial = record.trial(number)
    if named is None:
        return _changed(record, number, asks_choice=False, warnings=(*trial.warnings, NONE_NAMED))
    if named not in range(1, number):
        raise ValueError(f"compare_with: expected a trial before {number}, got {named!r}")
    model = {**trial.model, "chance_new": body["chance_new"]}
    ago = walks_ago(record, number, named)
    return _changed(record, number, compare_with=named, ago=ago, model=model)


def _chosen(record: Record, event: Event) -> Record:
    body = event.body
    return _changed(record, body["trial"], **_answer(body))


def _answer(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"answered": True, "choice": body["choice"], "strength": body.get("strength")}


def _amended(record: Record, event: Event) -> Record:
    body = event.body
    changes: dict[str, Any] = {}
    if "outcome" in body:
        changes |= {"measured": True, **_outcome(record, body)}
    if "choice" in body:
        changes |= _answer(body)
    return not_comparable(_named(_changed(record, body["trial"], **changes), body))


def _aborted(record: Record, event: Event) -> Record:
    return _ended(record, event, "aborted", avoid=event.body.get("pain", False))


def _vetoed(record: Record, event: Event) -> Record:
    return _ended(record, event, "vetoed", avoid=True)


def _withdrawn(record: Record, event: Event) -> Record:
    """Take a trial's data out; or an event, which may open a trial again that was not the last.

    An answer that was given before, about a pair that is still known, may be typed again; but not
    if the outcome was taken back as well: then the trial may be walked again.
    """
    if not corrects(event):
        return not_comparable(_ended(record, event, "withdrawn", avoid=False))
    current = record.current
    if current is None or (current.answer_undone and current.measured and not current.awaits_name):
        return record
    return not_last(record, current)


def _ended(record: Record, event: Event, ending: Ending, *, avoid: bool) -> Record:
    """End a trial early; `avoid` keeps proposals away from its policy."""
    body = event.body
    record = _changed(record, body["trial"], ending=ending, why=body["why"])
    return _avoided(record, event) if avoid else record


def _avoided(record: Record, event: Event) -> Record:
    """Keep proposals away from the policy of the event's trial."""
    trial, pain = record.trial(event.body["trial"]), event.body.get("pain", False)
    record = record.with_trial(replace(trial, hurt=trial.hurt or pain))
    veto = Veto(trial.round, trial.unit, trial.number, event.body["why"], pain=pain)
    record = replace(record, vetoes=(*record.vetoes, veto))
    newly_felt = pain and not trial.may_have_been_walked
    return felt_between(record, trial.number) if newly_felt else record


def _lifted(record: Record, event: Event) -> Record:
    return replace(
        record,
        vetoes=tuple(
            replace(veto, lifted=True, lifted_why=event.body["why"])
            if veto.trial == event.body["trial"]
            else veto
            for veto in record.vetoes
        ),
    )


def _resumed(record: Record, event: Event) -> Record:
    current = record.current
    left_open = current.number if current is not None and not current.measured else None
    record = replace(
        record, interrupted=False, left_open=left_open, recalled_from=len(record.trials) + 1
    )
    if not record.protocol.reanchor:
        return _not_recalled(record, current)
    if current is not None and not current.answered:
        # It cannot be compared any more; walked after the break, it is the new anchor itself.
        record = _changed(record, current.number, asks_choice=False)
    # Any walk of before, also one whose outcome comes later, is forgotten.
    return replace(record, reanchor_due=record.last_walked is not None)


def _not_recalled(record: Record, current: Trial | None) -> Record:
    """Ask for no comparison over a break with another walk than the last (`nameable`)."""
    if current is None or current.answered or not current.asks_choice or current.ago in (None, 1):
        return record
    warning = f"no comparison is asked: trial {current.compare_with} was walked before the break"
    return unasked(record, current, warning)


def _note(record: Record, event: Event) -> Record:
    return replace(record, notes=(*record.notes, (event.wall, event.actor, event.body["text"])))


def _goal(record: Record, event: Event) -> Record:
    return replace(record, goal_set=event.body["goal"])


def _ordered(
    record: Record, outcome: Mapping[str, float | None] | None
) -> dict[str, float | None] | None:
    return None if outcome is None else {name: outcome[name] for name in record.space.outcomes}


REDUCERS: dict[str, Callable[[Record, Event], Record]] = {
    "asked": _made,
    "suggested": _made,
    "started": _started,
    "measured": _measured,
    "chosen": _chosen,
    "amended": _amended,
    "aborted": _aborted,
    "vetoed": _vetoed,
    "pain": _avoided,
    "withdrawn": _withdrawn,
    "lifted": _lifted,
    "placed": lambda record, event: record,
    "redone": lambda record, event: record,
    "refused": lambda record, event: replace(record, refused=record.refused + 1),
    "interrupted": lambda record, event: replace(record, interrupted=True),
    "resumed": _resumed,
    "note": _note,
    "goal": _goal,
    "closed": lambda record, event: replace(record, closed=True),
}
