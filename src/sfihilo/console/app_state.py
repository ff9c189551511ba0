"""What the routes of one console share: the lab's file, its open sessions, grants, notices."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import Request

from sfihilo.console.auth import Attempts, Grants
from sfihilo.console.config import Config
from sfihilo.console.device_link import DeviceLinks
from sfihilo.console.live import Live
from sfihilo.console.sessions import Done, Sessions
from sfihilo.console.wishes import stop_view
from sfihilo.experiment import Lab, Trial

STOP_PATIENCE = 5.0  # seconds that the answer to a stop waits for its recording


class Console:
    """The parts of one console; `close` ends them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.lab = Lab(config.db)
        try:
            self.grants = Grants(Path(f"{config.db}.console.json"))
        except BaseException:
            self.lab.close()
            raise
        self.attempts = Attempts()
        self.live = Live(self.lab)
        self.sessions = Sessions(self.lab, self.live.nudge)
        self.devices = DeviceLinks(self.sessions, self.live, config)
        self.unrecorded: dict[str, dict[str, Any]] = {}  # stops outside the record
        self.start_code = self.grants.start_code(config.by or "")

    def close(self) -> None:
        """End everything that runs in the background and let go of the file."""
        self.devices.close()
        self.sessions.close()
        self.lab.close()

    def after(self, session: str, action: str, done: Done) -> None:
        """Tell an attached device what was done."""
        self.unrecorded.pop(session, None)
        if not done.repeated:
            trial = done.result if isinstance(done.result, Trial) else None
            self.devices.after(session, action, trial)

    async def stop(self, session: str, why: str, actor: str) -> dict[str, Any]:
        """Stop the device, then put the session on hold; never raises, never waits for a query."""
        failed = self.devices.stop(session)
        recording: Future[str | None] = self.sessions.stopping(
            lambda: self.sessions.hold(session, why, actor)
        )
        try:
            problem = await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(recording)), STOP_PATIENCE
            )
        except TimeoutError:
            problem = "still being written"
        reasons = [reason for reason in (failed, problem) if reason]
        if problem is None:
            self.unrecorded.pop(session, None)
        else:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.unrecorded[session] = stop_view(at, actor, why, recorded=False)
        self.live.touch(session)
        return {
            "stopped": failed is None,
            "recorded": problem is None,
            "why": "; ".join(reasons) or None,
        }


def console_of(request: Request) -> Console:
    """The console that a request is for."""
    console: Console = request.app.state.console
    return console
