"""The knowledge gradient: ask what is expected to improve the advice most.

Notation
--------
targets      tau_j           policies that are the best in some draw of both beliefs, J of them
value        v_j = E r(tau_j)
candidate    tau_c           its outcome phi ~ p_f(. | tau_c), its answer Y = sign(margin + noise)
margin       g ~ N(m, V)     reward of phi minus that of the anchor
answer noise s = 1.7         of the normal distribution nearest to the logistic one
gain         G_j             shift of the mean outcome at tau_j per unit of residual at tau_c:
                             their covariance over the variance of the measurement at tau_c
c_j                          covariance of g and r(tau_j)

    v_j(phi)     = v_j + slope_j . (G_j (phi - mean(tau_c)))
    p            = Phi(m / sqrt(V + s^2)),  n = normal density there
    E[v_j | Y=+] = v_j(phi) + c_j n / (p sqrt(V + s^2))
    E[v_j | Y=-] = v_j(phi) - c_j n / ((1 - p) sqrt(V + s^2))
    KG(tau_c)    = E_phi [p max_j E[v_j | Y=+] + (1 - p) max_j E[v_j | Y=-]] - max_j v_j

The two conditional means are exact for a normal margin and normal noise. The outcome shifts the
values linearly, by the slope at the mean outcome.
"""

from __future__ import annotations

import numpy as np
import scipy

from sfihilo.forward import sample
from sfihilo.history import FloatArray, IntArray
from sfihilo.inverse.posterior import LOGISTIC_STD
from sfihilo.querying.candidates import best_of, promising, unique
from sfihilo.querying.situation import Decision, Situation
from sfihilo.querying.valuation import Valuation

_DRAWS = 40
_MORE = 40
_OUTCOMES = 12
_FARTHEST = 6.0  # standard deviations: an answer that is as good as certain tells nothing


def knowledge_gradient(situation: Situation) -> Decision:
    """The policy after whose outcome and answer the best advice is expected to be worth most."""
    rng = situation.random("gradient")
    pool = promising(situation, rng)
    targets = _winners(situation, pool, rng)
    others = rng.permutation(len(pool.value))[:_MORE]
    candidates = unique([*targets.tolist(), *others.tolist()])
    half = rng.standard_normal((_OUTCOMES // 2, pool.mean.shape[1]))
    normals = np.concatenate([half, -half])
    scores = expected_gain(situation, pool.rows(candidates), pool.rows(targets), normals)
    return best_of(pool, targets, candidates, scores)


def expected_gain(
    situation: Situation, candidates: Valuation, targets: Valuation, normals: FloatArray
) -> FloatArray:
    """KG of each candidate, averaged over outcomes drawn with these normals, in logits."""
    variance = candidates.at.variance + situation.processes.noise**2
    cross = situation.processes.cross_covariance(candidates.at, targets.at)
    per_normal = np.einsum("cjo,co,jo->coj", cross, 1 / np.sqrt(variance), targets.slope)
    shifted = targets.value + np.matmul(normals[None], per_normal)
    outcomes = sample(candidates.at.mean[:, None], variance[:, None], normals)
    flat = outcomes.reshape(-1, outcomes.shape[2]).astype(np.float32)
    posterior = situation.posterior
    differences = posterior.features(flat) - posterior.features(
        situation.anchor[None].astype(np.float32)
    )
    margin, uncertainty = posterior.margins(differences)
    covariance = differences @ posterior.covariance(targets.features)
    spread = np.sqrt(uncertainty.astype(float) + LOGISTIC_STD**2)
    standard = np.clip(margin / spread, -_FARTHEST, _FARTHEST)
    chosen = scipy.special.ndtr(standard)
    density = np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    moved = covariance * (density / spread)[:, None]
    before = shifted.reshape(len(flat), -1)
    after = chosen * (before + moved / chosen[:, None]).max(axis=1)
    after += (1 - chosen) * (before - moved / (1 - chosen)[:, None]).max(axis=1)
    expected = after.reshape(len(candidates.value), -1).mean(axis=1)
    return np.asarray(expected - targets.value.max())


def _winners(situation: Situation, pool: Valuation, rng: np.random.Generator) -> IntArray:
    """Which policies are the best in some draw of both beliefs; the first one always."""
    posterior = situation.posterior
    weights = posterior.draw_weights(_DRAWS, rng)
    outcomes = np.clip(situation.processes.draw(_DRAWS, rng)(pool.at.policies), 0, 1)
    best = [
        int(np.argmax(posterior.features.reward(drawn, each)))
        for drawn, each in zip(outcomes, weights, strict=True)
    ]
    return unique([0, *best])
