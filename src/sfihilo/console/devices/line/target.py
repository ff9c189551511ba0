"""The other end of the line: what a real-time target does with each line that it receives.

This is the reference for targets in C and Simulink, and it serves small targets in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sfihilo.console.devices.line.line import Line, numbers_as_text, numbers_from_text, parse

OLD, OTHER_LINK, LATER, REFUSED = "old", "link", "later", "refused"


class Target:
    """Executes each command once, in order, however often and late its line arrives.

    apply: raises ValueError for a policy that the device refuses. measure: None until the walk is
    over. Not thread-safe: call `reply` from one loop.
    """

    def __init__(
        self,
        apply: Callable[[Mapping[str, float]], None],
        measure: Callable[[], Mapping[str, float | None] | None],
        stop: Callable[[], None],
    ) -> None:
        self._apply, self._measure, self._stop = apply, measure, stop
        self.link = 0
        self.last = 0  # number of the last command
        self.at = 0  # number of the APPLY in force, 0 after a stop
        self._answer: Line | None = None

    def reply(self, raw: bytes) -> bytes | None:
        """The line to send back; None for a line that was damaged on its way."""
        line = parse(raw)
        if line is None or line.verb in ("ACK", "NAK"):
            return None
        return self._replied(line).encode()

    def stop(self) -> None:
        """The target stops by itself, such as by its emergency button; the console notices."""
        self.at = 0
        self._stop()

    def _replied(self, line: Line) -> Line:
        if line.verb == "HELLO":
            return self._greeted(line)
        if line.verb == "STOP" and line.link != self.link:
            self.stop()  # whoever says so
            return replace(line, verb="ACK", fields={})
        if line.link != self.link:
            return _refusal(line, OTHER_LINK)
        if line.verb == "BEAT":
            return replace(line, fields={"at": str(self.at)})
        if line.number == self.last and self._answer is not None:
            return self._answer
        if line.number <= self.last:
            return _refusal(line, OLD)
        self.last = line.number
        self._answer = self._executed(line)
        return self._answer

    def _greeted(self, line: Line) -> Line:
        if line.link < self.link:
            return _refusal(line, OTHER_LINK)
        if line.link > self.link:
            self.link, self.last, self.at, self._answer = line.link, 0, 0, None
        if line.number > self.last:
            self.last, self._answer = line.number, None
        return replace(line, verb="ACK", fields={})

    def _executed(self, line: Line) -> Line:
        if line.verb == "STOP":
            self.stop()
            return replace(line, verb="ACK", fields={})
        try:
            if line.verb == "MEASURE":
                measured = self._measure()
                if measured is None:
                    return _refusal(line, LATER)
                return replace(line, verb="ACK", fields=numbers_as_text(measured))
            policy = numbers_from_text(line.fields)
            known = {name: value for name, value in policy.items() if value is not None}
            if not known or len(known) < len(policy):
                return _refusal(line, REFUSED)
            self._apply(known)
        except ValueError:
            return _refusal(line, REFUSED)
        self.at = line.number
        return replace(line, verb="ACK", fields={})


def _refusal(line: Line, why: str) -> Line:
    return replace(line, verb="NAK", fields={"why": why})
