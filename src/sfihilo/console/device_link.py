"""Connects devices with sessions: a started trial is applied and measured, a stop stops.

A device is any object with `apply`, `measure`, `stop` and `heartbeat`. Whatever it does (raise,
hang, go silent), the record stays right: the session is put on hold and the operator is told why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event as Signal
from threading import RLock, Thread
from typing import Any, Protocol

from sfihilo.console.config import Config
from sfihilo.console.errors import Problem
from sfihilo.console.live import Live
from sfihilo.console.sessions import Sessions, Wish
from sfihilo.experiment import BadMeasurementError, Session, Trial

WATCH = 0.5  # seconds between looks at the heartbeat
ATTEMPTS = 3  # measurements that a device may repeat when what it gave is not plausible


class Device(Protocol):
    """What the console needs of a device; every method may be called from another thread."""

    def apply(self, policy: Mapping[str, float]) -> None:
        """Set the policy; returns when it is set."""

    def measure(self) -> Mapping[str, float | None] | None:
        """The outcome of the policy that is set; returns when it was measured."""

    def stop(self) -> None:
        """Bring the device to rest; quick, at any time, also while it applies or measures."""

    def heartbeat(self) -> float | None:
        """Seconds since the device was last heard of; None if it does not say."""


Factory = Callable[[], Device]


@dataclass
class Link:
    """A device in a session; `turn` counts what it was told, so that a late result is ignored."""

    session: str
    name: str
    device: Device
    state: str = "idle"
    message: str = ""
    turn: int = 0
    worker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="sfihilo-device")
    )


class DeviceLinks:
    """The devices of a console and the sessions that they serve; threads may share it."""

    def __init__(self, sessions: Sessions, live: Live, config: Config) -> None:
        self._sessions, self._live, self._config = sessions, live, config
        self._factories: dict[str, Factory] = {}
        self._links: dict[str, Link] = {}
        self._heard: dict[str, float] = {}  # when the HTTP device of a session was heard of last
        self._lock = RLock()
        self._ended = Signal()
        self._watcher: Thread | None = None

    @property
    def names(self) -> list[str]:
        """The devices that a session may use."""
        return list(self._factories)

    def offer(self, name: str, factory: Factory) -> None:
        """Make a device known by its name."""
        self._factories[name] = factory

    def attach(self, session: str, name: str | None) -> None:
        """Let a session use a device; None ends that."""
        if name is not None and name not in self._factories:
            raise Problem(400, "invalid", f"device: expected one of {self.names}, got {name!r}")
        self._sessions.get(session)
        with self._lock:
            before = self._links.pop(session, None)
            if name is not None:
                self._links[session] = Link(session, name, self._factories[name]())
                self._watch()
        if before is not None:
            _quietly(before.device.stop)
            before.worker.shutdown(wait=False, cancel_futures=True)
        self._live.touch(session)

    def about(self, session: str) -> dict[str, Any]:
        """The state of a session's device, for the operator's page."""
        link = self._links.get(session)
        if link is None:
            heard = self._heard.get(session)
            return {
                "name": None if heard is None else "HTTP",
                "names": self.names,
                "state": "none" if heard is None else "running",
                "message": "",
                "heartbeat_age": None if heard is None else time.monotonic() - heard,
            }
        age = _quietly(link.device.heartbeat)
        return {
            "name": link.name,
            "names": self.names,
            "state": link.state,
            "message": link.message,
            "heartbeat_age": age,
        }

    def heard(self, session: str) -> None:
        """A device that uses the HTTP interface gave a sign of life; from now on it must."""
        with self._lock:
            self._heard[session] = time.monotonic()
            self._watch()

    def after(self, session: str, action: str, trial: Trial | None) -> None:
        """Tell the device what was done in its session."""
        link = self._links.get(session)
        if link is None:
            return
        if action == "start" and trial is not None:
            self._begin(link, trial)
        elif action in ("abort", "interrupt", "close"):
            self.stop(session)

    def stop(self, session: str) -> str | None:
        """Stop the device of a session at once; returns why it failed, if it did."""
        link = self._links.get(session)
        if link is None:
            return None
        link.turn += 1
        try:
            link.device.stop()
        except Exception as error:  # noqa: BLE001 - a device may raise anything; stop goes on
            self._show(link, "failed", f"stop: {type(error).__name__}: {error}")
            return link.message
        self._show(link, "stopped", "")
        return None

    def close(self) -> None:
        """Stop every device and the watching of them."""
        self._ended.set()
        for link in list(self._links.values()):
            link.turn += 1
            _quietly(link.device.stop)
            link.worker.shutdown(wait=False, cancel_futures=True)
        if self._watcher is not None:
            self._watcher.join()

    def _begin(self, link: Link, trial: Trial) -> None:
        link.turn += 1
        turn = link.turn
        link.worker.submit(self._conduct, link, trial, turn)

    def _conduct(self, link: Link, trial: Trial, turn: int) -> None:
        """Apply a trial's policy, measure, record the outcome; on any failure hold the session."""
        try:
            if link.turn != turn:
                return
            self._show(link, "applying", "")
            link.device.apply(trial.policy)
            for attempt in range(1, ATTEMPTS + 1):
                if link.turn != turn:
                    return
                self._show(link, "measuring", "")
                outcome = link.device.measure()
                if link.turn != turn:
                    return
                if self._measured(link, trial, outcome, attempt):
                    self._show(link, "idle", "")
                    return
            raise ValueError(f"{link.message}; {ATTEMPTS} measurements were refused")
        except Exception as error:  # noqa: BLE001 - a device may raise anything
            if link.turn == turn:
                self._fail(link, "failed", f"{type(error).__name__}: {error}"[:500])

    def _measured(
        self, link: Link, trial: Trial, outcome: Mapping[str, float | None] | None, attempt: int
    ) -> bool:
        """Record what the device measured; False if it is not plausible."""
        key = f"device-{trial.number}-{attempt}"
        wish = Wish("measure", f"device {link.name}", key)

        def method(held: Session) -> Trial:
            return held.measure(trial.number, outcome, key=wish.key, actor=wish.actor)

        try:
            self._sessions.act(link.session, wish, method)
        except Problem as problem:
            if not isinstance(problem.__cause__, BadMeasurementError):
                raise
            link.message = str(problem)
            return False
        return True

    def _fail(self, link: Link, state: str, message: str) -> None:
        link.turn += 1
        _quietly(link.device.stop)
        self._sessions.hold(link.session, f"device {link.name}: {message}"[:1000], "console")
        self._show(link, state, message)

    def _show(self, link: Link, state: str, message: str) -> None:
        link.state, link.message = state, message
        self._live.touch(link.session)

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = Thread(target=self._watching, name="sfihilo-heartbeat", daemon=True)
            self._watcher.start()

    def _watching(self) -> None:
        """Hold the session of a device that went silent."""
        limit = self._config.heartbeat_limit
        while not self._ended.wait(WATCH):
            self._hold_silent(limit)
            for link in list(self._links.values()):
                age = _quietly(link.device.heartbeat)
                silent = age is not None and age > limit
                if silent and link.state != "silent":
                    self._fail(link, "silent", f"nothing heard for {age:.0f} s")
                elif not silent and link.state == "silent":
                    self._show(link, "idle", "")

    def _hold_silent(self, limit: float) -> None:
        """Hold the sessions whose HTTP device went silent; each once."""
        now = time.monotonic()
        silent = [name for name, heard in list(self._heard.items()) if now - heard > limit]
        for session in silent:
            self._heard.pop(session, None)
            self._sessions.hold(session, f"device: nothing heard for {limit:.0f} s", "console")


def _quietly(call: Callable[[], Any]) -> Any:
    """The result of a device's method; None if it raises."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - a device may raise anything
        return None
