"""The hash chain that ties each event to all events before it.

Every event carries the SHA-256 of its own content *and* of the event before it, so that a changed,
removed, inserted or reordered event breaks the chain at a position that `check` names. The chain
has no key: whoever can write the file can compute a new, valid chain. Only a hash that was noted
elsewhere (`Log.head`) shows that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sfihilo.experiment.log.event import GENESIS, Event, canonical, is_intact


@dataclass(frozen=True)
class Verdict:
    """The result of a check; `first_bad` is the seq of the first bad event, if an event is bad."""

    ok: bool
    count: int
    first_bad: int | None
    reason: str


def check(events: Iterable[Event]) -> Verdict:
    """Verify a sequence of events from the first one on, such as an exported copy of the log."""
    chain = Chain()
    for event in events:
        try:
            body = canonical(event.body)
        except (ValueError, RecursionError) as error:
            return Verdict(False, chain.count, chain.count + 1, str(error))
        reason = chain.follow(event.to_dict(), body)
        if reason:
            return Verdict(False, chain.count, chain.count + 1, reason)
    return Verdict(True, chain.count, None, "intact")


class Chain:
    """Incremental verifier: how many events were valid so far, and what the next must contain."""

    def __init__(self) -> None:
        self.count = 0
        self.hash = GENESIS
        self.numbers: dict[str, int] = {}

    def follow(self, fields: Mapping[str, Any], body: object) -> str | None:
        """Accept the next event, or return the reason why it does not continue the chain."""
        seq, session = self.count + 1, fields["session"]
        if fields["seq"] != seq:
            return f"event {seq} is missing; event {fields['seq']!r} is in its place"
        if fields["previous"] != self.hash:
            return f"event {seq} does not continue the chain: it names another event before it"
        number = self.numbers.get(session, 0) + 1
        if fields["number"] != number:
            return f"event {seq} is number {fields['number']!r} of its session, expected {number}"
        if not is_intact(fields, body):
            return f"event {seq} was changed: its content does not give its hash"
        self.count, self.hash = seq, fields["hash"]
        self.numbers[session] = number
        return None
