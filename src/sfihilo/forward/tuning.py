"""Selection of the forward model's hyperparameters (paper appendix "Forward KRR").

Some observations are held out; the pair of the grids with the least error on them is selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.forward import ForwardSettings, Hyperparameters, standardisation
from sfihilo.forward.belief import own_weights, same_trials
from sfihilo.forward.factor import add_to_diagonal
from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray, IntArray


def select_hyperparameters(
    settings: ForwardSettings,
    policies: FloatArray,
    outcomes: FloatArray,
    rng: np.random.Generator,
) -> Hyperparameters:
    """The pair of the paper's grids with the least validation error."""
    initial = Hyperparameters(settings.initial_length_scale, settings.initial_ridge)
    if most_measured(outcomes) < settings.warm_up:
        return initial
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
    return candidates[int(np.argmin(errors))] if errors.size else initial


def most_measured(outcomes: FloatArray) -> int:
    """In how many trials the outcome that was measured most often was measured."""
    return int((~np.isnan(outcomes)).sum(axis=0).max(initial=0))


class Split(NamedTuple):
    """Training and validation observations of one hyperparameter choice; NaN is not measured."""

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
        """Validation RMSE of each candidate; empty if no outcome is on both sides of the split."""
        weights = np.ones(len(self.policies)) if weights is None else weights
        squares = np.concatenate(
            [
                part._squares(candidates, jitter, own_weights(weights, rows))
                for part, rows in self._blocks()
            ]
            or [np.empty((0, 0))],
            axis=1,
        )
        return np.sqrt(squares.mean(axis=1)) if squares.size else np.empty(0)

    def _blocks(self) -> Iterator[tuple[Split, IntArray]]:
        """The split of each group of outcomes that are trained on the same trials."""
        for columns, rows in same_trials(self.outcomes):
            if len(rows):
                outcomes = np.ascontiguousarray(self.outcomes[np.ix_(rows, columns)])
                held = np.ascontiguousarray(self.held_outcomes[:, columns])
                yield Split(self.policies[rows], outcomes, self.held_policies, held), rows

    def _squares(
        self, candidates: list[Hyperparameters], jitter: float, weights: FloatArray
    ) -> FloatArray:
        """Squared errors, one row per candidate; those of one length scale share their kernel."""
        centre, scale = standardisation(self.outcomes)
        standardised = (self.outcomes - centre) / scale
        measured = ~np.isnan(self.held_outcomes)
        squares = np.empty((len(candidates), int(measured.sum())))
        kernels: dict[float, tuple[FloatArray, FloatArray]] = {}
        for row, (length_scale, ridge) in enumerate(candidates):
            if length_scale not in kernels:
                kernels = {
                    length_scale: (
                        rbf(self.policies, self.policies, length_scale),
                        rbf(self.held_policies, self.policies, length_scale),
                    )
                }
            kernel, cross = kernels[length_scale]
            system = add_to_diagonal(kernel.copy(), (ridge + jitter) / weights)
            try:
                # LAPACK's own order of a symmetric matrix is its transpose, and needs no copy.
                factor = scipy.linalg.cho_factor(system.T, True, True, False)
            except scipy.linalg.LinAlgError:
                squares[row] = np.inf  # too small a ridge for these policies to be told apart
                continue
            predicted = centre + scale * (cross @ scipy.linalg.cho_solve(factor, standardised))
            squares[row] = ((predicted - self.held_outcomes) ** 2)[measured]
        return squares
