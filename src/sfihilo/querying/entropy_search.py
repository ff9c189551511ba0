"""Entropy search: ask what tells most about which setting is the best for this person.

Notation
--------
draw         (w_j, f_j)      rewards and outcome functions drawn from both beliefs, J of them
pool         tau_i           policies that may be the best, n of them
winner       k_j             the policy of the pool that is the best in draw j
candidate    tau_c           asked next: its outcome phi and the answer y
margin       u_jc            r_wj(f_j(tau_c)) - r_wj(anchor), in logits
noise        s_o             standard deviation of a measurement of outcome o

If draw j were true, draw i would be left with the weight

    W_ji(c, y) ~ exp(-sum_o (f_jo(tau_c) - f_io(tau_c))^2 / (4 s_o^2)) p(y | u_ic)

after the outcome and the answer (the 4: the measurement has noise in either draw), and the winner
with the probabilities P_j(k) = sum_i W_ji [k_i = k]. The score is the mutual information between
the winner and what will be observed (Hernandez-Lobato et al. 2014, "Predictive entropy search"):

    score(c) = H(k) - mean_j sum_y p(y | u_jc) H(P_j | c, y)

The knowledge gradient looks for what improves the advice by the next answer and stays where it is
when no single answer can. Here a setting is asked as long as it may be the best, or tells which is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sfihilo.history import FloatArray, IntArray
from sfihilo.querying.candidates import best_of, promising, unique
from sfihilo.querying.situation import Decision, Situation

_DRAWS = 128  # J
_MORE = 40  # candidates beside the winners
_LEAST = 1e-12


class Draws(NamedTuple):
    """Both beliefs drawn at the policies of a pool."""

    outcomes: FloatArray  # (J, n, d_outcome)
    margins: FloatArray  # (J, n): u, against the anchor

    @property
    def winners(self) -> IntArray:
        """k_j, (J,)."""
        return np.asarray(self.margins.argmax(axis=1))


def entropy_search(situation: Situation) -> Decision:
    """The policy whose outcome and answer tell most about which policy is the best."""
    rng = situation.random("entropy")
    pool = promising(situation, rng)
    draws = joint_draws(situation, pool.at.policies, _DRAWS, rng)
    targets = np.unique(draws.winners)
    others = rng.permutation(len(pool.value))[:_MORE]
    candidates = unique([*targets.tolist(), *others.tolist()])
    scores = information_about_winner(
        draws, candidates, situation.processes.noise, situation.cuts.astype(np.float32)
    )
    return best_of(pool, targets, candidates, scores)


def joint_draws(
    situation: Situation, policies: FloatArray, count: int, rng: np.random.Generator
) -> Draws:
    """`count` draws of both beliefs."""
    posterior = situation.posterior
    outcomes = np.clip(situation.processes.draw(count, rng)(policies), 0, 1).astype(np.float32)
    weights = posterior.draw_weights(count, rng)
    rewards = np.stack(
        [posterior.features.reward(*drawn) for drawn in zip(outcomes, weights, strict=True)]
    )
    anchor = [posterior.features.reward(situation.anchor[None], each)[0] for each in weights]
    margins = posterior.mean_sharpness * (rewards - np.array(anchor)[:, None])
    return Draws(outcomes, margins.astype(np.float32))


def information_about_winner(
    draws: Draws, candidates: IntArray, noise: FloatArray, cuts: FloatArray
) -> FloatArray:
    """score(c) of each candidate, in nats."""
    winners, index = np.unique(draws.winners, return_inverse=True)
    wins = np.eye(len(winners), dtype=np.float32)[index]  # (J, winners)
    scaled = (draws.outcomes[:, candidates] / noise.astype(np.float32)).transpose(1, 0, 2)
    squares = np.einsum("cjo,cjo->cj", scaled, scaled)
    distance = squares[:, :, None] + squares[:, None] - 2 * scaled @ scaled.transpose(0, 2, 1)
    expected = np.zeros(len(candidates))
    with np.errstate(under="ignore"):  # a draw that is ruled out has the weight zero
        alike = np.exp(-0.25 * np.maximum(distance, 0))  # (candidates, J, J)
        for answer in answer_probabilities(draws.margins[:, candidates].T, cuts):
            left = alike @ (answer[:, :, None] * wins)  # sum_i W_ji [k_i = k], per winner
            # A draw is as probable as itself: no row is empty but by underflow.
            left /= np.maximum(left.sum(axis=2, keepdims=True), np.float32(_LEAST))
            expected += (answer * _entropy(left)).mean(axis=1)
    return np.asarray(_entropy(wins.mean(axis=0)) - expected)


def answer_probabilities(margins: FloatArray, cuts: FloatArray) -> FloatArray:
    """p(y | u) of each answer y, (answers, *margins.shape); `cuts` are empty for two answers."""
    edges = np.concatenate([-cuts[::-1], cuts]) if len(cuts) else np.zeros(1, np.float32)
    below = scipy.special.expit(edges.reshape(-1, *([1] * margins.ndim)) - margins)
    ends = np.zeros((1, *margins.shape), below.dtype)
    return np.asarray(np.diff(np.concatenate([ends, below, ends + 1]), axis=0))


def _entropy(probabilities: FloatArray) -> FloatArray:
    """In nats, over the last axis."""
    logarithms = np.log(np.maximum(probabilities, probabilities.dtype.type(_LEAST)))
    return -np.asarray(np.einsum("...k,...k->...", probabilities, logarithms))
