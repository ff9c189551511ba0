"""What a label would tell: probabilities and entropies under the reward's samples.

Paper appendix "Boundary Lookahead implementation", paragraph "Acquisition-side preference
probabilities", and eq:mi_baseline.

Notation
--------
outcomes   phi_b      (n, d_outcome)   compared with the one anchor phi_a
slopes     beta_s / sqrt(1 + pi/8 (beta_s sigma_Delta)^2)   (S,)
directions w_s times its slope, a column a sample           (m, S)
margins    x = slope_s (r_s(anchor) - r_s(outcome))         (n, S)
chance     mean over samples of sigma(x)
doubt      mean over samples of H(sigma(x))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfihilo.features import FeatureMap
from sfihilo.history import FloatArray
from sfihilo.inverse import RewardPosterior

# Sixty-four rows of 512 samples and their temporaries stay in the second-level cache.
_ROWS = 64
_SIGN = np.uint32(0x8000_0000)
# Beyond this margin a label is certain to single precision.
_CERTAIN = 40.0


def binary_entropy(chance: FloatArray) -> FloatArray:
    """H(p) in nats."""
    p = np.clip(np.asarray(chance, dtype=float), 1e-300, 1 - 1e-16)
    return np.asarray(-p * np.log(p) - (1 - p) * np.log1p(-p))


def noisy_slopes(sharpness: FloatArray, gap_std: float) -> FloatArray:
    """How steeply each sample's label probability rises, given noisy reward gaps."""
    spread = np.sqrt(1 + np.pi / 8 * (sharpness * gap_std) ** 2)
    return np.asarray(sharpness / spread)  # eq:app_active_noisy_preference_probability


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of comparisons between one anchor and other outcomes, sample by sample."""

    features: FeatureMap
    anchor: FloatArray
    slopes: FloatArray
    directions: FloatArray

    @staticmethod
    def against(posterior: RewardPosterior, anchor: FloatArray, gap_std: float) -> Labels:
        slopes = noisy_slopes(posterior.sharpness, gap_std)
        directions = np.asarray((posterior.weights * slopes[:, None]).T, dtype=np.float32)
        return Labels(posterior.features, anchor.astype(np.float32)[None], slopes, directions)

    def _margins(self, outcomes: FloatArray) -> FloatArray:
        gaps = self.features(self.anchor) - self.features(outcomes.astype(np.float32, copy=False))
        return gaps @ self.directions  # eq:app_active_reward_gap

    def probabilities(self, outcomes: FloatArray) -> FloatArray:
        """p_s^+ at each outcome, (n, S)."""
        margins = self._margins(outcomes).astype(float)  # eq:app_active_target_probabilities
        chance: FloatArray = 1 / (1 + np.exp(-np.clip(margins, -_CERTAIN, _CERTAIN)))
        return chance

    def means(self, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chance and doubt (n,) under all samples alike."""
        weights = np.full((len(self.slopes), 1), 1 / len(self.slopes))
        chance, doubt = self.averages(outcomes, weights)
        return chance[:, 0], doubt[:, 0]

    def averages(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chance and doubt (n, k) under each of the k columns of sample weights (S, k)."""
        weights = weights.astype(np.float32)
        chance = np.empty((len(outcomes), weights.shape[1]), np.float32)
        doubt = np.empty_like(chance)
        features = self.features(self.anchor) - self.features(
            outcomes.astype(np.float32, copy=False)
        )
        buffers = np.empty((4, _ROWS, len(self.slopes)), np.float32)
        for start in range(0, len(outcomes), _ROWS):
            rows = slice(start, min(start + _ROWS, len(outcomes)))
            margins, entropy, unlikely, total = buffers[:, : rows.stop - rows.start]
            np.matmul(features[rows], self.directions, out=margins)
            _label_of(margins, entropy, unlikely, total)
            np.matmul(margins, weights, out=chance[rows])
            np.matmul(entropy, weights, out=doubt[rows])
        chance += np.float32(0.5)  # the weights of a column sum to one
        return chance, doubt


def _label_of(
    margins: FloatArray, entropy: FloatArray, unlikely: FloatArray, total: FloatArray
) -> None:
    """Turn margins x into sigma(x) - 1/2, and write H(sigma(x)) to `entropy`; in place.

    With n = -|x| and e = exp(n), the unlikelier label has q = e / (1 + e), and without cancellation
    at either end H = log(1 + e) - n q. Every pass counts here: this is a third of a round.
    """
    # copysign, but five times faster: signs are bits.
    bits, negative = margins.view(np.uint32), entropy.view(np.uint32)
    np.bitwise_or(bits, _SIGN, out=negative)
    np.exp(entropy, out=unlikely)
    np.add(unlikely, np.float32(1), out=total)
    np.divide(unlikely, total, out=unlikely)
    np.multiply(entropy, unlikely, out=entropy)
    np.log(total, out=total)
    np.subtract(total, entropy, out=entropy)
    np.subtract(np.float32(0.5), unlikely, out=unlikely)
    np.bitwise_and(bits, _SIGN, out=bits)
    np.bitwise_or(bits, unlikely.view(np.uint32), out=bits)
