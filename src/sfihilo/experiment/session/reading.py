"""A session at one moment: what is computed from it needs no second look at the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output.advice import Advice, advise
from sfihilo.experiment.record.places import places
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.commit import now
from sfihilo.experiment.session.requirements import require_functions
from sfihilo.experiment.space.space import Policy

if TYPE_CHECKING:
    from sfihilo import State


@dataclass(frozen=True)
class Reading:
    """The events of a session, the record that they tell, and the learner after it."""

    record: Record
    events: tuple[Event, ...]
    state: State

    def places_now(self) -> tuple[Policy, ...]:
        """Where the device may be by now: after a long pause it may have been switched off."""
        wall, monotonic = now()
        last = self.events[-1]
        resumed = replace(last, kind="resumed", body={}, wall=wall, monotonic=monotonic)
        return places([*self.events, resumed], self.record.space.start)

    def recommend(
        self,
        feasible: Mapping[str, Any] | None = None,
        compare_with: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Advice:
        """The best policy so far; see `Session.recommend`."""
        require_functions(self.record)
        record = replace(self.record, positions=self.places_now())
        return advise(record, self.state, feasible, compare_with)
