"""Noise of the simulated interaction (paper: app:noise, "Simulation noise model").

Notation
    execution    sigma_tau      jitter of the commanded policy
    measurement  sigma_phi      sensing noise of each measured outcome
    reward       sigma_r~       noise of each evaluation of the latent reward
    gap          Delta r        |r(phi_a) - r(phi_b)|, the clean reward gap of a pair
All levels are fractions of the full scale of a unit coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from sfihilo.history import FloatArray


@dataclass(frozen=True)
class NoiseLevels:
    """tab:app_noise_settings: the default standard deviations."""

    execution: float = 0.02
    measurement: float = 0.05
    reward: float = 0.02

    def __post_init__(self) -> None:
        for name in ("execution", "measurement", "reward"):
            level = getattr(self, name)
            if not (np.isfinite(level) and level >= 0):
                raise ValueError(f"{name}: expected a finite noise level >= 0, got {level!r}")

    def scaled(self, factor: float) -> NoiseLevels:
        """All three levels times one factor (panel E)."""
        return NoiseLevels(self.execution * factor, self.measurement * factor, self.reward * factor)


def perturb(policy: FloatArray, levels: NoiseLevels, rng: np.random.Generator) -> FloatArray:
    """The executed policy: the commanded one with execution noise."""
    jitter = levels.execution * rng.standard_normal(policy.shape)
    return np.clip(policy + jitter, 0.0, 1.0)  # eq:app_execution_noise


def measure(outcome: FloatArray, levels: NoiseLevels, rng: np.random.Generator) -> FloatArray:
    """The measured outcome: the true one with sensing noise."""
    error = levels.measurement * rng.standard_normal(outcome.shape)
    return np.clip(outcome + error, 0.0, 1.0)  # eq:app_sensing_noise


def evaluate_rewards(
    rewards: FloatArray, levels: NoiseLevels, rng: np.random.Generator
) -> FloatArray:
    """Noisy evaluations of clean rewards, independent per entry."""
    return rewards + levels.reward * rng.standard_normal(rewards.shape)  # eq:app_reward_eval_noise


def reversal_probability(gap: ArrayLike, levels: NoiseLevels) -> FloatArray:
    """Probability that reward-evaluation noise reverses a comparison of clean gap ``gap``."""
    size = np.abs(np.asarray(gap, dtype=float))
    if levels.reward == 0:
        return np.where(size > 0, 0.0, 0.5)
    scaled = -size / (np.sqrt(2.0) * levels.reward)
    return np.asarray(norm.cdf(scaled), dtype=float)  # eq:app_noise_reversal_prob
