"""A learner's state as text, and the same state to the last bit from it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from sfihilo import forward as fw
from sfihilo import inverse as inv
from sfihilo.forward import ForwardBelief, Hyperparameters
from sfihilo.forward.recency import Decay
from sfihilo.history import (
    FloatArray,
    History,
    IntArray,
    known_choice,
    known_strength,
    unit_vector,
)
from sfihilo.inverse import InverseBelief
from sfihilo.inverse.grading import CUTS, Grading, answer_bounds, answer_clarity
from sfihilo.learner import begin
from sfihilo.refit import fitted_forward
from sfihilo.settings import Settings
from sfihilo.state import State, checked_floats

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _as_value_errors(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Numbers of the right type may still be impossible: arithmetic that fails is a ValueError."""

    @wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except (ArithmeticError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"state: expected the text of a saved state: {error}") from error

    return checked


def save(state: State) -> str:
    """Return the state as JSON text; floats are written so that they read back exactly.

    Example:
        >>> from sfihilo import Settings, ask, begin, load, save
        >>> state = begin(Settings(policy_dim=2, outcome_dim=3), seed=0)
        >>> bool((ask(load(save(state))).policy == ask(state).policy).all())
        True
    """
    history = state.history
    # Only where they are needed: other records stay as they always were.
    more: dict[str, Any] = {}
    if not np.isnan(history.imputed).all():
        more["imputed"] = _rows(history.imputed)
    if history.partial:
        more["clarity"] = state.inverse.clarity.tolist()
    if state.settings.grades > 2:
        more["strengths"] = list(history.strengths)
        more["grading"] = {"scale": state.inverse.grading.scale, "used": state.inverse.grading.used}
    if state.settings.recall > 1:
        more["compared_with"] = history.compared_with.tolist()
    return json.dumps(
        {
            "format": 1,
            "settings": state.settings.to_dict(),
            "seed": state.seed,
            "policies": history.policies.tolist(),
            "outcomes": _rows(history.outcomes),
            "anchors": _rows(history.anchors),
            "choices": list(history.choices),
            "hyper": list(state.forward.hyper),
            "decay": None if state.decay is None else list(state.decay),
            "factored": state.factored,
            "mode": state.inverse.centre.tolist(),
            "curvature": state.inverse.curvature.tolist(),
            **more,
        },
        allow_nan=False,
    )


@_as_value_errors
@checked_floats
def load(text: str) -> State:
    """Return the state that `save` wrote: the same next query, to the last bit.

    Raises:
        ValueError: the text is not a saved state, or its parts do not fit together.
    """
    record: dict[str, Any] = _record(text)
    settings = Settings.from_dict(record["settings"])
    start = begin(settings, record["seed"])
    history = _history(record, settings)
    hyper = Hyperparameters(*record["hyper"])
    decay = None if record["decay"] is None else Decay(*record["decay"])
    pairs = history.preference_data()
    inverse = replace(
        start.inverse,
        differences=_differences(start.inverse, history),
        labels=pairs.labels,
        centre=np.array(record["mode"], dtype=float),
        curvature=np.array(record["curvature"], dtype=float),
        bounds=answer_bounds(pairs.labels, pairs.strengths, settings.grades),
        clarity=_clarity(record, answer_clarity(pairs.ages, settings.recall_noise)),
        grading=_grading(record),
    )
    _check_models(inverse, len(history.forward_data().rounds), record["factored"])
    forward = _restored(settings, hyper, history, decay, record["factored"])
    return replace(
        start,
        history=history,
        forward=forward,
        inverse=inverse,
        decay=decay,
        factored=record["factored"],
    )


_PARTS = (
    "settings",
    "seed",
    "policies",
    "outcomes",
    "anchors",
    "choices",
    "hyper",
    "decay",
    "factored",
    "mode",
    "curvature",
)


def _record(text: str) -> dict[str, Any]:
    """Validates the text that `load` is given."""
    if not isinstance(text, str):
        raise ValueError(f"state: expected text, got {type(text).__name__}")
    record = json.loads(text, parse_constant=_refuse)
    if not isinstance(record, dict) or record.get("format") != 1:
        raise ValueError(f"state: expected a record of format 1, got {text[:60]!r}")
    missing = [part for part in _PARTS if part not in record]
    if missing:
        raise ValueError(f"state: expected {', '.join(_PARTS)}, got a record without {missing}")
    _check_types(record)
    columns = (
        *("policies", "outcomes", "anchors", "choices"),
        *("imputed", "strengths", "compared_with"),
    )
    lengths = {name: len(record[name]) for name in columns if name in record}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"state: expected as many of each, got {lengths}")
    return record


def _history(record: dict[str, Any], settings: Settings) -> History:
    outcomes = _filled(record["outcomes"], settings.outcome_dim, "outcomes", may_be_missing=True)
    anchors = _filled(record["anchors"], settings.outcome_dim, "anchors")
    nothing = [None] * len(outcomes)
    imputed = record.get("imputed", nothing)
    history = History(
        _filled(record["policies"], settings.policy_dim, "policies"),
        outcomes,
        _compared_with(record, outcomes, anchors),
        tuple(known_choice(choice) for choice in record["choices"]),
        _filled(imputed, settings.outcome_dim, "imputed", may_be_missing=True),
        _strengths(record, settings),
    )
    if not np.array_equal(history.anchors, anchors, equal_nan=True):
        raise ValueError("state: expected anchors that are outcomes of earlier rounds, got others")
    return history


