"""An advisory lock per results folder, so that only one run at a time fills it.

Two runs would not damage results (files are renamed into place when complete), but compute the same
units twice. The process that distributes the units holds the lock, never its workers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class FolderBusyError(ValueError):
    """Another run is filling the same folder."""


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Holds the lock; raises FolderBusyError if another run holds it.

    The system releases the lock when its holder ends, however it ends. The file stays, because
    removing it could give the lock to two runs at once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as file:
        if not _acquired(file):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise FolderBusyError(
                f"another run ({holder}) is filling {folder}; wait until it ends, "
                "or choose another folder with --out"
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def _acquired(file: IO[str]) -> bool:
    """Whether the lock was acquired; always true on a system without such locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
