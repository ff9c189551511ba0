"""The list of all sessions; a session is read again only when it has new events."""

from __future__ import annotations

from threading import Lock
from typing import Any

from sfihilo.console.shown.session_json import session_row
from sfihilo.experiment import DamagedError, Lab


class Listing:
    """One row per session of a lab's file; threads may share it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._rows: dict[str, tuple[int, dict[str, Any]]] = {}
        self._lock = Lock()

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The rows of the sessions that can be read, and for each other one the reason."""
        rows, unreadable = [], {}
        with self._lock:
            for name in self._lab.sessions():
                try:
                    rows.append(self._row(name))
                except (ValueError, DamagedError) as error:
                    unreadable[name] = str(error)
        return rows, unreadable

    def _row(self, name: str) -> dict[str, Any]:
        count = self._lab.log.count(name)
        known = self._rows.get(name)
        if known is None or known[0] != count:
            known = self._rows[name] = count, session_row(self._lab.record(name))
        return known[1]
