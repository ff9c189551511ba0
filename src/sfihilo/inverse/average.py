"""The reward as a linear part plus a Gaussian process, averaged over both amplitudes.

It makes every prediction of the default preset (docs/default-preset.md).

Notation
--------
differences   x_i       (p, m)     [(phi - phi') / s, z(phi) - z(phi')] of each compared pair
scales        s         (d,)       root mean square difference of each outcome between compared ones
amplitudes    A         (m,)       a for the d linear features, b for the others
weights       mu        (m,)       posterior mean of v = A w, so that the margin is x^T v, in logits
explained     E         (k, m)     covariance of v is A (I - E^T E) A, with k = min(p, m)
probability   p_k       ()         of an amplitude pair, given the answers
bound                              evidence lower bound of an amplitude pair (variational.py)
correction                         what the bound misses of the log evidence

    margin = a w_l . (phi - phi') / s + b w_g . (z(phi) - z(phi')),   w ~ N(0, I)
    s_j^2  = (n_0 d_0^2 + sum_i (phi_ij - phi'_ij)^2) / (n_0 + p)
    p_k    ~ exp(bound_k + correction_k) prior(a_k) prior(b_k)

The answers decide how noisy this person is (both amplitudes small), how linear (a against b) and
how curved (b). No fit is random or starts from one of an earlier round. If every outcome was
measured and answers have no grades, the average is a function of the comparisons in their order.
Otherwise two of its inputs come from the rule's posterior (belief.py), and so depend on its earlier
fits: the scale of the grades, with whether they are used (`Grading`), and the clarity of answers
about outcomes that were measured in part (`imputation.imputed_clarity`). `save` stores both, so a
loaded state predicts the same numbers as the saved one.

The unit of the reward is the logit: a reward larger by one is preferred with odds e. `better`, the
probability that the reward is truly larger, leaves out the noise of a person's own judgement and
keeps reward components that are not measured. Answers have logistic noise (variance 1.7^2). Of it,
a person's own judgement explains at most `own_noise` standard deviations of the reward, whose prior
variance under amplitude pair k is half of the mean prior variance of the margins seen,
V_k = mean_i |A_k x_i|^2; the rest is attributed to reward that is not measured:

    unseen_k = max(1.7^2 - own_noise^2 V_k / 2, 0)
    better   = sum_k p_k Phi(m_k / sqrt(v_k + unseen_k))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.checks import (
    Checked,
    positive,
    positives,
    rising_not_negatives,
    rising_positives,
)
from sfihilo.forward.factor import add_to_diagonal, explained_by, inverse_cholesky
from sfihilo.history import FloatArray
from sfihilo.inverse.belief import InverseSettings
from sfihilo.inverse.features import CombinedFeatures, FeatureMap, outcome_rows
from sfihilo.inverse.likelihood import Answers, evidence_correction
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.inverse.variational import VariationalFit, variational_fit

_FIRST_CURVATURE = 0.1
_TOLERANCE = 0.02  # nats: differences between bounds matter, not their last digits
_NEGLIGIBLE = 5.0  # nats below the best: less than a hundredth of its probability
_LEAST_PROBABILITY = 1e-3


@dataclass(frozen=True)
class AverageSettings(Checked):
    """Amplitudes and their priors.

    linear: values of a in units of sqrt(3 / d), with a log-normal prior around `linear_median` of
    standard deviation `log_linear_std`. curved: values of b, in logits, with their prior odds. Both
    rise: each pair is fitted from the fit of a neighbour on the grid. prior_difference, counted as
    `prior_count` observations: how far compared outcomes lie apart before any was seen.
    """

    linear: tuple[float, ...] = rising_positives((0.5, 1.0, 2.0, 4.0))
    linear_median: float = positive(1.4)
    log_linear_std: float = positive(1.0)
    curved: tuple[float, ...] = rising_not_negatives((0.0, 0.7, 2.0, 6.0, 12.0, 24.0))
    curved_odds: tuple[float, ...] = positives((1.0, 2.0, 16.0, 1.0, 1.0, 1.0))
    prior_difference: float = positive(0.28)
    prior_count: float = positive(0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.curved_odds) != len(self.curved):
            raise ValueError(
                f"AverageSettings.curved_odds: expected {len(self.curved)} numbers, "
                f"got {len(self.curved_odds)}"
            )


@dataclass(frozen=True, eq=False)
class Component:
    """The Gaussian posterior of v under one pair of amplitudes; `factor` is L^-1 of I + C C^T."""

    probability: float
    amplitudes: FloatArray
    weights: FloatArray
    explained: FloatArray
    factor: FloatArray
    unseen: float

    def margins(self, differences: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margin of each feature difference."""
        scaled = differences * self.amplitudes
        known = scaled @ self.explained.T
        variance = np.einsum("ij,ij->i", scaled, scaled) - np.einsum("ij,ij->i", known, known)
        return differences @ self.weights, np.maximum(variance, 1e-6)

    def samples(self, count: int, rng: np.random.Generator) -> FloatArray:
        """`count` draws of v, (count, m): a prior draw, corrected by what the answers explain."""
        prior = rng.standard_normal((count, len(self.weights)))
        noise = rng.standard_normal((count, len(self.factor)))
        surprise = prior @ self.explained.T + noise @ self.factor.T
        return np.asarray(self.weights + self.amplitudes * (prior - surprise @ self.explained))


