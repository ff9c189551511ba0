"""What the routes of one console share: the lab's file, its open sessions, grants, notices."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Signal
from threading import RLock
from typing import Any

from fastapi import Request

from sfihilo.console.access.auth import Attempts, Grants
from sfihilo.console.access.one_console import Lock
from sfihilo.console.config import Config
from sfihilo.console.demonstration import Demo
from sfihilo.console.devices.link import DeviceLinks
from sfihilo.console.devices.offered import described_device, factory
from sfihilo.console.ids import Ids
from sfihilo.console.live import Live
from sfihilo.console.open_sessions import Done, Sessions
from sfihilo.console.shown.advised import Advised
from sfihilo.console.shown.listing import Listing
from sfihilo.console.shown.wishes import matters_more, stop_view
from sfihilo.experiment import Lab, LogError, Trial

RETRY = 0.5  # seconds between attempts to record a stop
STOP_PATIENCE = 5.0  # seconds that the answer to a stop waits for its recording
MOST_STOPS = 2  # of one device at a time: one that hangs must not delay the stops of others


class Console:
    """The parts of one console; `close` ends them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        offered = [described_device(given) for given in config.devices]
        with ExitStack() as opened:
            self.lab = opened.enter_context(Lab(config.db))
            self._lock = Lock(Path(f"{config.db.resolve()}.console.lock"))  # also by another name
            opened.callback(self._lock.release)
            self.grants = Grants(Path(f"{config.db}.console.json"))
            opened.pop_all()  # from here on `close` ends them
        self.attempts = Attempts()
        self.live = Live(self.lab)
        self.sessions = Sessions(self.lab, self.live.nudge)
        self.ids = Ids(self.lab)
        self.listing = Listing(self.lab)
        self.advised = Advised(self.sessions, self.live.touch)
        self.devices = DeviceLinks(self.sessions, self.live, config)
        for name, tables in offered:
            self.devices.offer(name, factory(tables))
        self.demo = Demo(self, config.you) if config.demo else None
        self.unrecorded = self.sessions.unrecorded
        self._recording: dict[str, Future[str | None]] = {}  # the last stop of each session
        self._halting: dict[str, list[Future[str | None]]] = {}  # stops of each device, not over
        self._halts = RLock()
        self._ended = Signal()
        self.start_code = self.grants.start_code(config.by or "")

    def begin(self) -> None:
        """Begin what runs in the background."""
        self.devices.begin()
        if self.demo is not None:
            self.demo.begin()

    def close(self) -> None:
        """End everything that runs in the background and let go of the file."""
        self._ended.set()
        if self.demo is not None:
            self.demo.close()
        self.devices.close()
        self.sessions.close()
        self.lab.close()
        self._lock.release()

    def after(self, session: str, action: str, done: Done) -> None:
        """Tell an attached device what was done."""
        if not done.repeated:
            trial = done.result if isinstance(done.result, Trial) else None
            self.devices.after(session, action, trial)

    def _hold(self, session: str, why: str, actor: str) -> str | None:
        """Record a stop, however long the file cannot be written; why it is not, if it cannot be.

        Meanwhile the session is on hold all the same, as `unrecorded` tells. Then the device is
        stopped again, should a start have come in between.
        """
        while True:
            try:
                problem = self.sessions.hold(session, why, actor)
            except LogError as error:
                if self._ended.wait(RETRY):
                    return str(error)
                continue
            self.unrecorded.pop(session, None)
            with suppress(RuntimeError):  # the console is closing, which stops every device
                self._halt(session)
            self.live.touch(session)
            return problem

    def _halt(self, session: str) -> Future[str | None]:
        """Stop the device of a session in a thread; the future tells why it failed, if it did."""
        with self._halts:
            going = [each for each in self._halting.pop(session, []) if not each.done()]
            if len(going) < MOST_STOPS:
                going.append(self.sessions.stopping(lambda: self.devices.stop(session)))
            self._halting[session] = going
            return going[-1]

    async def stop(self, session: str, why: str, actor: str) -> dict[str, Any]:
        """Stop the device, then put the session on hold; never raises, never waits for a query."""
        last = self._recording.get(session)
        mark = self.unrecorded.get(session)
        earlier = mark is not None and last is not None and not last.done()
        earlier = earlier and not matters_more(actor, mark or {})
        if not earlier:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.unrecorded[session] = stop_view(at, actor, why, recorded=False)
        stopping = self._halt(session)  # after the mark, which refuses every later apply
        if not earlier:
            self._recording[session] = self.sessions.recording(
                lambda: self._hold(session, why, actor)
            )
        failed = await _within(stopping, "the device has not answered yet")
        problem = await _within(self._recording[session], "still being written")
        reasons = [reason for reason in (failed, problem) if reason]
        self.live.touch(session)
        return {
            "stopped": failed is None,
            "recorded": problem is None,
            "why": "; ".join(reasons) or None,
        }


async def _within(work: Future[str | None], otherwise: str) -> str | None:
    """What the work gives, or else something if that takes too long; the work goes on."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(work)), STOP_PATIENCE)
    except TimeoutError:
        return otherwise
    except Exception as error:  # noqa: BLE001 - a stop is answered whatever happens
        return f"{type(error).__name__}: {error}"


def console_of(request: Request) -> Console:
    """The console that a request is for."""
    console: Console = request.app.state.console
    return console
