"""What the participant asks of the operator: stored as notes, so that no restart loses a wish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfihilo.experiment.log.event import Event

FEEL_AGAIN = "The participant asks to feel that again."
SEEN = "The operator has seen what the participant asked for."
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


def by_participant(event: Event) -> bool:
    """Whether the participant's own page wrote an event."""
    return (event.actor or "").partition(" ")[0] == "participant"
