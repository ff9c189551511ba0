"""Connects devices with sessions: a started trial is applied and measured, a stop stops.

Each attached device has a supervisor. Whatever the device does (raise, hang, go silent), the record
stays right: the session is put on hold and the operator is told why. Which device a session uses is
kept beside the lab's file: after a restart of the server, a stop reaches the device again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event as Signal
from threading import RLock, Thread
from typing import Any

from sfihilo.console.config import Config
from sfihilo.console.devices import Device, DeviceError, DeviceStoppedError, Limits, Supervisor
from sfihilo.console.devices.remote import Remote, restored, told
from sfihilo.console.devices.resting import Stoppable, require_safe_walk, walk_is_over
from sfihilo.console.live import Live
from sfihilo.console.open_sessions import Sessions, Wish
from sfihilo.console.refusals import Problem
from sfihilo.experiment import LogError, Session, Trial
from sfihilo.experiment.files import replacing

WATCH = 0.5  # seconds between looks at the devices and at what their walks became
MARK = b'{"devices": 1,'  # how the file of attachments begins
REMOTE = "HTTP"  # how a program is called on the operator's page
CONSOLE = "console"  # who holds a session because of a device

Factory = Callable[[], Device]


@dataclass
class Link:
    """A device in a session; `message` says what was refused of its last measurement."""

    session: str
    name: str
    supervisor: Supervisor
    message: str = ""
    worker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="sfihilo-device")
    )


class DeviceLinks:
    """The devices of a console and the sessions that they serve; threads may share it."""

    def __init__(self, sessions: Sessions, live: Live, config: Config) -> None:
        self._sessions, self._live = sessions, live
        self.silent_after = config.heartbeat_limit  # seconds
        self._path = Path(f"{config.db}.devices.json")
        self._factories: dict[str, tuple[Factory, bool]] = {}
        self._links: dict[str, Link] = {}
        self._remotes: dict[str, Remote] = {}  # the programs that are devices over HTTP
        self._lock = RLock()
        self._ended = Signal()
        self._watcher: Thread | None = None

    @property
    def names(self) -> list[str]:
        """The devices that a session may use."""
        return list(self._factories)

    def offer(self, name: str, factory: Factory, *, shared: bool = False) -> None:
        """Make a device known; one that is not `shared` serves one session at a time."""
        self._factories[name] = factory, shared

    def begin(self) -> None:
        """Attach the devices again that were attached when the server ended.

        A program that sent heartbeats is waited for: it may have gone silent meanwhile.
        """
        attached, remotes = self._stored()
        with self._lock:
            self._remotes = {**remotes, **self._remotes}
            if self._remotes:
                self._begin_watch()
        for session, name in attached.items():
            if name in self._factories:
                with suppress(ValueError, LogError, DeviceError, Problem):
                    self.attach(session, name)

    def attach(self, session: str, name: str | None) -> None:
        """Let a session use a device; None ends that. The device that it used before is stopped."""
        if name is not None and name not in self._factories:
            raise Problem(400, "invalid", f"device: expected one of {self.names}, got {name!r}")
        self._sessions.get(session)
        with self._lock:
            self._require_free(session, name)
            before = self._links.pop(session, None)
            if before is not None:
                _end(before)
            if name is not None:
                self._links[session] = self._linked(session, name)
                self._begin_watch()
            self._store()
        self._live.touch(session)

    def _require_free(self, session: str, name: str | None) -> None:
        users = [link.session for link in self._links.values() if link.name == name]
        if name is not None and not self._factories[name][1] and users not in ([], [session]):
            raise Problem(409, "refused", f"device: {name} is used by session {users[0]}")

    def _linked(self, session: str, name: str) -> Link:
        try:
            device = self._factories[name][0]()
        except (OSError, RuntimeError, ImportError) as error:
            message = f"device {name}: cannot be opened: {error}"
            raise Problem(409, "refused", message) from error
        limits = Limits(silent_after=self.silent_after)
        supervisor = Supervisor(device, lambda why: self._silent(session, name, why), limits)
        supervisor.begin()
        return Link(session, name, supervisor)

    def about(self, session: str) -> dict[str, Any]:
        """The state of a session's device, for the operator's page."""
        link = self._links.get(session)
        if link is not None:
            status = link.supervisor.status
            return {
                "name": link.name,
                "names": self.names,
                "state": status.state,
                "message": status.problem or link.message,
                "heartbeat_age": status.seen,
                "trial": status.trial,
            }
        remote = self._remotes.get(session)
        return {
            "name": None if remote is None else REMOTE,
            "names": self.names,
            "state": "none" if remote is None else self._remote_state(session, remote),
            "message": "",
            "heartbeat_age": None if remote is None else remote.quiet,
            "trial": None,
        }

    def _remote_state(self, session: str, remote: Remote) -> str:
        apply, rest = told(*self._sessions.read(session), remote)
        return "running" if apply else "stopped" if rest else "idle"

    def still_there(self, session: str) -> None:
        """A program made a request while the record may not be readable; nobody joins by that."""
        with self._lock:
            known = self._remotes.get(session)
            if known is not None:
                self._remotes[session] = known.heard_now(False)

    def heard(self, session: str, *, beats: bool = False) -> Remote:
        """A program made a request as a device; after a heartbeat, silence is a fault.

        One that was away for too long joins anew: walks may have begun without it.
        """
        last = self._sessions.read(session)[0].number
        with self._lock:
            known = self._remotes.get(session)
        if known is not None and known.quiet > self.silent_after:
            self._gone(session, known)
            last = self._sessions.read(session)[0].number
        with self._lock:
            known = self._remotes.get(session)
            remote = (known or Remote(last)).heard_now(beats)
            self._remotes[session] = remote
            if known is None or known.beats != remote.beats:
                self._store()
            self._begin_watch()
        if known is None:
            self._live.touch(session)
        return remote

    def _gone(self, session: str, remote: Remote) -> None:
        """Forget a program that is silent; raises LogError if the hold cannot be recorded now."""
        if remote.beats:
            why = f"device: nothing heard for {remote.quiet:.0f} s"
            self._sessions.hold(session, why, CONSOLE)
        with self._lock:
            if self._remotes.get(session) == remote:
                del self._remotes[session]
                self._store()
        self._live.touch(session)

    def _begin_watch(self) -> None:
        if self._watcher is None:
            self._watcher = Thread(target=self._watch, name="sfihilo-heartbeat", daemon=True)
            self._watcher.start()

    def after(self, session: str, action: str, trial: Trial | None) -> None:
        """Tell the device what was done in its session."""
        link = self._links.get(session)
        if link is None:
            return
        if action == "start":
            link.worker.submit(self._conduct, link, False)
        elif action in ("abort", "interrupt", "close"):
            self.stop(session)
        elif action == "choose" and trial is not None:
            body = {
                "session": session,
                "trial": trial.number,
                "choice": trial.choice,
                "strength": trial.strength,
            }
            link.supervisor.note("answer", body)

    def apply(self, session: str) -> None:
        """Apply the started trial again: after a stop, a restart or a refused measurement."""
        link = self._links.get(session)
        if link is None and session not in self._remotes:
            raise Problem(409, "refused", "device: expected an attached one, got none")
        opened = self._sessions.get(session)
        record = opened.reader.record
        if session in self._sessions.unrecorded or record.interrupted:
            raise Problem(409, "on_hold", f"session {session} is on hold: resume it before apply")
        if not _is_started(opened.reader):
            raise Problem(409, "refused", "apply: expected a trial that is started, got none")
        require_safe_walk(record)
        if link is not None:
            link.worker.submit(self._conduct, link, True)
        with self._lock:
            remote = self._remotes.get(session)
            if remote is not None:
                self._remotes[session] = replace(remote, again=record.number)
                self._store()
        self._live.touch(session)

    def stop(self, session: str) -> str | None:
        """Stop the device of a session at once; returns why it failed, if it did."""
        link = self._links.get(session)
        if link is None:
            return None
        try:
            link.supervisor.stop()
        except Exception as error:  # noqa: BLE001 - a device may raise anything; stop goes on
            return f"device {link.name}: {error}"
        finally:
            self._live.touch(session)
        return None

    def close(self) -> None:
        """Stop every device and the watching of them; what is attached stays attached."""
        self._ended.set()
        for link in list(self._links.values()):
            _end(link)
        if self._watcher is not None:
            self._watcher.join()

    def _conduct(self, link: Link, again: bool) -> None:
        """Apply the started trial, measure, record the outcome; hold the session if that fails."""
        opened = self._sessions.get(link.session)
        reader = Stoppable(opened.reader, link.session, self._sessions.unrecorded)
        if not _is_started(opened.reader):
            return
        link.message = ""
        self._live.touch(link.session)
        try:
            trial = link.supervisor.apply(reader, after_stop=again)
            self._live.touch(link.session)
            outcome = link.supervisor.measure(reader)
            self._record(link, trial, outcome)
        except DeviceStoppedError:
            return  # whoever stopped it tells the record
        except Problem as problem:  # the operator decides: type it, walk again, abort
            link.message = str(problem)
        except (DeviceError, ValueError, LogError) as error:
            if not _is_started(opened.reader):  # it was aborted meanwhile
                return
            link.message = str(error)
            with suppress(LogError):  # what cannot be written, the next action says
                self._sessions.hold(link.session, f"device {link.name}: {error}"[:1000], CONSOLE)
        finally:
            self._live.touch(link.session)

    def _record(self, link: Link, trial: Trial, outcome: Mapping[str, float | None]) -> None:
        wish = Wish("measure", f"device {link.name}")

        def method(held: Session) -> Trial:
            return held.measure(trial.number, outcome, key=wish.key, actor=wish.actor)

        self._sessions.act(link.session, wish, method)

    def _silent(self, session: str, name: str, why: str) -> None:
        """Hold the session of a silent device; raises if that cannot be recorded now."""
        self._sessions.hold(session, f"device {name}: {why}"[:1000], CONSOLE)
        self._live.touch(session)

    def _watch(self) -> None:
        """Hold the sessions whose HTTP device went silent, each once; stop what is over."""
        while not self._ended.wait(WATCH):
            for link in list(self._links.values()):
                with suppress(Exception):  # tried again: the watch must not end
                    self._stop_if_over(link)
            for session, remote in list(self._remotes.items()):
                if remote.quiet > self.silent_after:
                    with suppress(Exception):
                        self._gone(session, remote)

    def _stop_if_over(self, link: Link) -> None:
        """Stop a device whose walk another process ended, or an action such as undo."""
        number = link.supervisor.status.trial
        if number is None:
            return
        record = self._sessions.get(link.session).reader.record
        if walk_is_over(record, record.trial(number)):
            self._sessions.stopping(lambda: self.stop(link.session))

    def _stored(self) -> tuple[dict[str, str], dict[str, Remote]]:
        """The devices that were attached when the server ended, and the programs over HTTP."""
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            attached = {str(session): str(name) for session, name in stored["attached"].items()}
            remotes = {
                str(session): restored(fields)
                for session, fields in stored.get("remotes", {}).items()
            }
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}, {}  # the operator attaches it again
        return attached, remotes

    def _store(self) -> None:
        stored = {
            "attached": {link.session: link.name for link in self._links.values()},
            "remotes": {session: remote.stored() for session, remote in self._remotes.items()},
        }
        with suppress(OSError, ValueError), replacing(self._path, MARK) as partial:
            partial.write_bytes(MARK + b" " + json.dumps(stored).encode()[1:])


def _is_started(session: Session) -> bool:
    """Whether the record has a trial that a device is to apply."""
    record = session.record
    current = record.current
    walking = current is not None and current.started and not current.measured
    return walking and record.status == "open"


def _end(link: Link) -> None:
    """Stop a device and let go of it."""
    with suppress(Exception):  # a device may raise anything
        link.supervisor.stop()
    with suppress(Exception):
        link.supervisor.close()
    link.worker.shutdown(wait=False, cancel_futures=True)
