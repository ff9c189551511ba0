"""What can go wrong with the event log, each with what the caller can do about it."""

from __future__ import annotations


class LogProblem(Exception):  # noqa: N818 - a problem, not always an error
    """Any problem of the event log."""


class KeyConflict(LogProblem, ValueError):  # noqa: N818
    """The key was used before, for another content. Nothing was written."""


class Stale(LogProblem):
    """Another writer was first: the session has `current` events. Read them and decide anew."""

    def __init__(self, session: str, expected: int, current: int) -> None:
        super().__init__(
            f"session {session!r} has {current} events, not {expected}: another writer was first; "
            "read the new events and decide again"
        )
        self.session = session
        self.expected = expected
        self.current = current


class Busy(LogProblem):
    """Another writer holds the file and did not finish in time. Nothing was written."""


class DiskFailure(LogProblem):
    """The disk refused (full, failing): nothing is acknowledged. Repeat with the same key."""


class Damaged(LogProblem):
    """The file is not what was written. `verify` says where, `recover` saves what came before."""


class NotALog(LogProblem, ValueError):  # noqa: N818
    """The file is no SFIHILO log. It was left untouched."""


class ReadOnly(LogProblem):
    """The file was opened for reading, or was written by a newer SFIHILO."""
