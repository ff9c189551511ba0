"""The progress of a run and the time that it still needs."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean

from tqdm import tqdm

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run.runner import Plan


@dataclass
class Forecast:
    """The remaining time, from the cost of finished units of the same condition and rule."""

    workers: int
    left: list[Unit]
    costs: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, condition: str, rule: str, seconds: float) -> None:
        self.costs[condition, rule].append(seconds)

    def finish(self, unit: Unit, seconds: float | None) -> None:
        self.left = [other for other in self.left if other.key != unit.key]
        if seconds is not None:
            self.learn(unit.condition.name, unit.rule, seconds)

    def expected(self, unit: Unit) -> float | None:
        """The mean cost of its condition and rule, else of its rule, else of all units."""
        means = {kind: fmean(costs) for kind, costs in self.costs.items()}
        kind = (unit.condition.name, unit.rule)
        if kind in means:
            return means[kind]
        alike = [mean for (_, rule), mean in means.items() if rule == unit.rule]
        known = alike or list(means.values())
        return fmean(known) if known else None

    def seconds_to_go(self) -> float | None:
        """None until a unit has finished."""
        costs = [self.expected(unit) for unit in self.left]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        # The longest unit is a lower bound, whatever the number of workers.
        return max([sum(known) / self.workers, *known], default=0.0)


class Bar:
    """A progress bar in a terminal; a line every 30 seconds in a log."""

    def begin(self, plan: Plan, places: int) -> None:
        """Shows the number of units that are done, and the forecast from stored timings."""
        self.forecast = Forecast(places, list(plan.left))
        for timing in plan.store.read_timings():
            if timing["queries"] == plan.units[0].queries:
                self.forecast.learn(timing["condition"], timing["rule"], timing["seconds"])
        self.bar = tqdm(
            total=len(plan.units),
            initial=len(plan.units) - len(plan.left),
            unit="unit",
            file=sys.stderr,
            mininterval=0.1 if sys.stderr.isatty() else 30,
            bar_format="{n_fmt}/{total_fmt} units |{bar:30}| {elapsed} passed{postfix}",
            postfix=self._to_go(),
        )

    def note(self, unit: Unit, seconds: float | None) -> None:
        """Counts a unit as finished after these seconds, or as failed (None)."""
        self.forecast.finish(unit, seconds)
        self.bar.set_postfix_str(self._to_go(), refresh=False)
        self.bar.update()

    def _to_go(self) -> str:
        return f"{duration(self.forecast.seconds_to_go())} to go"

    def end(self) -> None:
        """Ends the line of the bar."""
        self.bar.close()


def duration(seconds: float | None) -> str:
    """A time in its largest suitable unit, rounded."""
    if seconds is None:
        return "unknown time"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
