"""Optuna's PreferentialGPSampler: preferences over policies, made to find the best trial.

It comes with optuna-dashboard and follows Takeno et al. 2023. It sees no outcomes, only policies
and which of two consecutive trials was preferred; its own answer is `best_trials`, the trials that
lost no comparison.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import optuna
import torch  # type: ignore[import-not-found]
from optuna_dashboard.preferential import create_study  # type: ignore[import-not-found]
from optuna_dashboard.preferential.samplers.gp import (  # type: ignore[import-not-found]
    PreferentialGPSampler,
    _orthants_MVN_EP_jit,
)

from sfihilo.history import Choice, FloatArray


class Preferential:
    """A study of policies in the unit cube in which each trial is compared with the one before."""

    def __init__(self, dimension: int, seed: int, refit: int = 1) -> None:
        """With `refit` above 1 its hyperparameters are fitted only every so many comparisons."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.sampler = PreferentialGPSampler(seed=seed)
        self.refit = refit
        self.study = create_study(n_generate=2, sampler=self.sampler)
        self.space: dict[str, optuna.distributions.BaseDistribution] = {
            f"x{index}": optuna.distributions.FloatDistribution(0.0, 1.0)
            for index in range(dimension)
        }

    def ask(self) -> FloatArray:
        """The next trial's policy."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self.study.ask(self.space)
        self._fit_seldom()
        return self._policy(trial)

    def _fit_seldom(self) -> None:
        model = self.sampler._gp
        if self.refit == 1 or model is None or "fit_params_EP" in vars(model):
            return
        fit = model.fit_params_EP

        def sometimes(policies: Any, preferences: Any) -> None:
            if len(preferences) % self.refit == 0:
                fit(policies, preferences)

        model.fit_params_EP = sometimes

    def add(self, policy: FloatArray) -> None:
        """A policy chosen elsewhere (for benchmarks on a given history)."""
        params = {name: float(value) for name, value in zip(self.space, policy, strict=True)}
        trial = optuna.trial.create_trial(params=params, distributions=self.space, value=0.0)
        self.study.add_trial(trial)

    def tell(self, choice: Choice | None) -> None:
        """Which of the last two trials was preferred; it has no word for "same"."""
        if choice is None or choice == "same":
            return
        trials = self.study.get_trials(deepcopy=False)
        new, previous = trials[-1], trials[-2]
        better, worse = (new, previous) if choice == "new" else (previous, new)
        self.study.report_preference(better, worse)

    def best_trials(self) -> FloatArray:
        """Its own answer: all trials that lost no comparison."""
        return np.array([self._policy(trial) for trial in self.study.best_trials])

    def best_by_model(self) -> FloatArray:
        """The trial with the highest posterior mean of the sampler's own model."""
        trials = self.study.get_trials(deepcopy=False)
        policies = torch.tensor(np.array([self._policy(trial) for trial in trials]))
        preferences = self.study.get_preferences(deepcopy=False)
        numbers = torch.tensor([[b.number, w.number] for b, w in preferences], dtype=torch.int32)
        model = self.sampler._gp
        with torch.no_grad():
            covariance = model.kernel(policies, policies).to_dense()
            mean, _, _ = _orthants_MVN_EP_jit(covariance, numbers, model.log_noise.exp(), cycles=4)
        return self._policy(trials[int(torch.argmax(mean))])

    def _policy(self, trial: Any) -> FloatArray:
        return np.array([trial.params[name] for name in self.space])
