"""What both beliefs say about the rewards of policies: the shared part of the seeking rules.

Notation
--------
mean, variance   of the outcome, without measurement noise (gaussian_process.py)   (n, d_outcome)
features         E z(phi)       (n, m)         under N(mean, variance)
value            E r(tau)       (n,)           in logits: posterior mean reward of those features
slope            d E r / d mean (n, d_outcome) how the value follows the mean outcome
margin           r(tau) - r', r' the reward of given features z'
                 deviation^2 = (E z - z')^T Sigma (E z - z') + sum_o slope_o^2 variance_o
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfihilo.forward.gaussian_process import ProcessBelief
from sfihilo.history import FloatArray, IntArray
from sfihilo.querying.situation import Situation


@dataclass(frozen=True, eq=False)
class Valuation:
    """Policies, with what is believed about their outcomes and rewards."""

    situation: Situation
    at: ProcessBelief
    mean: FloatArray
    features: FloatArray

    @staticmethod
    def of(situation: Situation, policies: FloatArray) -> Valuation:
        at = situation.processes.at(policies)
        # Outcomes are in [0, 1]; a mean that extrapolates beyond it is not believed.
        mean = np.clip(at.mean, 0, 1)
        features = situation.posterior.features.averaged(mean, at.variance)
        return Valuation(situation, at, mean, features)

    @staticmethod
    def joined(parts: Sequence[Valuation]) -> Valuation:
        """All policies of the parts, one part after the other."""
        return Valuation(
            parts[0].situation,
            ProcessBelief.joined([part.at for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.features for part in parts]),
        )

    def rows(self, chosen: IntArray) -> Valuation:
        return Valuation(
            self.situation, self.at.rows(chosen), self.mean[chosen], self.features[chosen]
        )

    @cached_property
    def value(self) -> FloatArray:
        return self.situation.posterior.margins(self.features)[0]

    @cached_property
    def slope(self) -> FloatArray:
        posterior = self.situation.posterior
        slope = posterior.features.averaged_gradient(
            self.mean, self.at.variance, posterior.mean_weights
        )
        return np.asarray(posterior.mean_sharpness * slope)

    def margin(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of r(tau) - r, where r is the reward of these features."""
        mean, variance = self.situation.posterior.margins(self.features - features)
        variance = variance + np.einsum("ij,ij->i", self.slope**2, self.at.variance)
        return mean, np.sqrt(variance.astype(float))
