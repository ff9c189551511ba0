"""Peers that see settings and answers only: EUBO, its line search, and random settings.

Each execution is compared with the one before it, as in our protocol, so that the option that EUBO
takes as given is the last executed setting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import qmc

from benchmarks.peers.advice.hyperparameters import Fit
from benchmarks.peers.advice.preference_process import PreferenceProcess, climb
from sfihilo.history import FloatArray, IntArray, Query, Response, generator

_POOL = 1000
_STARTS = 5
_LINE = 100


@dataclass
class Record:
    """What was executed and preferred."""

    policies: list[FloatArray] = field(default_factory=list)
    outcomes: list[FloatArray] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)  # (preferred, other)

    def add(self, query: Query, response: Response) -> None:
        """One execution, and the answer about it and the one before."""
        if response.outcome is None:
            raise ValueError("outcome: expected a measured one, got None")
        self.policies.append(query.policy)
        self.outcomes.append(response.outcome)
        new = len(self.policies) - 1
        if response.choice == "new":
            self.pairs.append((new, new - 1))
        elif response.choice == "previous":
            self.pairs.append((new - 1, new))

    @property
    def comparisons(self) -> IntArray:
        return np.array(self.pairs, dtype=int)


@dataclass
class SettingsSeeker:
    """EUBO on a Gaussian process over settings; its advice maximises the posterior mean.

    start: so many settings of a Sobol sequence come first.
    """

    dimension: int
    seed: int
    fit: Fit
    start: int = 4
    record: Record = field(default_factory=Record)
    _model: PreferenceProcess | None = None

    def ask(self) -> Query:
        round = len(self.record.policies)
        if round < self.start or not self.record.pairs:
            sequence = qmc.Sobol(self.dimension, rng=generator(self.seed, 0, "start"))
            return Query(round, sequence.random_base2(6)[round % 64], None)
        return Query(round, self.choose(generator(self.seed, round, "pool")), None)

    def tell(self, query: Query, response: Response) -> None:
        self.record.add(query, response)
        self._model = None

    @property
    def model(self) -> PreferenceProcess:
        if self._model is None:
            self._model = self.fit(np.array(self.record.policies), self.record.comparisons)
        return self._model

    def choose(self, rng: np.random.Generator) -> FloatArray:
        """The setting to execute next."""
        rule = self.model.best_of(self.record.policies[-1])
        pool = self._pool(rng)
        starts = pool[np.argsort(-rule.values(pool))[:_STARTS]]
        return climb(rule.value_and_slope, starts)

    def _pool(self, rng: np.random.Generator) -> FloatArray:
        """Settings everywhere, all executed ones, and some around the best of them."""
        visited = np.array(self.record.policies)
        best = visited[np.argsort(-self.model.mean(visited))[:5]]
        near = np.repeat(best, 40, axis=0)
        near = np.clip(near + 0.1 * rng.standard_normal(near.shape), 0, 1)
        return np.vstack([rng.uniform(size=(_POOL, self.dimension)), near, visited])

    def advise(self) -> FloatArray:
        pool = self._pool(generator(self.seed, len(self.record.policies), "advice"))
        starts = pool[np.argsort(-self.model.mean(pool))[: 2 * _STARTS]]
        return climb(self.model.mean_and_slope, starts)


@dataclass
class LineSeeker(SettingsSeeker):
    """EUBO-LineCoSpar: candidates are a random line through the incumbent, and what was visited.

    The incumbent is the executed setting with the highest posterior mean. The authors compare each
    candidate with the incumbent, and search a grid of five values per setting; here the comparison
    is with the last execution, and the line is fine, which its advice gains from.
    """

    def choose(self, rng: np.random.Generator) -> FloatArray:
        visited = np.array(self.record.policies)
        incumbent = visited[int(np.argmax(self.model.mean(visited)))]
        candidates = np.vstack([line_through(incumbent, rng), visited[:-1]])
        rule = self.model.best_of(visited[-1])
        return np.asarray(candidates[int(np.argmax(rule.values(candidates)))])


def line_through(point: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points on a line of random direction, from one side of the unit cube to the other."""
    direction = rng.standard_normal(len(point))
    direction /= np.linalg.norm(direction)
    with np.errstate(divide="ignore"):
        ends = np.stack([-point / direction, (1 - point) / direction])
    low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
    return np.clip(point + np.linspace(low, high, _LINE)[:, None] * direction, 0, 1)


@dataclass
class RandomSeeker(SettingsSeeker):
    """Random settings; the advice is that of the process over settings."""

    def choose(self, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(size=self.dimension)
