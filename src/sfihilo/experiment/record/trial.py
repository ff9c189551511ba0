"""One trial with the person: asked -> started -> measured -> chosen.

Outcome and answer arrive separately and in either order; either may be recorded as missing. A trial
ends when both are recorded, or when it is aborted, vetoed or withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sfihilo.history import Choice

if TYPE_CHECKING:
    from sfihilo.settings import Goal

Source = Literal["learner", "operator", "repeat", "anchor"]
Ending = Literal["aborted", "vetoed", "withdrawn", "undone"]
Status = Literal[
    "asked", "started", "measured", "chosen", "complete", "aborted", "vetoed", "withdrawn", "undone"
]
TAKEN_OUT: tuple[Ending, ...] = ("vetoed", "withdrawn", "undone")


@dataclass(frozen=True)
class Trial:
    """A trial as the record tells it now; a later event gives a new one.

    `number` counts the session's trials from 1 and is never used again; `round` is the learner's.
    `compare_with` is the trial to compare with, whose outcome is the anchor. Where the person
    recalls several, it is named when the outcome is measured and None before; `ago` is then how
    many walks before this one it was. `source` says who proposed the policy: the learner, the
    operator, a repeat of an earlier trial, or the anchor again after a break.
    An undone trial never happened for the learner; a withdrawn one did, but its data do not count.
    `strength` says how much better, if the person graded the answer; `goal` is that of the session
    when the trial was asked. `why` is the reason for an early end. `outcome_warnings` are those of
    the warnings that are about the outcome as it is now.
    """

    session: str
    number: int
    round: int
    policy: Mapping[str, float]
    unit: tuple[float, ...]
    source: Source
    compare_with: int | None
    asks_choice: bool
    model: Mapping[str, Any]
    repeats: int | None = None
    ago: int | None = None
    started: bool = False
    measured: bool = False
    outcome: Mapping[str, float | None] | None = None
    warnings: tuple[str, ...] = ()
    outcome_warnings: tuple[str, ...] = ()
    answered: bool = False
    choice: Choice | None = None
    strength: int | None = None
    ending: Ending | None = None
    why: str = ""
    walk_undone: bool = False
    answer_undone: bool = False
    hurt: bool = False
    goal: Goal = "understand"

    @property
    def whole_outcome(self) -> Mapping[str, float] | None:
        """The outcome if every part of it was measured and the trial counts."""
        if self.outcome is None or self.ending in TAKEN_OUT:
            return None
        known = {name: value for name, value in self.outcome.items() if value is not None}
        return known if len(known) == len(self.outcome) else None

    @property
    def known_outcome(self) -> dict[str, float]:
        """The outcomes that were measured, if the trial counts."""
        if self.outcome is None or self.ending in TAKEN_OUT:
            return {}
        return {name: value for name, value in self.outcome.items() if value is not None}

    @property
    def learned_choice(self) -> Choice | None:
        """The answer, unless the trial was taken out."""
        return None if self.ending in TAKEN_OUT else self.choice

    @property
    def ended(self) -> bool:
        """Whether nothing more is expected of this trial."""
        return self.ending is not None or self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether outcome and answer are both known, or known to be missing."""
        return self.measured and (self.answered or not self.asks_choice)

    @property
    def may_have_been_walked(self) -> bool:
        """Whether the person may have felt this trial; only a veto says that it was not applied.

        Not even that, if it hurt, or if its start, outcome or answer was recorded and undone.
        """
        return self.ending != "vetoed" or self.walk_undone or self.hurt

    @property
    def awaits_name(self) -> bool:
        """Whether the trial to compare with is named when the outcome is measured."""
        return self.asks_choice and self.compare_with is None and not self.answered

    @property
    def status(self) -> Status:
        """Where the trial is in its life."""
        if self.ending is not None:
            return self.ending
        if self.is_complete:
            return "complete"
        if self.measured:
            return "measured"
        if self.answered:
            return "chosen"
        return "started" if self.started else "asked"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, for tables, scripts and the console."""
        return {
            "session": self.session,
            "trial": self.number,
            "round": self.round,
            "status": self.status,
            "source": self.source,
            "policy": dict(self.policy),
            "compare_with": self.compare_with,
            **({} if self.ago is None else {"ago": self.ago}),
            "asks_choice": self.asks_choice,
            "repeats": self.repeats,
            "outcome": None if self.outcome is None else dict(self.outcome),
            "choice": self.choice,
            "strength": self.strength,
            "answered": self.answered,
            "warnings": list(self.warnings),
            "goal": self.goal,
            "why": self.why,
            "model": dict(self.model),
        }
