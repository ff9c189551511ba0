"""A real-time target (Speedgoat, dSPACE, a microcontroller) that speaks lines over UDP or TCP.

Every command is repeated until the target acknowledges it. Its number lets the target ignore what
arrives twice or late. A stop overtakes the command that waits for its acknowledgement.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping

from sfihilo.console.devices.device import (
    DeviceError,
    DeviceStoppedError,
    Measured,
    Policy,
    SilentDeviceError,
)
from sfihilo.console.devices.line.line import Line, Verb, numbers_as_text, numbers_from_text, parse
from sfihilo.console.devices.line.target import LATER, OTHER_LINK
from sfihilo.console.devices.line.transport import TcpTransport, Transport, UdpTransport

ASK_AGAIN = 0.25  # seconds between two requests for the outcome of a walk


class LineDevice:
    """Commands a target over a transport; see `udp_device` and `tcp_device`.

    A command is sent every `retry` seconds and given up after `timeout` seconds.
    """

    def __init__(self, transport: Transport, retry: float = 0.1, timeout: float = 2.0) -> None:
        if not 0 < retry <= timeout:
            transport.close()
            raise ValueError(
                f"retry, timeout: expected seconds above 0, retry at most timeout, "
                f"got {retry}, {timeout}"
            )
        self._transport, self._retry, self._timeout = transport, retry, timeout
        self._link = time.time_ns() // 1_000_000  # a console that is started later has a larger one
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()  # one command at a time; a stop does not wait for its turn
        self._arrived = threading.Condition()  # guards the fields below
        self._replies: dict[tuple[Verb, int], Line] = {}
        self._heard: float | None = None
        self._greeted = False
        self._stops = 0
        self._stopping = 0
        self._commands = 0
        self._at = 0
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, name="device lines", daemon=True)
        self._reader.start()

    def apply(self, policy: Policy) -> None:
        self._command("APPLY", numbers_as_text(policy), self._stops)

    def measure(self) -> Measured | None:
        """Asks until the walk is over."""
        stops, at = self._stops, self._at
        while True:
            reply = self._command("MEASURE", {}, stops, accepted=(LATER,))
            if reply.verb == "ACK":
                try:
                    return numbers_from_text(reply.fields)
                except ValueError as error:
                    raise DeviceError(f"measure: {error}") from error
            with self._arrived:
                over = self._arrived.wait_for(
                    lambda: self._stops != stops or self._at != at, ASK_AGAIN
                )
            if over:
                raise DeviceStoppedError("measure: the walk was ended")
            if self._closing.is_set():
                raise DeviceError("measure: the connection was closed")

    def stop(self) -> None:
        """Never waits for another command; the command that waits is given up."""
        with self._arrived:
            self._stops += 1
            self._commands += 1
            self._stopping += 1
            self._at = 0
            number = next(self._numbers)
            self._arrived.notify_all()
        try:
            self._accepted(self._exchange(Line(self._link, number, "STOP"), None), ())
        finally:
            with self._arrived:
                self._stopping -= 1

    def heartbeat(self) -> float | None:
        """Raises also where the target was restarted or is no longer at the applied policy."""
        if not self._greeted:
            with self._turn:
                self._greet()
        with self._arrived:
            busy = self._turn.locked() or self._stopping > 0
            commands, at = self._commands, self._at
        reply = self._exchange(Line(self._link, next(self._numbers), "BEAT"), None)
        self._accepted(reply, ())
        with self._arrived:
            busy = busy or self._commands != commands
        if not busy and reply.fields.get("at") != str(at):
            raise DeviceError(
                f"heartbeat: expected a target that executes {_command_name(at)}, "
                f"got {_command_name(int(reply.fields.get('at', -1)))}"
            )
        return 0.0

    def close(self) -> None:
        self._closing.set()
        with self._arrived:
            self._arrived.notify_all()
        self._transport.close()
        self._reader.join(1.0)

    def _command(
        self, verb: Verb, fields: Mapping[str, str], stops: int, accepted: tuple[str, ...] = ()
    ) -> Line:
        """Sends a command until it is answered; raises DeviceStoppedError after a stop."""
        with self._turn:
            if not self._greeted:
                self._greet()
            with self._arrived:
                # The number is taken where no stop can come between: a stop has a larger one.
                if self._stops != stops:
                    raise DeviceStoppedError(f"{verb.lower()}: the device was stopped")
                self._commands += 1
                line = Line(self._link, next(self._numbers), verb, dict(fields))
            reply = self._accepted(self._exchange(line, stops), accepted)
            with self._arrived:
                if verb == "APPLY" and self._stops == stops:
                    self._at = reply.number
            return reply

    def _greet(self) -> None:
        """Says that this console commands the target from now on."""
        line = Line(self._link, next(self._numbers), "HELLO")
        self._accepted(self._exchange(line, None), ())
        with self._arrived:
            self._greeted, self._at = True, 0

    def _accepted(self, reply: Line, accepted: tuple[str, ...]) -> Line:
        why = reply.fields.get("why", "")
        if reply.verb != "NAK" or why in accepted:
            return reply
        if why == OTHER_LINK:
            self._greeted = False
            raise DeviceError("the target was restarted, or another console commands it")
        raise DeviceError(f"the target refused command {reply.number}: {why or 'no reason given'}")

    def _exchange(self, line: Line, stops: int | None) -> Line:
        """Sends a line again and again until its reply is here."""
        raw = line.encode()
        end = time.monotonic() + self._timeout
        kinds: tuple[Verb, ...] = ("BEAT", "NAK") if line.verb == "BEAT" else ("ACK", "NAK")

        def stopped() -> bool:
            return self._closing.is_set() or (stops is not None and self._stops != stops)

        def found() -> Line | None:
            replies = (self._replies.pop((kind, line.number), None) for kind in kinds)
            return next((reply for reply in replies if reply is not None), None)

        while time.monotonic() < end:
            self._transport.send(raw)
            with self._arrived:
                reply: Line | None = None

                def ready() -> bool:
                    nonlocal reply
                    reply = found()
                    return reply is not None or stopped()

                self._arrived.wait_for(ready, self._retry)
                if reply is not None:
                    return reply
                if stopped():
                    raise DeviceStoppedError(f"{line.verb.lower()}: the device was stopped")
        raise SilentDeviceError(
            f"{line.verb.lower()}: no acknowledgement within {self._timeout:g} s"
        )

    def _read(self) -> None:
        while not self._closing.is_set():
            for raw in self._transport.receive(0.1):
                line = parse(raw)
                if line is None or line.link != self._link:
                    continue
                if line.verb in ("ACK", "NAK", "BEAT"):
                    with self._arrived:
                        self._heard = time.monotonic()
                        self._replies[(line.verb, line.number)] = line
                        self._forget()
                        self._arrived.notify_all()

    def _forget(self) -> None:
        """Replies that arrived twice have nobody who waits for them."""
        while len(self._replies) > 100:
            del self._replies[next(iter(self._replies))]


def _command_name(at: int) -> str:
    return "no policy (stopped)" if at == 0 else f"the policy of command {at}"


def udp_device(host: str, port: int, retry: float = 0.1, timeout: float = 2.0) -> LineDevice:
    """A target that receives one line per datagram."""
    return LineDevice(UdpTransport(host, port), retry, timeout)


def tcp_device(host: str, port: int, retry: float = 0.5, timeout: float = 4.0) -> LineDevice:
    """A target that receives lines over a connection, which the console makes."""
    return LineDevice(TcpTransport(host, port), retry, timeout)
