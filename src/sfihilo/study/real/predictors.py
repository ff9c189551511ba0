"""What predicts a person's choices: the presets, and baselines that any of them should beat.

Notation
--------
known           (first, second, labels)   the choices that a model sees
first, second   phi, phi'   (n, d)        options of the choices to predict
result          q           (n,)          probability that the first option is chosen
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from sfihilo import Settings, reward_from_comparisons
from sfihilo.history import FloatArray
from sfihilo.inverse import AverageSettings
from sfihilo.study.people.choice_data import PersonChoices

Model = Callable[[PersonChoices, FloatArray, FloatArray], FloatArray]

# Chosen on development people: the least mean log loss over all sets and numbers of answers.
LOGIT_PENALTY = 1.0
QUADRATIC_PENALTY = 3.0
_DRAWS = 4  # of features, over the people; more would not stay in memory
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def coin(known: PersonChoices, first: FloatArray, second: FloatArray) -> FloatArray:
    """Nothing is learned."""
    return np.full(len(first), 0.5)


def single(known: PersonChoices, first: FloatArray, second: FloatArray) -> FloatArray:
    """The attribute and direction that agree with most choices.

    With k of n choices that it explains, its probability is (k + 1) / (n + 2).
    """
    agree = np.sign(known.first - known.second) * known.labels[:, None]
    score = agree.sum(axis=0)
    best = int(np.argmax(np.abs(score)))
    direction = np.sign(score[best]) or 1.0
    right, decided = np.sum(direction * agree[:, best] > 0), np.sum(agree[:, best] != 0)
    side = direction * np.sign(first[:, best] - second[:, best])
    return np.asarray(0.5 + side * ((right + 1) / (decided + 2) - 0.5))


def logit(
    known: PersonChoices,
    first: FloatArray,
    second: FloatArray,
    *,
    penalty: float,
    quadratic: bool = False,
) -> FloatArray:
    """Ridge conditional logit on differences, divided by their root mean square when learned."""
    from sklearn.linear_model import LogisticRegression  # slow to load, and only used here

    shape = _with_products if quadratic else np.asarray
    rows, new = shape(known.first) - shape(known.second), shape(first) - shape(second)
    size = np.sqrt(np.mean(rows**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    # Every choice in both directions, so that no class is missing; "same" is half of each.
    both = np.concatenate([rows, -rows]) / size
    mass = np.concatenate([1 + known.labels, 1 - known.labels]) / 4
    fit = LogisticRegression(C=1 / penalty, fit_intercept=False, max_iter=1000)
    answer = np.repeat([1, -1], len(both))
    fit.fit(np.concatenate([both, -both]), answer, np.concatenate([mass, mass]))
    return np.asarray(fit.predict_proba(new / size)[:, 1])


def _with_products(outcomes: FloatArray) -> FloatArray:
    """Attributes, their squares and products."""
    rows, columns = np.triu_indices(outcomes.shape[1])
    centred = outcomes - 0.5
    return np.concatenate([centred, centred[:, rows] * centred[:, columns]], axis=1)


def learned(
    settings: Settings,
    known: PersonChoices,
    first: FloatArray,
    second: FloatArray,
    *,
    seed: int | None = None,
) -> FloatArray:
    """The reward that these settings learn; by default the seed is one of a few, by the person."""
    if seed is None:  # the paper's features are random: results must not rest on one draw of them
        seed = zlib.crc32(known.person.encode()) % _DRAWS
    reward = reward_from_comparisons(known.first, known.second, known.labels, settings, seed=seed)
    return reward.preference(first, second)


_ONLY_LINEAR = AverageSettings(curved=(0.0,), curved_odds=(1.0,))
MODELS: dict[str, Model] = {
    "coin": coin,
    "single": single,
    "logit": partial(logit, penalty=LOGIT_PENALTY),
    "quadratic": partial(logit, penalty=QUADRATIC_PENALTY, quadratic=True),
    "paper": partial(learned, Settings.paper()),
    "before": partial(learned, replace(Settings(), average=None)),
    "linear": partial(learned, replace(Settings(), average=_ONLY_LINEAR)),
    "default": partial(learned, Settings()),
}
# What the penalties are chosen from, and what logit could be worth with the best one of each row.
PENALISED: dict[str, Model] = {
    f"{name}_{penalty:g}": partial(logit, penalty=penalty, quadratic=name == "quadratic")
    for name in ("logit", "quadratic")
    for penalty in PENALTIES
}
PREDICTED = {**MODELS, **PENALISED}
WORDS = {
    "coin": "a coin",
    "single": "best single attribute",
    "logit": "conditional logit",
    "quadratic": "quadratic logit",
    "paper": "`paper`",
    "before": "the default before",
    "linear": "linear part alone",
    "default": "`default`",
}


def description() -> str:
    """What the models are, in a text that changes with the settings of any of them."""
    parts = []
    for name, model in PREDICTED.items():
        arguments = (*model.args, model.keywords) if isinstance(model, partial) else ()
        parts.append(f"{name}: {arguments!r}")
    return "\n".join(parts)
