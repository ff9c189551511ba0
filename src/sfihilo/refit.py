"""When the models' hyperparameters are reselected, and both models fitted to a whole history.

`tell` updates both models by one round where that suffices; what is here starts from the beginning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfihilo import forward as fw
from sfihilo.forward import ForwardBelief, Hyperparameters
from sfihilo.forward.recency import Decay, select_with_decay
from sfihilo.forward.tuning import most_measured, select_hyperparameters
from sfihilo.history import History, generator
from sfihilo.settings import Settings
from sfihilo.state import State, executed_weights

# Rounds between reselecting the forward model and the sharpness, so that no query pays for both.
SHARPNESS_DELAY = 10
# Graded comparisons up to which sharpness and scale are updated at every fifth.
GRADED_OFTEN = 40


def is_checkpoint(comparisons: int) -> bool:
    """Whether the forward model's hyperparameters are reselected after this many comparisons."""
    if comparisons <= 200:
        return comparisons == 16 or (comparisons > 0 and comparisons % 25 == 0)
    return comparisons % 50 == 0


def sharpness_is_due(history: History, grades: int) -> bool:
    """Whether a sharpness update is due now, or was missed since the last answer.

    Graded answers tell about sharpness and scale early: there it is due often from the start.
    """
    compared = np.flatnonzero(history.compared)
    if grades > 2 and len(compared) <= GRADED_OFTEN:
        return len(compared) % 5 == 0
    rounds = range(compared[-2] + 1 if len(compared) > 1 else 0, len(history))
    return any(sharpness_due_at(round) for round in rounds)


def sharpness_due_at(comparisons: int) -> bool:
    """Whether the sharpness is reselected after this many comparisons."""
    return is_checkpoint(comparisons - SHARPNESS_DELAY)


def fitted_forward(
    settings: Settings, hyper: Hyperparameters, history: History, decay: Decay | None
) -> ForwardBelief:
    """The forward belief of this history, factorised from the beginning."""
    data = history.forward_data()
    weights = executed_weights(settings, history, decay)
    return fw.fit(
        settings.forward, hyper, settings.noise.measurement, data.policies, data.outcomes, weights
    )


def reselected(state: State) -> State:
    """Hyperparameters anew, and the whole factor with them."""
    settings, data = state.settings, state.history.forward_data()
    rng = generator(state.seed, state.round, "reselect")
    decay: Decay | None = None
    few = most_measured(data.outcomes) < settings.forward.warm_up
    if settings.recency.variant == "unweighted" or few:
        hyper = select_hyperparameters(settings.forward, data.policies, data.outcomes, rng)
    else:
        hyper, decay = select_with_decay(
            settings.forward, settings.recency, data, state.round, int(rng.integers(2**31))
        )
    return replace(
        state,
        forward=fitted_forward(settings, hyper, state.history, decay),
        decay=decay,
        factored=len(data.rounds),
    )
