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

from sfihilo.learner import State
from sfihilo.saved import load, save


@dataclass(frozen=True)
class Snapshots:
    """A folder with at most one file a session; None keeps nothing."""

    folder: Path | None

    def read(self, session: str, names: Sequence[str]) -> tuple[int, State] | None:
        """The stored state and how many lessons it has heard, if it is one of `names`."""
        path = self._path(session)
        if path is None:
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            text = stored["state"]
            if hashlib.sha256(text.encode()).hexdigest() != stored["sha256"]:
                return None
            return names.index(stored["digest"]), load(text)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, session: str, name: str, state: State) -> None:
        """Replace the session's file; a full or read-only disk is no reason to stop a session."""
        path = self._path(session)
        if path is None:
            return
        text = save(state)
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
