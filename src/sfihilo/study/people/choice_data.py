"""Choices of people between two options, every attribute scaled to [0, 1].

Notation
--------
first, second   phi, phi'   (n, d)   attributes of the two options, scaled to [0, 1]
labels          I           (n,)     +1 first option chosen, -1 second option chosen, 0 "same"

Each attribute is scaled by its range over both options and all people of its data set, as a lab
declares the range of an outcome before the first session. No answer enters the scaling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfihilo.history import FloatArray


@dataclass(frozen=True, eq=False)
class PersonChoices:
    """The choices of one person, in the order in which they were made."""

    person: str
    first: FloatArray
    second: FloatArray
    labels: FloatArray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """A data set: its people in the order of the file.

    developed: how many of them, the first ones, took part in choices about the model; by default a
    third.
    """

    name: str
    attributes: tuple[str, ...]
    people: tuple[PersonChoices, ...]
    developed: int | None = None

    @property
    def development(self) -> tuple[PersonChoices, ...]:
        """Those on whom every choice about the model is made."""
        return self.people[: self._first]

    @property
    def confirmation(self) -> tuple[PersonChoices, ...]:
        """All other people: evaluated once, at the end."""
        return self.people[self._first :]

    @cached_property
    def digest(self) -> str:
        """Identifies the choices, so that those of another table of this name are not mixed in."""
        found = hashlib.sha256(repr(self.attributes).encode())
        for one in self.people:
            found.update(repr((one.person, one.first.shape)).encode())
            found.update(b"".join(part.tobytes() for part in (one.first, one.second, one.labels)))
        return found.hexdigest()[:12]

    @property
    def _first(self) -> int:
        return len(self.people) // 3 if self.developed is None else self.developed


def scaled(
    name: str,
    attributes: tuple[str, ...],
    people: Sequence[object],
    first: FloatArray,
    second: FloatArray,
    labels: FloatArray,
    developed: int | None = None,
) -> ChoiceData:
    """The data set with every attribute scaled to [0, 1] by its range."""
    both = np.concatenate([first, second])
    low, high = both.min(axis=0), both.max(axis=0)
    with np.errstate(over="ignore"):
        width = high - low
    endless = np.flatnonzero(~np.isfinite(width))
    if endless.size:
        place = endless[0]
        raise ValueError(
            f"{name}, {attributes[place]}: expected a range below 1.8e308, "
            f"got {low[place]:g} to {high[place]:g}"
        )
    width = np.where(width > 0, width, 1.0)
    rows_of: dict[str, list[int]] = {}
    for row, person in enumerate(people):
        rows_of.setdefault(str(person), []).append(row)
    choices = tuple(
        PersonChoices(
            person, (first[rows] - low) / width, (second[rows] - low) / width, labels[rows]
        )
        for person, rows in rows_of.items()
    )
    return ChoiceData(name, attributes, choices, developed)
