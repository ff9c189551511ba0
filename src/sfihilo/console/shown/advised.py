"""Which policy was advised after each trial: kept in memory, computed in the background.

A page that shows it asks for it; nobody waits. What was advised before the server began is computed
once, for at most `POINTS` trials of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from sfihilo.experiment import Record
from sfihilo.experiment.insight import advised_now, advised_policies, learned_rewards
from sfihilo.experiment.session.rounds import used_answers

if TYPE_CHECKING:
    from sfihilo import State
    from sfihilo.console.open_sessions import Sessions

POINTS = 20


class Advised:
    """The advised policies of the sessions of one console; threads may share it."""

    def __init__(self, sessions: Sessions, changed: Callable[[str], None]) -> None:
        self._sessions, self._changed = sessions, changed
        self._found: dict[str, dict[int, np.ndarray]] = {}
        self._running: set[str] = set()
        self._lock = Lock()

    def series(self, record: Record, state: State) -> dict[str, list[float]]:
        """The learned reward, as it is known now, of what was advised after each trial."""
        self._bring_up_to_date(record, state)
        used = used_answers(record)
        found = {
            trial: unit
            for trial, unit in sorted(self._found.get(record.session, {}).items())
            if trial in used
        }
        if not found:
            return {"trial": [], "reward": [], "low": [], "high": []}
        rewards = learned_rewards(state, record.space, np.array(list(found.values())))
        mean, low, high = rewards.tolist()
        return {
            "trial": [float(trial) for trial in found],
            "reward": mean,
            "low": low,
            "high": high,
        }

    def _bring_up_to_date(self, record: Record, state: State) -> None:
        """Compute what is missing in the background, unless that goes on already."""
        used, name = sorted(used_answers(record)), record.session
        with self._lock:
            known = self._found.get(name)
            if not used or name in self._running or (known is not None and used[-1] in known):
                return
            self._running.add(name)
        self._sessions.chore(lambda: self._compute(record, state, used, known))

    def _compute(
        self, record: Record, state: State, used: list[int], known: dict[int, np.ndarray] | None
    ) -> None:
        name = record.session
        try:
            if known is None and len(used) > 1:
                known = advised_policies(record, some(used))
            found = {**(known or {}), used[-1]: advised_now(record, state)}
            self._found[name] = found
        finally:
            with self._lock:
                self._running.discard(name)
        self._changed(name)


def some(trials: list[int]) -> list[int]:
    """At most `POINTS` of the trials before the last one, evenly."""
    earlier = trials[:-1]
    if len(earlier) <= POINTS:
        return earlier
    places = np.linspace(0, len(earlier) - 1, POINTS).round().astype(int)
    return [earlier[place] for place in places]
