"""What the learner is told of a session: one lesson for each trial that is over, in order.

A trial that was aborted, vetoed or withdrawn is told too, with what is missing as missing, so that
a round keeps its number. An answer is told only while it compares with the learner's anchor: if the
outcome it was compared with is gone (or a later one came in), its meaning is gone with it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version

from sfihilo.experiment.session.record import Record, with_anchors
from sfihilo.history import Choice
from sfihilo.learner import STATE_VERSION


@dataclass(frozen=True)
class Lesson:
    """One round in the learner's unit cubes; None for each number that was not measured."""

    policy: tuple[float, ...]
    outcome: tuple[float | None, ...] | None
    choice: Choice | None


def lessons(record: Record) -> tuple[Lesson, ...]:
    """The lessons of a record."""
    told = []
    for trial, anchor, _ in with_anchors(record):
        known = trial.known_outcome
        outcome = tuple(
            part.to_unit(known[name]) if name in known else None
            for name, part in record.space.outcomes.items()
        )
        comparable = (
            trial.asks_choice and anchor is not None and trial.compare_with == anchor.number
        )
        choice = trial.learned_choice if comparable else None
        told.append(Lesson(trial.unit, outcome if known else None, choice))
    return tuple(told)


def heard(record: Record) -> frozenset[int]:
    """Numbers of the trials whose answer the learner learns from: both outcomes are known."""
    told = [trial for trial in record.trials if trial.ended and trial.ending != "undone"]
    return frozenset(
        trial.number
        for trial, lesson in zip(told, lessons(record), strict=True)
        if lesson.choice is not None and lesson.outcome is not None
    )


class Digests:
    """Names for the learner's state after none, one, ... all of the lessons.

    Equal names mean equal states: settings, seed and every lesson enter, and the version, since
    another version may compute the same thing differently. What was named last time is kept: a
    long session names only what is new.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[Lesson, ...], list[str]] | None = None

    def names(self, record: Record, told: tuple[Lesson, ...]) -> list[str]:
        """One name more than there are lessons."""
        if self._known is None:
            origin = [version("sfihilo"), STATE_VERSION, record.settings, record.seed]
            self._known = (), [_hashed(origin)]
        before, names = self._known
        same = next(
            (place for place, (a, b) in enumerate(zip(before, told, strict=False)) if a != b),
            min(len(before), len(told)),
        )
        names = names[: same + 1]
        for lesson in told[same:]:
            names.append(_hashed([names[-1], lesson.policy, lesson.outcome, lesson.choice]))
        self._known = told, names
        return names


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
