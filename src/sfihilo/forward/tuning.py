"""How the forward model's hyperparameters are chosen (paper appendix "Forward KRR").

Some observations are held out, and the pair of the grids that predicts them best is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.forward import ForwardSettings, Hyperparameters, standardisation
from sfihilo.forward.factor import add_to_diagonal
from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray


def select_hyperparameters(
    settings: ForwardSettings,
    policies: FloatArray,
    outcomes: FloatArray,
    rng: np.random.Generator,
) -> Hyperparameters:
    """The pair of the paper's grids with the least validation error."""
    if len(policies) < settings.warm_up:
        return Hyperparameters(settings.initial_length_scale, settings.initial_ridge)
    order = rng.permutation(len(policies))[: settings.tuning_cap]
    held_out = max(1, round(settings.validation_fraction * len(order)))
    split = Split(
        policies[order[held_out:]],
        outcomes[order[held_out:]],
        policies[order[:held_out]],
        outcomes[order[:held_out]],
    )
    candidates = [
        Hyperparameters(length_scale, ridge)
        for length_scale in settings.length_scales
        for ridge in settings.ridges
    ]
    errors = split.errors(candidates, settings.jitter)
    return candidates[int(np.argmin(errors))]


class Split(NamedTuple):
    """Training and validation observations of one hyperparameter choice."""

    policies: FloatArray
    outcomes: FloatArray
    held_policies: FloatArray
    held_outcomes: FloatArray

    def errors(
        self,
        candidates: list[Hyperparameters],
        jitter: float,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Validation RMSE of each candidate; candidates of one length scale share their kernel."""
        weights = np.ones(len(self.policies)) if weights is None else weights
        centre, scale = standardisation(self.outcomes)
        standardised = (self.outcomes - centre) / scale
        errors = []
        kernels: dict[float, tuple[FloatArray, FloatArray]] = {}
        for length_scale, ridge in candidates:
            if length_scale not in kernels:
                kernels = {
                    length_scale: (
                        rbf(self.policies, self.policies, length_scale),
                        rbf(self.held_policies, self.policies, length_scale),
                    )
                }
            kernel, cross = kernels[length_scale]
            system = add_to_diagonal(kernel.copy(), (ridge + jitter) / weights)
            errors.append(self._error(system, cross, standardised, centre, scale))
        return np.array(errors)

    def _error(
        self,
        system: FloatArray,
        cross: FloatArray,
        standardised: FloatArray,
        centre: FloatArray,
        scale: FloatArray,
    ) -> float:
        try:
            # LAPACK's own order of a symmetric matrix is its transpose, and needs no copy.
            factor = scipy.linalg.cho_factor(system.T, True, True, False)
        except scipy.linalg.LinAlgError:
            return np.inf  # too small a ridge for these policies to be told apart
        predicted = centre + scale * (cross @ scipy.linalg.cho_solve(factor, standardised))
        return float(np.sqrt(np.mean((predicted - self.held_outcomes) ** 2)))
