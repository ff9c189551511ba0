"""The terminal of an interactive session: single keys, lines, a running clock.

Without a terminal (a pipe, a script) a key is the first character of a line, and an empty line is
Enter, so that the same session can be driven by a file.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill

import typer

from sfihilo.cli.interactive.screens import END, ENTER
from sfihilo.cli.output import line_width, readable

try:
    import termios
    import tty
except ImportError:  # a system without them reads whole lines
    termios = tty = None  # type: ignore[assignment]


class Terminal:
    """Reads keys and lines of the standard input, writes lines to the standard output."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self.interactive = termios is not None and os.isatty(self._input) and sys.stdout.isatty()
        self._waiting = b""

    def has_lines(self, count: int) -> bool:
        """Whether `count` lines fit on the screen of a terminal."""
        return self.interactive and shutil.get_terminal_size().lines >= count

    def show(self, *lines: str) -> None:
        """Lines for the operator; one that is too long for a terminal is broken between words."""
        for line in map(readable, lines):
            fits = not self.interactive or len(line) <= line_width()
            typer.echo(line if fits else fill(line, line_width()))

    def heading(self, line: str) -> None:
        """A line that stands out."""
        typer.echo(typer.style(readable(line), bold=True))

    def status(self, text: str) -> None:
        """A line that is written over by the next one; nothing in a pipe."""
        if self.interactive:
            typer.echo(f"\r{readable(text)}\x1b[K", nl=False)

    def bell(self) -> None:
        """Call the operator."""
        if self.interactive:
            typer.echo("\a")

    def discard(self) -> None:
        """Forget keys that were pressed before the question was shown."""
        if self.interactive:
            termios.tcflush(self._input, termios.TCIFLUSH)

    def key(self, timeout: float | None = None) -> str | None:
        """The next key; None if none is pressed in time."""
        if not self.interactive:
            line = self._line(timeout)
            return line if line in (None, END) else (line or "").strip()[:1] or ENTER
        with self._single_keys():
            if not select.select([self._input], [], [], timeout)[0]:
                return None
            return self._pressed()

    def line(self, prompt: str) -> str:
        """A line that the operator types; END where the input has ended."""
        typer.echo(readable(prompt), nl=False)
        sys.stdout.flush()
        return self._line(None) or ""

    def _pressed(self) -> str:
        try:
            first = os.read(self._input, 1)
            while select.select([self._input], [], [], 0)[0] and first[:1] in (b"\x1b",):
                if not (more := os.read(self._input, 16)):
                    break
                first += more
        except OSError:  # the terminal was closed
            return END
        if not first:
            return END
        _stop_at_interrupt(first)
        length = 4 if first[0] >= 0xF0 else 3 if first[0] >= 0xE0 else 2 if first[0] >= 0xC0 else 1
        first += os.read(self._input, length - 1) if length > 1 else b""
        return first.decode(errors="replace")[:1]

    def _line(self, timeout: float | None) -> str | None:
        while b"\n" not in self._waiting:
            if not select.select([self._input], [], [], timeout)[0]:
                return None
            try:
                more = os.read(self._input, 4096)
            except OSError:
                more = b""
            if not more:
                rest, self._waiting = self._waiting, b""
                return rest.decode(errors="replace") or END
            _stop_at_interrupt(more)
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    @contextmanager
    def _single_keys(self) -> Iterator[None]:
        before = termios.tcgetattr(self._input)
        try:
            tty.setcbreak(self._input, termios.TCSADRAIN)
            yield
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, before)


def _stop_at_interrupt(pressed: bytes) -> None:
    """Ctrl-C that arrives as a character, as it may while the terminal changes its mode."""
    if b"\x03" in pressed:
        raise KeyboardInterrupt
