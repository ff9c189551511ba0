"""Which policy to ask next (paper appendix "Boundary Lookahead implementation").

Notation
--------
pool         P_t          (P, d_policy)
anchor       bar phi_t    (d_outcome,)
information  a_MI,mean    (P,)
targets      Z_t          indices into the pool
shortlist    S_t          indices into the pool
utilities    a_BL         one for each of the shortlist
slopes       beta_s / sqrt(1 + pi/8 (beta_s sigma_Delta)^2)   (S,)

Every rule has one signature, Situation -> Selection, and says what it looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from sfihilo import forward as fw
from sfihilo.feasible import Feasible
from sfihilo.forward import ForwardBelief
from sfihilo.history import BoolArray, FloatArray, IntArray
from sfihilo.information import Labels, Tangent, binary_entropy
from sfihilo.names import positive, within
from sfihilo.posterior import RewardPosterior
from sfihilo.ranking import rank_by_reducible, top

# A round's arrays have up to some MB. glibc maps and unmaps pages for each of them until it has
# seen one so large freed; from then on it keeps them, which saves a tenth of a round.
np.empty(31 << 20, np.uint8)
# Leaders beyond the targets that single precision might have put behind them.
_SPARE = 4
# Steps of an outcome up to which labels are followed along their tangent. The error grows with its
# square: at this length the utilities are right to about 1e-4 of the best up to t = 1000.
_TANGENT = 0.003


@dataclass(frozen=True)
class QuerySettings:
    """tab:boundary_lookahead_hyperparameters.

    candidate_outcomes = 0 is the paper's mean observation; n > 0 integrates over n hypothetical
    outcomes of each candidate instead. own_target: a candidate that is among the targets is
    measured there too, as in the paper's algorithm but against its section 3 (docs/decisions.md).
    """

    pool_minimum: int = 4000
    pool_per_dimension: int = 400
    targets: int = 32
    target_samples: int = 3
    main_shortlist: int = 16
    variance_shortlist: int = 4
    guard_shortlist: int = 4
    candidate_outcomes: int = 0
    own_target: bool = True

    def __post_init__(self) -> None:
        positive(self, "pool_minimum", "targets", "target_samples", "main_shortlist")
        for name in ("pool_per_dimension", "variance_shortlist", "guard_shortlist"):
            within(self, name, 0, math.inf)
        within(self, "candidate_outcomes", 0, math.inf)
        if not isinstance(self.own_target, bool):
            raise ValueError(f"own_target: expected True or False, got {self.own_target!r}")

    def pool_size(self, policy_dim: int) -> int:
        return max(self.pool_minimum, self.pool_per_dimension * policy_dim)


@dataclass(frozen=True)
class PairSettings:
    """How Global Pair Lookahead (pairs.py) searches.

    draws: outcomes of each candidate in the first pass, the local pass and the last.
    past: executed policies, some moved a little: their outcomes are known best.
    balance: the exponent of the forward factor, while preferences are in doubt.
    settled: the share of target pairs in doubt below which that exponent grows.
    """

    pool: int = 300
    past: int = 150
    moves: tuple[float, ...] = (0.0, 0.05, 0.1)
    pairs: int = 128
    draws: tuple[int, int, int] = (2, 8, 32)
    shortlist: int = 24
    local_starts: int = 4
    local_steps: int = 12
    local_radius: float = 0.08
    balance: float = 0.15
    settled: float = 0.1

    def __post_init__(self) -> None:
        positive(self, "pool", "pairs", "shortlist", "local_radius")
        for name in ("past", "local_starts", "local_steps", "balance", "settled"):
            within(self, name, 0, math.inf)


@dataclass(frozen=True, eq=False)
class Situation:
    """What a rule may look at. `random(purpose)` gives this round's generator for a purpose."""

    settings: QuerySettings
    pairs: PairSettings
    policy_dim: int
    feasible: Feasible
    previous: FloatArray | None
    anchor: FloatArray
    forward: ForwardBelief
    sampled: Callable[[], RewardPosterior]
    gap_std: float
    random: Callable[[str], np.random.Generator]

    @cached_property
    def posterior(self) -> RewardPosterior:
        """Computed when first looked at: not every rule looks."""
        return self.sampled()

    @cached_property
    def labels(self) -> Labels:
        """Of comparisons with the anchor."""
        return Labels.against(self.posterior, self.anchor, self.gap_std)

    def pool(self) -> FloatArray:
        count = self.settings.pool_size(self.policy_dim)
        return self.feasible.sample(
            count, self.policy_dim, self.random("pool"), self.previous
        )  # eq:app_active_pool


