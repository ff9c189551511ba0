"""One console per lab's file: two would command one device and forget each other's pairings."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


class Lock:
    """Held while a console serves a file; the system releases it when the process dies."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _acquire(self._handle)
        except OSError as error:
            os.close(self._handle)
            raise ValueError(
                f"{path}: another console serves this file already; end it first"
            ) from error

    def release(self) -> None:
        """Let another console serve the file; releasing twice does nothing."""
        with suppress(OSError):
            os.close(self._handle)
        self._handle = -1


def _acquire(handle: int) -> None:
    """Take the lock of an open file; raises OSError if another process holds it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
