"""Lab Streaming Layer: markers out, outcomes in.

Needs the extra `devices` (pylsl, which brings liblsl). Streams are found on the local network by
their name; time stamps are corrected to the clock of this computer by liblsl.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sfihilo.console.devices.device import (
    DeviceError,
    DeviceStoppedError,
    Measured,
    Policy,
    SilentDeviceError,
)
from sfihilo.experiment.estimators import SUMMARIES, PoorDataError, Summary, summary

GRACE = 0.2  # seconds, for samples that are still on their way when the walk is over
KEPT = 60.0  # seconds of samples that are kept beyond the window


def load_pylsl() -> Any:
    """The module pylsl; raises ValueError with what to install where it is missing."""
    try:
        import pylsl
    except (ImportError, RuntimeError) as error:  # RuntimeError: liblsl itself is missing
        raise ValueError(
            "Lab Streaming Layer: expected the packages of the extra 'devices' "
            f"(pip install 'sfihilo[devices]'), got: {str(error).strip().splitlines()[0]}"
        ) from error
    return pylsl


class MarkerStream:
    """A marker stream for recorders: one JSON text per start, applied, stop, measured and answer.

    with_session: whether markers carry the name of the session, which contains the participant's
    code; the trial's number is always there.
    """

    def __init__(self, name: str = "SFIHILO", with_session: bool = True) -> None:
        self._lsl = load_pylsl()
        self._with_session = with_session
        described = self._lsl.StreamInfo(
            name, "Markers", 1, self._lsl.IRREGULAR_RATE, self._lsl.cf_string, f"sfihilo-{name}"
        )
        self._outlet: Any = self._lsl.StreamOutlet(described)

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        if self._outlet is None:
            raise DeviceError("markers: the stream was closed")
        stamp = self._lsl.local_clock()
        shown = {
            name: value for name, value in body.items() if self._with_session or name != "session"
        }
        self._outlet.push_sample([json.dumps({"event": kind, **shown})], stamp)

    def apply(self, policy: Policy) -> None:
        """Nothing: the marker `applied` follows when every device has acknowledged."""

    def measure(self) -> Measured | None:
        return None

    def stop(self) -> None:
        """Nothing: the marker `stop` is a note."""

    def heartbeat(self) -> float | None:
        return None

    def close(self) -> None:
        self._outlet = None  # liblsl ends the stream when its object is gone


@dataclass(frozen=True)
class Channel:
    """Which channel of the stream is an outcome, and how its samples become one number."""

    label: str
    by: Summary = "mean"


class OutcomeStream:
    """Outcomes from the channels of a stream, over the window of a walk.

    Args:
        stream: the name of the stream; there must be exactly one.
        channels: outcome -> label of its channel, or a table with `label` and `by`: "mean",
            "median", "last" or "transient" (the steady state of a first-order response).
        seconds: of a walk; `measure` waits until it is over.
        settle: how many seconds at the begin of a walk do not count, except for "transient".
    """

    def __init__(
        self,
        stream: str,
        channels: Mapping[str, Any],
        seconds: float = 120.0,
        settle: float = 0.0,
    ) -> None:
        if not 0 <= settle < seconds:
            raise ValueError(
                f"settle, seconds: expected 0 <= settle < seconds, got {settle}, {seconds}"
            )
        self._lsl = load_pylsl()
        self.stream, self.seconds, self.settle = stream, seconds, settle
        self.channels = {name: _channel(name, given) for name, given in channels.items()}
        if not self.channels:
            raise ValueError("channels: expected at least one outcome, got none")
        self.problems: dict[str, str] = {}  # why an outcome of the last walk is missing
        self._change = threading.Condition()  # guards the fields below
        self._samples: list[tuple[float, list[float]]] = []
        self._columns: dict[str, int] | None = None  # None while there is no connection
        self._rate = 0.0
        self._heard: float | None = None
        self._problem = f"stream {stream!r}: not found yet"
        self._fault = False
        self._begun: float | None = None
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, name="LSL outcomes", daemon=True)
        self._reader.start()

    def apply(self, policy: Policy) -> None:
        """The window begins now; a walk without its sensors does not begin."""
        with self._change:
            self._require_connected()
            self._begun = self._lsl.local_clock()
            self._change.notify_all()

    def measure(self) -> Measured | None:
        with self._change:
            begun = self._begun
            if begun is None:
                raise DeviceStoppedError("measure: expected a walk, got none")
            end = begun + self.seconds
            while (left := end + GRACE - self._lsl.local_clock()) > 0:
                self._change.wait(left)
                if self._begun != begun or self._closing.is_set():
                    raise DeviceStoppedError("measure: the walk was stopped")
            window = [(t - begun, row) for t, row in self._samples if begun <= t <= end]
            columns = self._columns
        self.problems = {}
        if columns is None:
            self.problems = dict.fromkeys(self.channels, self._problem)
            return dict.fromkeys(self.channels)
        return {name: self._outcome(name, window, columns) for name in self.channels}

    def _outcome(
        self, name: str, window: list[tuple[float, list[float]]], columns: Mapping[str, int]
    ) -> float | None:
        channel = self.channels[name]
        settle = 0.0 if channel.by == "transient" else self.settle
        column = columns[channel.label]
        kept = [(t, row[column]) for t, row in window if t >= settle]
        try:
            return summary([t for t, _ in kept], [value for _, value in kept], channel.by)
        except PoorDataError as error:
            self.problems[name] = str(error)
            return None

    def stop(self) -> None:
        with self._change:
            self._begun = None
            self._change.notify_all()

    def heartbeat(self) -> float | None:
        """The age of the last sample of a regular stream; raises where there is no stream.

        A stream without a rate (breaths, a score) is heard as long as it is connected.
        """
        with self._change:
            self._require_connected()
            if self._rate == 0 or self._heard is None:
                return None
            return time.monotonic() - self._heard

    def close(self) -> None:
        self._closing.set()
        with self._change:
            self._change.notify_all()
        self._reader.join(5.0)

    def _require_connected(self) -> None:
        if self._columns is None:
            error = DeviceError if self._fault else SilentDeviceError
            raise error(self._problem)

    def _read(self) -> None:
        """Find the stream, read it until it is gone, and begin anew."""
        while not self._closing.is_set():
            try:
                inlet = self._connected()
                if inlet is not None:
                    self._receive(inlet)
            except RuntimeError as error:  # every error of pylsl is one
                self._lost(f"stream {self.stream!r}: {error or 'lost'}")

    def _lost(self, why: str, *, fault: bool = False) -> None:
        with self._change:
            self._columns, self._problem, self._fault = None, why, fault
        self._closing.wait(0.1)

    def _connected(self) -> Any:
        """An inlet of the stream, or None; what is wrong is in `_problem`."""
        found = self._lsl.resolve_byprop("name", self.stream, 1, 0.5)
        if len(found) != 1:
            count = "no stream" if not found else f"{len(found)} streams"
            self._lost(f"stream {self.stream!r}: expected one, got {count}", fault=bool(found))
            return None
        inlet = self._lsl.StreamInlet(
            found[0], recover=False, processing_flags=self._lsl.proc_clocksync
        )
        described = inlet.info(timeout=5.0)
        labels = described.get_channel_labels() or []
        missing = {channel.label for channel in self.channels.values()} - set(labels)
        if missing:
            self._lost(
                f"stream {self.stream!r}: expected channels {', '.join(sorted(missing))}, "
                f"got {', '.join(map(str, labels)) or 'none with a label'}",
                fault=True,
            )
            return None
        inlet.open_stream(timeout=5.0)
        inlet.time_correction(timeout=5.0)  # the first one takes long: not within the first walk
        with self._change:
            self._columns = {label: place for place, label in enumerate(labels)}
            self._rate, self._heard = float(described.nominal_srate()), time.monotonic()
        return inlet

    def _receive(self, inlet: Any) -> None:
        while not self._closing.is_set():
            rows, stamps = inlet.pull_chunk(timeout=0.1)
            if not stamps:
                continue
            with self._change:
                self._heard = time.monotonic()
                self._samples += zip(stamps, rows, strict=True)
                oldest = self._lsl.local_clock() - self.seconds - KEPT
                if self._samples[0][0] < oldest - KEPT:
                    self._samples = [sample for sample in self._samples if sample[0] >= oldest]


def _channel(name: str, given: Any) -> Channel:
    if isinstance(given, str):
        return Channel(given)
    if isinstance(given, Mapping) and given.keys() <= {"label", "by"} and "label" in given:
        by = given.get("by", "mean")
        if isinstance(given["label"], str) and by in SUMMARIES:
            return Channel(given["label"], cast(Summary, by))
    raise ValueError(
        f"channels.{name}: expected a label, or a table with label and by "
        f"({', '.join(SUMMARIES)}), got {given!r}"
    )
