"""Between session and device: what a device may be told, and what happens when it is silent.

A device gets the policy of the record's started trial and no other. A device that does not answer
for `silent_after` seconds, or does not acknowledge a policy, is told to stop, and `on_silent` is
called, which puts the session on hold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypeVar

from sfihilo.console.devices.device import (
    Device,
    DeviceError,
    DeviceStoppedError,
    Listener,
    Measured,
    SilentDeviceError,
)
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.space.parameter import finite_number

Result = TypeVar("Result")
LOOK_EVERY = 0.5  # seconds between looks at the record while a walk is measured
State = Literal["waiting", "idle", "applying", "running", "measuring", "stopped", "silent"]


class HasRecord(Protocol):
    """A session, as far as a device is concerned."""

    @property
    def record(self) -> Record: ...


@dataclass(frozen=True)
class Limits:
    """Seconds: between heartbeats, until a device counts as silent, and per command."""

    beat_every: float = 1.0
    silent_after: float = 5.0
    apply_within: float = 10.0
    measure_within: float = 600.0  # a walk takes minutes
    stop_within: float = 2.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = finite_number(getattr(self, field.name), field.name)
            if value <= 0:
                raise ValueError(f"{field.name}: expected seconds above 0, got {value}")
        if self.silent_after <= self.beat_every:
            raise ValueError(
                f"silent_after: expected more than beat_every ({self.beat_every}), "
                f"got {self.silent_after}"
            )


@dataclass(frozen=True)
class DeviceStatus:
    """For the operator's page: `seen` is how many seconds ago the device answered.

    `trial` is the trial whose policy the device has acknowledged, None after a stop or a silence.
    A device is waiting until it was heard for the first time, idle until a policy is applied.
    """

    state: State
    seen: float | None
    problem: str
    trial: int | None


class Supervisor:
    """Passes commands to a device and watches it; use it as a context manager.

    `on_silent` is called with the reason, once per silence, from a thread of the supervisor; when
    it raises, it is called again.
    """

    def __init__(
        self,
        device: Device,
        on_silent: Callable[[str], object] | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.device = device
        self.limits = limits
        self._on_silent = on_silent or (lambda why: None)
        self._command = threading.Lock()  # one apply or measure at a time
        self._facts = threading.Lock()  # guards the fields below; never held while calling a device
        self._seen: float | None = None
        self._begun = time.monotonic()
        self._problem = ""
        self._beat_problem = ""
        self._phase: State = "idle"
        self._silent = False
        self._told = True
        self._not_recorded = ""
        self._stops = 0
        self._applied: tuple[str, int] | None = None
        self._stopped: tuple[str, int] | None = None
        self._commanded: tuple[str, int] | None = None
        self._hanging: threading.Thread | None = None
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, name="device heartbeat", daemon=True),
            threading.Thread(target=self._watch, name="device watch", daemon=True),
        ]

    def __enter__(self) -> Supervisor:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Begin to watch the device."""
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the watch and release the device; it is not stopped."""
        self._closing.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(self.limits.beat_every + 1.0)
        self.device.close()

    @property
    def status(self) -> DeviceStatus:
        """How the device is now."""
        with self._facts:
            state: State = "waiting" if self._seen is None else self._phase
            state = "silent" if self._silent else state
            seen = None if self._seen is None else time.monotonic() - self._seen
            trial = None if self._applied is None else self._applied[1]
            problem = self._problem
            if self._not_recorded:
                problem += f" (the hold could not be recorded: {self._not_recorded})"
            return DeviceStatus(state, seen, problem, trial)

    def apply(self, session: HasRecord, *, after_stop: bool = False) -> Trial:
        """Set the policy of the session's started trial; returns when it is acknowledged.

        A trial that was acknowledged is not sent again. One that was stopped is sent again only
        with `after_stop`. Raises DeviceError, after which the session is put on hold.
        """
        with self._command:
            stops = self._stops
            record = session.record
            trial = started_trial(record)
            name = (record.session, trial.number)
            with self._facts:
                if self._applied == name:
                    return trial
            self._require_answering("apply")
            with self._facts:
                stopped = self._stopped == name and not after_stop
                if stopped or self._stops != stops:
                    self._stopped = name
                    raise DeviceStoppedError(
                        f"trial {trial.number}: the device was stopped; abort the trial, or apply "
                        "it again explicitly"
                    )
                self._applied, self._stopped, self._commanded = None, None, name
                self._phase = "applying"
            body = {"session": record.session, "trial": trial.number, "policy": dict(trial.policy)}
            self.note("start", body)
            self._call(lambda: self.device.apply(dict(trial.policy)), "apply")
            self._require_not_stopped(stops, name)
            self.note("applied", body)
            return trial

    def _require_not_stopped(self, stops: int, name: tuple[str, int]) -> None:
        """Notes that the policy is applied, unless a stop came in while it was being applied."""
        with self._facts:
            if self._stops == stops:
                self._applied, self._phase = name, "running"
                return
        # The stop may have reached the device before the policy did.
        self._call(self.device.stop, "stop")
        raise DeviceStoppedError(f"trial {name[1]}: the device was stopped")

    def measure(self, session: HasRecord) -> dict[str, float | None]:
        """The outcomes of the started trial, None for what was not measured.

        Raises DeviceError if the device was not set to this trial or measures unknown names, and
        DeviceStoppedError if the trial ends meanwhile, such as by an outcome that is typed in.
        """
        with self._command:
            record = session.record
            trial = started_trial(record)
            with self._facts:
                if self._applied != (record.session, trial.number):
                    raise DeviceError(
                        f"measure: expected a device that is set to trial {trial.number}, "
                        f"got {'none' if self._applied is None else f'trial {self._applied[1]}'}"
                    )
                self._phase = "measuring"
            measured = self._measured(session, trial) or {}
            unknown = sorted(measured.keys() - record.space.outcomes.keys())
            if unknown:
                raise DeviceError(
                    f"measure: expected outcomes of {', '.join(record.space.outcomes)}, "
                    f"got {', '.join(unknown)}"
                )
            outcome = {name: measured.get(name) for name in record.space.outcomes}
            self.note(
                "measured",
                {"session": record.session, "trial": trial.number, "outcome": outcome},
            )
            return outcome

    def _measured(self, session: HasRecord, trial: Trial) -> Measured | None:
        def wanted() -> bool:
            current = session.record.current
            return current is not None and current.number == trial.number and not current.measured

        self._require_answering("measure")
        try:
            return self._call(self.device.measure, "measure", wanted)
        finally:
            with self._facts:
                self._phase = "running" if self._phase == "measuring" else self._phase

    def stop(self) -> None:
        """Stop the device now, also while a policy is being applied and when it is silent."""
        with self._facts:
            self._stops += 1
            stopped = self._stopped = self._commanded
            self._applied, self._phase = None, "stopped"
        try:
            self._call(self.device.stop, "stop")
        finally:
            names = {} if stopped is None else {"session": stopped[0], "trial": stopped[1]}
            self.note("stop", names)

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        """Tell what happened to a device that listens; its failure is a problem, not an error."""
        if isinstance(self.device, Listener):
            try:
                self.device.note(kind, body)
            except Exception as error:  # noqa: BLE001 - a marker must not stop an experiment
                with self._facts:
                    self._problem = f"marker {kind}: {error}"

    def _call(
        self, command: Callable[[], Result], what: str, wanted: Callable[[], bool] | None = None
    ) -> Result:
        """What a command of the device returns, within its limit; a failure begins a silence."""
        try:
            result = self._within(command, what, wanted)
        except DeviceStoppedError:
            raise
        except DeviceError as error:
            self._fail(f"{what}: {error}")
            raise
        except Exception as error:
            self._fail(f"{what}: {type(error).__name__}: {error}")
            raise DeviceError(f"{what}: {type(error).__name__}: {error}") from error
        self._answered()
        return result

    def _require_answering(self, what: str) -> None:
        if self._hanging is not None and self._hanging.is_alive():
            raise SilentDeviceError(f"{what}: the device is still busy with an earlier command")
        if self._silent:
            raise SilentDeviceError(f"{what}: the device is silent: {self._problem}")

    def _within(
        self, command: Callable[[], Result], what: str, wanted: Callable[[], bool] | None
    ) -> Result:
        """Run a command in a thread of its own, since nothing else can end a driver that hangs.

        The thread is left alone when its result is no longer `wanted`: the next `apply` ends it.
        """
        seconds: float = getattr(self.limits, f"{what}_within")
        results: list[Result] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                results.append(command())
            except Exception as error:  # noqa: BLE001 - passed on to the caller
                errors.append(error)

        thread = threading.Thread(target=run, name=f"device {what}", daemon=True)
        thread.start()
        end = time.monotonic() + seconds
        while thread.is_alive() and (left := end - time.monotonic()) > 0:
            thread.join(left if wanted is None else min(left, LOOK_EVERY))
            if wanted is not None and thread.is_alive() and not wanted():
                raise DeviceStoppedError(f"{what}: the trial is over")
        if errors:
            raise errors[0]
        if not results:
            self._hanging = thread
            raise SilentDeviceError(f"no answer within {seconds:g} s")
        return results[0]

    def _answered(self, age: float | None = None) -> None:
        """The device was heard `age` seconds ago, or just now."""
        with self._facts:
            self._seen = time.monotonic() - (age or 0.0)
            if (age or 0.0) <= self.limits.silent_after and self._told:
                self._silent, self._problem, self._beat_problem = False, "", ""

    def _fail(self, why: str) -> None:
        """Begin a silence, unless there is one; the device is told to stop, if it can hear."""
        with self._facts:
            self._problem = why
            if self._silent:
                return
            self._silent, self._told, self._applied = True, False, None
            self._phase = "idle"
        threading.Thread(target=self._stop_quietly, name="device stop", daemon=True).start()

    def _stop_quietly(self) -> None:
        with suppress(Exception):  # it is silent, which the operator is told
            self.device.stop()

    def _beat(self) -> None:
        """Ask for an answer again and again; this thread may hang with the device."""
        while not self._closing.is_set():
            try:
                age = self.device.heartbeat()
            except SilentDeviceError as error:
                with self._facts:
                    self._beat_problem = f": {error}"
            except DeviceError as error:  # it answers, and something is wrong
                self._fail(f"heartbeat: {error}")
            except Exception as error:  # noqa: BLE001 - any failure of a driver is a silence
                with self._facts:
                    self._beat_problem = f": {type(error).__name__}: {error}"
            else:
                self._answered(age)
            self._closing.wait(self.limits.beat_every)

    def _watch(self) -> None:
        while not self._closing.wait(self.limits.beat_every / 4):
            with self._facts:
                last = self._begun if self._seen is None else self._seen
                quiet = time.monotonic() - last
            if quiet > self.limits.silent_after:
                self._fail(f"no answer for {quiet:.0f} s{self._beat_problem}")
            if not self._told:
                self._tell()

    def _tell(self) -> None:
        """Have the session put on hold."""
        try:
            self._on_silent(self._problem)
        except Exception as error:  # noqa: BLE001 - told again until it succeeds
            with self._facts:
                self._not_recorded = f"{type(error).__name__}: {error}"
        else:
            with self._facts:
                self._told, self._not_recorded = True, ""


def started_trial(record: Record) -> Trial:
    """The trial that a device may be set to now; raises DeviceError if there is none."""
    trial = record.current
    if trial is None or not trial.started:
        state = "no open trial" if trial is None else f"trial {trial.number}, not started"
        raise DeviceError(f"device: expected a started trial in the record, got {state}")
    if record.interrupted or record.closed:
        raise DeviceError(f"device: expected an open session, got one that is {record.status}")
    return trial
