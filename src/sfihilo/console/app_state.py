"""What the routes of one console share: the lab's file, its open sessions, grants, notices."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Signal
from typing import Any

from fastapi import Request

from sfihilo.console.access.auth import Attempts, Grants
from sfihilo.console.access.lock import Lock
from sfihilo.console.config import Config
from sfihilo.console.demo import Demo
from sfihilo.console.devices.link import DeviceLinks
from sfihilo.console.devices.offered import described_device, factory
from sfihilo.console.live import Live
from sfihilo.console.sessions import Done, Sessions
from sfihilo.console.shown.advised import Advised
from sfihilo.console.shown.listing import Listing
from sfihilo.console.shown.wishes import stop_view
from sfihilo.experiment import Lab, LogError, Trial

RETRY = 0.5  # seconds between attempts to record a stop
STOP_PATIENCE = 5.0  # seconds that the answer to a stop waits for its recording


class Console:
    """The parts of one console; `close` ends them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        offered = [described_device(given) for given in config.devices]
        with ExitStack() as opened:
            self.lab = opened.enter_context(Lab(config.db))
            self._lock = Lock(Path(f"{config.db}.console.lock"))
            opened.callback(self._lock.release)
            self.grants = Grants(Path(f"{config.db}.console.json"))
            opened.pop_all()  # from here on `close` ends them
        self.attempts = Attempts()
        self.live = Live(self.lab)
        self.sessions = Sessions(self.lab, self.live.nudge)
        self.listing = Listing(self.lab)
        self.advised = Advised(self.sessions, self.live.touch)
        self.devices = DeviceLinks(self.sessions, self.live, config)
        for name, tables in offered:
            self.devices.offer(name, factory(tables))
        self.demo = Demo(self, config.you) if config.demo else None
        self.unrecorded = self.sessions.unrecorded
        self._recording: dict[str, Future[str | None]] = {}  # the last stop of each session
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
            self.devices.stop(session)
            self.live.touch(session)
            return problem

    async def stop(self, session: str, why: str, actor: str) -> dict[str, Any]:
        """Stop the device, then put the session on hold; never raises, never waits for a query."""
        stopping = self.sessions.stopping(lambda: self.devices.stop(session))
        if session not in self.unrecorded:  # else an earlier stop is still being written
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.unrecorded[session] = stop_view(at, actor, why, recorded=False)
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


def console_of(request: Request) -> Console:
    """The console that a request is for."""
    console: Console = request.app.state.console
    return console
