"""Opaque ids of sessions, for addresses: a session's name has the participant's code in it."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock

from sfihilo.experiment import DamagedError, Lab, LogError

LENGTH = 16  # characters of the hash of a session's first event


class Ids:
    """The ids of a lab's sessions; threads may share it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = Lock()
        self._ids: dict[str, str] = {}  # of names
        self._names: dict[str, str] = {}  # of ids
        with suppress(LogError, ValueError):  # tried again
            self._learn()

    def of(self, name: str) -> str:
        """The id of a session; raises LogError if the file cannot be read now."""
        if name not in self._ids:
            self._learn()
        return self._ids.get(name, name)

    def known(self, given: str) -> str | None:
        """The name of the session that an id or a name means, without a look at the file."""
        return given if given in self._ids else self._names.get(given)

    def name(self, given: str) -> str:
        """The name of the session that an id or a name means; what is neither stays as it is."""
        found = self.known(given)
        if found is None:
            with suppress(LogError, ValueError):
                self._learn()
            found = self.known(given)
        return given if found is None else found

    def _learn(self) -> None:
        """Read the ids of the sessions that are new in the file."""
        with self._lock:
            for name in self._lab.sessions():
                if name not in self._ids:
                    with suppress(DamagedError, ValueError):  # it is listed under its name
                        first = next(iter(self._lab.log.events(name)))
                        self._names[first.hash[:LENGTH]] = name
                        self._ids[name] = first.hash[:LENGTH]
