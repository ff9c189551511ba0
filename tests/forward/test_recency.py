"""Recency weights and the decay search."""

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import optuna
import pytest

from sfihilo import forward as fw
from sfihilo.forward import ForwardSettings, Hyperparameters
from sfihilo.forward.recency import (
    Decay,
    RecencySettings,
    recency_weights,
    recent_split,
    select_with_decay,
)
from sfihilo.forward.tuning import Split, select_hyperparameters
from sfihilo.history import FloatArray, ForwardData

LEARNED = RecencySettings(variant="learned")


def search(recency: RecencySettings, data: ForwardData, seed: int) -> tuple[Hyperparameters, Decay]:
    with np.errstate(
        under="ignore"
    ):  # Optuna's own densities underflow, as does the learner's loop
        return select_with_decay(ForwardSettings(), recency, data, len(data.rounds), seed)


def drifting(count: int, drift: float) -> ForwardData:
    """The person's response turns around slowly: sin(3 tau) early, sin(3 tau + drift) late."""
    rng = np.random.default_rng(5)
    rounds = np.arange(count)
    policies = rng.uniform(size=(count, 1))
    progress = 1 - np.exp(-rounds / 40)
    outcomes = 0.5 + 0.4 * np.sin(3 * policies[:, 0] + drift * progress)
    return ForwardData(rounds, policies, outcomes[:, None])


def test_weights_by_hand() -> None:
    rounds, decay = np.array([0, 3, 10, 40]), Decay(30.0, 0.3)
    raw = []
    for index in rounds:
        apart = (1 - exp(-index / 30)) - (1 - exp(-41 / 30))
        raw.append(max(exp(-(apart**2) / (2 * 0.3**2)), 1e-4))
    assert recency_weights(rounds, 41, decay) == pytest.approx(np.array(raw) / np.mean(raw))


@pytest.mark.parametrize("decay", [Decay(15.0, 0.02), Decay(400.0, 0.4), Decay(50.0, 0.1)])
def test_weights_average_one_and_favour_the_present(decay: Decay) -> None:
    weights = recency_weights(np.arange(300), 300, decay, 1e-4)
    assert weights.mean() == pytest.approx(1)
    assert (np.diff(weights) >= 0).all()
    assert weights[0] / weights[-1] >= 1e-4 * (1 - 1e-9)
    assert len(recency_weights(np.arange(0), 0, decay)) == 0


def test_floor_keeps_the_oldest() -> None:
    weights = recency_weights(np.array([0, 500]), 500, Decay(15.0, 0.02), 1e-4)
    assert weights[0] / weights[1] == pytest.approx(1e-4)


def test_weights_after_very_many_rounds() -> None:
    assert np.isfinite(recency_weights(np.arange(0, 100_000, 1000), 100_000, Decay(15, 0.02))).all()


@pytest.mark.parametrize(
    "wrong",
    [{"variant": "soon"}, {"variant": "known"}, {"variant": "known", "decay_time": -1.0}],
)
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"(variant|decay_time).*: expected .*, got"):
        RecencySettings(**wrong)


def test_validation_is_on_recent_observations() -> None:
    data = drifting(100, 1.0)
    split, rounds = recent_split(ForwardSettings(), data, np.random.default_rng(0))
    assert len(split.held_policies) == 20
    held = np.setdiff1d(data.rounds, rounds)
    assert held.min() >= 60  # a random half of the latest forty
    assert rounds.max() >= 60  # the other half trains
    assert np.array_equal(data.policies[rounds], split.policies)


class Spy:
    """Keeps what the search tried and what it saw."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: list[tuple[Hyperparameters, FloatArray, float]] = []
        self.sampler: dict[str, Any] = {}
        original, sampler = Split.errors, optuna.samplers.TPESampler

        def errors(
            split: Split,
            candidates: list[Hyperparameters],
            jitter: float,
            weights: FloatArray | None = None,
        ) -> FloatArray:
            assert weights is not None
            found = original(split, candidates, jitter, weights)
            self.errors.append((candidates[0], weights, float(found[0])))
            return found

        def make(**options: Any) -> optuna.samplers.TPESampler:
            self.sampler = options
            return sampler(**options)

        monkeypatch.setattr(Split, "errors", errors)
        monkeypatch.setattr(optuna.samplers, "TPESampler", make)


def test_search_is_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    hyper, decay = search(LEARNED, drifting(60, 2.0), 3)
    assert len(spy.errors) == 64
    assert spy.sampler["n_startup_trials"] == 16
    assert spy.sampler["multivariate"] is False  # the paper cites the independent estimator
    assert spy.sampler["constant_liar"] is False
    best = min(spy.errors, key=lambda seen: seen[2])
    assert best[0] == hyper
    _, rounds = recent_split(ForwardSettings(), drifting(60, 2.0), np.random.default_rng(3))
    assert best[1] == pytest.approx(recency_weights(rounds, 60, decay))
    assert 15 <= decay.decay_time <= 400
    assert 0.02 <= decay.bandwidth <= 0.40
    assert all(0.3 <= seen[0].length_scale <= 0.7 for seen in spy.errors)
    assert all(1e-9 <= seen[0].ridge <= 0.1 for seen in spy.errors)


def test_search_is_repeatable() -> None:
    data = drifting(40, 2.0)
    brief = replace(LEARNED, trials=20)
    first = search(brief, data, 1)
    assert first == search(brief, data, 1)
    assert first != search(brief, data, 2)


def test_known_decay_time_is_kept() -> None:
    known = RecencySettings(variant="known", decay_time=77.0, trials=18)
    _, decay = search(known, drifting(40, 2.0), 1)
    assert decay.decay_time == 77.0
    assert 0.02 <= decay.bandwidth <= 0.40


def test_learned_weights_predict_a_drifting_present_better() -> None:
    data = drifting(150, 2.5)
    hyper, decay = search(LEARNED, data, 0)
    weights = recency_weights(data.rounds, 150, decay)
    now = np.linspace(0, 1, 50)[:, None]
    truth = 0.5 + 0.4 * np.sin(3 * now + 2.5 * (1 - np.exp(-150 / 40)))
    unweighted_hyper = select_hyperparameters(
        ForwardSettings(), data.policies, data.outcomes, np.random.default_rng(0)
    )

    def error(hyper: Hyperparameters, weights: FloatArray | None) -> float:
        belief = fw.fit(ForwardSettings(), hyper, 0.05, data.policies, data.outcomes, weights)
        return float(np.sqrt(((belief.mean(now) - truth) ** 2).mean()))

    assert error(hyper, weights) < 0.5 * error(unweighted_hyper, None)
