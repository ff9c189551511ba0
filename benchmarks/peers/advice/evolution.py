"""CMA-ES that is told the reward itself, which no lab can be: a bound for methods that compare.

It gets the person's own noisy evaluation of each execution, a number, where all others get one
answer about two of them. Executions count alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfihilo.history import FloatArray, Query, Response, generator
from sfihilo.study.people.noise import evaluate_rewards
from sfihilo.study.people.users import SimulatedUser

SIGMA, POPULATION = 0.3, 4  # chosen on 24 people of study seed 5000


@dataclass
class EvolutionSeeker:
    """The advice is the search distribution's mean; before its first update, the best so far."""

    user: SimulatedUser
    dimension: int
    seed: int
    sigma: float = SIGMA
    population: int = POPULATION
    best: tuple[float, FloatArray] | None = None
    _told: list[tuple[FloatArray, float]] = field(default_factory=list)
    _round: int = 0

    def __post_init__(self) -> None:
        # The tables of results do without it.
        from cmaes import CMA  # type: ignore[import-untyped]

        self.search = CMA(
            mean=np.full(self.dimension, 0.5),
            sigma=self.sigma,
            bounds=np.array([[0.0, 1.0]] * self.dimension),
            seed=self.seed % 2**32,
            population_size=self.population,
        )

    def ask(self) -> Query:
        return Query(self._round, self.search.ask(), None)

    def tell(self, query: Query, response: Response) -> None:
        felt = self.felt(query, response)
        if self.best is None or felt > self.best[0]:
            self.best = felt, query.policy
        self._told.append((query.policy, -felt))
        self._round += 1
        if len(self._told) == self.search.population_size:
            self.search.tell(self._told)
            self._told = []

    def felt(self, query: Query, response: Response) -> float:
        """The evaluation of the new execution behind the answer of this round."""
        if response.outcome is None:
            raise ValueError("outcome: expected a measured one, got None")
        reward = self.user.rewards(response.outcome[None])[0]
        rng = generator(self.user.seed, query.round, "reward noise")
        return float(evaluate_rewards(np.array([0.0, reward]), self.user.noise, rng)[1])

    def advise(self) -> FloatArray:
        if self.search.generation == 0:
            if self.best is None:
                raise ValueError("advise: expected at least one execution, got none")
            return self.best[1]
        return np.asarray(np.clip(self.search.mean, 0, 1))
