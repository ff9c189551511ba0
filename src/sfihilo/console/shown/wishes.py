"""Wishes of the participant, and stops: in the record, so that no restart loses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfihilo.experiment.log.event import Event

FEEL_AGAIN = "The participant asks to feel that again."
SEEN = "The operator has seen what the participant asked for."
STOPPED = "Stop. "  # how the reason of every stop begins
STOPPERS = ("device", "operator", "participant")  # the person's own stop matters most
STOP_OVER = frozenset({"resumed", "asked", "suggested", "started", "closed"})
# A wish is no longer open once the session went on.
GOES_ON = frozenset({"asked", "suggested", "started", "chosen", "aborted", "closed"})


def open_requests(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The wishes that nobody answered yet, the oldest first."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event.kind in GOES_ON:
            found = []
        elif event.kind == "note":
            if event.body["text"] == SEEN:
                found = []
            elif event.body["text"] == FEEL_AGAIN and by_participant(event):
                found.append({"at": event.wall, "text": "again", "number": event.number})
    return found


def open_stop(events: Sequence[Event]) -> dict[str, Any] | None:
    """The stop that the session is on hold for, until it goes on: when, by whom, why."""
    found: dict[str, Any] | None = None
    for event in events:
        text = str(event.body.get("why" if event.kind == "interrupted" else "text", ""))
        if event.kind in STOP_OVER:
            found = None
        elif event.kind in ("interrupted", "note") and text.startswith(STOPPED):
            found = stop_view(event.wall, event.actor or "", text.removeprefix(STOPPED))
    return found


def stop_view(at: str, actor: str, why: str, recorded: bool = True) -> dict[str, Any]:
    """A stop as pages show it."""
    return {"at": at, "by": stopper(actor), "why": why, "recorded": recorded}


def stopper(actor: str) -> str:
    """Who stops; what the console itself stops, it stops because of a device."""
    role = actor.partition(" ")[0]
    return role if role in STOPPERS else "device"


def matters_more(actor: str, stop: Mapping[str, Any]) -> bool:
    """Whether a stop by an actor has to be told although there is another one already."""
    return STOPPERS.index(stopper(actor)) > STOPPERS.index(stop["by"])


def by_participant(event: Event) -> bool:
    """Whether the participant's own page wrote an event."""
    return (event.actor or "").partition(" ")[0] == "participant"
