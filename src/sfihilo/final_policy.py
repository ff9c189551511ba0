"""The final policy, over any feasible set (paper section 3, "Final policy selection").

Notation
--------
value    E_{phi ~ p_f(. | tau)} [bar r(phi)]   (n,)
normals  common random numbers of the expectation over outcomes   (draws, d_outcome)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from sfihilo.checks import Checked, fraction, whole
from sfihilo.feasible import Feasible
from sfihilo.forward import ForwardBelief, sample
from sfihilo.forward.gaussian_process import OutcomeProcesses
from sfihilo.forward.validation import LeaveOneOut
from sfihilo.history import FloatArray
from sfihilo.inverse.posterior import Reward

_BLOCK = 512
_STEP = 1e-5


@dataclass(frozen=True)
class SelectionSettings(Checked):
    """How hard the final policy is looked for; the paper leaves this open (docs/decisions.md)."""

    pool: int = whole(1, 4000)
    starts: int = whole(1, 8)
    outcome_samples: int = whole(1, 32)
    iterations: int = whole(1, 100)
    interval: float = fraction(0.95)


@dataclass(frozen=True, eq=False)
class Objective:
    """What the final policy maximises: the expected reward of a policy under both beliefs."""

    forward: ForwardBelief
    reward: Reward
    normals: FloatArray

    @staticmethod
    def of(
        settings: SelectionSettings,
        forward: ForwardBelief,
        reward: Reward,
        rng: np.random.Generator,
    ) -> Objective:
        half = rng.standard_normal((-(-settings.outcome_samples // 2), forward.outcome_dim))
        return Objective(forward, reward, np.concatenate([half, -half]))

    def predicted(self, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement of each outcome of one policy."""
        prediction = self.forward.predict(policy[None])
        return prediction.mean[0], np.sqrt(prediction.variance[0])

    def inflation(self) -> FloatArray:
        """By which factor checks of the belief widen that standard deviation, (d_outcome,)."""
        return LeaveOneOut.of(self.forward).inflation()

    def outcomes(self, policy: FloatArray) -> FloatArray:
        """Measurements of one policy drawn from the belief, (draws, d_outcome)."""
        mean, deviation = self.predicted(policy)
        return sample(mean, deviation**2, self.normals)

    def values(self, policies: FloatArray) -> FloatArray:
        """The objective of eq:final_policy_optimization, by Monte Carlo over outcomes."""
        values = np.empty(len(policies))
        for start in range(0, len(policies), _BLOCK):
            block = slice(start, start + _BLOCK)
            prediction = self.forward.predict(policies[block])
            outcomes = sample(prediction.mean[:, None], prediction.variance[:, None], self.normals)
            flat = outcomes.reshape(-1, outcomes.shape[2]).astype(np.float32)
            rewards = self.reward.mean_reward(flat).reshape(outcomes.shape[:2])
            values[block] = rewards.mean(axis=1)  # eq:final_policy_optimization
        return values

    def value_and_gradient(self, policy: FloatArray) -> tuple[float, FloatArray]:
        """The same objective at one policy, with its gradient through mean and variance."""
        mean, variance, mean_slope, variance_slope = self.forward.with_slopes(policy)
        deviation = np.sqrt(variance)
        deviation_slope = variance_slope / (2 * deviation[:, None])
        raw = mean + deviation * self.normals
        outcomes = np.clip(raw, 0, 1)
        reward_slope = self.reward.features.gradient(outcomes, self.reward.mean_weights)
        reward_slope = np.where(raw == outcomes, reward_slope, 0.0)  # flat where clipped
        gradient = reward_slope.mean(axis=0) @ mean_slope
        gradient += (reward_slope * self.normals).mean(axis=0) @ deviation_slope
        return float(self.reward.mean_reward(outcomes).mean()), gradient


@dataclass(frozen=True, eq=False)
class ProcessObjective(Objective):
    """The same objective with outcomes as Gaussian processes of a fixed prior (gaussian_process).

    The forward belief scales outcomes by those executed. Where these are much alike or few, it
    extrapolates wrongly at times, and a maximum is looked for where it errs.
    """

    processes: OutcomeProcesses

    def predicted(self, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
        belief = self.processes.at(policy[None], np.float64)
        return belief.mean[0], np.sqrt(belief.variance[0] + self.processes.noise**2)

    def inflation(self) -> FloatArray:
        """None: noise and amplitude follow the evidence."""
        return np.ones(self.forward.outcome_dim)

    def values(self, policies: FloatArray) -> FloatArray:
        """E r(tau) in closed form, without measurement noise."""
        belief = self.processes.at(policies, np.float64)
        mean = np.clip(belief.mean, 0, 1)
        features = self.reward.features.averaged(mean, belief.variance)
        return np.asarray(features @ self.reward.mean_weights)

    def value_and_gradient(self, policy: FloatArray) -> tuple[float, FloatArray]:
        """The same objective at one policy, with its gradient by central differences."""
        steps = _STEP * np.eye(len(policy))
        values = self.values(np.vstack([policy, policy + steps, policy - steps]))
        above, below = values[1:].reshape(2, -1)
        return float(values[0]), (above - below) / (2 * _STEP)


def final_policy(
    settings: SelectionSettings,
    objective: Objective,
    feasible: Feasible,
    policy_dim: int,
    rng: np.random.Generator,
) -> FloatArray:
    """The feasible policy of the largest value."""
    if feasible.choices is not None:
        pool = feasible.listed(policy_dim)
        return np.asarray(pool[int(np.argmax(objective.values(pool)))])
    pool = feasible.sample(settings.pool, policy_dim, rng, None)
    tried = objective.forward.policies[feasible.contains(objective.forward.policies)]
    pool = np.concatenate([pool, tried])
    starts = pool[np.argsort(-objective.values(pool), kind="stable")[: settings.starts]]
    best = _climb(settings, objective, feasible, starts)
    return best if feasible.accepts is None else _wander(objective, feasible, best, rng)


def _climb(
    settings: SelectionSettings, objective: Objective, feasible: Feasible, starts: FloatArray
) -> FloatArray:
    """Climb from each start inside the box; what a callable rejects is stepped back from."""
    lower, upper = feasible.box(starts.shape[1], None)

    def loss(policy: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective.value_and_gradient(policy)
        return -value, -gradient

    found = [starts]
    for start in starts:
        climbed = scipy.optimize.minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(lower, upper),
            options={"maxiter": settings.iterations},
        ).x
        path = start + np.linspace(1, 0, 11)[:, None] * (climbed - start)
        path = np.clip(path, lower, upper)
        found.append(path[feasible.contains(path)][:1])
    candidates = np.concatenate(found)
    values = [objective.value_and_gradient(policy)[0] for policy in candidates]
    return np.asarray(candidates[int(np.argmax(values))])


def _wander(
    objective: Objective, feasible: Feasible, policy: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Shrinking random steps: along the edge of a callable there is no gradient to follow."""
    lower, upper = feasible.box(len(policy), None)
    for radius in 0.2 * 0.5 ** np.arange(8):
        steps = policy + radius * rng.standard_normal((64, len(policy)))
        steps = np.clip(steps, lower, upper)
        around = np.vstack([policy, steps[feasible.contains(steps)]])
        policy = around[int(np.argmax(objective.values(around)))]
    return policy
