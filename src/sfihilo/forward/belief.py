"""The forward belief: which outcome a policy causes (paper appendix "Forward KRR ...").

Notation
--------
policies              tau_i        (t, d_policy)   trials with at least one measured outcome
leverages             e_t(tau)     (n, 1), or (n, d_outcome) where outcomes differ in their trials
centre, scale         m_t, s_t     (d_outcome,)
epistemic_scale       gamma_t^2    (d_outcome,)
observation           v_obs        (d_outcome,)

Each outcome is learned from the trials in which it was measured. Outcomes that were measured in
the same trials form a block, which is one kernel ridge regression (ridge.py). With complete data
there is one block, which is the paper's model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfihilo.forward.kernel import rbf
from sfihilo.forward.ridge import (
    ForwardSettings,
    Hyperparameters,
    KernelRidge,
    fit_ridge,
    leverage_left,
)
from sfihilo.history import FloatArray, IntArray


class Prediction(NamedTuple):
    """Mean and variances of the outcome of each policy, (n, d_outcome) each."""

    mean: FloatArray
    epistemic: FloatArray
    observation: FloatArray

    @property
    def variance(self) -> FloatArray:
        return self.epistemic + self.observation


class PolicyBelief(NamedTuple):
    """The belief evaluated at n policies, with the terms that a one-step update reuses.

    explained has one part per block, times the root of the block's share of the outcomes. Hence
    `rbf(a, b) - a.explained @ b.explained.T` is the mean over the outcomes of the residual kernel.
    """

    policies: FloatArray  # (n, d_policy)
    explained: FloatArray  # L^-1 k_t, (n, t)
    leverages: FloatArray  # (n, 1) with one block, else (n, d_outcome)
    mean: FloatArray  # (n, d_outcome)

    @property
    def leverage(self) -> FloatArray:
        """Mean over the outcomes, (n,)."""
        return np.asarray(self.leverages.mean(axis=1))

    def rows(self, chosen: IntArray) -> PolicyBelief:
        return PolicyBelief(*(part[chosen] for part in self))


class Slopes(NamedTuple):
    """Mean and variance of one policy's outcome, and their derivatives in the policy."""

    mean: FloatArray  # (d_outcome,)
    variance: FloatArray  # (d_outcome,)
    mean_slope: FloatArray  # (d_outcome, d_policy)
    variance_slope: FloatArray  # (d_outcome, d_policy)


class Block(NamedTuple):
    """Outcomes that were measured in the same trials."""

    columns: IntArray  # indices of the outcomes
    rows: IntArray  # indices of the trials
    ridge: KernelRidge

    def own(self, values: FloatArray) -> FloatArray:
        """Those of the last axis, one entry per trial, that are this block's."""
        return values if len(self.rows) == values.shape[-1] else values[..., self.rows]


