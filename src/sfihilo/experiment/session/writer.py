"""The one hand that writes a session's events, and the only way out for a policy.

Each method reads the newest record, checks, writes, and returns; `emit` passes every policy through
the safety layer before it is stored, and stores it before anybody sees it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from sfihilo.experiment.log.errors import KeyConflictError
from sfihilo.experiment.log.event import Event, canonical
from sfihilo.experiment.session.border import LONGEST_TEXT, short_text
from sfihilo.experiment.session.journal import Journal
from sfihilo.experiment.session.proposals import Learning, Proposal, proposal
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.trial import Source, Trial
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.measurement import (
    BadMeasurementError,
    Measurement,
    accepted,
    described,
)


class Request(NamedTuple):
    """Under which key, and by whom, something is asked of the session."""

    key: str | None
    actor: str | None


def refusal_key(key: str | None, body: Mapping[str, Any], actor: str | None) -> str | None:
    """A key of the refusal's own: the request's key stays free for the value that is accepted."""
    if key is None:
        return None
    content = canonical({"key": key, "body": body, "actor": actor})
    return f"refused-{hashlib.sha256(content.encode()).hexdigest()}"


@dataclass(frozen=True)
class Writer:
    """A session's journal and learner, and who writes unless a call says otherwise."""

    journal: Journal
    learning: Learning
    actor: str | None

    def act(
        self,
        kind: str,
        body: Mapping[str, Any],
        check: Callable[[Trial], None],
        key: str | None,
        actor: str | None,
    ) -> Trial:
        """One event about one trial, if `check` finds nothing against it."""
        record = self.journal.refresh()
        trial = record.trial(body["trial"])
        if self.journal.find(key) is None:  # a retry is compared with what is stored, not checked
            self.require_open()
            check(trial)
        self.journal.write(kind, body, key, actor or self.actor)
        return self.journal.record.trial(trial.number)

    def correct(
        self,
        kind: str,
        target: Callable[[list[Event]], Event | None],
        verb: str,
        why: str,
        key: str | None,
        actor: str | None,
    ) -> Event:
        """Take back or restore the event that `target` finds."""
        self.journal.refresh()
        stored = self.journal.find(key)
        if stored is None:
            self.require_open()
            event = target(self.journal.events)
            if event is None:
                raise ValueError(f"{verb}: there is nothing to {verb}")
        elif stored.kind != kind or "event" not in stored.body:
            raise KeyConflictError(f"key {key!r} already stands for a {stored.kind!r} event")
        else:
            event = self.journal.events[stored.body["event"] - 1]
        body = {"event": event.number, "kind": event.kind, "why": short_text(why)}
        self.journal.write(kind, body, key, actor or self.actor)
        return event

    def mark(
        self, kind: str, body: Mapping[str, Any], actor: str | None, key: str | None = None
    ) -> Record:
        """One event about the session as a whole."""
        record = self.journal.refresh()
        if self.journal.find(key) is None:  # a retry is compared with what is stored, not checked
            self.require_open()
            if kind == "interrupted" and record.interrupted:
                raise ValueError(f"session {self.journal.session} is interrupted already")
            if kind == "resumed" and not record.interrupted:
                raise ValueError(f"session {self.journal.session} is not interrupted")
        self.journal.write(kind, body, key, actor or self.actor)
        return self.journal.record

    def emit(self, kind: str, made: Proposal, source: Source, **more: Any) -> Trial:
        """The only way out for a policy: past the safety layer, into the log, to the caller."""
        record = self.journal.record
        try:
            safety.check(record.space, made.policy, record.positions)
        except safety.UnsafePolicyError as error:
            self.refuse("policy", None, made.policy, error, Request(more["key"], more["actor"]))
            raise
        anchor = record.anchor_trial
        number = len(record.trials) + 1
        body = {
            "trial": number,
            "round": made.round,
            "policy": dict(made.policy),
            "unit": list(made.unit),
            "source": source,
            "compare_with": None if anchor is None else anchor.number,
            "asks_choice": anchor is not None and not record.reanchor_due,
            "anchor": None if made.anchor is None else list(made.anchor),
            "repeats": more.get("repeats"),
            "model": dict(made.model),
            "why": short_text(more.get("why", "")),
        }
        self.journal.write(kind, body, more["key"], more["actor"] or self.actor)
        return self.journal.record.trial(number)

    def again(self, record: Record, earlier: Trial) -> Proposal:
        """The policy of an earlier trial once more, if it is safe from where the device is."""
        safety.check(record.space, dict(earlier.policy), record.positions)
        made = proposal(record, self.learning.state(record), np.array(earlier.unit))
        return replace(made, policy=dict(earlier.policy))

    def anchor_again(self, record: Record) -> Proposal | None:
        """The anchor's policy once more; None when it is too far away."""
        anchor = record.anchor_trial
        try:
            return None if anchor is None else self.again(record, anchor)
        except safety.UnsafePolicyError:  # more than one step away: any safe policy will do
            return None

    def believed(self, number: int, outcome: object, request: Request) -> Measurement:
        """The measurement, or a record of why it was refused."""
        record = self.journal.refresh()
        record.trial(number)
        try:
            return accepted(record.space, outcome)
        except BadMeasurementError as error:
            self.refuse("measurement", number, outcome, error, request)
            raise

    def refuse(
        self, what: str, number: int | None, given: object, error: Exception, request: Request
    ) -> None:
        """Record what was not accepted, in words; a retry of it is not recorded again."""
        self.require_open()
        if (stored := self.journal.find(request.key)) is not None:
            raise KeyConflictError(
                f"key {request.key!r} already stands for a {stored.kind!r} event"
            )
        why = str(error)[:LONGEST_TEXT]
        body = {"what": what, "trial": number, "given": described(given), "why": why}
        actor = request.actor or self.actor
        self.journal.write("refused", body, refusal_key(request.key, body, actor), actor)

    def after_break(self, actor: str | None) -> Record:
        """Notice a break that nobody recorded, and end the one that there is."""
        record = self.journal.record
        pause = record.protocol.break_minutes
        if not record.interrupted and pause is not None and record.trials:
            minutes = (datetime.now(UTC) - datetime.fromisoformat(record.wall)).total_seconds() / 60
            if minutes > pause:
                record = self.mark("interrupted", {"why": f"nothing for {minutes:.0f} min"}, actor)
        return self.mark("resumed", {}, actor) if record.interrupted else record

    def same_suggestion(self, stored: Event, policy: Mapping[str, float]) -> Trial:
        """The trial of a suggestion that is repeated under its key."""
        wanted = self.journal.record.space.complete(policy)
        if stored.kind != "suggested" or stored.body["policy"] != wanted:
            raise KeyConflictError(f"key {stored.key!r} already stands for another event")
        return self.journal.record.trial(stored.body["trial"])

    def require_open(self) -> None:
        """Raise if the session cannot be continued."""
        if self.journal.record.closed:
            raise ValueError(
                f"session {self.journal.session} is closed: it can be read, not continued"
            )
        self.require_functions()

    def require_functions(self) -> None:
        """Raise if constraints that are functions were not given again."""
        record = self.journal.record
        if len(record.functions) != len(record.space.functions):
            raise ValueError(
                f"session {self.journal.session} has constraints that are functions "
                f"({', '.join(record.functions)}): give them to Lab.open(..., functions=[...])"
            )

    def require_none_open(self) -> None:
        """Raise if a trial is not over."""
        current = self.journal.record.current
        if current is not None:
            raise ValueError(
                f"trial {current.number} is {current.status}: finish, abort or veto it first"
            )
