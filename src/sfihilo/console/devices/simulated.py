"""A simulated ankle exoskeleton and the person who walks in it, for the demo and for tests.

The device keeps the time of real walks, `speed` times faster. Metabolic rate is estimated from
simulated breaths as in a lab; the other outcomes are measured when the walk is over.
"""

from __future__ import annotations

import threading
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sfihilo.console.devices.device import (
    DeviceError,
    DeviceStoppedError,
    Measured,
    Policy,
    SilentDeviceError,
)
from sfihilo.experiment.estimators import PoorDataError, steady_state
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.space.space import Space, space_from_tables
from sfihilo.history import Choice
from sfihilo.study.people.walking import WalkingPerson, walking_person

METABOLIC = "metabolic_rate"
STANDING = 1.5  # W/kg, before the first walk
BREATH_NOISE = 0.35  # W/kg


def demo_toml() -> str:
    """The space file of the demo."""
    return files("sfihilo.console.devices").joinpath("demo.toml").read_text(encoding="utf-8")


@cache
def demo_space() -> Space:
    """The simulated exoskeleton's settings and outcomes."""
    tables = tomllib.loads(demo_toml())
    del tables["session"]
    return space_from_tables(tables, "demo.toml")


class SimulatedPerson:
    """Walks and answers; the same trial gets the same answer after a restart."""

    def __init__(self, seed: int = 1) -> None:
        space = demo_space()
        self.space = space
        self.walking: WalkingPerson = walking_person(len(space.free), len(space.outcomes), seed)

    def answer(self, record: Record) -> tuple[Choice | None, int | None]:
        """The answer about the record's open trial, with its strength; None if none is asked."""
        trial = record.current
        if trial is None or not trial.asks_choice or trial.compare_with is None:
            return None, None
        before = record.trial(trial.compare_with)
        judgement = self.walking.answer(
            trial.number,
            self.space.to_unit(trial.policy),
            (before.number, self.space.to_unit(before.policy)),
            record.grades,
        )
        return judgement.choice, judgement.strength

    def outcomes(self, number: int, policy: Policy) -> dict[str, float]:
        """What would be measured with perfect patience, in physical units."""
        walk = self.walking.walk(number, self.space.to_unit(policy))
        return {
            name: float(outcome.from_unit(unit))
            for (name, outcome), unit in zip(
                self.space.outcomes.items(), walk.measured, strict=True
            )
        }


@dataclass(frozen=True)
class Walk:
    """A walk that has begun: its number and policy, when, and the metabolic rate before it."""

    number: int
    policy: dict[str, float]
    begun: float
    before: float


class SimulatedDevice:
    """An exoskeleton with its sensors; `unplug` makes it silent.

    seed: of the person in it. speed: how many times faster than real. dropouts: the probability
    that a sensor fails in a walk. seconds: of a walk.
    """

    def __init__(
        self,
        seed: int = 1,
        speed: float = 1.0,
        dropouts: float = 0.0,
        seconds: float = 120.0,
        person: SimulatedPerson | None = None,
    ) -> None:
        if not (speed > 0 and seconds > 0 and 0 <= dropouts <= 1):
            raise ValueError(
                "speed, seconds, dropouts: expected numbers above 0 and a probability, "
                f"got {speed}, {seconds}, {dropouts}"
            )
        self.person = person if person is not None else SimulatedPerson(seed)
        self.speed, self.dropouts, self.seconds = speed, dropouts, seconds
        self.problem = ""  # why the last metabolic rate is missing
        self._change = threading.Condition()
        self._walk: Walk | None = None
        self._next = 1
        self._rate = STANDING
        self._plugged = True

    def note(self, kind: str, body: Mapping[str, Any]) -> None:
        """The trial's number is that of the walk, so that a restart changes nothing."""
        if kind == "start":
            with self._change:
                if self._walk is not None and self._walk.number != body["trial"]:
                    self._walk = None  # a new trial is a new walk, also with the same policy
                self._next = int(body["trial"])

    def apply(self, policy: Policy) -> None:
        with self._change:
            self._require_plugged()
            wanted = self._checked(policy)
            if self._walk is not None and self._walk.policy == wanted:
                return
            self._walk = Walk(self._next, wanted, time.monotonic(), self._rate)
            self._next += 1
            self._change.notify_all()

    def _checked(self, policy: Policy) -> dict[str, float]:
        """A device has limits of its own."""
        try:
            wanted = self.person.space.complete(policy)
            self.person.space.check_bounds(wanted)
        except ValueError as error:
            raise DeviceError(str(error)) from error
        return wanted

    def measure(self) -> Measured | None:
        with self._change:
            walk = self._walk
            if walk is None:
                raise DeviceStoppedError("measure: expected a walk, got none")
            while (left := self._seconds_left(walk)) > 0:
                self._change.wait(left)
                self._require_plugged()
                if self._walk is not walk:
                    raise DeviceStoppedError("measure: the walk was stopped")
            self._rate = self.person.outcomes(walk.number, walk.policy)[METABOLIC]
        return self._measured(walk)

    def _measured(self, walk: Walk) -> dict[str, float | None]:
        outcomes: dict[str, float | None] = dict(self.person.outcomes(walk.number, walk.policy))
        outcomes[METABOLIC] = self._metabolic_rate(walk)
        dropped = self.person.walking.dropped(walk.number, len(outcomes), self.dropouts)
        return {
            name: None if gone or value is None else round(value, 3)
            for (name, value), gone in zip(outcomes.items(), dropped, strict=True)
        }

    def _metabolic_rate(self, walk: Walk) -> float | None:
        steady = self.person.outcomes(walk.number, walk.policy)[METABOLIC]
        breaths = self.person.walking.breaths(
            walk.number, walk.before, steady, self.seconds, BREATH_NOISE
        )
        outcome = self.person.space.outcomes[METABOLIC]
        try:
            value = steady_state(breaths.times, breaths.values).value
        except PoorDataError as error:
            self.problem = str(error)
            return None
        self.problem = ""
        return min(max(value, outcome.low), outcome.high)

    def _seconds_left(self, walk: Walk) -> float:
        return self.seconds / self.speed - (time.monotonic() - walk.begun)

    def stop(self) -> None:
        with self._change:
            self._walk = None
            self._change.notify_all()
            self._require_plugged()

    def heartbeat(self) -> float | None:
        with self._change:
            self._require_plugged()
        return 0.0

    def close(self) -> None:
        """Ends a measurement that waits."""
        with self._change:
            self._walk = None
            self._change.notify_all()

    def unplug(self) -> None:
        """From now on the device is silent."""
        with self._change:
            self._plugged = False
            self._change.notify_all()

    def plug(self) -> None:
        """The cable is in again; the device has forgotten its policy."""
        with self._change:
            self._plugged, self._walk = True, None

    def _require_plugged(self) -> None:
        if not self._plugged:
            raise SilentDeviceError("the simulated device is unplugged")


class Demo:
    """A device, the person in it, and their space."""

    def __init__(self, seed: int = 1, speed: float = 20.0, dropouts: float = 0.0) -> None:
        self.space = demo_space()
        self.person = SimulatedPerson(seed)
        self.device = SimulatedDevice(speed=speed, dropouts=dropouts, person=self.person)
