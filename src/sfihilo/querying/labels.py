"""Probabilities and entropies of a label under the reward's samples.

Paper appendix "Boundary Lookahead implementation", paragraph "Acquisition-side preference
probabilities", and eq:mi_baseline.

Notation
--------
outcomes   phi_b      (n, d_outcome)   compared with the one anchor phi_a
slopes     beta_s / sqrt(1 + pi/8 (beta_s sigma_Delta)^2)   (S,)
directions w_s times its slope, one row per sample             (S, m)
margins    x = slope_s (r_s(anchor) - r_s(outcome))         (S, n)
probability          mean over samples of sigma(x)
conditional_entropy  mean over samples of H(sigma(x))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfihilo.history import FloatArray, IntArray
from sfihilo.inverse.features import FeatureMap
from sfihilo.inverse.posterior import RewardPosterior

# Blocks of this many outcomes times 512 samples fit the cache; their product is still efficient.
_ROWS = 192
_SIGN = np.uint32(0x8000_0000)
# Beyond this margin a label is certain to single precision.
_CERTAIN = 40.0


def binary_entropy(probability: FloatArray) -> FloatArray:
    """H(p) in nats."""
    p = np.clip(np.asarray(probability, dtype=float), 1e-300, 1 - 1e-16)
    return np.asarray(-p * np.log(p) - (1 - p) * np.log1p(-p))


def noisy_slopes(sharpness: FloatArray, gap_std: float) -> FloatArray:
    """How steeply each sample's label probability rises, given noisy reward gaps."""
    spread = np.sqrt(1 + np.pi / 8 * (sharpness * gap_std) ** 2)
    return np.asarray(sharpness / spread)  # eq:app_active_noisy_preference_probability


