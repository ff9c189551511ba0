"""How simulated people answer: grades of the felt difference, and memory of older trials.

Notation
    gap         g      felt reward of the new experience minus that of the remembered one
    thresholds  t_k    edges between grades, in units of the reward
    scale       c      one per person: exp(scale_std N(0, 1))
    memory      kappa  growth of the variance of the noise per round between the two experiences

The strength of an answer is the number of edges c t_k below |g| exp(scatter N(0, 1)); without any,
the answer is "same". A person without thresholds answers by the sign of the gap alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfihilo.history import Choice, generator
from sfihilo.inverse.grading import CUTS

# Judgement noise 0.02 of each reward, 0.02 sqrt(2) of a gap, is logistic noise of 1.7 logits.
LOGITS_PER_REWARD = 60.0


class Judgement(NamedTuple):
    """An answer; strength is None where none is given."""

    choice: Choice
    strength: int | None = None


@dataclass(frozen=True)
class Answering:
    """How a person answers; the defaults are the paper's person, who neither grades nor forgets.

    thresholds: as many as there are strengths; none for two answers. scale_std: of the logarithm of
    a person's own scale. scatter: of the logarithm of the felt gap, anew for every grade.
    random_strengths: strengths are drawn at random and only signs have a meaning. memory: kappa.
    """

    thresholds: tuple[float, ...] = ()
    scale_std: float = 0.0
    scatter: float = 0.0
    random_strengths: bool = False
    memory: float = 0.0

    def __post_init__(self) -> None:
        if list(self.thresholds) != sorted(self.thresholds) or any(t <= 0 for t in self.thresholds):
            raise ValueError(
                f"thresholds: expected increasing numbers above 0, got {self.thresholds}"
            )
        for name in ("scale_std", "scatter", "memory"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name}: expected a finite number from 0, got {value!r}")

    @property
    def grades(self) -> int:
        """How many answers this person is offered."""
        return 2 * len(self.thresholds) + 1 if self.thresholds else 2

    def scale(self, seed: int) -> float:
        """c of the person with this seed."""
        return float(np.exp(self.scale_std * generator(seed, 0, "grade scale").standard_normal()))

    def memory_noise(self, age: int) -> float:
        """Standard deviation of what is forgotten in `age` rounds, in units of the gap's noise."""
        return float(np.sqrt(self.memory * (age - 1)))

    def judgement(self, gap: float, seed: int, round: int) -> Judgement:
        """The answer of the person with this seed to a felt gap."""
        if gap == 0:
            return Judgement("same")
        choice: Choice = "new" if gap > 0 else "previous"
        if not self.thresholds:
            return Judgement(choice)
        rng = generator(seed, round, "grade")
        if self.random_strengths:
            return Judgement(choice, self._random_strength(rng))
        size = abs(gap) * np.exp(self.scatter * rng.standard_normal())
        strength = int(np.searchsorted(self.scale(seed) * np.array(self.thresholds), size))
        return Judgement(choice, strength) if strength else Judgement("same")

    def lapse(self, rng: np.random.Generator) -> Judgement:
        """An answer that has nothing to do with what was felt."""
        choice: Choice = "new" if rng.uniform() < 0.5 else "previous"
        return Judgement(choice, self._random_strength(rng))

    def _random_strength(self, rng: np.random.Generator) -> int | None:
        return int(rng.integers(1, len(self.thresholds) + 1)) if self.thresholds else None


def graded(grades: int, **changes: float) -> Answering:
    """A person whose thresholds are those that the learner expects on a scale of this size."""
    thresholds = tuple(cut / LOGITS_PER_REWARD for cut in CUTS[grades])
    return Answering(thresholds=thresholds, **changes)  # type: ignore[arg-type]
