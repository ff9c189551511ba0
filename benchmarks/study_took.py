"""What the study really took: the seconds that it noted for every unit while it ran.

`results/<preset>/timings.jsonl` has one line a unit, in wall time, users and evaluation included,
with two workers side by side. From these: what the whole study takes at the same pace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sfihilo.study.design.conditions import Preset, Unit
from sfihilo.study.design.panels import panel_rows, units_of
from sfihilo.study.run.progress import Forecast

QUERIES, USERS, WORKERS = 1000, 30, 2


@dataclass(frozen=True)
class Took:
    """The units of the study that are timed, and the whole study at their pace."""

    done: int
    whole: int
    by_rule: Mapping[str, tuple[int, float]]  # units, mean seconds
    guessed: int  # units that have no other of their condition and rule among the timed ones
    hours: float


def whole_study(preset: Preset = "paper", users: int = USERS) -> list[Unit]:
    """Every unit of the paper's panels."""
    return units_of(panel_rows([]), range(users), preset)


def took(timings: Iterable[Mapping[str, Any]], units: Sequence[Unit]) -> Took | None:
    """Nothing when none of these units has been timed. A unit that was run twice counts once."""
    wanted = {(unit.condition.name, unit.rule, unit.user, unit.queries) for unit in units}
    seconds: dict[tuple[str, str, int], float] = {}
    for line in timings:
        key = (line["condition"], line["rule"], line["user"])
        if (*key, line["queries"]) in wanted:
            seconds[key] = line["seconds"]
    forecast = Forecast(WORKERS, list(units))
    by_rule: dict[str, list[float]] = defaultdict(list)
    for (condition, rule, _), value in seconds.items():
        forecast.learn(condition, rule, value)
        by_rule[rule].append(value)
    total = forecast.seconds_to_go()
    if total is None:
        return None
    known = {(condition, rule) for condition, rule, _ in seconds}
    return Took(
        done=len(seconds),
        whole=len(units),
        by_rule={rule: (len(values), fmean(values)) for rule, values in by_rule.items()},
        guessed=sum((unit.condition.name, unit.rule) not in known for unit in units),
        hours=total / 3600,
    )
