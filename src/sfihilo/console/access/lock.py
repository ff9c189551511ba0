"""One console per lab's file: two would command one device and forget each other's pairings."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: the operator has to take care
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Held while a console serves a file; the system releases it when the process dies."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
