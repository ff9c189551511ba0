"""The learner's rounds of a session: one for each trial that is over, in order.

A trial that was aborted, vetoed or withdrawn is a round too, with what is missing as missing, so
that a round keeps its number. An answer counts only while it compares with the learner's anchor: if
the trial that it was compared with is gone (or a later one came in), the answer means nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sfihilo.experiment.record.record import Record, with_anchors
from sfihilo.history import Choice


@dataclass(frozen=True)
class Round:
    """One round in the learner's unit cubes; None for each number that was not measured."""

    policy: tuple[float, ...]
    outcome: tuple[float | None, ...] | None
    choice: Choice | None
    strength: int | None = None


def rounds_of(record: Record) -> tuple[Round, ...]:
    """What the learner is told of a record."""
    rounds = []
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
        strength = None if choice is None else trial.strength
        rounds.append(Round(trial.unit, outcome if known else None, choice, strength))
    return tuple(rounds)


def used_answers(record: Record) -> frozenset[int]:
    """Numbers of the trials whose answer the learner uses: both outcomes are known."""
    ended = [trial for trial in record.trials if trial.ended and trial.ending != "undone"]
    return frozenset(
        trial.number
        for trial, told in zip(ended, rounds_of(record), strict=True)
        if told.choice is not None and told.outcome is not None
    )


class Digests:
    """Names for the learner's state after none, one, ... all of the rounds.

    Equal names mean equal states: settings, seed and every round enter, and the version, since
    another version may compute the same thing differently. The goal does not: it changes what is
    asked, not what is learned (`sfihilo.with_goal`). The names of the last call are kept, so
    that a long session names only what is new.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[Round, ...], list[str]] | None = None

    def names(self, record: Record, rounds: tuple[Round, ...]) -> list[str]:
        """One name more than there are rounds."""
        if self._known is None:
            from importlib.metadata import version  # loaded by those who compute, not who look

            from sfihilo.state import STATE_VERSION

            origin = [version("sfihilo"), STATE_VERSION, record.settings, record.seed]
            self._known = (), [_hashed(origin)]
        before, names = self._known
        same = next(
            (place for place, (a, b) in enumerate(zip(before, rounds, strict=False)) if a != b),
            min(len(before), len(rounds)),
        )
        names = names[: same + 1]
        for new in rounds[same:]:
            answer = (new.choice,) if new.strength is None else (new.choice, new.strength)
            names.append(_hashed([names[-1], new.policy, new.outcome, *answer]))
        self._known = rounds, names
        return names


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