@dataclass(frozen=True, eq=False)
class RewardAverage:
    """A mixture of Gaussian posteriors of the reward's weights in the combined features."""

    features: CombinedFeatures
    components: tuple[Component, ...]
    generator: Callable[[], np.random.Generator]
    sample_count: int

    @property
    def probabilities(self) -> FloatArray:
        """p_k."""
        return np.array([component.probability for component in self.components])

    @cached_property
    def mean_weights(self) -> FloatArray:
        """E[v]: the reward of these weights is the posterior mean."""
        weights = np.stack([component.weights for component in self.components])
        return np.asarray(self.probabilities @ weights)

    @cached_property
    def weights(self) -> FloatArray:
        """Samples of v (S, m): a component by its probability, then its Gaussian."""
        rng = self.generator()
        counts = rng.multinomial(self.sample_count, self.probabilities)
        return np.concatenate(
            [each.samples(n, rng) for each, n in zip(self.components, counts, strict=True) if n]
        )

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        """bar r(phi), in logits."""
        return self.features.reward(self._rows(outcomes), self.mean_weights)

    def reward_samples(self, outcomes: FloatArray) -> FloatArray:
        """r(phi) of every sample, (n, S)."""
        features = self.features(self._rows(outcomes))
        return features @ self.weights.T.astype(features.dtype)

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The probability of the answer that the first outcome is preferred."""
        return self._mixed(first, second, [LOGISTIC_STD**2] * len(self.components))

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The probability that the first outcome truly has the larger reward, answers aside."""
        return self._mixed(first, second, [component.unseen for component in self.components])

    def _mixed(self, first: FloatArray, second: FloatArray, noise: list[float]) -> FloatArray:
        differences = self.features(self._rows(first)) - self.features(self._rows(second))
        mixed = np.zeros(len(differences))
        for component, variance in zip(self.components, noise, strict=True):
            mean, spread = component.margins(differences)
            mixed += component.probability * scipy.special.ndtr(mean / np.sqrt(spread + variance))
        return mixed

    def _rows(self, outcomes: FloatArray) -> FloatArray:
        return outcome_rows(outcomes, self.features.outcome_dim)


class Compared(NamedTuple):
    """What an average learns from: the differences of each pair, and the answers about them."""

    linear: FloatArray  # phi - phi'
    curved: FloatArray  # z(phi) - z(phi')
    clarity: FloatArray
    answers: Answers


def reward_average(
    settings: AverageSettings,
    inverse: InverseSettings,
    features: FeatureMap,
    compared: Compared,
    generator: Callable[[], np.random.Generator],
) -> RewardAverage:
    """The average over amplitudes, given these comparisons; `features` are z."""
    scales = difference_scales(settings, compared.linear)
    differences = np.hstack([compared.linear / scales, compared.curved])
    rows = differences * compared.clarity[:, None]
    combined = CombinedFeatures(scales, features)
    grid = _Grid(settings, inverse, combined, differences, rows, compared.answers)
    fits = grid.fits()
    evidence = np.array([grid.log_evidence(index, fit) for index, fit in fits.items()])
    probabilities = np.exp(evidence - scipy.special.logsumexp(evidence))
    probabilities[probabilities < _LEAST_PROBABILITY] = 0
    probabilities /= probabilities.sum()
    components = [
        grid.component(index, fit, float(probability))
        for (index, fit), probability in zip(fits.items(), probabilities, strict=True)
        if probability > 0
    ]
    return RewardAverage(combined, tuple(components), generator, inverse.samples)


def difference_scales(settings: AverageSettings, differences: FloatArray) -> FloatArray:
    """s: root mean square of the differences seen, with a weak prior."""
    pseudo = settings.prior_count * settings.prior_difference**2
    squares = np.sum(differences**2, axis=0)
    return np.asarray(np.sqrt((pseudo + squares) / (settings.prior_count + len(differences))))


