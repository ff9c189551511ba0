"""The state of a session: a fold of its events, and nothing else.

`apply` is one step of the fold. An event that was taken back (undo) stays in the log and is stepped
over, but never for safety: a policy that may have reached the device counts as a place where the
device may be, whatever was taken back later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.session.trial import Trial
from sfihilo.experiment.space.parameter import finite_number
from sfihilo.experiment.space.space import Policy, Space

ACTIONS = frozenset(
    {"asked", "suggested", "started", "measured", "chosen", "amended", "aborted", "vetoed"}
)  # what undo takes back; a withdrawn trial is one too
TRIAL_MADE = frozenset({"asked", "suggested"})


@dataclass(frozen=True)
class Protocol:
    """How a session is conducted.

    After a break the anchor is walked again (`reanchor`), since nobody remembers yesterday's walk;
    a pause of more than `break_minutes` counts as one (None: only `interrupt` does). `drift`
    expects the person to adapt. A vetoed policy keeps `veto_radius` of the reachable range around
    it free of proposals for `veto_rounds` rounds.
    """

    reanchor: bool = True
    break_minutes: float | None = 60.0
    drift: bool = False
    veto_radius: float = 0.15
    veto_rounds: int = 10

    def __post_init__(self) -> None:
        for name in ("reanchor", "drift"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if not 0 < finite_number(self.veto_radius, "veto_radius") < 0.5:
            raise ValueError(f"veto_radius: expected between 0 and 0.5, got {self.veto_radius}")
        if finite_number(self.veto_rounds, "veto_rounds") < 0:
            raise ValueError(f"veto_rounds: expected 0 or more, got {self.veto_rounds}")
        minutes = self.break_minutes
        if minutes is not None and not finite_number(minutes, "break_minutes") > 0:
            raise ValueError(f"break_minutes: expected above 0, got {minutes}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Veto:
    """A policy (unit) that the operator did not want executed, and when."""

    round: int
    unit: tuple[float, ...]


@dataclass(frozen=True)
class Record:
    """A session as its log tells it: who, in which space, its trials, where the device may be."""

    session: str
    participant: str
    space: Space
    settings: Mapping[str, Any]
    protocol: Protocol
    seed: int
    opened: str
    functions: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    positions: tuple[Policy, ...] = ()
    vetoes: tuple[Veto, ...] = ()
    notes: tuple[tuple[str, str | None, str], ...] = ()
    reanchor_due: bool = False
    interrupted: bool = False
    closed: bool = False
    refused: int = 0
    number: int = 0
    wall: str = ""

    @property
    def current(self) -> Trial | None:
        """The trial that is not over; there is at most one."""
        newest = self.newest
        return None if newest is None or newest.ended else newest

    @property
    def newest(self) -> Trial | None:
        """The last trial that was not undone; an undone one may stand behind it."""
        return next((trial for trial in reversed(self.trials) if trial.ending != "undone"), None)

    @property
    def anchor_trial(self) -> Trial | None:
        """The last trial whose whole outcome is known: what a new one is compared with."""
        for trial in reversed(self.trials):
            if trial.ended and trial.whole_outcome is not None:
                return trial
        return None

    def trial(self, number: int) -> Trial:
        """A trial by its number."""
        if not 1 <= number <= len(self.trials):
            raise ValueError(
                f"trial: expected 1 to {len(self.trials)} in session {self.session}, got {number}"
            )
        return self.trials[number - 1]

    @property
    def status(self) -> str:
        """One word for tables."""
        if self.closed:
            return "closed"
        return "interrupted" if self.interrupted else "open"


def fold(events: Sequence[Event], functions: Iterable[Callable[..., bool]] = ()) -> Record:
    """The record that a session's events tell."""
    if not events or events[0].kind != "opened":
        raise ValueError(
            f"expected a session that begins with 'opened', got "
            f"{events[0].kind if events else 'no event'!r}"
        )
    record = opened(events[0], functions)
    gone = taken_back(events)
    for event in events[1:]:
        record = step_over(record, event) if event.number in gone else apply(record, event)
    return record


def opened(event: Event, functions: Iterable[Callable[..., bool]] = ()) -> Record:
    """The record of a session that has just begun."""
    body = event.body
    space = Space.from_dict(body["space"], functions)
    return Record(
        session=event.session,
        participant=body["participant"],
        space=space,
        settings=body["settings"],
        protocol=Protocol(**body["protocol"]),
        seed=body["seed"],
        opened=event.wall,
        functions=tuple(body["space"]["functions"]),
        number=event.number,
        wall=event.wall,
        positions=(space.start,) if space.start else (),
    )


def corrects(event: Event) -> bool:
    """Whether the event takes another one back or restores it, so that all is folded anew."""
    return event.kind == "redone" or (event.kind == "withdrawn" and "event" in event.body)


