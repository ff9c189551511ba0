"""Recency weights for people who adapt (paper appendix "Recency-weighted forward learning").

Notation
--------
rounds      c_i               (t,)  query index of each observation
decay_time  T_d                     how many queries the adaptation takes
bandwidth   h_d                     difference in progress over which weights fall off
progress    hat alpha_i(T_d)  (t,)
weights     omega_i           (t,)
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sfihilo.checks import Checked, one_of, positive, positive_range, whole
from sfihilo.forward import ForwardSettings, Hyperparameters
from sfihilo.forward.tuning import Split
from sfihilo.history import FloatArray, ForwardData, IntArray

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class RecencySettings(Checked):
    """tab:recency_weighting_hyperparameters.

    variant: how drift is treated. "unweighted" ignores it; "learned" selects decay time and
    bandwidth by validation; "known" is given the true `decay_time` (simulations only).
    """

    variant: Literal["unweighted", "known", "learned"] = one_of("unweighted", "known", "learned")
    decay_time: float | None = positive(None)
    weight_floor: float = positive(1e-4)
    trials: int = whole(1, 64)
    startup_trials: int = whole(1, 16)
    decay_times: tuple[float, float] = positive_range((15.0, 400.0))
    bandwidths: tuple[float, float] = positive_range((0.02, 0.40))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant == "known" and self.decay_time is None:
            raise ValueError("recency variant known: expected a positive decay_time, got None")


class Decay(NamedTuple):
    """T_d and h_d."""

    decay_time: float
    bandwidth: float


def progress(rounds: IntArray | FloatArray, decay_time: float) -> FloatArray:
    """How far the person has adapted by each query index."""
    elapsed = np.minimum(np.asarray(rounds, float) / decay_time, 700)
    return 1 - np.exp(-elapsed)  # eq:app_estimated_progress


def recency_weights(
    rounds: IntArray, current: int, decay: Decay, floor: float = 1e-4
) -> FloatArray:
    """The weight of each observation at the query index `current`; one on average."""
    if len(rounds) == 0:
        return np.empty(0)
    distance = progress(rounds, decay.decay_time) - progress(np.array(current), decay.decay_time)
    closeness = np.exp(-np.minimum(distance**2 / (2 * decay.bandwidth**2), 700))
    raw = np.maximum(closeness, floor)
    return np.asarray(raw / raw.mean())  # eq:app_recency_weights


def require_search() -> None:
    """Raise a ValueError if Optuna is not installed; called before the first trial."""
    if importlib.util.find_spec("optuna") is None:
        raise ValueError(
            "recency: expected Optuna for the decay search, got none: pip install 'sfihilo[drift]'"
        )


def select_with_decay(
    forward: ForwardSettings,
    recency: RecencySettings,
    data: ForwardData,
    current: int,
    seed: int,
) -> tuple[Hyperparameters, Decay]:
    """Decay schedule and kernel parameters together, by the tree-structured Parzen estimator.

    The validation set is drawn from recent observations: the aim is to predict the present.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    first = max(0, len(data.rounds) - forward.tuning_cap)
    recent = ForwardData(data.rounds[first:], data.policies[first:], data.outcomes[first:])
    split, rounds = recent_split(forward, recent, np.random.default_rng(seed))

    strict = np.geterr()

    def objective(trial: optuna.Trial) -> float:
        hyper, decay = _suggest(trial, forward, recency)
        with np.errstate(**strict):
            weights = recency_weights(rounds, current, decay, recency.weight_floor)
            return float(split.errors([hyper], forward.jitter, weights)[0])

    # Optuna 5 made other choices the default; the paper cites the independent estimator.
    sampler = optuna.samplers.TPESampler(
        n_startup_trials=recency.startup_trials, multivariate=False, constant_liar=False, seed=seed
    )
    study = optuna.create_study(direction="minimize", sampler=sampler)
    with np.errstate(all="ignore"):  # Optuna takes logarithms of zero on purpose
        study.optimize(objective, n_trials=recency.trials)
    return _suggest(study.best_trial, forward, recency)  # eq:app_learned_decay_selection


def recent_split(
    forward: ForwardSettings, data: ForwardData, rng: np.random.Generator
) -> tuple[Split, IntArray]:
    """The split that validates on a random half of the latest observations; the training rounds.

    The other half stays in the training set: without recent observations there, recency weights
    could not improve the validation error.
    """
    size = len(data.rounds)
    held_out = max(1, round(forward.validation_fraction * size))
    recent = np.arange(max(0, size - 2 * held_out), size)
    held = np.zeros(size, dtype=bool)
    held[rng.permutation(recent)[:held_out]] = True
    split = Split(
        data.policies[~held], data.outcomes[~held], data.policies[held], data.outcomes[held]
    )
    return split, data.rounds[~held]


def _suggest(
    trial: optuna.Trial | optuna.trial.FrozenTrial,
    forward: ForwardSettings,
    recency: RecencySettings,
) -> tuple[Hyperparameters, Decay]:
    time = (
        recency.decay_time
        if recency.variant == "known" and recency.decay_time is not None
        else trial.suggest_float("decay_time", *recency.decay_times, log=True)
    )
    bandwidth = trial.suggest_float("bandwidth", *recency.bandwidths, log=True)
    length_scale = trial.suggest_float(
        "length_scale", min(forward.length_scales), max(forward.length_scales)
    )
    ridge = trial.suggest_float("ridge", min(forward.ridges), max(forward.ridges), log=True)
    return Hyperparameters(length_scale, ridge), Decay(time, bandwidth)