def _nothing() -> IntArray:
    return np.empty(0, dtype=int)


@dataclass(frozen=True, eq=False)
class Selection:
    """The chosen policy and what the rule looked at, for a plot to show.

    scores: mutual information of each policy of the pool (empty for random).
    utilities: the lookahead score of each policy of the shortlist.
    """

    policy: FloatArray
    pool: FloatArray
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    targets: IntArray = field(default_factory=_nothing)
    shortlist: IntArray = field(default_factory=_nothing)
    utilities: FloatArray = field(default_factory=lambda: np.empty(0))


Rule: TypeAlias = Callable[[Situation], Selection]


def random(situation: Situation) -> Selection:
    """Any policy of the feasible set."""
    pool = situation.feasible.sample(
        1, situation.policy_dim, situation.random("pool"), situation.previous
    )
    if situation.feasible.choices is not None:
        pool = pool[situation.random("choice").integers(len(pool))][None]
    return Selection(policy=pool[0], pool=pool)


def mutual_information(situation: Situation) -> Selection:
    """The policy whose predicted outcome, taken as certain, tells most about the reward."""
    pool = situation.pool()
    _, scores = _information(situation, pool)
    return Selection(policy=pool[int(np.argmax(scores))], pool=pool, scores=scores)


def boundary_lookahead(situation: Situation) -> Selection:
    """The policy whose execution is expected to resolve most of the boundary region."""
    settings, forward = situation.settings, situation.forward
    pool = situation.pool()
    kernel, information = _information(situation, pool)
    ranking = rank_by_reducible(
        forward, kernel, information, settings.targets + _SPARE, settings.variance_shortlist
    )
    guard = situation.random("guard").permutation(len(pool))[: settings.guard_shortlist]
    finalists = _first_of_each([ranking.targets, ranking.variance, guard])
    at = forward.at(pool[finalists])
    best = _settled(situation, at.rows(np.arange(len(ranking.targets))))
    shortlist = _first_of_each(
        [
            best[: settings.main_shortlist],
            *(_places(finalists, part) for part in (ranking.variance, guard)),
        ]
    )  # eq:app_active_shortlist
    utilities = lookahead(situation, at.rows(best), at.rows(shortlist))
    chosen = shortlist[int(np.argmax(utilities))]  # eq:app_active_selected_query
    return Selection(
        at.policies[chosen], pool, information, finalists[best], finalists[shortlist], utilities
    )


def _settled(situation: Situation, at: fw.At) -> IntArray:
    """The targets, best first, among the leaders of single precision.

    Which target gets which random numbers depends on the order, so near ties are worth deciding.
    """
    epistemic, observation = situation.forward.variances(at.leverage)
    rank = situation.labels.information(at.mean) * fw.reducible(epistemic, observation).fraction
    return top(rank, situation.settings.targets)


def lookahead(situation: Situation, targets: fw.At, candidates: fw.At) -> FloatArray:
    """a_BL of each candidate: how much its observation is expected to lower the target utility."""
    settings, labels = situation.settings, situation.labels
    normals = situation.random("targets").standard_normal(
        (len(targets.policies), settings.target_samples, len(situation.anchor))
    )
    counted = None if settings.own_target else _others(targets.policies, candidates.policies)
    update = fw.target_update(situation.forward, targets, candidates)
    current = fw.sample(
        update.targets.mean[:, None], update.targets.variance[:, None], normals
    )  # eq:app_active_target_samples
    outcomes, residuals = hypothetical_outcomes(situation, update.candidates)
    moved = update.mean(update.targets.mean, residuals)
    chances, weights = label_update(labels, outcomes)
    flat = current.reshape(-1, current.shape[-1])
    tangents = [labels.tangent(flat, weights[:, draw]) for draw in range(outcomes.shape[1])]
    # Each times its chance, the weights after the two labels are even together, as they are now.
    chance, doubt = chances[0, 0] @ tangents[0].chance[0], tangents[0].doubt
    now = region_utility(  # eq:app_active_current_utility
        chance.reshape(1, *current.shape[:2], 1),
        doubt.reshape(1, *current.shape[:2]),
        np.ones((1, 1)),
        counted,
    )
    after = np.empty(outcomes.shape[:2])
    for draw, tangent in enumerate(tangents):
        means, spread = moved[:, draw][:, :, None], update.variance[:, :, None]
        samples = fw.sample(means, spread, normals)  # eq:app_active_post_target_samples
        heard = labels_after(labels, tangent, current, samples, weights[:, draw])
        after[:, draw] = region_utility(*heard, chances[:, draw], counted)
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


