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
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import sfihilo
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.rounds import Digests, Round, rounds_of
from sfihilo.history import Query, Response

if TYPE_CHECKING:
    from sfihilo import State

KEPT_STATES = 12
SNAPSHOT_EVERY = 8  # rounds: what a reopened session may have to be told again


@dataclass(frozen=True)
class Snapshots:
    """A folder with at most one file per session; None keeps nothing."""

    folder: Path | None

    def read(self, session: str, names: Sequence[str]) -> tuple[int, State] | None:
        """The cached state and its number of rounds, or None if its digest is not in `names`."""
        path = self._path(session)
        if path is None:
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            text = stored["state"]
            if hashlib.sha256(text.encode()).hexdigest() != stored["sha256"]:
                return None
            return names.index(stored["digest"]), sfihilo.load(text)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, session: str, name: str, state: State) -> None:
        """Replace the session's file; a full or read-only disk is no reason to stop a session."""
        path = self._path(session)
        if path is None:
            return
        text = sfihilo.save(state)
        stored = {
            "digest": name,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "state": text,
        }
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
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
        self._reached: tuple[int, str] | None = None
        self._lock = Lock()

    def course(self, record: Record) -> Course:
        """The rounds of a record with their digests; computed once per proposal."""
        rounds = rounds_of(record)
        return Course(record, rounds, self._digests.names(record, rounds))

    def state(self, course: Course) -> State:
        """The learner after every round, told only what follows the nearest known state."""
        known, state = self._nearest(course)
        for number in range(known, len(course.rounds)):
            new = course.rounds[number]
            query = Query(state.round, np.array(new.policy), state.history.anchor)
            outcome = None if new.outcome is None else np.array(new.outcome)
            state = sfihilo.tell(state, query, Response(outcome, new.choice))
            self._keep(course.names[number + 1], state)
        return state

    def remember(self, course: Course) -> bool:
        """Note a state that was really reached; whether a snapshot of it is due."""
        self._reached = len(course.rounds), course.names[-1]
        return len(course.rounds) >= self._saved + SNAPSHOT_EVERY

    def save(self) -> None:
        """Write a snapshot of the last state that was reached, unless there is one."""
        if self._reached is None or self._reached[0] <= self._saved:
            return
        count, name = self._reached
        state = self._states.get(name)
        if state is not None:
            self._snapshots.write(self._session, name, state)
            self._saved = count

    def _nearest(self, course: Course) -> tuple[int, State]:
        names = course.names
        with self._lock:
            for number in range(len(names) - 1, -1, -1):
                if names[number] in self._states:
                    self._states.move_to_end(names[number])
                    return number, self._states[names[number]]
        found = self._snapshots.read(self._session, names)
        if found is None:
            record = course.record
            found = 0, sfihilo.begin(sfihilo.Settings.from_dict(dict(record.settings)), record.seed)
        self._saved = found[0]
        self._keep(names[found[0]], found[1])
        return found

    def _keep(self, name: str, state: State) -> None:
        with self._lock:
            self._states[name] = state
            self._states.move_to_end(name)
            while len(self._states) > KEPT_STATES:
                self._states.popitem(last=False)
