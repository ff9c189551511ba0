"""A learner's state kept beside the log, so that a long session opens at once.

Only a cache: a file that is missing, damaged or of another state is ignored, and the lessons are
told again. Nothing is acknowledged because of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.rounds import Lesson
from sfihilo.history import FloatArray
from sfihilo.learner import State
from sfihilo.saved import load, save

LARGEST_FILE = 2**28  # bytes


@dataclass(frozen=True)
class Snapshots:
    """A folder with at most one file a session; None keeps nothing."""

    folder: Path | None

    def read(
        self, record: Record, rounds: Sequence[Lesson], names: Sequence[str]
    ) -> tuple[int, State] | None:
        """The cached state and its number of rounds, or None if it does not fit the record.

        It fits if its digest is in `names`, if the record holds its fingerprint (the learner's
        state had it when a trial was asked), and if it was told the same rounds. So a file that was
        changed or exchanged is ignored, and the rounds are told again.
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
            state = load(stored["state"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        return (count, state) if _was_told(state, rounds[:count]) else None

    def write(self, session: str, name: str, state: State) -> None:
        """Replace the session's file; a full or read-only disk is no reason to stop a session."""
        path = self._path(session)
        if path is None:
            return
        text = save(state)
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


def _was_told(state: State, rounds: Sequence[Lesson]) -> bool:
    """Whether the state's history consists of exactly these rounds."""
    history = state.history
    return len(history.choices) == len(rounds) and all(
        np.array_equal(history.policies[index], told.policy)
        and np.array_equal(history.outcomes[index], _row(told, history.outcomes), equal_nan=True)
        and history.choices[index] == told.choice
        for index, told in enumerate(rounds)
    )


def _row(told: Lesson, outcomes: FloatArray) -> FloatArray:
    missing = np.full(outcomes.shape[1], np.nan)
    return missing if told.outcome is None else np.array(told.outcome, dtype=float)