@dataclass(frozen=True, eq=False)
class _Grid:
    """The comparisons in the combined features, and the fits over all pairs of amplitudes."""

    settings: AverageSettings
    inverse: InverseSettings
    features: CombinedFeatures
    differences: FloatArray
    rows: FloatArray  # the differences in units of the noise of their answers
    answers: Answers

    def amplitudes(self, index: tuple[int, int]) -> FloatArray:
        """A of the pair (a, b) at this place of the grid."""
        dimension = len(self.features.scales)
        amplitudes = np.full(self.features.size, self.settings.curved[index[1]])
        amplitudes[:dimension] = self.settings.linear[index[0]] * np.sqrt(3 / dimension)
        return amplitudes

    def log_prior(self, index: tuple[int, int]) -> float:
        """Of the pair (a, b), up to a constant."""
        settings = self.settings
        away = np.log(settings.linear[index[0]] / settings.linear_median) / settings.log_linear_std
        return float(np.log(settings.curved_odds[index[1]]) - 0.5 * away**2)

    def log_evidence(self, index: tuple[int, int], fit: VariationalFit) -> float:
        """Of the answers and the pair (a, b), up to a constant.

        The correction is what the bound misses, the comparisons' interaction left out: q is the
        prior times one Gaussian factor per comparison, which matches the log likelihood up to
        second order under q. With r_i the rest, log Z is the bound plus log E_q[exp sum_i r_i]; the
        rests are orthogonal to all quadratics and nearly independent.
        """
        correction = evidence_correction(fit.margins, fit.variances, self.answers)
        return fit.bound + correction + self.log_prior(index)

    def fits(self) -> dict[tuple[int, int], VariationalFit]:
        """Fits from the middle outwards, each from a neighbour's, where they are not negligible."""
        middle = (len(self.settings.linear) - 1) // 2, (len(self.settings.curved) - 1) // 2
        none = np.zeros(len(self.differences))
        nothing = VariationalFit(
            np.zeros(self.features.size), none + _FIRST_CURVATURE, -np.inf, none, none
        )
        fits: dict[tuple[int, int], VariationalFit] = {}
        waiting = [(-np.inf, middle, middle, nothing)]
        best = -np.inf
        while waiting:
            # The best neighbourhood first, so that most far components are never fitted.
            waiting.sort(key=lambda entry: -entry[0])
            score, index, neighbour, near = waiting.pop(0)
            if index in fits or score < best - _NEGLIGIBLE:
                continue
            fits[index] = self.fit(index, neighbour, near)
            score = fits[index].bound + self.log_prior(index)
            best = max(best, score)
            for step in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                row, column = index[0] + step[0], index[1] + step[1]
                if row in range(len(self.settings.linear)) and column in range(
                    len(self.settings.curved)
                ):
                    waiting.append((score, (row, column), index, fits[index]))
        return fits

    def fit(
        self, index: tuple[int, int], neighbour: tuple[int, int], near: VariationalFit
    ) -> VariationalFit:
        """The fit of one amplitude pair; without a curved part, in the linear features alone."""
        amplitudes, before = self.amplitudes(index), self.amplitudes(neighbour)
        # Where an amplitude moves, margins and weights share the change.
        ratio = np.sqrt(before / np.where(amplitudes > 0, amplitudes, np.inf))
        used = slice(0, self.features.size if amplitudes[-1] > 0 else len(self.features.scales))
        fit = variational_fit(
            self.rows[:, used] * amplitudes[used],
            self.answers,
            (ratio * near.weights)[used],
            near.curvature,
            self.inverse.iterations,
            _TOLERANCE,
            self.gram(index) if used.stop >= len(self.differences) else None,
        )
        weights = np.zeros(self.features.size)
        weights[used] = fit.weights
        return fit._replace(weights=weights)

    @cached_property
    def _grams(self) -> tuple[FloatArray, FloatArray]:
        """Inner products of the comparisons in the linear and in the curved features."""
        linear, curved = np.hsplit(self.rows, [len(self.features.scales)])
        return linear @ linear.T, curved @ curved.T

    def gram(self, index: tuple[int, int]) -> FloatArray:
        """X X^T of one amplitude pair: all share two matrices."""
        amplitudes = self.amplitudes(index)
        linear, curved = self._grams
        return np.asarray(amplitudes[0] ** 2 * linear + amplitudes[-1] ** 2 * curved)

    def component(
        self, index: tuple[int, int], fit: VariationalFit, probability: float
    ) -> Component:
        amplitudes = self.amplitudes(index)
        rows = np.sqrt(fit.curvature)[:, None] * (self.rows * amplitudes)
        if len(rows) > rows.shape[1]:
            rows = np.asarray(np.linalg.qr(rows, mode="r"))
        factor = inverse_cholesky(add_to_diagonal(rows @ rows.T, 1))
        explained = explained_by(factor, np.ascontiguousarray(rows.T)).T
        return Component(
            probability,
            amplitudes,
            amplitudes * fit.weights,
            explained,
            factor,
            self.unseen(self.differences * amplitudes, amplitudes),
        )

    def unseen(self, scaled: FloatArray, amplitudes: FloatArray) -> float:
        """Variance of a margin due to reward components that are not measured."""
        own_noise = self.inverse.own_noise
        if own_noise is None:
            return 0.0
        # Before any comparison: one scale apart in every outcome, far apart for the curved part.
        typical = len(self.features.scales) * amplitudes[0] ** 2 + 2 * amplitudes[-1] ** 2
        seen = float(np.einsum("ij,ij->i", scaled, scaled).mean()) if len(scaled) else typical
        return float(max(LOGISTIC_STD**2 - own_noise**2 * seen / 2, 0.0))
