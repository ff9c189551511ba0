"""What was asked, measured and answered (paper section 3, "Human outcome and preference ...").

Notation
--------
policies   tau_i       (n, d_policy)   every policy that was executed, in order
outcomes   phi_i       (n, d_outcome)  what was measured; NaN for each number that was not
imputed                (n, d_outcome)  the mean predicted for what was not; else NaN
compared_with          (n,)            the round that each was compared with; -1 where none was
anchors    bar phi_i   (n, d_outcome)  the outcome of that round; NaN where there was none
labels     I_i         (p,)            +1 the anchor was preferred, -1 the new one, 0 neither

The pair is ordered (anchor, new). This module is the only one that knows what the sign means.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
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
    """One question: execute `policy`, then compare its outcome with `anchor`.

    compared_with: the round whose outcome the anchor is. None with an anchor means the last
    measured round.
    """

    round: int
    policy: FloatArray
    anchor: FloatArray | None
    compared_with: int | None = None


@dataclass(frozen=True, eq=False)
class Response:
    """What came back. None means not measured or not answered.

    outcome: single numbers that were not measured are NaN. strength: how much better, 1 (slightly)
    to 3 (much), where the person was asked to grade; 1 or 2 on a scale of five answers.
    """

    outcome: FloatArray | None
    choice: Choice | None
    strength: int | None = None


class ForwardData(NamedTuple):
    """D_f: the executed policies with at least one measured outcome; the others are NaN."""

    rounds: IntArray
    policies: FloatArray
    outcomes: FloatArray


class PreferenceData(NamedTuple):
    """D_r: ordered pairs (anchor, new) with the label and the strength of the answer."""

    anchors: FloatArray
    outcomes: FloatArray
    labels: FloatArray
    strengths: IntArray  # 0 where none was given
    ages: IntArray  # rounds from the anchor's to the new one's; 1 for the round before


@dataclass(frozen=True, eq=False)
class History:
    """Everything told so far, one row per round; `append` returns a longer one.

    imputed: what the outcomes' processes predict for the missing numbers of partly measured
    outcomes. NaN where a number was measured, and where no trial has measured that outcome yet.
    """

    policies: FloatArray
    outcomes: FloatArray
    compared_with: IntArray
    choices: tuple[Choice | None, ...]
    imputed: FloatArray
    strengths: tuple[int | None, ...]

    def __post_init__(self) -> None:
        for record in (self.policies, self.outcomes, self.compared_with, self.imputed):
            record.flags.writeable = False  # callers get views of it

    @staticmethod
    def empty(policy_dim: int, outcome_dim: int) -> History:
        nothing = np.empty((0, outcome_dim))
        return History(np.empty((0, policy_dim)), nothing, np.empty(0, dtype=int), (), nothing, ())

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def measured(self) -> BoolArray:
        """Rounds in which at least one outcome was measured."""
        return np.asarray(~np.isnan(self.outcomes).all(axis=1))

    @property
    def filled(self) -> FloatArray:
        """The outcomes, with imputed values for the numbers that were not measured."""
        return np.where(np.isnan(self.outcomes), self.imputed, self.outcomes)

    @property
    def compared(self) -> BoolArray:
        """Rounds whose answer can be learned from: both outcomes are measured or imputed."""
        answered = np.array([choice is not None for choice in self.choices], dtype=bool)
        known = ~np.isnan(self.filled).any(axis=1)
        return answered & self.measured & known & ~np.isnan(self.anchors).any(axis=1)

    @property
    def anchors(self) -> FloatArray:
        """The outcome that each round's was compared with; NaN where there was none."""
        missing = np.full((1, self.outcomes.shape[1]), np.nan)
        return np.concatenate([self.filled, missing])[self.compared_with]

    def recent(self, count: int) -> IntArray:
        """Which of the last `count` measured rounds can be compared with, the newest first.

        Rounds with a part that is neither measured nor imputed cannot.
        """
        rows = np.flatnonzero(self.measured)[-count:][::-1]
        return np.asarray(rows[~np.isnan(self.filled[rows]).any(axis=1)])

    @property
    def anchor(self) -> FloatArray | None:
        """The outcome that the next one is compared with: that of the last measured round.

        None before the first, and where a part of that outcome is neither measured nor imputed.
        """
        rows = self.recent(1)
        return self.filled[rows[0]] if rows.size else None

    @property
    def previous_policy(self) -> FloatArray | None:
        """The last executed policy, measured or not: the next step starts there."""
        return self.policies[-1] if len(self) else None

    def append(self, query: Query, response: Response) -> History:
        """The history with one more round; nothing is imputed yet."""
        missing = np.full(self.outcomes.shape[1], np.nan)
        outcome = missing if response.outcome is None else response.outcome
        compared_with = query.compared_with
        if compared_with is None:
            compared_with = -1 if query.anchor is None else int(self.recent(1)[0])
        return History(
            np.vstack([self.policies, query.policy]),
            np.vstack([self.outcomes, outcome]),
            np.append(self.compared_with, compared_with),
            (*self.choices, response.choice),
            np.vstack([self.imputed, missing]),
            (*self.strengths, response.strength),
        )

    @property
    def partial(self) -> bool:
        """Whether some outcome was measured only in part."""
        return bool((np.isnan(self.outcomes).any(axis=1) & self.measured).any())

    def impute(self, predicted: FloatArray) -> History:
        """The history with these outcomes (n, d_outcome) wherever a part of one is missing."""
        gaps = np.isnan(self.outcomes) & self.measured[:, None]
        return replace(self, imputed=np.where(gaps, predicted, np.nan))

    def forward_data(self) -> ForwardData:
        rows = np.flatnonzero(self.measured)
        return ForwardData(rows, self.policies[rows], self.outcomes[rows])

    def preference_data(self) -> PreferenceData:
        rows = np.flatnonzero(self.compared)
        labels = [_LABELS[choice] for row in rows if (choice := self.choices[row]) is not None]
        strengths = np.array([self.strengths[row] or 0 for row in rows], dtype=int)
        labelled = np.array(labels, dtype=float)
        ages = rows - self.compared_with[rows]
        return PreferenceData(self.anchors[rows], self.filled[rows], labelled, strengths, ages)


