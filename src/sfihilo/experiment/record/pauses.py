"""How long a pause was, told by two clocks of which each may be wrong.

The system clock may be set back; the monotonic clock of a computer begins at 0 when the computer is
started, and stands still while it sleeps. A pause took as long as the clock says that tells more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sfihilo.experiment.log.event import Event


class Moment(NamedTuple):
    """A time on both clocks: ISO 8601, and nanoseconds of the monotonic one."""

    wall: str
    monotonic: int

    @staticmethod
    def of(event: Event) -> Moment:
        """When an event was written."""
        return Moment(event.wall, event.monotonic)

    def since(self, earlier: Moment) -> timedelta | None:
        """The time since an earlier moment; None if the monotonic clock went back.

        Times of a foreign log that cannot be compared say as little.
        """
        passed = self.monotonic - earlier.monotonic
        if passed < 0:
            return None
        try:
            wall = datetime.fromisoformat(self.wall) - datetime.fromisoformat(earlier.wall)
            return max(wall, timedelta(microseconds=passed / 1000))
        except (ValueError, TypeError, OverflowError):  # no time, or one without its zone
            return None

    def is_after_restart(self, earlier: Moment) -> bool:
        """Whether the computer was started since an earlier moment, or that cannot be excluded.

        Then the power may have failed, of the device too. Either the monotonic clock went back, or
        it does not reach back to the earlier moment: the computer runs for less time than passed.
        """
        pause = self.since(earlier)
        return pause is None or pause > timedelta(microseconds=self.monotonic / 1000)

    def is_after_break(self, earlier: Moment, minutes: float) -> bool:
        """Whether more minutes than these passed since, or the computer was started."""
        pause = self.since(earlier)
        return pause is None or is_longer(pause, minutes) or self.is_after_restart(earlier)


def is_longer(pause: timedelta, minutes: float) -> bool:
    """Whether a pause was longer than this."""
    return pause.total_seconds() > minutes * 60
