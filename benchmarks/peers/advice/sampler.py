"""Optuna's PreferentialGPSampler as a seeker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sfihilo.history import FloatArray, Query, Response

if TYPE_CHECKING:
    from benchmarks.peers.preferential import Preferential


@dataclass
class SamplerSeeker:
    """Each trial is compared with the last; the advice is the best trial by the sampler's model."""

    dimension: int
    seed: int
    refit: int = 10
    _study: Preferential = field(init=False)
    _round: int = 0

    def __post_init__(self) -> None:
        from benchmarks.peers.preferential import Preferential

        self._study = Preferential(self.dimension, self.seed % 2**32, self.refit)

    def ask(self) -> Query:
        return Query(self._round, np.asarray(self._study.ask()), None)

    def tell(self, query: Query, response: Response) -> None:
        self._study.tell(response.choice)
        self._round += 1

    def advise(self) -> FloatArray:
        return self._study.best_by_model()
