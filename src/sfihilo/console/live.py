"""Tells connected pages that something changed; they fetch what they show.

One task reads the end of the log: at once after a request of this process wrote, and several times
per second for what other processes write.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from sfihilo.console.access.auth import Role
from sfihilo.experiment import Lab, LogError

POLL = 0.4  # seconds between looks at what other processes wrote
HEARTBEAT = 4.0  # seconds between signs of life
MOST_SUBSCRIBERS = 500
MOST_OF_ONE = 50  # of one pairing: a participant's tablet must not take all of them


@dataclass(eq=False)
class Subscriber:
    """One connected page: the session that it shows (None: all) and what it was not told yet."""

    session: str | None
    role: Role
    holder: str = ""
    changed: dict[str, int] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Live:
    """The notices of one console; `begin` and `end` belong to its lifespan."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._subscribers: set[Subscriber] = set()
        self._seen = 0
        self._numbers: dict[str, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._nudged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.ended = False
        self.problem: str | None = None  # why the log could not be read last time

    async def begin(self) -> None:
        """Watch the log from its present end on."""
        self._loop = asyncio.get_running_loop()
        self._seen, _ = await asyncio.to_thread(self._lab.log.head)
        self._task = asyncio.create_task(self._watch())

    async def end(self) -> None:
        """Let every stream finish."""
        self.hang_up()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def hang_up(self) -> None:
        """Tell every page that the server leaves; from the event loop's own thread."""
        self.ended = True
        for subscriber in self._subscribers:
            subscriber.wake.set()

    def nudge(self) -> None:
        """Look at the log now; from any thread."""
        self._call(self._nudged.set)

    def touch(self, session: str) -> None:
        """Say that something about a session changed that is no event; from any thread."""
        self._call(lambda: self._notify({session: self._numbers.get(session, 0)}))

    def connected(self, session: str, role: Role) -> int:
        """How many pages of this role show the session now."""
        with_role = [each for each in list(self._subscribers) if each.role == role]
        return Counter(each.session for each in with_role)[session]

    async def stream(
        self,
        session: str | None,
        role: Role,
        last: int,
        allowed: Callable[[], bool],
        holder: str = "",
    ) -> AsyncIterator[str]:
        """The lines of one server-sent stream; `holder` identifies the pairing.

        It begins with a notice and ends with the server, or when it is no longer `allowed`.
        """
        own = sum(each.holder == holder for each in self._subscribers)
        if len(self._subscribers) >= MOST_SUBSCRIBERS or (holder and own >= MOST_OF_ONE):
            return
        subscriber = Subscriber(session, role, holder)
        self._subscribers.add(subscriber)
        if session is not None:
            self._numbers[session] = max(last, self._numbers.get(session, 0))
            self._notify({session: self._numbers.get(session, 0)})  # a page came: others show it
            subscriber.changed.clear()
            subscriber.wake.clear()
        try:
            yield "retry: 1000\n\n"
            yield notice(_shown(session or "", role), last)
            while not self.ended and allowed():
                try:
                    await asyncio.wait_for(subscriber.wake.wait(), HEARTBEAT)
                except TimeoutError:
                    yield "event: alive\ndata: {}\n\n"  # a page does not see comments
                    continue
                subscriber.wake.clear()
                if not allowed():
                    break
                changed, subscriber.changed = subscriber.changed, {}
                for name, number in changed.items():
                    yield notice(_shown(name, role), number)
            yield "event: bye\ndata: {}\n\n"
        finally:
            self._subscribers.discard(subscriber)
            if session is not None and not self.ended:
                self._notify({session: self._numbers.get(session, 0)})

    def _call(self, what: object) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed() and callable(what):
            with suppress(RuntimeError):  # the loop was closed in between: nobody listens
                loop.call_soon_threadsafe(what)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), POLL)
            self._nudged.clear()
            try:
                changed = await asyncio.to_thread(self._news)
                self.problem = None
            except (LogError, ValueError, OSError) as error:
                self.problem = str(error)
                continue
            self._numbers |= changed
            self._notify(changed)

    def _news(self) -> dict[str, int]:
        """The sessions with new events, each with the number of its last event."""
        count, _ = self._lab.log.head()
        if count == self._seen:
            return {}
        if count < self._seen:  # the file was replaced by an earlier copy
            self._seen = 0
        changed: dict[str, int] = {}
        for event in self._lab.log.events(after=self._seen):
            changed[event.session] = event.number
            self._seen = event.seq
        return changed

    def _notify(self, changed: dict[str, int]) -> None:
        for subscriber in self._subscribers:
            concerns = {
                name: number
                for name, number in changed.items()
                if subscriber.session in (None, name)
            }
            if concerns:
                subscriber.changed |= concerns
                subscriber.wake.set()


def _shown(session: str, role: Role) -> str:
    """The session in a notice; a participant sees no names."""
    return "" if role == "participant" else session


def notice(session: str, last: int) -> str:
    """One message of the stream."""
    return f"event: changed\ndata: {json.dumps({'session': session, 'last': last})}\n\n"
