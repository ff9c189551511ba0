"""The feasible set: which policies may be asked or recommended (paper appendix, the subset C of T).

Bounds, a largest step from the previous policy, a callable and a finite list can be combined; a
policy is in the set if all of them allow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from sfihilo.history import BoolArray, FloatArray

# Bounds and steps hold up to this rounding error.
TOLERANCE = 1e-12
_ATTEMPTS = 200
_LEAST_PROPOSALS = 1024


@dataclass(frozen=True, eq=False)
class Feasible:
    """A subset of the unit cube of policies; without arguments, the whole cube.

    accepts: a function of policies (n, d) that returns which of them are allowed (n,).
    choices: a finite list (n, d); no other policy is allowed.
    """

    lower: npt.ArrayLike | None = None
    upper: npt.ArrayLike | None = None
    max_step: npt.ArrayLike | None = None
    accepts: Callable[[FloatArray], BoolArray] | None = None
    choices: npt.ArrayLike | None = None

    def box(self, dimension: int, previous: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """The smallest box around the set: bounds, narrowed by the largest step."""
        lower = _vector(self.lower, dimension, 0.0, "lower")
        upper = _vector(self.upper, dimension, 1.0, "upper")
        if self.max_step is not None and previous is not None:
            step = _vector(self.max_step, dimension, 1.0, "max_step")
            lower, upper = np.maximum(lower, previous - step), np.minimum(upper, previous + step)
        # A step that ends just at a bound may miss it by a rounding error.
        upper = np.where((lower > upper) & (lower <= upper + TOLERANCE), lower, upper)
        if (lower > upper).any():
            raise ValueError(
                f"feasible set: it is empty, from {lower.tolist()} to {upper.tolist()}"
            )
        return lower, upper

    def contains(self, policies: FloatArray, previous: FloatArray | None = None) -> BoolArray:
        inside = self._within(policies, previous)
        if self.choices is not None and inside.any():
            distance, _ = scipy.spatial.cKDTree(self._listed(policies.shape[1])).query(
                policies[inside], p=np.inf
            )
            inside[inside] = distance <= TOLERANCE
        return inside

    def _within(self, policies: FloatArray, previous: FloatArray | None) -> BoolArray:
        """Which policies are inside the box and accepted; the finite list is ignored."""
        lower, upper = self.box(policies.shape[1], previous)
        inside: BoolArray = np.asarray(np.isfinite(policies).all(axis=1))
        inside &= (policies >= lower - TOLERANCE).all(axis=1)
        inside &= (policies <= upper + TOLERANCE).all(axis=1)
        if self.accepts is not None and inside.any():
            inside[inside] = self._accepted(policies[inside])
        return inside

    def check(self, policy: FloatArray, previous: FloatArray | None = None) -> None:
        """Raise unless this one policy is in the set."""
        if not self.contains(policy[None], previous)[0]:
            raise ValueError(f"policy: expected one in the feasible set, got {policy.tolist()}")

    def sample(
        self, count: int, dimension: int, rng: np.random.Generator, previous: FloatArray | None
    ) -> FloatArray:
        """`count` policies drawn uniformly from the set; of a finite list, each at most once."""
        if self.choices is not None:
            allowed = self.listed(dimension, previous)
            return allowed if len(allowed) <= count else rng.permutation(allowed)[:count]
        lower, upper = self.box(dimension, previous)
        if self.accepts is None:
            return rng.uniform(lower, upper, (count, dimension))
        return self._rejection_sample(count, lower, upper, rng)

    def listed(self, dimension: int, previous: FloatArray | None = None) -> FloatArray:
        """The policies of the finite list that the other restrictions allow."""
        listed = self._listed(dimension)
        allowed = listed[self._within(listed, previous)]
        if len(allowed) == 0:
            raise ValueError(f"feasible set: none of the {len(listed)} choices is allowed now")
        return allowed

    def _rejection_sample(
        self, count: int, lower: FloatArray, upper: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        found: list[FloatArray] = []
        total = 0
        batch = max(count, _LEAST_PROPOSALS)
        for _ in range(_ATTEMPTS):
            proposals = rng.uniform(lower, upper, (batch, len(lower)))
            found.append(proposals[self._accepted(proposals)])
            total += len(found[-1])
            if total >= count:
                break
        if total == 0:
            raise ValueError(
                f"feasible set: the callable accepted none of {_ATTEMPTS * batch} policies"
            )
        return np.concatenate(found)[:count]

    def _accepted(self, policies: FloatArray) -> BoolArray:
        assert self.accepts is not None
        verdict = np.asarray(self.accepts(policies))
        if verdict.shape != (len(policies),):
            raise ValueError(
                f"feasible callable: expected {len(policies)} answers, got shape {verdict.shape}"
            )
        return verdict.astype(bool)

    def _listed(self, dimension: int) -> FloatArray:
        listed = np.asarray(self.choices, dtype=float)
        if listed.ndim != 2 or listed.shape[1] != dimension:
            raise ValueError(
                f"choices: expected rows of {dimension} numbers, got shape {listed.shape}"
            )
        # Not finite is not inside either.
        outside = np.flatnonzero(~((listed >= 0) & (listed <= 1)).all(axis=1))
        if outside.size:
            raise ValueError(
                f"choices: expected numbers in [0, 1], got row {outside[0]}: "
                f"{listed[outside[0]].tolist()}"
            )
        return listed


def _vector(values: npt.ArrayLike | None, dimension: int, default: float, name: str) -> FloatArray:
    if values is None:
        return np.full(dimension, default)
    vector = np.asarray(values, dtype=float)
    if vector.shape not in ((), (1,), (dimension,)) or not np.isfinite(vector).all():
        raise ValueError(f"{name}: expected one number or {dimension} finite ones, got {values!r}")
    if (vector < 0).any() or (vector > 1).any():
        raise ValueError(f"{name}: expected numbers in [0, 1], got {vector.tolist()}")
    return np.broadcast_to(vector, (dimension,))