def is_action(event: Event) -> bool:
    """Whether `undo` can take the event back."""
    return event.kind in ACTIONS or (event.kind == "withdrawn" and "trial" in event.body)


def taken_back(events: Iterable[Event]) -> frozenset[int]:
    """Numbers of the events that were undone and not redone."""
    gone: set[int] = set()
    for event in events:
        if event.kind == "withdrawn" and "event" in event.body:
            gone.add(event.body["event"])
        elif event.kind == "redone":
            gone.discard(event.body["event"])
    return frozenset(gone)


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
    return replace(reducer(record, event), number=event.number, wall=event.wall)


def step_over(record: Record, event: Event) -> Record:
    """The record after an event that was taken back: only what the device may have done counts."""
    if event.kind in TRIAL_MADE:
        record = _made(record, event)
        record = _changed(record, len(record.trials), ending="undone")
    elif event.kind in ("started", "measured", "chosen"):
        record = _maybe_at(record, event.body["trial"])
    return replace(record, number=event.number, wall=event.wall)


def _changed(record: Record, number: int, **changes: Any) -> Record:
    trials = list(record.trials)
    trials[number - 1] = replace(trials[number - 1], **changes)
    return replace(record, trials=tuple(trials))


def _at(record: Record, number: int) -> Record:
    """The trial's policy was executed: an event speaks of its walk. Only the newest one moves."""
    if number < len(record.trials):
        return record
    return replace(record, positions=(dict(record.trials[number - 1].policy),))


def _maybe_at(record: Record, number: int) -> Record:
    policy = dict(record.trials[number - 1].policy)
    if policy in record.positions:
        return record
    return replace(record, positions=(*record.positions, policy))


def _made(record: Record, event: Event) -> Record:
    body = event.body
    trial = Trial(
        session=record.session,
        number=len(record.trials) + 1,
        round=body["round"],
        policy={name: body["policy"][name] for name in record.space.policy},
        unit=tuple(body["unit"]),
        source=body["source"],
        compare_with=body["compare_with"],
        asks_choice=body["asks_choice"],
        model=body["model"],
        repeats=body["repeats"],
    )
    return replace(record, trials=(*record.trials, trial))


def _started(record: Record, event: Event) -> Record:
    number = event.body["trial"]
    return _at(_changed(record, number, started=True), number)


def _measured(record: Record, event: Event) -> Record:
    body, number = event.body, event.body["trial"]
    record = _changed(
        record,
        number,
        measured=True,
        outcome=_ordered(record, body["outcome"]),
        warnings=tuple(body["warnings"]),
    )
    due = record.reanchor_due and record.trial(number).whole_outcome is None
    return _at(replace(record, reanchor_due=due), number)


def _chosen(record: Record, event: Event) -> Record:
    body, number = event.body, event.body["trial"]
    return _at(_changed(record, number, answered=True, choice=body["choice"]), number)


def _amended(record: Record, event: Event) -> Record:
    body = event.body
    changes: dict[str, Any] = {}
    if "outcome" in body:
        changes |= {"measured": True, "outcome": _ordered(record, body["outcome"])}
    if "choice" in body:
        changes |= {"answered": True, "choice": body["choice"]}
    return _changed(record, body["trial"], **changes)


def _aborted(record: Record, event: Event) -> Record:
    number = event.body["trial"]
    record = _changed(record, number, ending="aborted")
    return record if record.trial(number).started else _maybe_at(record, number)


def _vetoed(record: Record, event: Event) -> Record:
    number = event.body["trial"]
    trial = record.trial(number)
    record = _changed(record, number, ending="vetoed")
    return replace(record, vetoes=(*record.vetoes, Veto(trial.round, trial.unit)))


def _withdrawn(record: Record, event: Event) -> Record:
    return _changed(record, event.body["trial"], ending="withdrawn")


def _resumed(record: Record, event: Event) -> Record:
    record = replace(record, interrupted=False)
    if not record.protocol.reanchor:
        return record
    current = record.current
    if current is not None and not current.answered:
        # It cannot be compared any more; measured after the break, it is the new anchor itself.
        record = _changed(record, current.number, asks_choice=False)
    return replace(record, reanchor_due=record.anchor_trial is not None)


def _note(record: Record, event: Event) -> Record:
    return replace(record, notes=(*record.notes, (event.wall, event.actor, event.body["text"])))


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
    "withdrawn": lambda record, event: record if corrects(event) else _withdrawn(record, event),
    "redone": lambda record, event: record,
    "refused": lambda record, event: replace(record, refused=record.refused + 1),
    "interrupted": lambda record, event: replace(record, interrupted=True),
    "resumed": _resumed,
    "note": _note,
    "closed": lambda record, event: replace(record, closed=True),
}
