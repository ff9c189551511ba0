"""The learner's rounds of a session: one for each trial that is over, in order.

A trial that was aborted, vetoed or withdrawn is a round too, with what is missing as missing, so
that a round keeps its number. An answer counts only while the learner can compare with the trial
that the person was asked about: if that one is gone (or too many later ones came in), the answer
means nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sfihilo.experiment.record.recalled import with_comparable
from sfihilo.experiment.record.record import Record
from sfihilo.history import Choice


@dataclass(frozen=True)
class Round:
    """One round in the learner's unit cubes; None for each number that was not measured.

    `compared_with` is a round, where the person recalls several trials; None: the last measured.
    """

    policy: tuple[float, ...]
    outcome: tuple[float | None, ...] | None
    choice: Choice | None
    strength: int | None = None
    compared_with: int | None = None


def rounds_of(record: Record) -> tuple[Round, ...]:
    """What the learner is told of a record."""
    rounds = []
    for trial, comparable in with_comparable(record):
        if trial is None:
            break
        known = trial.known_outcome
        outcome = tuple(
            part.to_unit(known[name]) if name in known else None
            for name, part in record.space.outcomes.items()
        )
        named = trial.compare_with if trial.asks_choice else None
        compared_with = None if named is None else comparable.get(named)
        choice = None if compared_with is None else trial.learned_choice
        strength = None if choice is None else trial.strength
        if record.recall == 1:
            compared_with = None
        told = outcome if known else None
        rounds.append(Round(trial.unit, told, choice, strength, compared_with))
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
            answer: list[object] = [new.choice]
            answer += [] if new.strength is None else [new.strength]
            answer += [] if new.compared_with is None else [{"with": new.compared_with}]
            names.append(_hashed([names[-1], new.policy, new.outcome, *answer]))
        self._known = rounds, names
        return names


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
