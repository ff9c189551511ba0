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

from sfihilo.checks import Checked, fraction, positive
from sfihilo.feasible import Feasible
from sfihilo.forward import ForwardBelief, sample
from sfihilo.history import FloatArray
from sfihilo.inverse.posterior import Reward

_BLOCK = 512


@dataclass(frozen=True)
class SelectionSettings(Checked):
    """How hard the final policy is looked for; the paper leaves this open (docs/decisions.md)."""

    pool: int = positive(4000)
    starts: int = positive(8)
    outcome_samples: int = positive(32)
    iterations: int = positive(100)
    interval: float = fraction(0.95)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The final policy, with what it is expected to bring and how sure that is.

    reward is in the learned reward's own units, which preferences fix only up to a positive factor
    and an offset. extrapolates: less is known about this policy than about any that was tried.
    """

    policy: FloatArray
    outcome: FloatArray
    outcome_low: FloatArray
    outcome_high: FloatArray
    reward: float
    reward_low: float
    reward_high: float
    extrapolates: bool


def final_policy(
    settings: SelectionSettings,
    forward: ForwardBelief,
    posterior: Reward,
    feasible: Feasible,
    policy_dim: int,
    rng: np.random.Generator,
) -> Recommendation:
    """Maximise the posterior-expected reward under the forward belief."""
    half = rng.standard_normal((-(-settings.outcome_samples // 2), forward.outcomes.shape[1]))
    normals = np.concatenate([half, -half])
    if feasible.choices is not None:
        pool = feasible.listed(policy_dim)
        best = pool[int(np.argmax(policy_values(forward, posterior, pool, normals)))]
    else:
        pool = feasible.sample(settings.pool, policy_dim, rng, None)
        tried = forward.policies[feasible.contains(forward.policies)]
        pool = np.concatenate([pool, tried])
        values = policy_values(forward, posterior, pool, normals)
        starts = pool[np.argsort(-values, kind="stable")[: settings.starts]]
        best = _refine(settings, forward, posterior, feasible, starts, normals)
        if feasible.accepts is not None:
            best = _wander(forward, posterior, feasible, best, normals, rng)
    return _describe(settings, forward, posterior, best, normals)


def policy_values(
    forward: ForwardBelief, posterior: Reward, policies: FloatArray, normals: FloatArray
) -> FloatArray:
    """The objective of eq:final_policy_optimization, by Monte Carlo over outcomes."""
    values = np.empty(len(policies))
    for start in range(0, len(policies), _BLOCK):
        block = slice(start, start + _BLOCK)
        prediction = forward.predict(policies[block])
        outcomes = sample(prediction.mean[:, None], prediction.variance[:, None], normals)
        flat = outcomes.reshape(-1, outcomes.shape[2]).astype(np.float32)
        rewards = posterior.mean_reward(flat).reshape(outcomes.shape[:2])
        values[block] = rewards.mean(axis=1)  # eq:final_policy_optimization
    return values


def value_and_gradient(
    forward: ForwardBelief, posterior: Reward, policy: FloatArray, normals: FloatArray
) -> tuple[float, FloatArray]:
    """The same objective at one policy, with its gradient through mean and variance."""
    kernel = forward.kernel(policy[None])[0]
    slopes = -kernel[:, None] * (policy - forward.policies) / forward.hyper.length_scale**2
    explained = forward.inverse_factor @ kernel
    leverage = max(1 - float(explained @ explained), 0.0)
    leverage_slope = -2 * (explained @ forward.inverse_factor) @ slopes
    mean = forward.mean_at(kernel[None])[0]
    mean_slope = forward.scale[:, None] * (forward.coefficients.T @ slopes)
    deviation = np.sqrt(leverage * forward.epistemic_scale + forward.observation)
    deviation_slope = np.multiply.outer(forward.epistemic_scale, leverage_slope)
    deviation_slope /= 2 * deviation[:, None]
    raw = mean + deviation * normals
    outcomes = np.clip(raw, 0, 1)
    reward_slope = posterior.features.gradient(outcomes, posterior.mean_weights)
    reward_slope = np.where(raw == outcomes, reward_slope, 0.0)  # flat where clipped
    gradient = reward_slope.mean(axis=0) @ mean_slope
    gradient += (reward_slope * normals).mean(axis=0) @ deviation_slope
    return float(posterior.mean_reward(outcomes).mean()), gradient


def _refine(
    settings: SelectionSettings,
    forward: ForwardBelief,
    posterior: Reward,
    feasible: Feasible,
    starts: FloatArray,
    normals: FloatArray,
) -> FloatArray:
    """Climb from each start inside the box; what a callable rejects is stepped back from."""
    lower, upper = feasible.box(starts.shape[1], None)

    def loss(policy: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = value_and_gradient(forward, posterior, policy, normals)
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
    values = [value_and_gradient(forward, posterior, policy, normals)[0] for policy in candidates]
    return np.asarray(candidates[int(np.argmax(values))])


def _wander(
    forward: ForwardBelief,
    posterior: Reward,
    feasible: Feasible,
    policy: FloatArray,
    normals: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Shrinking random steps: along the border of a callable there is no gradient to follow."""
    lower, upper = feasible.box(len(policy), None)
    for radius in 0.2 * 0.5 ** np.arange(8):
        steps = policy + radius * rng.standard_normal((64, len(policy)))
        steps = np.clip(steps, lower, upper)
        around = np.vstack([policy, steps[feasible.contains(steps)]])
        policy = around[int(np.argmax(policy_values(forward, posterior, around, normals)))]
    return policy


def _describe(
    settings: SelectionSettings,
    forward: ForwardBelief,
    posterior: Reward,
    policy: FloatArray,
    normals: FloatArray,
) -> Recommendation:
    prediction = forward.predict(policy[None])
    mean, deviation = prediction.mean[0], np.sqrt(prediction.variance[0])
    reach = scipy.special.ndtri(0.5 + settings.interval / 2) * deviation
    outcomes = sample(mean, prediction.variance[0], normals)
    rewards = posterior.reward_samples(outcomes).mean(axis=0)
    tail = (1 - settings.interval) / 2
    low, high = np.quantile(rewards, [tail, 1 - tail])
    tried = forward.tried_leverage()
    leverage = float(forward.leverage(policy[None])[0])
    return Recommendation(
        policy=policy,
        outcome=np.clip(mean, 0, 1),
        outcome_low=np.clip(mean - reach, 0, 1),
        outcome_high=np.clip(mean + reach, 0, 1),
        reward=float(posterior.mean_reward(outcomes).mean()),
        reward_low=float(low),
        reward_high=float(high),
        extrapolates=bool(len(tried) < 2 or leverage > tried.max()),
    )
