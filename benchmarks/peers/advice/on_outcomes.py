"""EUBO adapted to outcomes: a preference process over outcomes, reached through a forward model.

As in preference exploration with several outcomes (Lin et al. 2022): one process per outcome
predicts what a setting does, a preference process says what that is worth. The given option is the
last measured outcome; a candidate's EUBO and its advised value are averages over outcomes drawn
from the forward processes. These are the library's (`sfihilo.forward.gaussian_process`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from benchmarks.peers.advice.on_settings import SettingsSeeker
from benchmarks.peers.advice.preference_process import PreferenceProcess
from sfihilo.forward.gaussian_process import OutcomeProcesses, outcome_processes
from sfihilo.history import FloatArray, generator

_POOL = 400
_DRAWS = 16
_ROUNDS = 5
_NEAR = 60


@dataclass
class OutcomesSeeker(SettingsSeeker):
    """The same loop as on settings, with the utility over measured outcomes.

    measurement: standard deviation of a measurement, as the lab knows it.
    """

    measurement: float = 0.05
    _forward: tuple[int, OutcomeProcesses] | None = field(default=None, repr=False)

    @property
    def model(self) -> PreferenceProcess:
        if self._model is None:
            self._model = self.fit(np.array(self.record.outcomes), self.record.comparisons)
        return self._model

    @property
    def forward(self) -> OutcomeProcesses:
        """The processes of all trials so far."""
        count = len(self.record.policies)
        if self._forward is None or self._forward[0] != count:
            policies, outcomes = np.array(self.record.policies), np.array(self.record.outcomes)
            found = outcome_processes(policies, outcomes, self.measurement, None)
            self._forward = count, found
        return self._forward[1]

    def choose(self, rng: np.random.Generator) -> FloatArray:
        rule = self.model.best_of(self.record.outcomes[-1])
        return self._search(rule.values, rng)

    def advise(self) -> FloatArray:
        rng = generator(self.seed, len(self.record.policies), "advice")
        return self._search(self.model.mean, rng)

    def _search(
        self, value: Callable[[FloatArray], FloatArray], rng: np.random.Generator
    ) -> FloatArray:
        """The setting of the highest expected value: a pool, then ever closer to its leaders."""
        visited = np.array(self.record.policies)
        outcomes = len(self.record.outcomes[0])
        uniform = qmc.Sobol(outcomes, rng=rng).random(_DRAWS)
        normals = ndtri(np.clip(uniform, 1e-6, 1 - 1e-6))

        def expected(policies: FloatArray) -> FloatArray:
            belief = self.forward.at(policies)
            drawn = belief.mean[:, None] + np.sqrt(belief.variance)[:, None] * normals
            flat = np.clip(drawn, 0, 1).reshape(-1, outcomes).astype(float)
            return np.asarray(value(flat).reshape(len(policies), _DRAWS).mean(axis=1))

        pool = np.vstack([rng.uniform(size=(_POOL, self.dimension)), visited])
        scores = expected(pool)
        width = 0.15
        for _ in range(_ROUNDS):
            leaders = pool[np.argsort(-scores)[:4]]
            near = np.repeat(leaders, _NEAR // 4, axis=0)
            near = np.clip(near + width * rng.standard_normal(near.shape), 0, 1)
            pool, scores = np.vstack([pool, near]), np.concatenate([scores, expected(near)])
            width *= 0.6
        return np.asarray(pool[int(np.argmax(scores))])
