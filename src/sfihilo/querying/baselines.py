"""The two baseline rules: Random and Mutual Information (paper section 3, "Active querying").

Notation
--------
pool         P_t          (P, d_policy)
information  a_MI,mean    (P,)
"""

from __future__ import annotations

import numpy as np

from sfihilo.history import FloatArray
from sfihilo.querying.labels import LabelModel, binary_entropy
from sfihilo.querying.situation import Decision, Situation


def random(situation: Situation) -> Decision:
    """Any policy of the feasible set."""
    pool = situation.feasible.sample(
        1, situation.policy_dim, situation.random("pool"), situation.previous
    )
    if situation.feasible.choices is not None:
        pool = pool[situation.random("choice").integers(len(pool))][None]
    return Decision(policy=pool[0], pool=pool)


def mutual_information(situation: Situation) -> Decision:
    """The policy whose predicted outcome, taken as certain, tells most about the reward."""
    pool = situation.pool()
    _, scores = information_of_pool(situation, pool)
    return Decision(policy=pool[int(np.argmax(scores))], pool=pool, scores=scores)


def information_of_pool(situation: Situation, pool: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kernel rows of the pool, and the mutual information at its mean outcomes."""
    forward = situation.forward
    kernel = forward.kernel(pool.astype(forward.working_dtype))
    outcomes = forward.mean_at(kernel).astype(np.float32)
    return kernel, mean_information(situation.labels, outcomes)


def mean_information(labels: LabelModel, outcomes: FloatArray) -> FloatArray:
    """What the label of (anchor, outcome) would tell about the reward, in nats."""
    probability, entropy = labels.means(outcomes)  # eq:app_active_mean_pbar
    return binary_entropy(probability) - entropy  # eq:app_active_mean_mi
