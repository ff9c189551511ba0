"""What background threads do when the process forks: come to rest before it, begin anew after it.

A forked child has none of its parent's other threads, but every lock that they held, for ever:
those of this package, of linear algebra, and of `functools.cached_property`. Therefore a fork waits
until no thread that prepares something is in the middle of it.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Has a thread in the background."""

    def before_fork(self) -> None:
        """Let the thread come to rest, where it holds no lock, and keep it there."""

    def after_fork_in_parent(self) -> None:
        """Let the thread go on."""

    def after_fork_in_child(self) -> None:
        """Begin anew, without the threads of the parent process."""


_watched: WeakSet[Forkable] = WeakSet()


def watch(item: Forkable) -> None:
    """Call the item's methods at every fork, as long as it lives."""
    _watched.add(item)


def _before() -> None:
    for item in list(_watched):
        item.before_fork()


def _in_parent() -> None:
    for item in list(_watched):
        item.after_fork_in_parent()


def _in_child() -> None:
    for item in list(_watched):
        item.after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
