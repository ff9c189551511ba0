"""How long a pause was, told by two clocks of which each may be wrong.

The system clock may be set back; the monotonic clock of a computer begins anew when the computer is
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
        """The time since an earlier moment; None if the computer was started in between.

        Then the power may have failed, of the device too. Times of a foreign log that cannot be
        compared say as little.
        """
        passed = self.monotonic - earlier.monotonic
        if passed < 0:
            return None
        try:
            wall = datetime.fromisoformat(self.wall) - datetime.fromisoformat(earlier.wall)
            return max(wall, timedelta(microseconds=passed / 1000))
        except (ValueError, TypeError, OverflowError):  # no time, or one without its zone
            return None


def is_longer(pause: timedelta | None, minutes: float) -> bool:
    """Whether a pause was longer than this; one of unknown length was."""
    return pause is None or pause.total_seconds() > minutes * 60
