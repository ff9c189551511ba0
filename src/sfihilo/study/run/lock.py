"""Only one run at a time fills a folder: an advisory lock that the system releases by itself.

Two runs would not harm each other (results are renamed into place when whole), only do the same
work twice. The lock belongs to the process that hands out the units, never to its workers.
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
    """Held while units are computed; refused at once when another run holds it.

    The lock goes when its holder ends, however it ends. The file stays, because removing it could
    give the lock to two runs at once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as file:
        if not _taken(file):
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


def _taken(file: IO[str]) -> bool:
    """Take the lock if nobody has it. A system without such locks is no reason not to run."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