def label_update(labels: Labels, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chance of each label (..., 2) at these outcomes, and the samples' new weights (..., 2, S)."""
    flat = labels.probabilities(outcomes.reshape(-1, outcomes.shape[-1]))
    anchor_preferred = flat.reshape(*outcomes.shape[:-1], -1)
    by_label = np.stack([anchor_preferred, 1 - anchor_preferred], axis=-2)
    chance = by_label.mean(axis=-1)  # eq:app_active_candidate_label_probability
    total = np.maximum(by_label.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    return chance, by_label / total  # eq:app_active_importance_weights


def labels_after(
    labels: Labels,
    tangent: Tangent,
    current: FloatArray,
    samples: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Chance and doubt of the targets' labels once each candidate's outcome and label are known.

    current: target samples before, (targets, draws, d_outcome), and the labels' tangent there;
    samples: the same after each candidate's outcome, (candidates, targets, draws, d_outcome);
    weights of the reward's samples after each of its k labels: (candidates, k, S). A candidate
    moves the samples of most targets by a thousandth or less; there the labels are followed along
    their tangent, elsewhere computed.
    """
    *shape, dimension = samples.shape
    step = samples - current
    flat = step.reshape(len(step), -1, dimension).astype(np.float32)
    chance, doubt = tangent.moved(flat)
    chance, doubt = chance.reshape(*shape, -1), doubt.reshape(shape)
    candidate, target = np.nonzero(np.abs(step).max(axis=(2, 3)) > _TANGENT)
    far = samples[candidate, target].reshape(-1, dimension)
    bounds = shape[2] * np.searchsorted(candidate, np.arange(shape[0] + 1))
    exact = labels.averages(far, weights, bounds)
    chance[candidate, target] = exact[0].reshape(-1, shape[2], chance.shape[-1])
    doubt[candidate, target] = exact[1].reshape(-1, shape[2])
    return chance, doubt


def _others(targets: FloatArray, candidates: FloatArray) -> BoolArray:
    """(candidates, targets): whether the target is another policy than the candidate."""
    return np.asarray((candidates[:, None] != targets).any(axis=2))


def region_utility(
    chance: FloatArray, doubt: FloatArray, chances: FloatArray, counted: BoolArray | None = None
) -> FloatArray:
    """Mean over targets of the information in their labels, expected over each candidate's label.

    chance: (candidates, targets, draws, k); doubt: (candidates, targets, draws); chances of the
    candidate's k labels: (candidates, k); counted: which targets the mean of each candidate is
    about, (candidates, targets), None for all. Times its chance and summed, the labels' weights are
    even again, so the expected doubt is that under all samples alike.
    """
    # With even weights this is eq:app_active_targetwise_utility, before the query.
    mean = np.clip(chance.mean(axis=2), 0, 1)
    expected = np.einsum("ctk,ck->ct", binary_entropy(mean), chances)
    utility = expected - doubt.mean(axis=2)  # eq:app_active_post_targetwise_utility
    if counted is None:
        return np.asarray(utility.mean(axis=1))  # eq:app_active_post_region_utility
    total = np.where(counted, utility, 0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1))


def _information(situation: Situation, pool: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kernel rows of the pool, and the mutual information at its mean outcomes."""
    forward = situation.forward
    kernel = forward.kernel(pool.astype(forward.working_dtype))
    outcomes = forward.mean_at(kernel).astype(np.float32)
    return kernel, mean_information(situation.labels, outcomes)


def mean_information(labels: Labels, outcomes: FloatArray) -> FloatArray:
    """What the label of (anchor, outcome) would tell about the reward, in nats."""
    chance, doubt = labels.means(outcomes)  # eq:app_active_mean_pbar
    return binary_entropy(chance) - doubt  # eq:app_active_mean_mi


def _places(of: IntArray, parts: IntArray) -> IntArray:
    """Where in `of` each of `parts` is."""
    where = {index: place for place, index in enumerate(of.tolist())}
    return np.array([where[index] for index in parts.tolist()], dtype=int)


def _first_of_each(parts: list[IntArray]) -> IntArray:
    return np.array(list(dict.fromkeys(np.concatenate(parts).tolist())), dtype=int)