def unit_vector(
    values: object, size: int, name: str, *, may_be_missing: bool = False
) -> FloatArray:
    """Validates a policy or an outcome: `size` numbers in [0, 1], or NaN if some may be missing."""
    try:
        vector = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected {size} numbers, got {values!r}") from error
    if vector.shape != (size,):
        raise ValueError(f"{name}: expected {size} numbers, got an array of shape {vector.shape}")
    given = vector[~np.isnan(vector)] if may_be_missing else vector
    if not np.isfinite(given).all():
        raise ValueError(f"{name}: expected finite numbers, got {vector.tolist()}")
    if (given < 0).any() or (given > 1).any():
        raise ValueError(f"{name}: expected numbers in [0, 1], got {vector.tolist()}")
    return vector


def partial_outcome(values: object, size: int) -> FloatArray | None:
    """Validates an outcome whose unmeasured numbers are NaN; None where nothing was measured."""
    if values is None:
        return None
    outcome = unit_vector(values, size, "outcome", may_be_missing=True)
    return None if np.isnan(outcome).all() else outcome


def known_choice(choice: object) -> Choice | None:
    """Validates an answer."""
    if choice is None:
        return None
    for known in CHOICES:
        if choice == known:
            return known
    raise ValueError(f"choice: expected one of {', '.join(CHOICES)} or None, got {choice!r}")


def known_strength(strength: object, choice: Choice | None, most: int) -> int | None:
    """Validates the strength of an answer: None, or a whole number from 1 to `most`."""
    if strength is None:
        return None
    if choice not in ("new", "previous"):
        raise ValueError(f"strength: expected None with the choice {choice!r}, got {strength!r}")
    if isinstance(strength, bool) or not isinstance(strength, int | np.integer):
        raise ValueError(f"strength: expected a whole number or None, got {strength!r}")
    if not 1 <= strength <= most:
        expected = f"1 to {most} or None" if most else "None where answers are not graded"
        raise ValueError(f"strength: expected {expected}, got {strength!r}")
    return int(strength)
