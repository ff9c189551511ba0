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


def is_checkpoint(round: int) -> bool:
    """Whether the forward model's hyperparameters are reselected at the end of this round.

    Rounds count from 0, and round 0 compares nothing: with every answer given, the round is the
    number of comparisons so far.
    """
    if round <= 200:
        return round == 16 or (round > 0 and round % 25 == 0)
    return round % 50 == 0


def sharpness_is_due(history: History, grades: int) -> bool:
    """Whether a sharpness update is due now, or was missed since the last answer.

    Graded answers tell about sharpness and scale early: there it is due often from the start.
    """
    compared = np.flatnonzero(history.compared)
    if grades > 2 and len(compared) <= GRADED_OFTEN:
        return len(compared) % 5 == 0
    rounds = range(compared[-2] + 1 if len(compared) > 1 else 0, len(history))
    return any(sharpness_due_at(round) for round in rounds)


def sharpness_due_at(round: int) -> bool:
    """Whether a sharpness update is due at the end of this round, or at the next answer."""
    return is_checkpoint(round - SHARPNESS_DELAY)


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
