"""Feature maps of the reward (paper appendix "Inverse GP posterior computation").

Notation
--------
outcomes     phi     (n, d_outcome)
frequencies  Omega   (m, d_outcome)  already divided by the length scale
phases       b       (m,)
features     z(phi)  (n, m)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray

# Outcomes are scaled to [0, 1]; most lie around the middle, few near a corner.
_LANDMARK_STD = 0.2
# Directions with less than this share of a landmark's variance are below single precision's noise.
_LEAST_VARIANCE = 1e-4


def outcome_rows(outcomes: ArrayLike, outcome_dim: int) -> FloatArray:
    """The outcomes that a reward is asked about as finite floats; single precision stays."""
    rows = np.asarray(outcomes)
    if rows.dtype.kind in "biu":
        rows = rows.astype(float)
    if rows.dtype.kind != "f":
        raise ValueError(f"outcomes: expected finite numbers, got type {rows.dtype}")
    if rows.ndim != 2 or rows.shape[1] != outcome_dim:
        raise ValueError(
            f"outcomes: expected rows of {outcome_dim} numbers, got shape {rows.shape}"
        )
    wrong = rows[~np.isfinite(rows)]
    if wrong.size:
        raise ValueError(f"outcomes: expected finite numbers, got {wrong[0]}")
    return rows


class FeatureMap(Protocol):
    """What the reward needs of its features, so that r_w(phi) = w^T z(phi)."""

    @property
    def size(self) -> int: ...

    @property
    def outcome_dim(self) -> int: ...

    def __call__(self, outcomes: FloatArray) -> FloatArray: ...

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        """r_w(phi), (n,): the features times the weights, perhaps without the features."""
        ...

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        """d z / d phi, (n, d_outcome, m)."""
        ...

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        """d r_w / d phi, (n, d_outcome): the jacobian times the weights, without the jacobian."""
        ...

    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """E z(phi) of independent normal outcomes, (n, m)."""
        ...

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """E d r_w / d phi of independent normal outcomes, (n, d_outcome)."""
        ...


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """z(phi) = sqrt(2/m) cos(Omega phi / l + b): inner products approximate the RBF kernel."""

    frequencies: FloatArray
    phases: FloatArray

    @property
    def size(self) -> int:
        return len(self.phases)

    @property
    def outcome_dim(self) -> int:
        return int(self.frequencies.shape[1])

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        # The precision follows the argument: pools come in single, the record in double.
        angles: FloatArray = outcomes @ self.frequencies.T.astype(outcomes.dtype, copy=False)
        angles += self.phases.astype(outcomes.dtype, copy=False)
        np.cos(angles, out=angles)
        angles *= np.sqrt(2 / self.size).astype(outcomes.dtype)
        return angles  # eq:app_inverse_rff_features

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self(outcomes) @ weights.astype(outcomes.dtype, copy=False))

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        frequencies = self.frequencies.T.astype(outcomes.dtype, copy=False)
        angles = outcomes @ frequencies + self.phases.astype(outcomes.dtype, copy=False)
        slopes = np.sin(angles) * -np.sqrt(2 / self.size).astype(outcomes.dtype)
        return np.asarray(slopes[:, None] * frequencies)

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        angles = outcomes @ self.frequencies.T + self.phases
        slopes = -np.sqrt(2 / self.size) * np.sin(angles) * weights
        return np.asarray(slopes @ self.frequencies)

    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        return np.asarray(self(mean) * self._shrinkage(variance))

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        angles = mean @ self.frequencies.T + self.phases
        slopes = -np.sqrt(2 / self.size) * np.sin(angles) * weights * self._shrinkage(variance)
        return np.asarray(slopes @ self.frequencies)

    def _shrinkage(self, variance: FloatArray) -> FloatArray:
        """E cos(a + x) = cos(a) exp(-v / 2) for x ~ N(0, v)."""
        squares = (self.frequencies**2).T.astype(variance.dtype, copy=False)
        return np.asarray(np.exp(-0.5 * (variance @ squares)))


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """z(phi) = P^T k(U, phi): inner products are the RBF kernel's projection on the landmarks U.

    With K = k(U, U) = Q diag(lambda) Q^T and P = Q diag(lambda)^-1/2, z(phi)^T z(phi') is
    k(phi, U) K^-1 k(U, phi') (Williams and Seeger 2001, "Using the Nystroem method to speed up
    kernel machines"): exact at the landmarks, and nearly so wherever a smooth kernel reaches.
    """

    landmarks: FloatArray
    projection: FloatArray
    length_scale: float

    @property
    def size(self) -> int:
        return int(self.projection.shape[1])

    @property
    def outcome_dim(self) -> int:
        return int(self.landmarks.shape[1])

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        kernel = rbf(outcomes, self.landmarks.astype(outcomes.dtype, copy=False), self.length_scale)
        return np.asarray(kernel @ self.projection.astype(outcomes.dtype, copy=False))

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        kernel = rbf(outcomes, self.landmarks.astype(outcomes.dtype, copy=False), self.length_scale)
        # In double precision: the products of projection and weights cancel.
        return np.asarray(kernel @ (self.projection @ weights).astype(outcomes.dtype, copy=False))

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        landmarks = self.landmarks.astype(outcomes.dtype, copy=False)
        kernel = rbf(outcomes, landmarks, self.length_scale)
        towards = landmarks.T - outcomes[:, :, None]
        slopes = kernel[:, None] * towards / outcomes.dtype.type(self.length_scale**2)
        return np.asarray(slopes @ self.projection.astype(outcomes.dtype, copy=False))

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        pull = rbf(outcomes, self.landmarks, self.length_scale) * (self.projection @ weights)
        towards = pull @ self.landmarks - pull.sum(axis=1)[:, None] * outcomes
        return np.asarray(towards / self.length_scale**2)

    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        kernel = self._averaged_kernel(mean, variance)
        return np.asarray(kernel @ self.projection.astype(kernel.dtype, copy=False))

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        pull = self._averaged_kernel(mean, variance)
        pull = pull * (self.projection @ weights).astype(pull.dtype, copy=False)
        towards = pull @ self.landmarks.astype(pull.dtype, copy=False)
        towards -= pull.sum(axis=1)[:, None] * mean
        return np.asarray(towards / (self.length_scale**2 + variance))

    def _averaged_kernel(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """E k(u, phi) = prod_o l / sqrt(l^2 + v_o) exp(-(m_o - u_o)^2 / (2 (l^2 + v_o)))."""
        landmarks = self.landmarks.astype(mean.dtype, copy=False)
        precision = 1 / (self.length_scale**2 + variance)
        distance = precision @ (landmarks**2).T - 2 * (mean * precision) @ landmarks.T
        distance += np.sum(mean**2 * precision, axis=1)[:, None]
        shrinkage = np.log(self.length_scale**2 * precision).sum(axis=1)
        return np.asarray(np.exp(0.5 * (shrinkage[:, None] - distance)))


@dataclass(frozen=True)
class LinearFeatures:
    """z(phi) = phi: the paper's comparison, a reward that is linear in the outcomes."""

    size: int

    @property
    def outcome_dim(self) -> int:
        return self.size

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        return outcomes

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self(outcomes) @ weights.astype(outcomes.dtype, copy=False))

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        unit = np.eye(self.size, dtype=outcomes.dtype)
        return np.broadcast_to(unit, (len(outcomes), self.size, self.size))

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        return np.broadcast_to(weights, outcomes.shape)

    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        return mean

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        return self.gradient(mean, weights)


@dataclass(frozen=True, eq=False)
class CustomFeatures:
    """A user's own map, with its slopes by central differences."""

    function: Callable[[FloatArray], FloatArray]
    size: int
    outcome_dim: int

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        # Predicted means may lie beyond [0, 1], where a user's map need not be defined.
        values = np.asarray(self.function(np.clip(outcomes, 0, 1)), dtype=outcomes.dtype)
        if values.shape != (len(outcomes), self.size) or not np.isfinite(values).all():
            raise ValueError(
                f"feature map: expected finite values of shape {(len(outcomes), self.size)}, "
                f"got {values.dtype} of shape {values.shape}"
            )
        return values

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self(outcomes) @ weights.astype(outcomes.dtype, copy=False))

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        step, middle = 1e-5, outcomes.astype(float)
        slopes = np.empty((*outcomes.shape, self.size), outcomes.dtype)
        for coordinate in range(outcomes.shape[1]):
            above, below = middle.copy(), middle.copy()
            above[:, coordinate] = np.minimum(middle[:, coordinate] + step, 1)
            below[:, coordinate] = np.maximum(middle[:, coordinate] - step, 0)
            distance = above[:, coordinate] - below[:, coordinate]
            slopes[:, coordinate] = (self(above) - self(below)) / distance[:, None]
        return slopes

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self.jacobian(outcomes) @ weights)

    # A user's map has no known average: its value at the mean stands for it.
    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        return self(mean)

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        return self.gradient(np.clip(mean, 0, 1), weights)


