"""Where the device may be, derived from the whole history of a session.

The invariant: every event that could have moved the device adds the place that it could have moved
it to; only an event that proves a place removes the others; undo never removes a possible place.

* A policy that was shown may have been applied since, whether or not `start` was recorded. Only a
  veto says that it was not, and not if it is because of pain: who felt it was there.
* `placed` proves a place. `started` does not: it is written before the device moves, and the device
  may fail. A number that was measured proves that the trial was walked, and so does the answer to a
  trial that was started. But that is about the past: it proves the present place only if, since the
  trial was shown, nobody gave another place and nothing of another trial was taken back.
* A trial that was aborted or withdrawn, or whose outcome was amended to nothing, proves nothing,
  whatever was recorded before: its data may have been typed by mistake.
* After an interruption of more than `break_minutes` (an hour if there is none) the device may have
  been switched off, and be at its start again. Data of a trial that was left open may be of before,
  unless it was started after. A pause counts from the last event of somebody at the device: an old
  trial may be aborted or vetoed from a desk.
* An event that was undone proves nothing, but the place that it names stays possible. A trial that
  undo opens again may be applied again.
* Events about earlier trials (a late correction) do not concern the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.record.pauses import Moment
from sfihilo.experiment.space.space import Policy

TRIAL_MADE = frozenset({"asked", "suggested"})
CORRECTIONS = frozenset({"withdrawn", "redone"})  # `withdrawn` also names a trial: see corrects
SAYS_NOTHING = frozenset({"pain", "lifted"})  # about the device
AT_THE_DEVICE = TRIAL_MADE | {"started", "measured", "chosen", "placed", "resumed"}
ENDS_THE_WALK = frozenset({"measured", "aborted", "withdrawn", "amended"})


def corrects(event: Event) -> bool:
    """Whether the event takes another one back or restores it."""
    return event.kind in CORRECTIONS and "event" in event.body


def taken_back(events: Sequence[Event]) -> frozenset[int]:
    """Numbers of the events that were undone and not redone."""
    undone: set[int] = set()
    for event in events:
        if corrects(event):
            change = undone.add if event.kind == "withdrawn" else undone.discard
            change(event.body["event"])
    return frozenset(undone)


def places(events: Sequence[Event], start: Mapping[str, float]) -> tuple[Policy, ...]:
    """All policies at which the device may be after these events, without duplicates.

    `start` is where the device was before the first trial; empty if that is not known.
    """
    undone = taken_back(events)
    begin = [dict(start)] if start else []
    protocol = events[0].body.get("protocol", {}) if events else {}
    longest = longest_break(protocol.get("break_minutes"))
    device = _Device(begin[:], begin, longest, doubtful=_doubtful(events))
    for event in events:
        device.follow(event, in_force=event.number not in undone)
    return device.places()


def longest_break(minutes: float | None) -> float:
    """The longest interruption after which the device is certainly where it was, in minutes."""
    return 60.0 if minutes is None else float(minutes)


def _doubtful(events: Sequence[Event]) -> frozenset[int]:
    """Trials that prove no place. Undo does not change that: it never removes a possible place."""
    return frozenset(
        event.body["trial"]
        for event in events
        if event.kind in ("aborted", "withdrawn", "amended")
        and event.body.get("trial") is not None
        and (event.kind != "amended" or ("outcome" in event.body and not _has_number(event)))
    )


@dataclass
class _Device:
    """One pass through a history, in the order in which the events were written."""

    possible: list[Policy]
    begin: list[Policy]  # where the device is when it was switched off and on
    longest_break: float  # in minutes
    active: Moment | None = None  # when the device was last used or seen
    left_open: int | None = None  # a trial that was shown before a break and not started since
    doubtful: frozenset[int] = frozenset()  # trials that prove no place
    shown: int | None = None  # a trial that may be applied at any moment
    undisturbed: int | None = None  # a trial since which nothing else concerned the device
    vetoed: set[int] = field(default_factory=set)  # trials refused since a place was proven
    policies: dict[int, Policy] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)  # trials
    undone: set[int] = field(default_factory=set)  # trials, at this point of the history
    over: set[int] = field(default_factory=set)  # trials whose walk has ended
    recorded: set[int] = field(default_factory=set)  # trials with an outcome
    trial_of: dict[int, int] = field(default_factory=dict)  # event number -> trial

    def places(self) -> tuple[Policy, ...]:
        """What is possible now, including the trial that is shown."""
        if self.shown is not None:
            self._add(self.shown)
        return tuple(self.possible)

    def follow(self, event: Event, *, in_force: bool) -> None:
        """Take one more event into account; `in_force` says whether it was not undone later."""
        if event.kind == "placed":
            self.possible, self.undisturbed = [dict(event.body["policy"])], None
            self.vetoed.clear()
            if self.shown in self.recorded:  # nobody applies it again
                self.shown = None
        elif event.kind == "resumed":
            self._resume(event)
        elif event.kind in TRIAL_MADE:
            self._show(event)
        elif corrects(event):
            self._correct(event)
        elif event.kind != "refused" and event.body.get("trial") is not None:
            self.trial_of[event.number] = event.body["trial"]
            self._act(event, in_force)
        if event.kind in AT_THE_DEVICE:
            self.active = Moment.of(event)

    def _resume(self, event: Event) -> None:
        if self.active is None:
            return
        if Moment.of(event).is_after_break(self.active, self.longest_break):
            self.possible += [place for place in self.begin if place not in self.possible]
            self.left_open = self.shown

    def _newest(self) -> int | None:
        return next((n for n in reversed(self.policies) if n not in self.undone), None)

    def _add(self, trial: int) -> None:
        if self.policies[trial] not in self.possible:
            self.possible.append(self.policies[trial])

    def _show(self, event: Event) -> None:
        if self.shown is not None:
            self._add(self.shown)
        number = event.body["trial"]
        self.policies[number] = dict(event.body["policy"])
        self.trial_of[event.number] = self.shown = self.undisturbed = number

    def _correct(self, event: Event) -> None:
        target = event.body["event"]
        if event.body["kind"] in SAYS_NOTHING:
            return
        trial, before = self.trial_of[target], self._newest()
        if event.body["kind"] in TRIAL_MADE:
            change = self.undone.add if event.kind == "withdrawn" else self.undone.discard
            change(trial)
        after = self._newest()
        if trial not in (before, after):
            return
        self._add(trial)
        restored_veto = event.kind == "redone" and event.body["kind"] == "vetoed"
        if trial != after or restored_veto:
            self.shown = None
        elif trial not in self.over:
            self.shown = trial  # it may be open again
        if not trial == before == after == self.undisturbed:
            self.undisturbed = None

    def _act(self, event: Event, in_force: bool) -> None:
        trial = event.body["trial"]
        if event.body.get("pain") and trial in self.vetoed:  # it hurt, so it was applied
            self._add(trial)
        if event.kind == "started" and trial in self.over:  # an outcome came before the walk
            self.over.discard(trial)
            self.shown = trial
        if trial != self._newest() or trial in self.over or event.kind in SAYS_NOTHING:
            return
        if event.kind == "vetoed":
            self.shown = None
            self.vetoed.add(trial)
            if event.body.get("pain"):
                self._add(trial)
            return
        self._add(trial)
        if not in_force:
            return
        if event.kind == "started":
            self.started.add(trial)
            self.left_open = None
        if self._proves(trial, event):
            self.possible = [self.policies[trial]]
            self.vetoed.clear()
        if event.kind in ENDS_THE_WALK and (event.kind != "amended" or "outcome" in event.body):
            self.over.add(trial)
            self.shown = None
            if event.kind in ("measured", "amended"):
                self.recorded.add(trial)

    def _proves(self, trial: int, event: Event) -> bool:
        """Whether the device is certainly at this trial's policy."""
        if trial != self.undisturbed or trial in self.doubtful or trial == self.left_open:
            return False
        if event.kind == "measured":
            return _has_number(event)
        answered = event.kind == "chosen" and event.body["choice"] is not None
        return answered and trial in self.started


def _has_number(event: Event) -> bool:
    """Whether any outcome was measured. If none was, the policy may never have been applied."""
    return any(value is not None for value in (event.body["outcome"] or {}).values())
