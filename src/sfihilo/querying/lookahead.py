"""Boundary Lookahead, the paper's rule (paper appendix "Boundary Lookahead implementation").

Notation
--------
pool         P_t          (P, d_policy)
anchor       bar phi_t    (d_outcome,)
information  a_MI,mean    (P,)
targets      Z_t          indices into the pool
shortlist    S_t          indices into the pool
utilities    a_BL         one per policy of the shortlist
slopes       beta_s / sqrt(1 + pi/8 (beta_s sigma_Delta)^2)   (S,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfihilo import forward as fw
from sfihilo.checks import Checked, flag, whole
from sfihilo.history import BoolArray, FloatArray, IntArray
from sfihilo.querying.baselines import information_of_pool
from sfihilo.querying.labels import LabelModel, Tangent, binary_entropy
from sfihilo.querying.ranking import rank_by_reducible, top
from sfihilo.querying.situation import Decision, Situation

# Leaders beyond the targets that single precision might have put behind them.
_SPARE = 4
# Steps of an outcome up to which labels are followed along their tangent. The error grows with its
# square: at this length the utilities are right to about 1e-4 of the best up to t = 1000.
_TANGENT = 0.003


@dataclass(frozen=True)
class QuerySettings(Checked):
    """tab:boundary_lookahead_hyperparameters.

    candidate_outcomes = 0 is the paper's mean observation; n > 0 integrates over n hypothetical
    outcomes of each candidate instead. own_target: a candidate that is among the targets is
    measured there too, as in the paper's algorithm but against its section 3 (docs/decisions.md).
    common_samples: the targets' outcomes after a query are sampled with the random numbers of those
    before it, the same for every candidate; else with new ones for each.
    """

    pool_minimum: int = whole(1, 4000)
    pool_per_dimension: int = whole(0, 400)
    targets: int = whole(1, 32)
    target_samples: int = whole(1, 3)
    main_shortlist: int = whole(1, 16)
    variance_shortlist: int = whole(0, 4)
    guard_shortlist: int = whole(0, 4)
    candidate_outcomes: int = whole(0, 0)
    own_target: bool = flag(True)
    common_samples: bool = flag(True)

    def pool_size(self, policy_dim: int) -> int:
        return max(self.pool_minimum, self.pool_per_dimension * policy_dim)


def boundary_lookahead(situation: Situation) -> Decision:
    """The policy whose execution is expected to resolve most of the boundary region."""
    settings, forward = situation.settings, situation.forward
    pool = situation.pool()
    kernel, information = information_of_pool(situation, pool)
    ranking = rank_by_reducible(
        forward, kernel, information, settings.targets + _SPARE, settings.variance_shortlist
    )
    guard = situation.random("guard").permutation(len(pool))[: settings.guard_shortlist]
    finalists = _first_of_each([ranking.targets, ranking.variance, guard])
    at = forward.at(pool[finalists])
    best = _rerank_in_double(situation, at.rows(np.arange(len(ranking.targets))))
    shortlist = _first_of_each(
        [
            best[: settings.main_shortlist],
            *(_places(finalists, part) for part in (ranking.variance, guard)),
        ]
    )  # eq:app_active_shortlist
    utilities = lookahead(situation, at.rows(best), at.rows(shortlist))
    chosen = shortlist[int(np.argmax(utilities))]  # eq:app_active_selected_query
    return Decision(
        at.policies[chosen], pool, information, finalists[best], finalists[shortlist], utilities
    )


def _rerank_in_double(situation: Situation, at: fw.PolicyBelief) -> IntArray:
    """Re-rank the single-precision leaders in double precision; return the best `targets`.

    The order decides which target gets which random numbers, so near ties are decided exactly.
    """
    epistemic, observation = situation.forward.variances(at.leverages)
    rank = situation.labels.information(at.mean) * fw.reducible(epistemic, observation).fraction
    return top(rank, situation.settings.targets)


def lookahead(
    situation: Situation, targets: fw.PolicyBelief, candidates: fw.PolicyBelief
) -> FloatArray:
    """a_BL of each candidate: how much its observation is expected to lower the target utility."""
    settings, labels = situation.settings, situation.labels
    rng = situation.random("targets")
    shape = (len(targets.policies), settings.target_samples, len(situation.anchor))
    normals = rng.standard_normal(shape)
    post_normals = (
        normals
        if settings.common_samples
        else rng.standard_normal((len(candidates.policies), *shape))
    )
    counted = None if settings.own_target else _others(targets.policies, candidates.policies)
    update = fw.target_update(situation.forward, targets, candidates)
    current = fw.sample(
        update.targets.mean[:, None], update.targets.variance[:, None], normals
    )  # eq:app_active_target_samples
    outcomes, residuals = hypothetical_outcomes(situation, update.candidates)
    moved = update.mean(update.targets.mean, residuals)
    label_probability, weights = label_update(labels, outcomes)
    flat = current.reshape(-1, current.shape[-1])
    tangents = [labels.tangent(flat, weights[:, draw]) for draw in range(outcomes.shape[1])]
    # Weighted by their probabilities, the weights after the two labels sum to equal ones, as now.
    probability = label_probability[0, 0] @ tangents[0].probability[0]
    entropy = tangents[0].entropy
    now = region_utility(  # eq:app_active_current_utility
        probability.reshape(1, *current.shape[:2], 1),
        entropy.reshape(1, *current.shape[:2]),
        np.ones((1, 1)),
        counted,
    )
    after = np.empty(outcomes.shape[:2])
    for draw, tangent in enumerate(tangents):
        means, spread = moved[:, draw][:, :, None], update.variance[:, :, None]
        samples = fw.sample(means, spread, post_normals)  # eq:app_active_post_target_samples
        labels_there = labels_after(labels, tangent, current, samples, weights[:, draw])
        after[:, draw] = region_utility(*labels_there, label_probability[:, draw], counted)
    # With one draw, the mean, this is eq:app_active_meanobs_score; with many, the whole integral.
    return np.asarray(now - after.mean(axis=1))  # eq:proposed_target_lookahead


def hypothetical_outcomes(
    situation: Situation, prediction: fw.Prediction
) -> tuple[FloatArray, FloatArray]:
    """What each candidate might show, (candidates, draws, d_outcome), and its residuals."""
    mean = prediction.mean[:, None]
    count = situation.settings.candidate_outcomes
    if count == 0:
        return mean, np.zeros_like(mean)  # eq:app_active_mean_observation
    normals = situation.random("candidates").standard_normal((1, count, mean.shape[2]))
    outcomes = fw.sample(mean, prediction.variance[:, None], normals)  # eq:query_observation_law
    return outcomes, outcomes - mean


def label_update(labels: LabelModel, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probability (..., 2) of each label at these outcomes; weights after it (..., 2, S)."""
    flat = labels.probabilities(outcomes.reshape(-1, outcomes.shape[-1]))
    anchor_preferred = flat.reshape(*outcomes.shape[:-1], -1)
    by_label = np.stack([anchor_preferred, 1 - anchor_preferred], axis=-2)
    probability = by_label.mean(axis=-1)  # eq:app_active_candidate_label_probability
    total = np.maximum(by_label.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    return probability, by_label / total  # eq:app_active_importance_weights


def labels_after(
    labels: LabelModel,
    tangent: Tangent,
    current: FloatArray,
    samples: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Probability and entropy of the targets' labels, given each candidate's outcome and label.

    current: target samples before, (targets, draws, d_outcome), and the labels' tangent there;
    samples: the same after each candidate's outcome, (candidates, targets, draws, d_outcome);
    weights of the reward's samples after each of its k labels: (candidates, k, S). A candidate
    moves the samples of most targets by a thousandth or less; there the labels are followed along
    their tangent, elsewhere computed.
    """
    *shape, dimension = samples.shape
    step = samples - current
    flat = step.reshape(len(step), -1, dimension).astype(np.float32)
    probability, entropy = tangent.moved(flat)
    probability, entropy = probability.reshape(*shape, -1), entropy.reshape(shape)
    candidate, target = np.nonzero(np.abs(step).max(axis=(2, 3)) > _TANGENT)
    far = samples[candidate, target].reshape(-1, dimension)
    bounds = shape[2] * np.searchsorted(candidate, np.arange(shape[0] + 1))
    exact = labels.averages(far, weights, bounds)
    probability[candidate, target] = exact[0].reshape(-1, shape[2], probability.shape[-1])
    entropy[candidate, target] = exact[1].reshape(-1, shape[2])
    return probability, entropy


def _others(targets: FloatArray, candidates: FloatArray) -> BoolArray:
    """(candidates, targets): whether the target is another policy than the candidate."""
    return np.asarray((candidates[:, None] != targets).any(axis=2))


def region_utility(
    probability: FloatArray,
    entropy: FloatArray,
    label_probability: FloatArray,
    counted: BoolArray | None = None,
) -> FloatArray:
    """Mean over targets of the information in their labels, expected over each candidate's label.

    probability: (candidates, targets, draws, k); entropy: (candidates, targets, draws);
    label_probability of the candidate's k labels: (candidates, k); counted: which targets the mean
    of each candidate covers, (candidates, targets), None for all. Weighted by their probabilities,
    the labels' weights sum to equal ones, so the expected entropy is that under equal weights.
    """
    # With equal weights this is eq:app_active_targetwise_utility, before the query.
    mean = np.clip(probability.mean(axis=2), 0, 1)
    expected = np.einsum("ctk,ck->ct", binary_entropy(mean), label_probability)
    utility = expected - entropy.mean(axis=2)  # eq:app_active_post_targetwise_utility
    if counted is None:
        return np.asarray(utility.mean(axis=1))  # eq:app_active_post_region_utility
    total = np.where(counted, utility, 0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1))


def _places(of: IntArray, parts: IntArray) -> IntArray:
    """Where in `of` each of `parts` is."""
    where = {index: place for place, index in enumerate(of.tolist())}
    return np.array([where[index] for index in parts.tolist()], dtype=int)


def _first_of_each(parts: list[IntArray]) -> IntArray:
    return np.array(list(dict.fromkeys(np.concatenate(parts).tolist())), dtype=int)
