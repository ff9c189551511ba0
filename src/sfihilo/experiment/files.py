"""Files for the owner only, written wholly or not at all.

A record of a session may identify a person, so nobody else may read it unless its owner decides so.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWNER_ONLY = 0o600


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the place of `path` at the end.

    When anything fails, `path` stays as it was. The content and the new name are on the disk when
    this returns.
    """
    prefix = f".{path.name[:80]}."
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".partial")
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def create_empty(path: Path) -> None:
    """Create a file that only its owner can read, unless there is one."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))


def sync_folder(folder: Path) -> None:
    """Bring names in a folder to the disk; without effect where folders cannot be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
