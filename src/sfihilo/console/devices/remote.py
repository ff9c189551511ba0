"""Programs that are devices over HTTP: since when each serves a session, when it was heard."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sfihilo.console.devices.resting import must_rest
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.record.places import corrects, taken_back
from sfihilo.experiment.record.record import Record

ENDS_A_WALK = frozenset({"aborted", "vetoed", "interrupted", "closed", "redone"})


@dataclass(frozen=True)
class Remote:
    """The program of a session; `joined` and `again` are numbers of events.

    It joined after the event `joined`: a walk that had begun by then is not its own. The operator
    let it apply the open walk after the event `again`, 0 if never. `beats`: it has sent a
    heartbeat, so that silence is a fault. `heard`: seconds of the monotonic clock.
    """

    joined: int
    again: int = 0
    beats: bool = False
    heard: float = field(default_factory=time.monotonic)

    @property
    def quiet(self) -> float:
        """Seconds since the last request."""
        return time.monotonic() - self.heard

    def heard_now(self, beats: bool) -> Remote:
        """The same program after one more request."""
        return replace(self, beats=self.beats or beats, heard=time.monotonic())

    def stored(self) -> dict[str, Any]:
        """What is kept over a restart of the server."""
        return {name: value for name, value in asdict(self).items() if name != "heard"}


def restored(fields: Mapping[str, Any]) -> Remote:
    """The program that `stored` kept; from now on its silence counts."""
    return Remote(int(fields["joined"]), int(fields["again"]), bool(fields["beats"]))


def told(record: Record, events: Sequence[Event], remote: Remote) -> tuple[bool, bool]:
    """Whether a program is to apply the open trial, and whether it must be at rest.

    A walk is its own if it has served the session since before the start. A walk that was stopped,
    also by a break or by undo, is applied again only when the operator says so: whatever opens it
    again, the person had it stopped. In the middle of a walk that began without it, a program is
    told nothing.
    """
    current = record.current
    rest = must_rest(record)
    if current is None or not current.started or current.measured:
        return False, rest
    undone = taken_back(events)
    started = max(
        event.number
        for event in events
        if event.kind == "started"
        and event.body["trial"] == current.number
        and event.number not in undone
    )
    allowed = max(started, remote.again)
    rest = rest or any(_ends_a_walk(each, started) for each in events if each.number > allowed)
    own = started > remote.joined or remote.again >= started
    return own and not rest, rest


def _ends_a_walk(event: Event, started: int) -> bool:
    if event.kind == "withdrawn":
        return not corrects(event) or event.body["event"] == started
    return event.kind in ENDS_A_WALK
