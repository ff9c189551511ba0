"""Leave-one-out checks of the forward belief: how well it predicted what it had not seen.

Notation
--------
residual   phi_i - mu_-i(tau_i)         (t, d_outcome)   by A_t^-1, without refitting; NaN where
                                                         phi_i was not measured
variance   v_-i(tau_i)                  (t, d_outcome)   predictive, of the same prediction
leverage   e_-i(tau_i)                  (t,)             mean over the outcomes
inflation  kappa_j                      (d_outcome,)     factor of the predictive deviation
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfihilo.forward.belief import ForwardBelief
from sfihilo.history import BoolArray, FloatArray

# Below this many observations the checks say nothing.
_FEWEST = 3
# Pseudo-observations of a belief whose intervals are right: few checks must not move it far.
_PRIOR_CHECKS = 4.0
# Of the variance between outcomes: what a prediction must explain to count as one.
_LEAST_SKILL = 0.25


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each executed policy predicted from all others, at the belief's hyperparameters.

    Residuals of outcomes that were not measured are NaN.
    """

    residual: FloatArray
    variance: FloatArray
    leverage: FloatArray
    spread: FloatArray  # variance of each outcome, (d_outcome,)

    @staticmethod
    def of(belief: ForwardBelief) -> LeaveOneOut:
        leverages = belief.tried_leverages()
        epistemic, observation = belief.variances(leverages)
        return LeaveOneOut(
            belief.left_out_residual(),
            epistemic + observation,
            belief.tried_leverage(),
            belief.scale**2,
        )

    @property
    def _measured(self) -> BoolArray:
        return np.asarray(~np.isnan(self.residual))

    def inflation(self) -> FloatArray:
        """kappa: the root mean square of the standardised residuals, never below one."""
        count = self._measured.sum(axis=0)
        squares = np.where(self._measured, self.residual**2 / self.variance, 0.0).sum(axis=0)
        inflation = np.sqrt(np.maximum((squares + _PRIOR_CHECKS) / (count + _PRIOR_CHECKS), 1.0))
        return np.where(count < _FEWEST, 1.0, inflation)

    def trusted_leverage(self) -> float:
        """The largest leverage up to which predictions explained a part of the variation.

        Policies are taken in the order of their leverage. Zero where no prediction was any good.
        """
        order = np.argsort(self.leverage, kind="stable")
        squares = self.residual**2 / np.maximum(self.spread, 1e-12)
        total = np.where(self._measured, squares, 0.0).sum(axis=1)
        errors = (total / self._measured.sum(axis=1))[order]
        explained = 1 - np.cumsum(errors) / np.arange(1, len(errors) + 1)
        good = np.flatnonzero(explained[_FEWEST - 1 :] > _LEAST_SKILL)
        return float(self.leverage[order[good[-1] + _FEWEST - 1]]) if good.size else 0.0