def _compared_with(record: dict[str, Any], outcomes: FloatArray, anchors: FloatArray) -> IntArray:
    """The round that each was compared with: the last measured one, unless it is recorded."""
    rounds = np.arange(len(outcomes))
    measured = ~np.isnan(outcomes).all(axis=1)
    last = np.append(-1, np.maximum.accumulate(np.where(measured, rounds, -1)))[:-1]
    given = np.array(record["compared_with"] or last) if "compared_with" in record else last
    if given.dtype.kind != "i" or (given < -1).any() or (given >= np.maximum(rounds, 0)).any():
        raise ValueError(f"state: expected rounds before their own, got {given.tolist()}")
    return np.where(np.isnan(anchors).any(axis=1), -1, given)


def _strengths(record: dict[str, Any], settings: Settings) -> tuple[int | None, ...]:
    choices = record["choices"]
    given = record.get("strengths", [None] * len(choices))
    most = len(CUTS[settings.grades])
    return tuple(map(known_strength, given, choices, [most] * len(choices)))


def _grading(record: dict[str, Any]) -> Grading:
    given = record.get("grading", {"scale": 1.0, "used": True})
    scale, used = given.get("scale"), given.get("used")
    if not isinstance(scale, float) or scale <= 0 or not isinstance(used, bool):
        raise ValueError(f"state: expected a grading with scale and used, got {given!r}")
    return Grading(scale, used)


def _clarity(record: dict[str, Any], by_age: FloatArray) -> FloatArray:
    """Of each comparison; recorded where outcomes were measured in part."""
    given = np.array(record.get("clarity", by_age.tolist()) or by_age)
    numbers = given.shape == by_age.shape and given.dtype.kind == "f"
    if not numbers or not ((given > 0) & (given <= 1)).all():
        expected = f"{len(by_age)} numbers above 0, up to 1"
        raise ValueError(f"state: expected a clarity of {expected}, got {record['clarity']!r}")
    return given


def _refuse(constant: str) -> None:
    raise ValueError(f"state: expected finite numbers, got {constant}")


def _check_types(record: dict[str, Any]) -> None:
    """Raise unless every part has the type that `save` wrote."""
    if not isinstance(record["settings"], dict):
        raise ValueError(f"settings: expected a table, got {record['settings']!r}")
    for name in ("policies", "outcomes", "anchors", "choices"):
        if not isinstance(record[name], list):
            raise ValueError(f"{name}: expected a list, got {record[name]!r}")
    for name in ("policies", "outcomes", "anchors"):
        for row in record[name]:
            if row is not None or name == "policies":
                _numbers(row, name, missing=name != "policies")
    for name in ("mode", "curvature"):
        _numbers(record[name], name)
    for name in ("hyper", "decay"):
        values = record[name]
        if values is None and name == "decay":
            continue
        _numbers(values, name)
        if len(values) != 2 or min(values) <= 0:
            raise ValueError(f"{name}: expected two numbers above 0, got {values!r}")
    if isinstance(record["factored"], bool) or not isinstance(record["factored"], int):
        raise ValueError(f"factored: expected a whole number, got {record['factored']!r}")


def _numbers(values: object, name: str, *, missing: bool = False) -> None:
    """Raise unless it is a list of finite numbers, or of None where values may be missing."""
    if not isinstance(values, list):
        raise ValueError(f"{name}: expected a list of numbers, got {values!r}")
    for value in values:
        if value is None and missing:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}: expected numbers, got {value!r}")
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected finite numbers, got {value}")


def _check_models(inverse: InverseBelief, measured: int, factored: int) -> None:
    """The models' own numbers must fit the history that they were saved with."""
    if inverse.centre.shape != (inverse.features.size + 1,):
        raise ValueError(
            f"state: expected a mode of {inverse.features.size + 1} numbers, "
            f"got {len(inverse.centre)}"
        )
    if inverse.curvature.shape != inverse.labels.shape:
        raise ValueError(
            f"state: expected {len(inverse.labels)} curvatures, got {len(inverse.curvature)}"
        )
    if not 0 <= factored <= measured:
        raise ValueError(f"state: expected factored from 0 to {measured}, got {factored}")


def _restored(
    settings: Settings,
    hyper: Hyperparameters,
    history: History,
    decay: Decay | None,
    factored: int,
) -> ForwardBelief:
    """Factor and append just as it was done the first time."""
    if decay is not None:
        return fitted_forward(settings, hyper, history, decay)
    data = history.forward_data()
    belief = fw.fit(
        settings.forward,
        hyper,
        settings.noise.measurement,
        data.policies[:factored],
        data.outcomes[:factored],
    )
    for policy, outcome in zip(data.policies[factored:], data.outcomes[factored:], strict=True):
        belief = fw.append(belief, policy, outcome)
    return belief


def _differences(inverse: InverseBelief, history: History) -> FloatArray:
    """As `tell` computes them, since the rounding of a product may depend on its size.

    All at once where outcomes are imputed, else one row at a time.
    """
    anchors, outcomes, *_ = history.preference_data()
    if history.partial and len(outcomes):
        return inv.difference(inverse.features, anchors, outcomes)
    rows = [
        inv.difference(inverse.features, anchor[None], outcome[None])
        for anchor, outcome in zip(anchors, outcomes, strict=True)
    ]
    return np.concatenate([np.empty((0, inverse.features.size)), *rows])


def _rows(values: FloatArray) -> list[list[float | None] | None]:
    """Lists, with None for NaN and for a row of NaN."""
    return [
        None
        if np.isnan(row).all()
        else [None if np.isnan(value) else float(value) for value in row]
        for row in values
    ]


def _filled(
    rows: list[list[float | None] | None], size: int, name: str, *, may_be_missing: bool = False
) -> FloatArray:
    """Checked rows, with NaN for None."""
    missing = np.full(size, np.nan)
    filled = [
        missing if row is None else unit_vector(row, size, name, may_be_missing=may_be_missing)
        for row in rows
    ]
    return np.array(filled, dtype=float).reshape(-1, size)
