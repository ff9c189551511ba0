"""Global Pair Lookahead: Boundary Lookahead's idea with the whole space as its boundary.

Where Boundary Lookahead asks what a label would resolve about the top of one ranking against one
anchor, this rule asks what it would resolve about *all pairs of outcomes that this person can
reach*. docs/default-preset.md has the derivation.

Notation
--------
targets     zeta_j, zeta'_j   pairs of policies over the whole feasible set, outcomes drawn
gap         g_j ~ N(m_j, V_j) margin of a target pair, S_j its sign
candidate   g_c ~ N(m_c, V_c) margin against the anchor, Y = sign(g_c + noise) its label
recalled    phi_i             outcomes that the candidate's may be compared with; one, the anchor,
                              unless `Settings.recall` is larger than 1. Y_i: the label against it
c_j                           Cov(g_c, g_j)
psi(m, V)^2 phi(a)^2 / (V Phi(a) (1 - Phi(a))), a = m / sqrt(V)

    I(Y; S_j) ~ 1/2 psi(m_c, V_c + s^2)^2 c_j^2 psi(m_j, V_j)^2
    U(tau) = E_{phi ~ p_f(. | tau)} max_i mean_j I(Y_i; S_j)
    G(tau) = mean_zeta c_t(zeta, tau)^2 / (e_t(tau) + lambda_f + eps_f)
    D = mean_j Phi(-|m_j| / sqrt(V_j))
    p = min(1, balance max(1, settled / D)^2)
    tau_t = argmax log U(tau) + p log G(tau)

G is the reduction of the mean leverage, so that the forward model goes on learning everywhere. D is
the expected error, the share of target pairs that the belief expects to order wrongly: once it is
small, what an outcome tells about policies counts for more, up to the plain product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from sfihilo.checks import Checked, not_negatives, positive, whole, wholes, within
from sfihilo.forward import PolicyBelief, sample
from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray
from sfihilo.inverse.grading import answer_sensitivity
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.querying.ranking import top
from sfihilo.querying.situation import Decision, Situation

_TINY = 1e-300
_LEAST_ERROR = 1e-3


@dataclass(frozen=True)
class PairSettings(Checked):
    """How Global Pair Lookahead searches.

    draws: outcomes per candidate in the first pass, the local pass and the last.
    past: executed policies, some moved a little: their outcomes are known best.
    balance: the exponent of the forward factor, while many preferences are uncertain.
    settled: the expected share of misjudged target pairs below which that exponent grows.
    """

    pool: int = whole(1, 300)
    past: int = whole(0, 150)
    moves: tuple[float, ...] = not_negatives((0.0, 0.05, 0.1))
    pairs: int = whole(1, 128)
    draws: tuple[int, int, int] = wholes(1, (2, 8, 32))
    shortlist: int = whole(1, 24)
    local_starts: int = whole(0, 4)
    local_steps: int = whole(0, 12)
    local_radius: float = positive(0.08)
    balance: float = within(0, math.inf, 0.15)
    settled: float = within(0, math.inf, 0.1)


@dataclass(frozen=True, eq=False)
class TargetPairs:
    """The target pairs, prepared so that a label's information about them is one product away."""

    situation: Situation
    settings: PairSettings
    targets: PolicyBelief  # 2 J of them
    resolved: FloatArray  # Sigma delta z_j psi_j, one column per pair
    exponent: float  # p

    @staticmethod
    def of(situation: Situation, settings: PairSettings) -> TargetPairs:
        forward, posterior = situation.forward, situation.posterior
        rng = situation.random("pairs")
        drawn = situation.feasible.sample(2 * settings.pairs, situation.policy_dim, rng, None)
        even = drawn[: len(drawn) // 2 * 2] if len(drawn) > 1 else np.repeat(drawn, 2, axis=0)
        targets = forward.at(even.astype(forward.working_dtype))
        # Drawn, not predicted: means alone would shrink towards the centre of the outcomes.
        outcomes = sample(
            targets.mean,
            forward.variances(targets.leverages)[0],
            rng.standard_normal(targets.mean.shape),
        ).astype(np.float32)
        features = posterior.features(outcomes)
        half = len(even) // 2
        differences = features[:half] - features[half:]
        gap, spread = posterior.margins(differences)
        sensitivity = label_sensitivity(gap, spread).astype(np.float32)
        resolved = posterior.covariance(differences) * sensitivity
        exponent = forward_exponent(settings, expected_error(gap, spread))
        return TargetPairs(situation, settings, targets, resolved, exponent)

    def scores(self, candidates: FloatArray, draws: int, purpose: str) -> FloatArray:
        """log U(tau) + p log G(tau), averaged over `draws` outcomes per candidate."""
        forward = self.situation.forward
        at = forward.at(candidates.astype(forward.working_dtype))
        cross = rbf(at.policies, self.targets.policies, forward.hyper.length_scale)
        cross -= at.explained @ self.targets.explained.T
        reduction = (cross.astype(float) ** 2).mean(axis=1) / (at.leverage + forward.noise)
        epistemic, observation = forward.variances(at.leverages)
        information = self._expected(at.mean, epistemic + observation, draws, purpose)
        gains = np.log(np.maximum([information, reduction], _TINY))
        return np.asarray(gains[0] + self.exponent * gains[1])

    def _expected(
        self, mean: FloatArray, variance: FloatArray, draws: int, purpose: str
    ) -> FloatArray:
        """U(tau): nats about a target pair, averaged over pairs and over the outcomes drawn."""
        count, dimension = mean.shape
        normals = self.situation.random(purpose).standard_normal(
            (count, draws, dimension), dtype=np.float32
        )
        outcomes = sample(mean[:, None], variance[:, None], normals)
        flat = outcomes.reshape(-1, dimension).astype(np.float32)
        nats = self._best_compared(self.situation.posterior.features(flat))
        return np.asarray(nats.reshape(count, draws).mean(axis=1))

    def _best_compared(self, features: FloatArray) -> FloatArray:
        """Nats of each outcome's comparison with the recalled outcome that tells most."""
        situation = self.situation
        recalled = situation.posterior.features(situation.recalled.astype(np.float32))
        each = [
            self.information(other - features, noise)
            for other, noise in zip(recalled, situation.answer_noise.tolist(), strict=True)
        ]
        return np.asarray(np.max(each, axis=0))

    def information(
        self, differences: FloatArray, noise: FloatArray | float = LOGISTIC_STD**2
    ) -> FloatArray:
        """mean_j I(Y; S_j) of the label of each feature difference, in nats.

        noise: s^2, the variance of the noise of an answer in logits; one, or one per difference.
        """
        gap, spread = self.situation.posterior.margins(differences)
        covariance = differences @ self.resolved
        shared = np.einsum("ij,ij->i", covariance, covariance) / covariance.shape[1]
        noisy = spread + noise
        cuts = self.situation.cuts
        sensitivity = (
            answer_sensitivity(gap, noisy, cuts) if cuts.size else label_sensitivity(gap, noisy)
        )
        return np.asarray(0.5 * sensitivity**2 * shared)


def label_sensitivity(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """psi(m, V): how much the sign of a normal margin depends on its value."""
    deviation = np.sqrt(np.asarray(variance, dtype=float))
    standard = np.clip(mean / deviation, -6, 6)
    probability = scipy.special.ndtr(standard)
    density = np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    return np.asarray(density / (deviation * np.sqrt(probability * (1 - probability))))


def expected_error(mean: FloatArray, variance: FloatArray) -> float:
    """D: the share of these margins whose sign the belief expects to get wrong."""
    return float(scipy.special.ndtr(-np.abs(mean) / np.sqrt(variance)).mean())


def forward_exponent(settings: PairSettings, error: float) -> float:
    """p: the balance, and more once few preferences are uncertain; at most one, the product."""
    gained = max(1.0, settings.settled / max(error, _LEAST_ERROR)) ** 2
    return max(settings.balance, min(1.0, settings.balance * gained))


def global_pairs(situation: Situation) -> Decision:
    """The policy whose label tells most about all pairs of reachable outcomes."""
    settings = situation.pairs
    region = TargetPairs.of(situation, settings)
    pool = _candidates(situation, settings)
    first, local, last = settings.draws
    cheap = region.scores(pool, first, "first outcomes")
    shortlist = top(cheap, settings.shortlist)
    policies = pool[shortlist]
    utilities = region.scores(policies, last, "last outcomes")
    near = _neighbours(situation, settings, policies[top(utilities, settings.local_starts)])
    if len(near):
        promising = near[top(region.scores(near, local, "local outcomes"), 8)]
        policies = np.vstack([policies, promising])
        again = region.scores(promising, last, "local last outcomes")
        utilities = np.append(utilities, again)
        shortlist = np.append(shortlist, np.arange(len(pool), len(pool) + len(promising)))
        pool = np.vstack([pool, promising])
        cheap = np.append(cheap, again)
    return Decision(
        policy=policies[int(np.argmax(utilities))],
        pool=pool,
        scores=cheap,
        shortlist=shortlist,
        utilities=utilities,
    )


def _candidates(situation: Situation, settings: PairSettings) -> FloatArray:
    """New policies over the feasible set, and executed ones moved a little."""
    pool = situation.feasible.sample(
        settings.pool, situation.policy_dim, situation.random("pool"), situation.previous
    )
    if situation.feasible.choices is not None:
        return pool
    rng, tried = situation.random("past"), situation.forward.policies
    count = min(settings.past, 2 * len(tried))
    rows = rng.integers(0, max(len(tried), 1), count)
    reach = rng.choice(settings.moves, count)[:, None]
    moved = tried[rows] + reach * rng.standard_normal((count, situation.policy_dim))
    return np.concatenate([pool, situation.kept(moved)])


def _neighbours(situation: Situation, settings: PairSettings, starts: FloatArray) -> FloatArray:
    if situation.feasible.choices is not None or len(starts) == 0:
        return np.empty((0, situation.policy_dim))
    steps = situation.random("local").standard_normal(
        (settings.local_steps * len(starts), situation.policy_dim)
    )
    moved = np.repeat(starts, settings.local_steps, axis=0) + settings.local_radius * steps
    return situation.kept(moved)
