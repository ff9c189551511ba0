"""The sessions that are open in this process: each opened once, for every request.

A session has two handles on the same log. Actions use the `writer`, whose lock is held while the
learner computes. Reads and `stop` use the `reader`, which never waits for the learner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from sfihilo.console.refusals import Problem, from_library, missing
from sfihilo.console.shown.wishes import STOPPED, matters_more, open_stop
from sfihilo.experiment import (
    Lab,
    LogError,
    OvertakenError,
    Record,
    ReplacedError,
    Session,
    StaleError,
)
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.session.lab import reading

Result = TypeVar("Result")
CHORES = 2  # threads for what nobody waits for
STOPS = 32  # threads for stops, and as many for their recording
MOST_CHANGES = 20  # events that a refusal as stale tells of
HOLD = frozenset({"ask", "suggest", "repeat", "start", "measure", "choose"})


@dataclass(frozen=True)
class Opened:
    """One session: the handle for actions, and the one for reading and stopping."""

    writer: Session
    reader: Session


@dataclass(frozen=True)
class Wish:
    """What every action of a client carries: which action, who, its key, what it has seen."""

    action: str
    actor: str
    key: str | None = None
    expected: int | str | None = None


@dataclass(frozen=True)
class Done:
    """What an action gave: the result of the session's method, and the record after it."""

    result: Any
    record: Record
    last: Event
    repeated: bool


class Sessions:
    """The open sessions of a lab's file; threads may share it."""

    def __init__(self, lab: Lab, changed: Callable[[], None]) -> None:
        self.lab = lab
        self._changed = changed
        self.unrecorded: dict[str, dict[str, Any]] = {}  # stops that are not in the record yet
        self._opened: dict[str, Opened] = {}
        self._lock = Lock()
        self._chores = ThreadPoolExecutor(CHORES, thread_name_prefix="sfihilo-chores")
        self._stopping = ThreadPoolExecutor(STOPS, thread_name_prefix="sfihilo-stop")
        self._recording = ThreadPoolExecutor(STOPS, thread_name_prefix="sfihilo-hold")

    def close(self) -> None:
        """Stop what runs in the background."""
        self._chores.shutdown(wait=True, cancel_futures=True)
        self._stopping.shutdown(wait=True)
        self._recording.shutdown(wait=True)
        for opened in self._opened.values():
            opened.writer.leave()

    def get(self, name: str) -> Opened:
        """A session by its name; raises 404 if there is none."""
        with self._lock:
            found = self._opened.get(name)
            if found is None:
                if name not in self.lab.sessions():
                    raise missing("session")
                with reading(name):
                    found = Opened(self.lab.open(name), self.lab.open(name))
                self._opened[name] = found
                self.chore(found.writer.prepare)  # after a restart in the middle of a trial
            return found

    def read(self, name: str) -> tuple[Record, tuple[Event, ...]]:
        """The record of a session and its events, at one moment."""
        with self._watched(name):
            return self.get(name).reader.reading()

    def act(self, name: str, wish: Wish, method: Callable[[Session], Result]) -> Done:
        """Do one thing in a session: hold it, check what the client has seen, write, tell pages."""
        opened = self.get(name)
        session = opened.writer
        with self._watched(name):
            before, _ = opened.reader.reading()
            try:
                done = self._held(session, wish, method)
            except StaleError as error:
                raise self._stale(opened, wish, error) from error
            except Problem:
                raise
            except (ValueError, LogError) as error:
                problem = from_library(error)
                if problem.error == "invalid":
                    problem = Problem(409, "refused", str(error))
                raise problem from error
            finally:
                self._changed()
        if done.record.number > before.number:
            self.chore(lambda: self._ahead(session))
        return done

    def _held(self, session: Session, wish: Wish, method: Callable[[Session], Result]) -> Done:
        with session.expecting(wish.expected, wish.key) as record:
            stored = None if wish.key is None else self.lab.log.find(record.session, wish.key)
            known = stored is not None
            held = record.interrupted or record.session in self.unrecorded
            if held and wish.action in HOLD and not known:
                message = f"session {record.session} is on hold: resume it before {wish.action}"
                raise Problem(409, "on_hold", message)
            result = method(session)
            after, events = session.reading()
            return Done(result, after, events[-1], known)

    def _stale(self, opened: Opened, wish: Wish, error: StaleError) -> Problem:
        """What the client has not seen yet."""
        with suppress(LogError):
            _, events = opened.reader.reading()
            seen = wish.expected
            if isinstance(seen, str):
                seen = next((each.number for each in events if each.hash == seen), 0)
            first = error.expected if seen is None else seen
            changes = [
                {
                    "number": event.number,
                    "kind": event.kind,
                    "actor": event.actor,
                    "trial": event.body.get("trial"),
                }
                for event in events
                if event.number > first
            ]
            return Problem(
                409, "stale", str(error),
                last=events[-1].number, hash=events[-1].hash, changes=changes[-MOST_CHANGES:],
            )  # fmt: skip
        return from_library(error)

    def _ahead(self, session: Session) -> None:
        """Compute the next query for each possible answer, or else the learner's state."""
        current = session.record.current
        if current is not None and current.measured:
            session.prepare()
        elif current is None:
            _ = session.state

    def hold(self, name: str, why: str, actor: str) -> str | None:
        """Put a session on hold: abort the walk, interrupt; why that is not possible, if so.

        It uses the reader's handle, so that it never waits for the learner; whoever is computing a
        query finds the session changed and is refused. Raises LogError if the file cannot be read
        or written now.
        """
        try:
            session = self.get(name).reader
            while True:
                try:
                    return _hold(session, why, actor)
                except OvertakenError:
                    continue  # another writer was first
        except (ValueError, Problem) as error:
            return str(error)
        finally:
            self._changed()

    def stopping(self, work: Callable[[], Result]) -> Future[Result]:
        """Stop a device in threads that nothing else uses."""
        return self._stopping.submit(work)

    def recording(self, work: Callable[[], Result]) -> Future[Result]:
        """Record a stop in threads that nothing else uses."""
        return self._recording.submit(work)

    def chore(self, work: Callable[[], object]) -> None:
        """Do something that nobody waits for; what fails there fails again where it is seen."""

        def quietly() -> None:
            with suppress(ValueError, LogError):
                work()

        with suppress(RuntimeError):  # the console is closing
            self._chores.submit(quietly)

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        """Open a session anew whose file was replaced."""
        try:
            yield
        except ReplacedError:
            with self._lock:
                self._opened.pop(name, None)
            raise


def _hold(session: Session, why: str, actor: str) -> str | None:
    record = session.record
    if record.closed:
        return f"session {record.session} is closed"
    current = record.current
    if current is not None and current.started and not current.measured:
        session.abort(current, why, actor=actor)
    record, events = session.reading()
    stop = open_stop(events)
    if not record.interrupted:
        session.interrupt(STOPPED + why, actor=actor)
    elif stop is None or matters_more(actor, stop):  # a break becomes a stop
        session.note(STOPPED + why, actor=actor)
    return None
