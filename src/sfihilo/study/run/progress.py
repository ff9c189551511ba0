"""How far a run is, for a person who watches it."""

from __future__ import annotations

import sys

from tqdm import tqdm

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run.runner import Forecast


class Bar:
    """Progress for a person: a bar in a terminal, a line now and then in a log."""

    def __init__(self, total: int, done: int, forecast: Forecast) -> None:
        self.forecast = forecast
        terminal = sys.stderr.isatty()
        self.bar = tqdm(
            total=total,
            initial=done,
            unit="unit",
            file=sys.stderr,
            mininterval=0.1 if terminal else 30,
            bar_format="{n_fmt}/{total_fmt} units |{bar:30}| {elapsed} passed{postfix}",
            postfix=self._to_go(),
        )

    def note(self, unit: Unit, seconds: float | None) -> None:
        """One more unit is done (seconds) or failed (None)."""
        self.forecast.finish(unit, seconds)
        self.bar.set_postfix_str(self._to_go(), refresh=False)
        self.bar.update()

    def _to_go(self) -> str:
        return f"{duration(self.forecast.seconds_to_go())} to go"

    def close(self) -> None:
        """Leave the line as it is."""
        self.bar.close()


def duration(seconds: float | None) -> str:
    """Time for a person, no more precise than it is known."""
    if seconds is None:
        return "unknown time"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