@dataclass(frozen=True, eq=False)
class ForwardBelief:
    """p_f(phi | tau) = N(mu_f(tau), diag v_f(tau)), given the executed policies."""

    policies: FloatArray
    blocks: tuple[Block, ...]

    @property
    def settings(self) -> ForwardSettings:
        return self.blocks[0].ridge.settings

    @property
    def hyper(self) -> Hyperparameters:
        return self.blocks[0].ridge.hyper

    @property
    def noise(self) -> float:
        return self.blocks[0].ridge.noise

    @property
    def working_dtype(self) -> type[np.float32] | type[np.float64]:
        """Single precision for pools, unless the ridge is so small that its rounding would show."""
        return np.float64 if self.hyper.ridge < 1e-3 else np.float32

    @property
    def outcome_dim(self) -> int:
        return sum(len(block.columns) for block in self.blocks)

    @cached_property
    def centre(self) -> FloatArray:
        return self._join(block.ridge.centre for block in self.blocks)

    @cached_property
    def scale(self) -> FloatArray:
        return self._join(block.ridge.scale for block in self.blocks)

    @cached_property
    def epistemic_scale(self) -> FloatArray:
        return self._join(block.ridge.epistemic_scale for block in self.blocks)

    @cached_property
    def observation(self) -> FloatArray:
        return self._join(block.ridge.observation for block in self.blocks)

    @cached_property
    def measurements(self) -> IntArray:
        """In how many trials each outcome was measured."""
        counts = self._join(
            np.full(len(block.columns), len(block.rows), float) for block in self.blocks
        )
        return counts.astype(int)

    def kernel(self, policies: FloatArray) -> FloatArray:
        """k_t(tau), one row per policy."""
        return rbf(policies, self.policies.astype(policies.dtype), self.hyper.length_scale)

    def mean(self, policies: FloatArray) -> FloatArray:
        return self.mean_at(self.kernel(policies))

    def mean_at(self, kernel: FloatArray) -> FloatArray:
        """Mean outcomes, given the kernel rows of the policies."""
        return self._join(block.ridge.mean_at(block.own(kernel)) for block in self.blocks)

    def leverage(self, policies: FloatArray) -> FloatArray:
        """The share of the prior variance that the data have not explained, mean over outcomes."""
        return self.at(policies).leverage

    def variances(self, leverage: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Epistemic (n, d_outcome) and observation (d_outcome,) variances.

        leverage: `PolicyBelief.leverages`; (n,) means the same leverage for every outcome.
        """
        each = leverage[:, None] if leverage.ndim == 1 else leverage
        return each * self.epistemic_scale, self.observation

    def at(self, policies: FloatArray) -> PolicyBelief:
        """The belief at these policies, in the precision of `policies`."""
        kernel = self.kernel(policies)
        parts = [block.ridge.explained(block.own(kernel)) for block in self.blocks]
        leverages = self._each_outcome([leverage_left(part) for part in parts])
        return PolicyBelief(policies, self._stacked(parts), leverages, self.mean_at(kernel))

    def leverages_at(self, kernel: FloatArray) -> FloatArray:
        """`PolicyBelief.leverages` alone, given the kernel rows of the policies."""
        return self._each_outcome(
            [leverage_left(block.ridge.explained(block.own(kernel))) for block in self.blocks]
        )

    def predict(self, policies: FloatArray) -> Prediction:
        return self.prediction(self.at(policies))

    def prediction(self, at: PolicyBelief) -> Prediction:
        epistemic, observation = self.variances(at.leverages)  # eq:app_forward_predictive
        return Prediction(at.mean, epistemic, np.broadcast_to(observation, epistemic.shape))

    def tried_leverage(self) -> FloatArray:
        """Leverage of each executed policy, had it not been executed; mean over the outcomes."""
        return np.asarray(self.tried_leverages().mean(axis=1))

    def tried_leverages(self) -> FloatArray:
        """The same per outcome: (t, 1) with one block, else (t, d_outcome)."""
        if len(self.blocks) == 1:
            return self.blocks[0].ridge.tried_leverage()[:, None]
        kernel = self.kernel(self.policies)
        leverages = []
        for block in self.blocks:
            leverage = leverage_left(block.ridge.explained(block.own(kernel)))
            leverage[block.rows] = block.ridge.tried_leverage()
            leverages.append(leverage)
        return self._each_outcome(leverages)

    def left_out_residual(self) -> FloatArray:
        """Each outcome less its prediction from all other trials; NaN where not measured."""
        if len(self.blocks) == 1:
            return self.blocks[0].ridge.left_out_residual()
        residual = np.full((len(self.policies), self.outcome_dim), np.nan)
        for block in self.blocks:
            residual[np.ix_(block.rows, block.columns)] = block.ridge.left_out_residual()
        return residual

    def with_slopes(self, policy: FloatArray) -> Slopes:
        """The prediction at one policy, with its derivatives."""
        kernel = self.kernel(policy[None])[0]
        slopes = -kernel[:, None] * (policy - self.policies) / self.hyper.length_scale**2
        parts = [_slopes(block, block.own(kernel), block.own(slopes.T).T) for block in self.blocks]
        if len(parts) == 1:
            return parts[0]
        return Slopes(*(np.concatenate(part)[self._order] for part in zip(*parts, strict=True)))

    @cached_property
    def _order(self) -> IntArray:
        """Where each outcome is in the outcomes of all blocks, one block after the other."""
        return np.argsort(np.concatenate([block.columns for block in self.blocks]))

    def _join(self, parts: Iterable[FloatArray]) -> FloatArray:
        """The outcomes of all blocks, along the last axis."""
        every = list(parts)
        return every[0] if len(every) == 1 else np.concatenate(every, axis=-1)[..., self._order]

    def _each_outcome(self, leverages: list[FloatArray]) -> FloatArray:
        """(n, 1), or (n, d_outcome) from the leverages (n,) of several blocks."""
        if len(leverages) == 1:
            return leverages[0][:, None]
        pairs = zip(leverages, self.blocks, strict=True)
        return self._join(np.repeat(part[:, None], len(b.columns), axis=1) for part, b in pairs)

    def _stacked(self, parts: list[FloatArray]) -> FloatArray:
        """`PolicyBelief.explained`."""
        if len(parts) == 1:
            return parts[0]
        pairs = zip(parts, self.blocks, strict=True)
        return np.concatenate([part * part.dtype.type(self._root(b)) for part, b in pairs], axis=1)

    def _root(self, block: Block) -> float:
        """Root of the block's share of the outcomes."""
        return float(np.sqrt(len(block.columns) / self.outcome_dim))

    def cross_covariance(self, first: PolicyBelief, second: PolicyBelief) -> FloatArray:
        """Covariance of two policies' outcomes, (first, second, d_outcome)."""
        kernel = rbf(first.policies, second.policies, self.hyper.length_scale)
        covariances, stop = [], 0
        for block in self.blocks:
            start, stop = stop, stop + len(block.rows)
            part = slice(start, stop)
            explained = first.explained[:, part] @ second.explained[:, part].T
            if len(self.blocks) > 1:
                explained /= explained.dtype.type(self._root(block) ** 2)
            cross = kernel - explained  # eq:app_forward_cross
            covariances.append(
                np.multiply.outer(cross, block.ridge.epistemic_scale)
            )  # eq:app_forward_cross_cov
        return self._join(covariances)


def _slopes(block: Block, kernel: FloatArray, slopes: FloatArray) -> Slopes:
    """The part of one block; `slopes` are those of its kernel row."""
    ridge = block.ridge
    explained = ridge.inverse_factor @ kernel
    leverage = max(1 - float(explained @ explained), 0.0)
    leverage_slope = -2 * (explained @ ridge.inverse_factor) @ slopes
    return Slopes(
        ridge.mean_at(kernel[None])[0],
        leverage * ridge.epistemic_scale + ridge.observation,
        ridge.scale[:, None] * (ridge.coefficients.T @ slopes),
        np.multiply.outer(ridge.epistemic_scale, leverage_slope),
    )


def sample(mean: FloatArray, variance: FloatArray, normals: FloatArray) -> FloatArray:
    """Outcomes drawn from the belief, clipped to [0, 1]."""
    return np.clip(mean + np.sqrt(variance) * normals, 0, 1)  # eq:app_forward_sampling


class Reducible(NamedTuple):
    """Variance that more executions could remove, of each policy, (n,) each."""

    fraction: FloatArray  # of the predictive variance, mean over the outcomes
    score: FloatArray  # large where much is left and little of it is observation noise


def reducible(epistemic: FloatArray, observation: FloatArray) -> Reducible:
    """From epistemic (n, d_outcome) and observation (d_outcome,) variances."""
    share = epistemic / (epistemic + observation)
    count = share.shape[-1]
    return Reducible(
        np.einsum("...d->...", share) / count,  # eq:app_forward_reducible_fraction
        np.einsum("...d,...d->...", epistemic, share) / count,  # eq:app_forward_reducible_score
    )


class TargetUpdate(NamedTuple):
    """How one more observation at each candidate changes the belief at each target."""

    gain: FloatArray  # (candidates, targets, d_outcome): mean shift per unit of residual
    variance: FloatArray  # (candidates, targets, d_outcome): total variance afterwards
    targets: Prediction  # the belief about each before
    candidates: Prediction

    def mean(self, target_mean: FloatArray, residual: FloatArray) -> FloatArray:
        """Target means (candidates, draws, targets, d_outcome) after these residuals."""
        shift = self.gain[:, None] * residual[:, :, None]
        return target_mean + shift  # eq:app_forward_mean_update


def target_update(
    belief: ForwardBelief, targets: PolicyBelief, candidates: PolicyBelief
) -> TargetUpdate:
    """The one-step update on a target set: eq:app_forward_mean_update and the variance collapse."""
    before = belief.prediction(targets)
    covariance = belief.cross_covariance(candidates, targets)
    own = (candidates.leverages + belief.noise) * belief.epistemic_scale
    denominator = own + belief.observation  # eq:app_forward_update_denom
    gain = covariance / denominator[:, None]
    left = np.maximum(before.epistemic - gain * covariance, 0)  # eq:app_forward_variance_update
    total = left + belief.observation  # eq:app_forward_total_post_variance
    return TargetUpdate(gain, total, before, belief.prediction(candidates))


def same_trials(outcomes: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Columns and rows of each block: the outcomes (t, d_outcome) are NaN where not measured."""
    measured = ~np.isnan(outcomes)
    patterns: dict[bytes, list[int]] = {}
    for column in range(outcomes.shape[1]):
        patterns.setdefault(measured[:, column].tobytes(), []).append(column)
    return [
        (np.array(columns), np.flatnonzero(measured[:, columns[0]]))
        for columns in patterns.values()
    ]


def own_weights(weights: FloatArray, rows: IntArray) -> FloatArray:
    """Weights of some of the trials, again one on average."""
    if len(rows) in (0, len(weights)):
        return weights[rows]
    chosen = weights[rows]
    return np.asarray(chosen / chosen.mean())


def fit(
    settings: ForwardSettings,
    hyper: Hyperparameters,
    measurement_std: float,
    policies: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray | None = None,
) -> ForwardBelief:
    """Factorise from the beginning; outcomes may be NaN. `weights` are those of recency.py."""
    weights = np.ones(len(policies)) if weights is None else weights
    blocks = []
    for columns, rows in same_trials(outcomes):
        ridge = fit_ridge(
            settings,
            hyper,
            measurement_std,
            policies[rows],
            np.ascontiguousarray(outcomes[np.ix_(rows, columns)]),
            own_weights(weights, rows),
        )
        blocks.append(Block(columns, rows, ridge))
    return ForwardBelief(policies, tuple(blocks))


def append(belief: ForwardBelief, policy: FloatArray, outcome: FloatArray) -> ForwardBelief:
    """One more trial; what is NaN in its outcome was not measured."""
    measured = ~np.isnan(outcome)
    trial = len(belief.policies)
    blocks: list[Block] = []
    for columns, rows, ridge in belief.blocks:
        inside = measured[columns]
        if inside.all():
            grown = ridge.append(policy, outcome[columns])
            blocks.append(Block(columns, np.append(rows, trial), grown))
        elif not inside.any():
            blocks.append(Block(columns, rows, ridge))
        else:  # these outcomes were measured together until now
            new, old = np.flatnonzero(inside), np.flatnonzero(~inside)
            grown = ridge.only(new).append(policy, outcome[columns[new]])
            blocks.append(Block(columns[new], np.append(rows, trial), grown))
            blocks.append(Block(columns[old], rows, ridge.only(old)))
    return ForwardBelief(np.vstack([belief.policies, policy]), tuple(blocks))
