"""Errors of the event log, each with what the caller can do about it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping


class LogError(Exception):
    """Any problem of the event log."""


class KeyConflictError(LogError, ValueError):
    """The key was used before, with another content. Nothing was written."""


class StaleError(LogError):
    """Another writer was first: the session has `current` events. Read them and decide again."""

    def __init__(self, session: str, expected: int, current: int) -> None:
        super().__init__(
            f"session {session!r} has {current} events, not {expected}: another writer was first; "
            "read the new events and decide again"
        )
        self.session = session
        self.expected = expected
        self.current = current


class BusyError(LogError):
    """Another writer holds the file and did not finish in time. Nothing was written."""


class DiskFailureError(LogError):
    """The disk refused (full, failing): nothing is acknowledged. Repeat with the same key."""


class DamagedError(LogError):
    """The file is not what was written. `verify` says where, `recover` saves what came before."""


class NotALogError(LogError, ValueError):
    """The file is not an SFIHILO log. It was left unchanged."""


class ReadOnlyError(LogError):
    """The file was opened for reading, or was written by a newer SFIHILO."""


class ReplacedError(LogError):
    """The file was replaced under an open session: it holds another history than what was read."""

    def __init__(self, path: object, session: str) -> None:
        super().__init__(
            f"{path} was replaced: session {session!r} has another history now than what was read; "
            "nothing was written; open the session again and look at it before going on"
        )
        self.session = session


DEPRECATED: Mapping[str, type[LogError]] = {
    "LogProblem": LogError,
    "KeyConflict": KeyConflictError,
    "Stale": StaleError,
    "Busy": BusyError,
    "DiskFailure": DiskFailureError,
    "Damaged": DamagedError,
    "NotALog": NotALogError,
    "ReadOnly": ReadOnlyError,
}


def deprecated(name: str, module: str, names: Mapping[str, type[Exception]]) -> type[Exception]:
    """The error behind a former name, with a warning; the body of a module's `__getattr__`."""
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = names[name]
    warnings.warn(f"{name} is now {new.__name__}", DeprecationWarning, stacklevel=3)
    return new


def __getattr__(name: str) -> type[Exception]:
    return deprecated(name, __name__, DEPRECATED)
