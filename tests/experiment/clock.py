"""A clock that tests move: of the record, and of the session that reads it."""

import time
from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from sfihilo.experiment.log import rows
from sfihilo.experiment.session import commit

MINUTE = 60 * 10**9  # in nanoseconds


class LabClock:
    """Both clocks of the lab's computer, standing still until they are moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall = datetime(2026, 3, 2, 9, tzinfo=UTC)
        self.monotonic = 10**15
        for module in (rows, commit):
            patch.setattr(module, "datetime", self)
            patch.setattr(module, "time", self)

    def now(self, zone: tzinfo) -> datetime:
        return self.wall.astimezone(zone)

    def monotonic_ns(self) -> int:
        return self.monotonic

    def passes(self, minutes: float, *, set_back: float = 0.0) -> None:
        """Time passes, and the system clock is set back by so many minutes."""
        self.wall += timedelta(minutes=minutes - set_back)
        self.monotonic += int(minutes * MINUTE)

    def restart(self, minutes: float) -> None:
        """The computer is off for so many minutes."""
        self.wall += timedelta(minutes=minutes)
        self.monotonic = time.monotonic_ns() % 10**9
