"""What was asked, measured and answered (paper section 3, "Human outcome and preference ...").

Notation
--------
policies   tau_i       (n, d_policy)   every policy that was executed, in order
outcomes   phi_i       (n, d_outcome)  what was measured; a row of NaN where nothing was
anchors    bar phi_i   (n, d_outcome)  what each was compared with; NaN where there was nothing
labels     I_i         (p,)            +1 the anchor was preferred, -1 the new one, 0 neither

The pair is ordered (anchor, new). This module is the only one that knows what the sign means.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating]
IntArray: TypeAlias = npt.NDArray[np.integer]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Choice = Literal["new", "previous", "same"]
CHOICES: tuple[Choice, ...] = get_args(Choice)

ANCHOR_PREFERRED, NEW_PREFERRED, NEITHER_PREFERRED = 1.0, -1.0, 0.0
_LABELS: dict[Choice, float] = {
    "previous": ANCHOR_PREFERRED,
    "new": NEW_PREFERRED,
    "same": NEITHER_PREFERRED,
}


def generator(seed: int, round: int, purpose: str) -> np.random.Generator:
    """The only source of randomness: a stream of its own for each (seed, round, purpose)."""
    return np.random.default_rng([seed, round, zlib.crc32(purpose.encode())])


@dataclass(frozen=True, eq=False)
class Query:
    """One question: execute `policy`, then compare its outcome with `anchor`."""

    round: int
    policy: FloatArray
    anchor: FloatArray | None


@dataclass(frozen=True, eq=False)
class Response:
    """What came back. None stands for what was not measured or not answered."""

    outcome: FloatArray | None
    choice: Choice | None


class ForwardData(NamedTuple):
    """D_f: the executed policies whose outcome was measured."""

    rounds: IntArray
    policies: FloatArray
    outcomes: FloatArray


class PreferenceData(NamedTuple):
    """D_r: ordered pairs (anchor, new) with the label of the answer."""

    anchors: FloatArray
    outcomes: FloatArray
    labels: FloatArray


@dataclass(frozen=True, eq=False)
class History:
    """Everything told so far, one row per round; `append` returns a longer one."""

    policies: FloatArray
    outcomes: FloatArray
    anchors: FloatArray
    choices: tuple[Choice | None, ...]

    def __post_init__(self) -> None:
        for record in (self.policies, self.outcomes, self.anchors):
            record.flags.writeable = False  # what is handed out is a view of it

    @staticmethod
    def empty(policy_dim: int, outcome_dim: int) -> History:
        return History(
            np.empty((0, policy_dim)), np.empty((0, outcome_dim)), np.empty((0, outcome_dim)), ()
        )

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def measured(self) -> BoolArray:
        return np.asarray(~np.isnan(self.outcomes).any(axis=1))

    @property
    def compared(self) -> BoolArray:
        answered = np.array([choice is not None for choice in self.choices], dtype=bool)
        return answered & self.measured & ~np.isnan(self.anchors).any(axis=1)

    @property
    def anchor(self) -> FloatArray | None:
        """The last validly measured outcome, which the next one is compared with."""
        rows = np.flatnonzero(self.measured)
        return self.outcomes[rows[-1]] if rows.size else None

    @property
    def previous_policy(self) -> FloatArray | None:
        """The last executed policy, measured or not: a step starts from what the body did last."""
        return self.policies[-1] if len(self) else None

    def append(self, query: Query, response: Response) -> History:
        missing = np.full(self.outcomes.shape[1], np.nan)
        outcome = missing if response.outcome is None else response.outcome
        anchor = missing if query.anchor is None else query.anchor
        return History(
            np.vstack([self.policies, query.policy]),
            np.vstack([self.outcomes, outcome]),
            np.vstack([self.anchors, anchor]),
            (*self.choices, response.choice),
        )

    def forward_data(self) -> ForwardData:
        rows = np.flatnonzero(self.measured)
        return ForwardData(rows, self.policies[rows], self.outcomes[rows])

    def preference_data(self) -> PreferenceData:
        rows = np.flatnonzero(self.compared)
        labels = [_LABELS[choice] for row in rows if (choice := self.choices[row]) is not None]
        return PreferenceData(
            self.anchors[rows], self.outcomes[rows], np.array(labels, dtype=float)
        )


def unit_vector(values: object, size: int, name: str) -> FloatArray:
    """Validates a policy or an outcome: `size` finite numbers in [0, 1]."""
    try:
        vector = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected {size} numbers, got {values!r}") from error
    if vector.shape != (size,):
        raise ValueError(f"{name}: expected {size} numbers, got an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name}: expected finite numbers, got {vector.tolist()}")
    if (vector < 0).any() or (vector > 1).any():
        raise ValueError(f"{name}: expected numbers in [0, 1], got {vector.tolist()}")
    return vector


def known_choice(choice: object) -> Choice | None:
    """Validates an answer."""
    if choice is None:
        return None
    for known in CHOICES:
        if choice == known:
            return known
    raise ValueError(f"choice: expected one of {', '.join(CHOICES)} or None, got {choice!r}")
