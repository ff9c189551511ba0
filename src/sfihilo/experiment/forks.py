"""What a forked child process must forget: threads that do not exist in it, and their locks."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Has state that belongs to threads."""

    def after_fork(self) -> None:
        """Begin anew, without the threads of the parent process."""


_watched: WeakSet[Forkable] = WeakSet()


def watch(item: Forkable) -> None:
    """Call `item.after_fork` in every forked child, as long as the item lives."""
    _watched.add(item)


def _in_child() -> None:
    for item in list(_watched):
        item.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_in_child)
