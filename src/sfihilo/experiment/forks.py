"""Locks that are free in a forked child, and what a child must forget.

A forked child has none of its parent's other threads, but every lock that they held, for ever:
those of this package, of linear algebra, and of `functools.cached_property`. Therefore a fork waits
until no other thread is in the middle of anything that a `ForkLock` guards: a call of a session, a
preparation. The child then finds these locks free, and what they guard whole.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see the end of this file
import os
import time
from threading import RLock, local
from typing import Protocol
from weakref import WeakSet

LONGEST_WAIT = 10.0  # seconds that a fork waits for other threads, in all
# Ranks of locks: a thread that holds one takes only later ones.
SESSION, WORK, LOG, CACHE = range(4)


class _Here(local):
    """What this thread does."""

    held = 0  # locks that it entered


class ForkLock:
    """A reentrant lock that a fork takes, in the order of the ranks, and gives back after it."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._lock = RLock()
        with _register:
            _locks.add(self)

    def __enter__(self) -> None:
        if self.rank == SESSION and not _here.held:
            with _register:  # a fork that waits goes first
                pass
        self._lock.acquire()
        _here.held += 1

    def __exit__(self, *error: object) -> None:
        _here.held -= 1
        self._lock.release()

    def take(self, seconds: float) -> None:
        """Wait for other threads, but not for ever: one may wait for the thread that forks."""
        self._lock.acquire(timeout=max(seconds, 0.0))

    def give_back(self) -> bool:
        """Whether it had been taken; if not, the wait was too long."""
        try:
            self._lock.release()
        except RuntimeError:
            return False
        return True

    def renew(self) -> None:
        """Give it back in a child; one that could not be taken has an owner that does not exist."""
        if not self.give_back():
            self._lock = RLock()


class Forkable(Protocol):
    """Has something that a forked child must not use."""

    def after_fork(self) -> None:
        """Begin anew, without the threads of the parent process."""


_here = _Here()
_register = RLock()  # held during a fork: what is watched does not change, and forks wait in line
_locks: WeakSet[ForkLock] = WeakSet()
_watched: WeakSet[Forkable] = WeakSet()


def watch(item: Forkable) -> None:
    """Call `item.after_fork` in every forked child, as long as the item lives."""
    with _register:
        _watched.add(item)


def _before() -> None:
    _register.acquire()
    end = time.monotonic() + LONGEST_WAIT
    for lock in sorted(_locks, key=lambda lock: lock.rank):
        lock.take(end - time.monotonic())


def _in_parent() -> None:
    for lock in list(_locks):
        lock.give_back()
    _register.release()


def _in_child() -> None:
    for lock in list(_locks):
        lock.renew()
    for item in list(_watched):
        item.after_fork()
    _register.release()


# Python's pools have a lock that a fork takes too. Registered after them, `_before` comes first: a
# thread that holds a session and begins a task must get that lock.
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
