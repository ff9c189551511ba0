"""A session with a person: ask, measure, choose, for hours or over days.

Every method reads the newest record, checks, writes one event, and only then returns; what it
returned is on the disk. With a `key`, repeating a call does nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from sfihilo.experiment.log.errors import KeyConflictError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.output.advice import Advice, advise
from sfihilo.experiment.session.border import (
    answer,
    require_comparison,
    require_unfinished,
    short_text,
    trial_number,
)
from sfihilo.experiment.session.journal import Journal
from sfihilo.experiment.session.proposals import Learning, proposal
from sfihilo.experiment.session.record import Record, redo_target, undo_target
from sfihilo.experiment.session.states import Snapshots
from sfihilo.experiment.session.trial import TAKEN_OUT, Source, Trial
from sfihilo.experiment.session.writer import Request, Writer
from sfihilo.experiment.space import safety
from sfihilo.history import CHOICES, Choice
from sfihilo.learner import State

UNCHANGED: Any = object()  # None is a value: "could not be measured", "cannot say"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _in_turn(
    method: Callable[Concatenate[Session, Arguments], Result],
) -> Callable[Concatenate[Session, Arguments], Result]:
    """Threads that share a session take turns: what one decided on stays so until it wrote."""

    @wraps(method)
    def in_turn(session: Session, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with session._turn:
            return method(session, *args, **kwargs)

    return in_turn


class Session:
    """One person's session in a lab's file; make it with `Lab.create` or `Lab.open`."""

    def __init__(
        self,
        log: Log,
        session: str,
        snapshots: Snapshots,
        actor: str | None = None,
        functions: Iterable[Callable[..., bool]] = (),
    ) -> None:
        self.id = session
        self._turn = RLock()
        self._writer = Writer(Journal(log, session, functions), Learning(session, snapshots), actor)

    @property
    @_in_turn
    def record(self) -> Record:
        """The session as its log tells it now."""
        return self._writer.journal.refresh()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, the undone ones too."""
        return self.record.trials

    @property
    @_in_turn
    def events(self) -> tuple[Event, ...]:
        """The whole log of this session."""
        self._writer.journal.refresh()
        return tuple(self._writer.journal.events)

    @property
    @_in_turn
    def state(self) -> State:
        """The learner as it is now."""
        return self._writer.learning.state(self.record)

    @_in_turn
    def ask(self, *, key: str | None = None, actor: str | None = None) -> Trial:
        """The trial to do now: the one that is not over, or a new one, stored before shown."""
        record = self._writer.journal.refresh()
        if (stored := self._writer.journal.find(key)) is not None:
            if stored.kind != "asked":
                raise KeyConflictError(f"key {key!r} already stands for a {stored.kind!r} event")
            return record.trial(stored.body["trial"])
        self._writer.require_open()
        record = self._writer.after_break(actor)
        if record.current is not None:
            return record.current
        source: Source = "learner"
        made = None
        if record.reanchor_due:
            made = self._writer.anchor_again(record)
            source = "anchor"
        made = made or self._writer.learning.propose(record)
        return self._writer.emit("asked", made, source, key=key, actor=actor)

    @_in_turn
    def suggest(
        self,
        policy: Mapping[str, float],
        *,
        why: str = "",
        key: str | None = None,
        actor: str | None = None,
    ) -> Trial:
        """A trial with the operator's own policy; the learner learns from it as from any other."""
        record = self._writer.journal.refresh()
        if (stored := self._writer.journal.find(key)) is not None:
            return self._writer.same_suggestion(stored, policy)
        self._writer.require_open()
        self._writer.require_none_open()
        record = self._writer.after_break(actor)
        try:
            wanted = record.space.complete(policy)
            safety.check(record.space, wanted, record.positions)
        except ValueError as error:
            self._writer.refuse("policy", None, policy, error, Request(key, actor))
            raise
        made = proposal(record, self._writer.learning.state(record), record.space.to_unit(wanted))
        made = replace(made, policy=wanted)
        return self._writer.emit("suggested", made, "operator", why=why, key=key, actor=actor)

    @_in_turn
    def repeat(
        self, trial: Trial | int, *, key: str | None = None, actor: str | None = None
    ) -> Trial:
        """A trial with the policy of an earlier one, to see how consistent the person is."""
        record = self._writer.journal.refresh()
        earlier = record.trial(trial_number(trial))
        if (stored := self._writer.journal.find(key)) is not None:
            if stored.body.get("repeats") != earlier.number:
                raise KeyConflictError(f"key {key!r} already stands for another event")
            return record.trial(stored.body["trial"])
        self._writer.require_open()
        self._writer.require_none_open()
        record = self._writer.after_break(actor)
        try:
            made = self._writer.again(record, earlier)
        except safety.UnsafePolicyError as error:
            given = dict(earlier.policy)
            self._writer.refuse("policy", None, given, error, Request(key, actor))
            raise
        return self._writer.emit(
            "asked", made, "repeat", repeats=earlier.number, key=key, actor=actor
        )

    @_in_turn
    def start(
        self, trial: Trial | int, *, key: str | None = None, actor: str | None = None
    ) -> Trial:
        """Note that the policy is being applied: from now on the device counts as being there."""
        number = trial_number(trial)

        def check(now: Trial) -> None:
            if now.started:
                raise ValueError(f"trial {number}: it was started already")
            require_unfinished(now)

        return self._writer.act("started", {"trial": number}, check, key, actor)

    @_in_turn
    def measure(
        self,
        trial: Trial | int,
        outcome: Mapping[str, float | None] | None,
        *,
        key: str | None = None,
        actor: str | None = None,
    ) -> Trial:
        """The measured outcome in physical units; None where it could not be measured.

        What is not believed is recorded as refused and raises BadMeasurementError.
        """
        number = trial_number(trial)
        found = self._writer.believed(number, outcome, Request(key, actor))
        body = {"trial": number, "outcome": found.values, "warnings": list(found.warnings)}

        def check(now: Trial) -> None:
            if now.measured:
                raise ValueError(f"trial {number}: it was measured already; use amend")
            require_unfinished(now)

        return self._writer.act("measured", body, check, key, actor)

    @_in_turn
    def choose(
        self,
        trial: Trial | int,
        choice: Choice | None,
        *,
        key: str | None = None,
        actor: str | None = None,
    ) -> Trial:
        """The person's answer: "new", "previous", "same", or None for "cannot say".

        An answer that nobody asked for (`asks_choice` is false: the first trial, or the first one
        after a break) is kept in the record; the learner does not hear it.
        """
        number = trial_number(trial)
        body = {"trial": number, "choice": answer(choice)}

        def check(now: Trial) -> None:
            if now.answered:
                raise ValueError(f"trial {number}: it was answered already; use amend")
            newest = self._writer.journal.record.newest
            if now.ending is not None or newest is None or number != newest.number:
                raise ValueError(f"trial {number}: it is over ({now.status})")

        return self._writer.act("chosen", body, check, key, actor)

    @_in_turn
    def abort(
        self, trial: Trial | int, why: str, *, key: str | None = None, actor: str | None = None
    ) -> Trial:
        """End a trial early; what was not measured or answered stays missing."""
        body = {"trial": trial_number(trial), "why": short_text(why)}
        return self._writer.act("aborted", body, require_unfinished, key, actor)

    @_in_turn
    def veto(
        self, trial: Trial | int, why: str, *, key: str | None = None, actor: str | None = None
    ) -> Trial:
        """Refuse a policy before it is applied; its neighbourhood is avoided for a while."""

        def check(now: Trial) -> None:
            require_unfinished(now)
            if now.started or now.measured or now.answered:
                raise ValueError(f"trial {now.number}: it was {now.status}; abort it instead")

        body = {"trial": trial_number(trial), "why": short_text(why)}
        return self._writer.act("vetoed", body, check, key, actor)

    @_in_turn
    def amend(
        self,
        trial: Trial | int,
        *,
        why: str,
        outcome: Any = UNCHANGED,
        choice: Any = UNCHANGED,
        key: str | None = None,
        actor: str | None = None,
    ) -> Trial:
        """Correct an outcome or an answer; the earlier record stays, the learner hears the new."""
        body: dict[str, Any] = {"trial": trial_number(trial), "why": short_text(why)}
        if outcome is not UNCHANGED:
            believed = self._writer.believed(body["trial"], outcome, Request(key, actor))
            body["outcome"] = believed.values
        if choice is not UNCHANGED:
            body["choice"] = answer(choice)

        def check(now: Trial) -> None:
            if len(body) == 2:
                raise ValueError("amend: expected an outcome or a choice, got neither")
            if now.ending in TAKEN_OUT:
                raise ValueError(f"trial {now.number}: it was {now.ending}; nothing to amend")
            if "choice" in body and not now.answered:
                require_comparison(now)

        return self._writer.act("amended", body, check, key, actor)

    @_in_turn
    def withdraw(
        self, trial: Trial | int, why: str, *, key: str | None = None, actor: str | None = None
    ) -> Trial:
        """Take the data of a trial out (a loose sensor); the trial itself stays in the record."""

        def check(now: Trial) -> None:
            if now.ending in TAKEN_OUT:
                raise ValueError(f"trial {now.number}: it was {now.ending} already")

        body = {"trial": trial_number(trial), "why": short_text(why)}
        return self._writer.act("withdrawn", body, check, key, actor)

    @_in_turn
    def undo(self, why: str = "", *, key: str | None = None, actor: str | None = None) -> Event:
        """Take the last action back; returns the event that no longer counts."""
        return self._writer.correct("withdrawn", undo_target, "undo", why, key, actor)

    @_in_turn
    def redo(self, why: str = "", *, key: str | None = None, actor: str | None = None) -> Event:
        """Restore the action that was undone last; returns the event that counts again."""
        return self._writer.correct("redone", redo_target, "redo", why, key, actor)

    @_in_turn
    def interrupt(
        self, why: str = "", *, key: str | None = None, actor: str | None = None
    ) -> Record:
        """The person stops, for minutes or days."""
        return self._writer.mark("interrupted", {"why": short_text(why)}, actor, key)

    @_in_turn
    def resume(self, *, key: str | None = None, actor: str | None = None) -> Record:
        """The person is back; with `reanchor`, the last condition is walked again first."""
        return self._writer.mark("resumed", {}, actor, key)

    @_in_turn
    def note(self, text: str, *, key: str | None = None, actor: str | None = None) -> Record:
        """Write something down."""
        return self._writer.mark("note", {"text": short_text(text)}, actor, key)

    @_in_turn
    def close(self, why: str = "", *, key: str | None = None, actor: str | None = None) -> Record:
        """End the session for good: it can be read, not continued."""
        return self._writer.mark("closed", {"why": short_text(why)}, actor, key)

    @_in_turn
    def recommend(self, feasible: Mapping[str, Any] | None = None) -> Advice:
        """The policy to settle on, within the given ranges, with intervals, in physical units."""
        record = self._writer.journal.refresh()
        self._writer.require_functions()
        return advise(record, self._writer.learning.state(record), feasible)

    @_in_turn
    def prepare(self) -> None:
        """Compute the next query for each possible answer in the background.

        Call it once the outcome is measured, while the person makes up their mind.
        """
        record = self._writer.journal.refresh()
        current = record.current
        if current is None or not current.measured or current.answered or record.closed:
            return
        before, after = record.trials[: current.number - 1], record.trials[current.number :]
        self._writer.learning.prepare(
            replace(record, trials=(*before, replace(current, answered=True, choice=c), *after))
            for c in (*CHOICES, None)
        )

    @property
    def prepared(self) -> bool:
        """Whether nothing is being prepared any more."""
        return self._writer.learning.prepared()

    def run(
        self,
        *,
        apply: Callable[[Mapping[str, float]], object],
        measure: Callable[[Trial], Mapping[str, float | None] | None],
        choose: Callable[[Trial], Choice | None],
        trials: int,
    ) -> Record:
        """Do so many trials with the lab's own functions; see `sfihilo.experiment.session.loop`."""
        from sfihilo.experiment.session.loop import run

        return run(self, apply, measure, choose, trials)

    def leave(self) -> None:
        """Stop what runs in the background; the session itself stays as it is."""
        self._writer.learning.close()
