"""The reward of one person from a plain table of comparisons, without the loop."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache, partial
from reprlib import repr as shortened

import numpy as np
from numpy.typing import ArrayLike

from sfihilo import inverse as inv
from sfihilo.history import FloatArray, generator
from sfihilo.inverse import InverseSettings, Reward
from sfihilo.inverse.features import FeatureMap
from sfihilo.inverse.likelihood import Answers
from sfihilo.refit import sharpness_due_at
from sfihilo.settings import Settings, checked_seed, checked_settings
from sfihilo.state import checked_floats

_LABELS: dict[object, float] = {"first": 1.0, "second": -1.0, "same": 0.0, 1: 1.0, -1: -1.0, 0: 0.0}


@checked_floats
def reward_from_comparisons(
    first: ArrayLike,
    second: ArrayLike,
    answers: Sequence[str | float] | FloatArray,
    settings: Settings = Settings(),
    *,
    seed: int = 0,
) -> Reward:
    """Return the reward that one person's comparisons of outcomes leave, as in a session.

    Args:
        first: outcomes in [0, 1], one row per comparison and one column per measure.
        second: the outcomes that they were compared with, of the same shape.
        answers: which outcome was preferred: "first", "second" or "same" (or 1, -1 or 0).
        settings: the preset; dimensions and rule are not used.
        seed: of the kernel's landmarks and the posterior samples.

    Returns:
        A `Reward`: `preference` and `better` predict comparisons, `mean_reward` ranks outcomes.

    Raises:
        ValueError: outcomes are not finite numbers in [0, 1], an answer is unknown, these are no
            settings, or the seed is not a whole number from 0.

    Example:
        >>> import numpy as np
        >>> from sfihilo import reward_from_comparisons
        >>> first = [[0.9, 0.2], [0.4, 0.7], [0.8, 0.5], [0.3, 0.1]]
        >>> second = [[0.3, 0.3], [0.6, 0.6], [0.2, 0.9], [0.7, 0.4]]
        >>> reward = reward_from_comparisons(first, second, ["first", "second", "first", "second"])
        >>> bool(reward.preference(np.array([[0.9, 0.5]]), np.array([[0.1, 0.5]]))[0] > 0.5)
        True
    """
    settings, seed = checked_settings(settings), checked_seed(seed)
    ones, others = _outcomes(first, "first"), _outcomes(second, "second")
    labels = _labels(answers)
    if ones.shape != others.shape or len(labels) != len(ones):
        raise ValueError(
            "comparisons: expected as many rows in first, second and answers, "
            f"got shapes {ones.shape}, {others.shape} and {len(labels)} answers"
        )
    features = _features(settings.inverse, ones.shape[1], seed)
    rows = inv.difference(features, ones, others)
    if settings.averaged is not None:
        told = Answers.ungraded(labels, settings.inverse.tie_odds)
        compared = inv.Compared(ones - others, rows, np.ones(len(labels)), told)
        random = partial(generator, seed, len(labels), "average")
        return inv.reward_average(settings.averaged, settings.inverse, features, compared, random)
    belief = inv.begin(settings.inverse, features)
    for count in range(1, len(labels) + 1):
        due = sharpness_due_at(count)
        if due or count == len(labels):
            belief = inv.update(belief, rows[:count], labels[:count], reselect=due)
    return inv.reward_posterior(belief, generator(seed, len(labels), "posterior"))


@lru_cache(maxsize=8)  # people are fitted one after another, and landmarks cost more than a fit
def _features(settings: InverseSettings, outcome_dim: int, seed: int) -> FeatureMap:
    return inv.feature_map(settings, outcome_dim, generator(seed, 0, "features"))


def _outcomes(values: ArrayLike, name: str) -> FloatArray:
    try:
        outcomes = np.array(np.ma.filled(values, np.nan), dtype=float)  # masked: missing
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected rows of numbers, got {shortened(values)}") from error
    if outcomes.ndim != 2 or not outcomes.shape[1]:
        raise ValueError(
            f"{name}: expected one row per comparison and one column per measure, "
            f"got shape {outcomes.shape}"
        )
    wrong = np.argwhere(~((outcomes >= 0) & (outcomes <= 1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"{name}: expected finite numbers in [0, 1], "
            f"got {outcomes[row, column]} in row {row}, column {column}"
        )
    return outcomes


def _labels(answers: Sequence[str | float] | FloatArray) -> FloatArray:
    try:
        each = list(answers)
    except TypeError as error:
        raise ValueError(f"answers: expected one for each comparison, got {answers!r}") from error
    return np.array([_label(answer) for answer in each], dtype=float)


def _label(answer: object) -> float:
    # False would pass for 0, which is "same".
    truth = isinstance(answer, bool | np.bool_)
    if truth or not isinstance(answer, Hashable) or answer not in _LABELS:
        raise ValueError(f"answers: expected first, second, same, 1, -1 or 0, got {answer!r}")
    return _LABELS[answer]
