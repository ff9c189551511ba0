"""Files for the owner only, written wholly or not at all.

A record of a session may identify a person, so nobody else may read it unless its owner decides so.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWNER_ONLY = 0o600


def require_replaceable(path: Path, mark: bytes) -> None:
    """Raise ValueError if `path` exists and is not an earlier file of the kind that is written.

    `mark` is how all files of that kind begin. So a wrong name never overwrites a record.
    """
    if not path.exists():
        return
    if path.is_file():
        with path.open("rb") as file:
            begins = file.read(len(mark))
        if begins in (mark, b""):
            return
    raise ValueError(f"{path}: expected a new name, or an earlier file of the same kind")


@contextmanager
def replacing(path: Path, mark: bytes) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the place of `path` at the end.

    When anything fails, `path` stays as it was; it is replaced only if `require_replaceable`
    allows it. The content and the new name are on the disk when this returns.
    """
    require_replaceable(path, mark)
    if not path.parent.is_dir():  # the name of the temporary file would say nothing
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
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