class Tangent(NamedTuple):
    """Probability and entropy at n outcomes, and their slopes in each coordinate of the outcome.

    g candidates have k labels each, and sample weights for each label.
    """

    probability: FloatArray  # (g, k, n)
    entropy: FloatArray  # (n,)
    probability_slope: FloatArray  # (g, k, d_outcome, n)
    entropy_slope: FloatArray  # (d_outcome, n)

    def moved(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probability (g, n, k) and entropy (g, n) after small steps (g, n, d_outcome)."""
        probability = self.probability + np.einsum("gnd,gkdn->gkn", step, self.probability_slope)
        entropy = self.entropy + np.einsum("gnd,dn->gn", step, self.entropy_slope)
        return probability.transpose(0, 2, 1), entropy


@dataclass(frozen=True, eq=False)
class LabelModel:
    """The labels of comparisons between one anchor and other outcomes, under each sample."""

    features: FeatureMap
    anchor: FloatArray
    slopes: FloatArray
    directions: FloatArray

    @staticmethod
    def against(posterior: RewardPosterior, anchor: FloatArray, gap_std: float) -> LabelModel:
        slopes = noisy_slopes(posterior.sharpness, gap_std)
        directions = posterior.weights * slopes[:, None]
        return LabelModel(posterior.features, anchor[None], slopes, directions)

    @cached_property
    def _single(self) -> tuple[FloatArray, FloatArray]:
        """Features of the anchor and directions in single precision."""
        return self.features(self.anchor.astype(np.float32)), self.directions.astype(np.float32)

    def probabilities(self, outcomes: FloatArray) -> FloatArray:
        """p_s^+ at each outcome, (n, S), in double precision."""
        differences = self.features(self.anchor) - self.features(outcomes.astype(float, copy=False))
        margins = np.clip(differences @ self.directions.T, -_CERTAIN, _CERTAIN)
        probability: FloatArray = 1 / (1 + np.exp(-margins))  # eq:app_active_target_probabilities
        return probability

    def information(self, outcomes: FloatArray) -> FloatArray:
        """Information of each label about the reward, in nats; in double precision."""
        probability = self.probabilities(outcomes)
        entropy = binary_entropy(probability).mean(axis=1)
        return np.asarray(binary_entropy(probability.mean(axis=1)) - entropy)

    def means(self, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean probability and mean entropy per outcome, all samples weighted equally."""
        weights = np.full((1, 1, len(self.slopes)), 1 / len(self.slopes))
        probability, entropy = self.averages(outcomes, weights, np.array([0, len(outcomes)]))
        return probability[:, 0], entropy

    def averages(
        self, outcomes: FloatArray, weights: FloatArray, bounds: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Probability (n, k) under sample weights (g, k, S); entropy (n,) under equal weights.

        The weights of group i are those of the outcomes from bounds[i] to bounds[i + 1]. In single
        precision.
        """
        anchor, directions = self._single
        by_label = weights.astype(np.float32)
        probability = np.empty((len(outcomes), by_label.shape[1]), np.float32)
        entropy = np.empty(len(outcomes), np.float32)
        samples = len(self.slopes)
        space = np.empty(4 * samples * min(_ROWS, len(outcomes)), np.float32)
        for start in range(0, len(outcomes), _ROWS):
            stop = min(start + _ROWS, len(outcomes))
            margins, *others = space[: 4 * samples * (stop - start)].reshape(4, samples, -1)
            block = outcomes[start:stop].astype(np.float32, copy=False)
            differences = anchor - self.features(block)
            np.matmul(directions, differences.T, out=margins)  # eq:app_active_reward_gap
            entropy[start:stop] = _entropy_in_place(margins, *others)
            first, last = np.searchsorted(bounds, [start, stop - 1], side="right") - 1
            for group in range(first, last + 1):
                low, high = max(start, bounds[group]), min(stop, bounds[group + 1])
                probability[low:high] = (by_label[group] @ margins[:, low - start : high - start]).T
        probability += np.float32(0.5)  # the weights of a column sum to one
        return probability, entropy

    def tangent(self, outcomes: FloatArray, weights: FloatArray) -> Tangent:
        """`averages` at the outcomes under all weights (g, k, S), and its slopes there."""
        anchor, directions = self._single
        groups, labels, samples = weights.shape
        count, dimension = outcomes.shape
        single = outcomes.astype(np.float32, copy=False)
        gaps = directions @ (anchor - self.features(single)).T
        likely, *others = np.empty((4, samples, count), np.float32)
        likely[:] = gaps
        entropy = _entropy_in_place(likely, *others)  # likely is now sigma(x) - 1/2
        steepness = np.float32(0.25) - likely**2  # sigma'(x), and H(sigma(x))' = -x sigma'(x)
        jacobian = self.features.jacobian(single).transpose(1, 0, 2)
        rises = directions @ jacobian.reshape(-1, anchor.size).T  # of the rewards, not the margins
        moves = rises.reshape(samples, dimension, count)
        moves *= steepness[:, None]
        by_label = weights.reshape(-1, samples).astype(np.float32)
        probability = by_label @ likely + np.float32(0.5)
        probability_slope = by_label @ moves.reshape(samples, -1)
        return Tangent(
            probability.reshape(groups, labels, count),
            entropy,
            -probability_slope.reshape(groups, labels, dimension, count),
            np.einsum("sn,sdn->dn", gaps, moves) / np.float32(samples),
        )


def _entropy_in_place(
    margins: FloatArray, negative: FloatArray, unlikely: FloatArray, total: FloatArray
) -> FloatArray:
    """Turn margins x into sigma(x) - 1/2 in place, and return the mean of H(sigma(x)) over samples.

    With n = -|x| and e = exp(n), the unlikelier label has q = e / (1 + e), and without cancellation
    at either end H = log(1 + e) - n q. Every pass counts here: this is a quarter of a round. A
    logarithm costs twenty products, so it is taken of products, each below 2^32.
    """
    # copysign, but five times faster: signs are bits.
    bits = margins.view(np.uint32)
    np.bitwise_or(bits, _SIGN, out=negative.view(np.uint32))
    np.exp(negative, out=unlikely)
    np.add(unlikely, np.float32(1), out=total)
    np.divide(unlikely, total, out=unlikely)
    np.multiply(negative, unlikely, out=negative)
    entropy = np.log(_reduce_rows(np.multiply, total)) - _reduce_rows(np.add, negative)
    np.subtract(np.float32(0.5), unlikely, out=unlikely)
    np.bitwise_and(bits, _SIGN, out=bits)
    np.bitwise_or(bits, unlikely.view(np.uint32), out=bits)
    return np.asarray(entropy.sum(axis=0) / np.float32(len(margins)))


def _reduce_rows(operation: np.ufunc, rows: FloatArray) -> FloatArray:
    """Reduce the rows 32-fold in place: five times, combine the second half into the first."""
    for _ in range(5):
        half = (len(rows) + 1) // 2
        rest = len(rows) - half
        operation(rows[:rest], rows[half:], out=rows[:rest])
        rows = rows[:half]
    return rows
