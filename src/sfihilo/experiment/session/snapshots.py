"""The learner's state for a record, computed from its rounds, kept in memory and beside the log.

Everything kept here is a cache under the digest of what it was computed from. A file that is
missing, damaged or of another state is ignored, and the rounds are told again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import sfihilo
from sfihilo.experiment.forks import CACHE, ForkLock
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.rounds import Digests, Round, rounds_of
from sfihilo.history import FloatArray, Query, Response

if TYPE_CHECKING:
    from sfihilo import State
    from sfihilo.settings import Goal

KEPT_STATES = 12
SNAPSHOT_EVERY = 8  # rounds: what a reopened session may have to be told again

LARGEST_FILE = 2**28  # bytes


@dataclass(frozen=True)
class Snapshots:
    """A folder with at most one file per session; None keeps nothing."""

    folder: Path | None

    def read(
        self, record: Record, rounds: Sequence[Round], names: Sequence[str]
    ) -> tuple[int, State] | None:
        """The cached state and its number of rounds, or None if it does not fit the record.

        It fits if its digest is in `names`, if the record holds its fingerprint (the learner's
        state had it when a trial was asked), and if it was told the same rounds. So a file that was
        changed or exchanged is ignored, and the rounds are told again. The state is given with the
        settings that the session began with, whatever its goal was when it was written.
        """
        path = self._path(record.session)
        if path is None:
            return None
        fingerprints = {trial.model.get("fingerprint") for trial in record.trials}
        try:
            if not path.is_file() or path.stat().st_size > LARGEST_FILE:
                return None
            stored = json.loads(path.read_text(encoding="utf-8"))
            count = names.index(stored["digest"])
            if hashlib.sha256(stored["state"].encode()).hexdigest() not in fingerprints:
                return None
            state = sfihilo.load(stored["state"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        if not _was_told(state, rounds[:count]):
            return None
        return count, replace(state, settings=_settings(record))

    def write(self, session: str, name: str, state: State) -> None:
        """Replace the session's file; a full or read-only disk is no reason to stop a session."""
        path = self._path(session)
        if path is None:
            return
        text = sfihilo.save(state)
        stored = {"digest": name, "state": text}
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".snapshot-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(stored, file)
                Path(temporary).replace(path)
            except OSError:
                Path(temporary).unlink(missing_ok=True)

    def _path(self, session: str) -> Path | None:
        if self.folder is None:
            return None
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", session)[:80]
        return self.folder / f"{readable}-{hashlib.sha256(session.encode()).hexdigest()[:12]}.json"


def _settings(record: Record) -> sfihilo.Settings:
    return sfihilo.Settings.from_dict(dict(record.settings))


def _was_told(state: State, rounds: Sequence[Round]) -> bool:
    """Whether the state's history consists of exactly these rounds."""
    history = state.history
    return len(history.choices) == len(rounds) and all(
        np.array_equal(history.policies[index], told.policy)
        and np.array_equal(history.outcomes[index], _row(told, history.outcomes), equal_nan=True)
        and history.choices[index] == told.choice
        and history.strengths[index] == told.strength
        and told.compared_with in (None, history.compared_with[index])
        for index, told in enumerate(rounds)
    )


def _row(told: Round, outcomes: FloatArray) -> FloatArray:
    missing = np.full(outcomes.shape[1], np.nan)
    return missing if told.outcome is None else np.array(told.outcome, dtype=float)


def tell_round(state: State, told: Round) -> State:
    """The state after one more round of a record."""
    history, compared_with = state.history, told.compared_with
    anchor = history.anchor if compared_with is None else history.filled[compared_with]
    query = Query(state.round, np.array(told.policy), anchor, compared_with)
    # None becomes NaN: not measured.
    outcome = None if told.outcome is None else np.array(told.outcome, dtype=float)
    return sfihilo.tell(state, query, Response(outcome, told.choice, told.strength))


class Course(NamedTuple):
    """The rounds of a record, and the digest of the learner's state after each of them."""

    record: Record
    rounds: tuple[Round, ...]
    names: list[str]


class StateCache:
    """The learner's states of one session by digest; at most `KEPT_STATES` in memory."""

    def __init__(self, session: str, snapshots: Snapshots) -> None:
        self._session = session
        self._snapshots = snapshots
        self._states: OrderedDict[str, State] = OrderedDict()
        self._digests = Digests()
        self._saved = 0  # rounds of the snapshot on the disk
        self._reached: tuple[int, str, Goal | None] | None = None
        self._aimed: tuple[str, State] | None = None  # the last one with a goal set later
        self._lock = ForkLock(CACHE)

    def course(self, record: Record) -> Course:
        """The rounds of a record with their digests; computed once per proposal."""
        rounds = rounds_of(record)
        return Course(record, rounds, self._digests.names(record, rounds))

    def state(self, course: Course) -> State:
        """The learner after every round, told only what follows the nearest known state.

        It has the goal of the record now; what it learned does not depend on the goals before.
        """
        known, state = self._nearest(course)
        for number in range(known, len(course.rounds)):
            state = tell_round(state, course.rounds[number])
            self._keep(course.names[number + 1], state)
        return self._with_goal(state, course)

    def _with_goal(self, state: State, course: Course) -> State:
        """The state asking by the goal of the record, if one was set after the session began."""
        goal = course.record.goal_set
        if goal is None:
            return state
        name, known = f"{goal} {course.names[-1]}", self._aimed
        if known is None or known[0] != name:
            known = self._aimed = name, sfihilo.with_goal(state, goal)
        return known[1]

    def remember(self, course: Course) -> bool:
        """Note a state that was really reached; whether a snapshot of it is due."""
        self._reached = len(course.rounds), course.names[-1], course.record.goal_set
        return len(course.rounds) >= self._saved + SNAPSHOT_EVERY

    def save(self) -> None:
        """Write a snapshot of the last state that was reached, unless there is one."""
        if self._reached is None or self._reached[0] <= self._saved:
            return
        count, name, goal = self._reached
        state = self._states.get(name)
        if state is not None:
            # With its goal: the record holds the fingerprint of the state that asked.
            state = state if goal is None else sfihilo.with_goal(state, goal)
            self._snapshots.write(self._session, name, state)
            self._saved = count

    def _nearest(self, course: Course) -> tuple[int, State]:
        names = course.names
        with self._lock:
            for number in range(len(names) - 1, -1, -1):
                if names[number] in self._states:
                    self._states.move_to_end(names[number])
                    return number, self._states[names[number]]
        found = self._snapshots.read(course.record, course.rounds, names)
        if found is None:
            record = course.record
            found = 0, sfihilo.begin(_settings(record), record.seed)
        self._saved = found[0]
        self._keep(names[found[0]], found[1])
        return found

    def _keep(self, name: str, state: State) -> None:
        with self._lock:
            self._states[name] = state
            self._states.move_to_end(name)
            while len(self._states) > KEPT_STATES:
                self._states.popitem(last=False)
