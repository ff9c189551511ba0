"""What a query rule is given, and what it returns (paper section 3, "Active querying").

Notation
--------
pool         P_t          (P, d_policy)
anchor       bar phi_t    (d_outcome,)
recalled     phi_i        (r, d_outcome)  outcomes that the next one may be compared with
answer_noise s_i^2        (r,)            variance of the noise of that answer, in logits
scores       a_MI,mean    (P,)
targets      Z_t          indices into the pool
shortlist    S_t          indices into the pool
utilities    a_BL         one per policy of the shortlist

Every rule has one signature, Situation -> Decision, and says what it looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfihilo.feasible import Feasible
from sfihilo.forward import ForwardBelief
from sfihilo.forward.gaussian_process import OutcomeProcesses
from sfihilo.history import FloatArray, IntArray
from sfihilo.inverse.posterior import RewardPosterior
from sfihilo.querying.labels import LabelModel

if TYPE_CHECKING:  # the settings stand beside the rules, which import this module
    from sfihilo.querying.lookahead import QuerySettings
    from sfihilo.querying.pairs import PairSettings


@dataclass(frozen=True, eq=False)
class Situation:
    """What a rule may look at. `random(purpose)` gives this round's generator for a purpose.

    recalled: the anchor, and with `Settings.recall` above 1 outcomes before it, the newest first.
    cuts: the positive edges of the grades that are offered, in logits; empty for two answers.
    """

    settings: QuerySettings
    pairs: PairSettings
    policy_dim: int
    feasible: Feasible
    previous: FloatArray | None
    anchor: FloatArray
    recalled: FloatArray
    answer_noise: FloatArray
    forward: ForwardBelief
    sampled: Callable[[], RewardPosterior]
    gap_std: float
    cuts: FloatArray
    random: Callable[[str], np.random.Generator]
    fitted: Callable[[], OutcomeProcesses]

    @cached_property
    def posterior(self) -> RewardPosterior:
        """Computed when first looked at: not every rule looks."""
        return self.sampled()

    @cached_property
    def processes(self) -> OutcomeProcesses:
        """The outcomes as the seeking rules see them; computed when first looked at."""
        return self.fitted()

    @cached_property
    def labels(self) -> LabelModel:
        """Of comparisons with the anchor."""
        return LabelModel.against(self.posterior, self.anchor, self.gap_std)

    def pool(self) -> FloatArray:
        count = self.settings.pool_size(self.policy_dim)
        return self.feasible.sample(
            count, self.policy_dim, self.random("pool"), self.previous
        )  # eq:app_active_pool

    def kept(self, moved: FloatArray) -> FloatArray:
        """The moved policies, clipped to the box, that are feasible."""
        lower, upper = self.feasible.box(self.policy_dim, self.previous)
        inside = np.clip(moved, lower, upper)
        return inside[self.feasible.contains(inside, self.previous)]


def _no_indices() -> IntArray:
    return np.empty(0, dtype=int)


@dataclass(frozen=True, eq=False)
class Decision:
    """The chosen policy and what the rule looked at, for a plot to show.

    scores: mutual information of each policy of the pool (empty for random).
    utilities: the lookahead score of each policy of the shortlist.
    """

    policy: FloatArray
    pool: FloatArray
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    targets: IntArray = field(default_factory=_no_indices)
    shortlist: IntArray = field(default_factory=_no_indices)
    utilities: FloatArray = field(default_factory=lambda: np.empty(0))


Rule: TypeAlias = Callable[[Situation], Decision]
