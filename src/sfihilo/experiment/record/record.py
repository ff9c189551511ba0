"""A session as its events tell it: who, in which space, its trials, where the device may be.

`fold` makes a record from the events of a session, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfihilo.experiment.record.answers import all_answers
from sfihilo.experiment.record.pauses import Moment
from sfihilo.experiment.record.protocol import Protocol, Veto
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.space.space import Policy, Space

if TYPE_CHECKING:
    from sfihilo.settings import Goal


@dataclass(frozen=True)
class Record:
    """A session as its log tells it: who, in which space, its trials, where the device may be.

    Trials from `recalled_from` on were asked after the last break.
    `goal_set` is the goal that was set after the session began; None: the one of its settings.
    `wall` is when the last event was written, `active` when the person last took part. `left_open`
    is a trial that was open in a break and was not started since: it may have been walked before.
    """

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
    goal_set: Goal | None = None
    reanchor_due: bool = False
    recalled_from: int = 1
    interrupted: bool = False
    closed: bool = False
    refused: int = 0
    number: int = 0
    wall: str = ""
    active: Moment = Moment("", 0)
    left_open: int | None = None

    def __repr__(self) -> str:
        about = f"participant {self.participant}, {self.status}, {len(self.trials)} trials"
        return f"<Record {self.session}: {about}, event {self.number}>"

    @property
    def goal(self) -> Goal:
        """What the next query is for; a rule that is named in the settings goes before it."""
        begun: Goal = self.settings.get("goal", "understand")
        return self.goal_set or begun

    @property
    def grades(self) -> int:
        """How many answers the person is offered: 2, 5 or 7."""
        return int(self.settings.get("grades", 2))

    @property
    def recall(self) -> int:
        """From how many of the last trials the learner names the one to compare with."""
        return int(self.settings.get("recall", 1))

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
        """The trial that a new one is compared with (`with_anchors`)."""
        anchors = [anchor for _, _, anchor in with_anchors(self)]
        return anchors[-1] if anchors else None

    @property
    def last_walked(self) -> Trial | None:
        """The trial that the person felt last, or may have felt: only a veto excludes it."""
        return next((trial for trial in reversed(self.trials) if trial.may_have_been_walked), None)

    @property
    def painful(self) -> tuple[Veto, ...]:
        """The vetoes because of pain that were not lifted."""
        return tuple(veto for veto in self.vetoes if veto.pain and not veto.lifted)

    def trial(self, number: int) -> Trial:
        """A trial by its number."""
        if not 1 <= number <= len(self.trials):
            raise ValueError(
                f"trial: expected 1 to {len(self.trials)} in session {self.session}, got {number}"
            )
        return self.trials[number - 1]

    def with_trial(self, trial: Trial) -> Record:
        """The record with another version of one of its trials."""
        before, after = self.trials[: trial.number - 1], self.trials[trial.number :]
        return replace(self, trials=(*before, trial, *after))

    def after_each_answer(self) -> list[Record]:
        """The records that each answer would give; none, unless an answer is waited for."""
        trial = self.current
        if trial is None or not trial.measured or trial.answered or self.closed:
            return []
        return [
            self.with_trial(replace(trial, answered=True, choice=choice, strength=strength))
            for choice, strength in all_answers(self.grades)
        ]

    @property
    def status(self) -> str:
        """One word for tables."""
        if self.closed:
            return "closed"
        return "interrupted" if self.interrupted else "open"


def with_anchors(record: Record) -> Iterator[tuple[Trial, Trial | None, Trial | None]]:
    """Each trial that the learner is told, with its anchor before and after that trial.

    The anchor is the last trial with a measured outcome. There is none as long as some outcome was
    never measured: the learner could not tell what it was in the anchor (`History.anchor`).
    """
    anchor: Trial | None = None
    measured: set[str] = set()
    for trial in record.trials:
        if not trial.ended or trial.ending == "undone":
            continue
        before = anchor
        if trial.known_outcome:
            measured |= trial.known_outcome.keys()
            anchor = trial if measured == set(record.space.outcomes) else None
        yield trial, before, anchor
