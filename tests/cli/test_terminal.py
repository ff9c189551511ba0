"""Ctrl-C that reaches the program as a character, not as a signal."""

import os
import tty

import pytest

from sfihilo.cli.interactive.terminal import Terminal


@pytest.mark.parametrize("read", ["_pressed", "_line"])
def test_interrupt_that_arrives_as_a_character_stops(
    read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = os.openpty()
    tty.setraw(slave)  # without signals, as for a moment while the mode changes
    with os.fdopen(slave) as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        terminal = Terminal()
        os.write(master, b"\x03")
        with pytest.raises(KeyboardInterrupt):
            terminal._pressed() if read == "_pressed" else terminal._line(1.0)
    os.close(master)
