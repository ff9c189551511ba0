"""The people on whom the advice of all methods is measured, and the best each of them can reach.

A person is identified by (shape, index, study seed). The panel "advice" of the study samples them:
`sfihilo study` with this study seed runs our own rules on exactly the same people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfihilo.study.design.conditions import STUDY_SEED, Unit, derived_seed, simulated_user
from sfihilo.study.design.panels import BEST, BEYOND
from sfihilo.study.people.users import SimulatedUser
from sfihilo.study.run.advice_gap import best_reachable

UNTOUCHED = 990_017  # study seed of people on whom no method was tuned
SHAPES = tuple(
    row.condition.name.removeprefix("advice")
    for row in BEYOND["advice"]
    if row.condition.name.removeprefix("advice")[0].isdigit() and "_" not in row.condition.name
)


@dataclass(frozen=True, eq=False)
class Person:
    """A simulated person of a shape ("4x4": settings x outcomes)."""

    shape: str
    index: int
    study_seed: int
    user: SimulatedUser
    best: float  # the largest clean reward that this person can reach

    def seed(self, purpose: str) -> int:
        """The seed of a method's own random numbers."""
        return derived_seed(self.study_seed, self.index, purpose)


def unit(shape: str, index: int, study_seed: int = UNTOUCHED, rule: str = BEST) -> Unit:
    """The unit of the panel "advice" with this person."""
    conditions = {row.condition.name: row.condition for row in BEYOND["advice"]}
    if shape not in SHAPES:
        raise ValueError(f"shape: expected one of {', '.join(SHAPES)}, got {shape!r}")
    if study_seed == STUDY_SEED:
        raise ValueError(f"study_seed: expected another than the study's own, got {study_seed}")
    condition = conditions[f"advice{shape}"]
    return Unit(condition, rule, "default", index, queries=60, study_seed=study_seed)


def person(shape: str, index: int, study_seed: int = UNTOUCHED) -> Person:
    """The person with this index, and the reference of the gap."""
    user = simulated_user(unit(shape, index, study_seed))
    return Person(shape, index, study_seed, user, best_reachable(user)[0])


def people(shape: str, indices: Sequence[int], study_seed: int = UNTOUCHED) -> Iterator[Person]:
    """One person after the other."""
    for index in indices:
        yield person(shape, index, study_seed)