@dataclass(frozen=True, eq=False)
class CombinedFeatures:
    """x(phi) = [phi / s, z(phi)]: a feature map like any other, linear features first."""

    scales: FloatArray
    curved: FeatureMap

    @property
    def size(self) -> int:
        return len(self.scales) + self.curved.size

    @property
    def outcome_dim(self) -> int:
        return len(self.scales)

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        scales = self.scales.astype(outcomes.dtype, copy=False)
        return np.concatenate([outcomes / scales, self.curved(outcomes)], axis=1)

    def reward(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        linear = (weights[: len(self.scales)] / self.scales).astype(outcomes.dtype, copy=False)
        return outcomes @ linear + self.curved.reward(outcomes, weights[len(self.scales) :])

    def jacobian(self, outcomes: FloatArray) -> FloatArray:
        slopes = np.diag(1 / self.scales).astype(outcomes.dtype, copy=False)
        linear = np.broadcast_to(slopes, (len(outcomes), *slopes.shape))
        return np.concatenate([linear, self.curved.jacobian(outcomes)], axis=2)

    def gradient(self, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
        linear = weights[: len(self.scales)] / self.scales
        return self.curved.gradient(outcomes, weights[len(self.scales) :]) + linear

    def averaged(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        scales = self.scales.astype(mean.dtype, copy=False)
        return np.concatenate([mean / scales, self.curved.averaged(mean, variance)], axis=1)

    def averaged_gradient(
        self, mean: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> FloatArray:
        linear = weights[: len(self.scales)] / self.scales
        curved = weights[len(self.scales) :]
        return self.curved.averaged_gradient(mean, variance, curved) + linear


def fourier_features(
    size: int,
    outcome_dim: int,
    length_scale: float,
    rng: np.random.Generator,
    *,
    orthogonal: bool = False,
) -> FourierFeatures:
    """Draw a map whose inner products approximate the RBF kernel.

    The paper's has independent frequencies and phases. The orthogonal one (Yu et al. 2016,
    "Orthogonal random features") has orthonormal directions with the lengths of Gaussian vectors,
    and each frequency twice, as a cosine and a sine: a smaller kernel error, none at distance zero.
    """
    if orthogonal:
        directions = _orthogonal_frequencies(-(-size // 2), outcome_dim, rng)
        frequencies = np.repeat(directions, 2, axis=0)[:size]
        phases = np.tile([0, -np.pi / 2], -(-size // 2))[:size]
    else:
        frequencies = rng.standard_normal((size, outcome_dim))
        phases = rng.uniform(0, 2 * np.pi, size)
    return FourierFeatures(frequencies / length_scale, phases)


def _orthogonal_frequencies(size: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    blocks = []
    for _ in range(-(-size // dimension)):
        basis, triangle = np.linalg.qr(rng.standard_normal((dimension, dimension)))
        lengths = np.sqrt(rng.chisquare(dimension, dimension))
        blocks.append(basis * np.sign(np.diag(triangle)) * lengths[:, None])
    return np.concatenate(blocks)[:size]


def landmark_features(
    count: int, outcome_dim: int, length_scale: float, rng: np.random.Generator
) -> LandmarkFeatures:
    """Features of the RBF kernel at `count` landmark outcomes, before any is measured."""
    normals = rng.standard_normal((count, outcome_dim))
    landmarks: FloatArray = np.clip(0.5 + _LANDMARK_STD * normals, 0, 1)
    values, vectors = np.linalg.eigh(rbf(landmarks, landmarks, length_scale))
    kept = values > _LEAST_VARIANCE
    return LandmarkFeatures(landmarks, vectors[:, kept] / np.sqrt(values[kept]), length_scale)
