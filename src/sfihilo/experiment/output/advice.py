"""The recommended policy of a session, in physical units, with what is known about it and what not.

The verdict is one sentence; the numbers behind it are the fields. Report, shell and Python show the
same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import sfihilo
from sfihilo.experiment.output.digits import percent, policy_words, told_apart
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.record.kept import kept_settings
from sfihilo.experiment.record.protocol import Veto
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.allowed import is_near, recent_vetoes, way_out
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.parameter import FloatArray
from sfihilo.experiment.space.space import Policy
from sfihilo.history import BoolArray

if TYPE_CHECKING:
    from sfihilo import Recommendation, State

BEST_TRIED, LAST_TRIED = "best tried", "last tried"  # as `sfihilo.recommend` names them
NOTHING_LEARNED = (
    "nothing learned yet: no answered comparison could be learned from, so there is nothing to "
    "recommend"
)
# Comparisons below which the verdict warns: a convention of its words, not of the model.
VERY_FEW, FEW = 10, 30


@dataclass(frozen=True)
class Interval:
    """A value with the credible interval that the learner gives for it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Tried:
    """A trial whose policy the advice is compared with."""

    trial: int
    policy: Policy


@dataclass(frozen=True)
class Advice:
    """What the learner would settle on now, and how sure that is.

    `verdict` says it in one sentence. `reward` is in the learned reward's own units: only
    differences have a meaning. `comparisons` is the number of answers that it was learned from.
    `preferred` has the probability that this person prefers the policy to the best tried one
    ("best tried"), to the last one ("last tried"), and to each policy of `compared_with`.
    `best_is_as_good`: the best tried policy is expected to be as good. `extrapolates`: predictions
    have not been shown to hold this far from what was tried. `one_step`: it may be set at once from
    where the device is; otherwise it has to be approached in steps of `max_step`. `avoided` are the
    vetoes in force, near which nothing is recommended. `grades_used`: False if the strengths of
    this person's answers do not grow with the predicted difference, so that only their direction
    is learned from; None where answers are not graded.
    """

    policy: Policy
    outcomes: Mapping[str, Interval]
    reward: Interval
    comparisons: int
    preferred: Mapping[str, float]
    best_tried: Tried | None
    last_tried: Tried | None
    best_is_as_good: bool
    compared_with: Mapping[str, Policy]
    extrapolates: bool
    one_step: bool
    avoided: tuple[Veto, ...]
    grades_used: bool | None
    verdict: str

    @property
    def remarks(self) -> list[str]:
        """What to be careful about, in sentences."""
        said = []
        if self.extrapolates:
            said.append(
                "Careful: predictions have not been shown to hold this far from what was tried."
            )
        if not self.one_step:
            said.append("It is more than one allowed step away: approach it in steps.")
        for veto in self.avoided:
            because = "caused pain" if veto.pain else "was vetoed"
            said.append(f"Nothing near trial {veto.trial} is recommended: it {because}.")
        if self.grades_used is False:
            said.append(
                "The strengths of this person's answers do not grow with the predicted difference: "
                "only which condition was better is learned from."
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "verdict": self.verdict,
            "policy": dict(self.policy),
            "outcomes": {name: vars(interval) for name, interval in self.outcomes.items()},
            "reward": vars(self.reward),
            "comparisons": self.comparisons,
            "preferred": dict(self.preferred),
            "best_tried": _tried_dict(self.best_tried),
            "last_tried": _tried_dict(self.last_tried),
            "best_is_as_good": self.best_is_as_good,
            "compared_with": {name: dict(other) for name, other in self.compared_with.items()},
            "extrapolates": self.extrapolates,
            "one_step": self.one_step,
            "avoided": [veto.trial for veto in self.avoided],
            "grades_used": self.grades_used,
            "remarks": self.remarks,
        }


def _tried_dict(tried: Tried | None) -> dict[str, Any] | None:
    return None if tried is None else {"trial": tried.trial, "policy": dict(tried.policy)}


def advise(
    record: Record,
    state: State,
    feasible: Mapping[str, Any] | None = None,
    compare_with: Mapping[str, Mapping[str, float]] | None = None,
) -> Advice:
    """Recommend within the space and the ranges given in `feasible`, away from vetoed policies.

    Raises NothingLearnedError before the first comparison was learned from.
    """
    space = record.space
    others = {name: _named(record, name, given) for name, given in (compare_with or {}).items()}
    limits = space.box((), space.limits(feasible))
    found, avoided = _recommended(record, state, limits, others)
    policy = space.to_policy(found.policy)
    safety.check(space, policy)
    middle, low, high = (
        space.physical_outcomes(values)
        for values in (found.outcome, found.outcome_low, found.outcome_high)
    )
    tried = [
        trial
        for trial in record.trials
        if trial.ended and trial.ending != "undone" and trial.known_outcome
    ]
    best = _of_policy(tried, found.best_tried)
    last = Tried(tried[-1].number, dict(tried[-1].policy)) if tried else None
    return Advice(
        policy=policy,
        outcomes={
            name: Interval(float(middle[name]), float(low[name]), float(high[name]))
            for name in space.outcomes
        },
        reward=Interval(float(found.reward), float(found.reward_low), float(found.reward_high)),
        comparisons=found.comparisons,
        preferred=dict(found.preferred),
        best_tried=best,
        last_tried=last,
        best_is_as_good=best is not None and found.best_tried_is_as_good,
        compared_with=others,
        extrapolates=bool(found.extrapolates),
        one_step=not safety.problems(space, policy, record.positions),
        avoided=avoided,
        grades_used=None if record.grades == 2 else state.inverse.grading.used,
        verdict=_verdict(record, policy, found, best),
    )


def preference_rows(record: Record, advice: Advice) -> list[tuple[str, str, float]]:
    """What the advice is compared with, its settings in words, and the probability."""
    tried = {BEST_TRIED: advice.best_tried, LAST_TRIED: advice.last_tried}
    compared = [
        (name, f"{name} (trial {of.trial})", of.policy)
        for name, of in tried.items()
        if of is not None
    ]
    compared += [(name, name, policy) for name, policy in advice.compared_with.items()]
    return [
        (shown, policy_words(record.space, policy), advice.preferred[name])
        for name, shown, policy in compared
    ]


def reward_words(advice: Advice) -> str:
    """The expected reward with its interval."""
    reward = advice.reward
    value, low, high = told_apart((reward.value, reward.low, reward.high))
    return (
        f"Reward {value}, 95 % interval {low} to {high}, in the learned reward's own units: only "
        "differences have a meaning."
    )


def _named(record: Record, name: object, given: Mapping[str, float]) -> Policy:
    """A policy to compare the advice with; what it does not name stays as in the last trial.

    It is only compared, never commanded: any values within the bounds will do.
    """
    if not isinstance(name, str) or not name or name in (BEST_TRIED, LAST_TRIED):
        raise ValueError(
            f"compare_with: expected a name other than {BEST_TRIED!r} and {LAST_TRIED!r}, "
            f"got {name!r}"
        )
    space = record.space
    if not isinstance(given, Mapping):
        raise ValueError(f"compare_with {name!r}: expected parameter -> value, got {given!r}")
    try:
        _, kept = kept_settings(record, given)
        policy = space.complete({**kept, **given})
        space.check_bounds(policy)
        for held, knob in space.policy.items():
            if knob.fixed is not None and policy[held] != knob.fixed:
                raise ValueError(f"{held}: fixed at {knob.fixed}, got {policy[held]}")
    except ValueError as error:
        raise ValueError(f"compare_with {name!r}: {error}") from error
    return policy


def _recommended(
    record: Record,
    state: State,
    limits: tuple[FloatArray, FloatArray],
    others: Mapping[str, Policy],
) -> tuple[Recommendation, tuple[Veto, ...]]:
    """The recommendation, and the vetoes that it respects.

    Where nothing else is left, vetoes that expire yield, as they do for queries; pain never does.
    """
    space, (lower, upper) = record.space, limits
    compared = {name: space.to_unit(other) for name, other in others.items()}
    avoided = (*record.painful, *recent_vetoes(record, state.round))
    while True:

        def accepts(units: FloatArray, vetoes: Sequence[Veto] = avoided) -> BoolArray:
            return space.allows(units) & ~is_near(record, units, vetoes)

        restricted = bool(space.constraints or avoided)
        allowed = sfihilo.Feasible(
            lower=lower, upper=upper, accepts=accepts if restricted else None
        )
        try:
            return sfihilo.recommend(state, allowed, compare_with=compared), avoided
        except sfihilo.NothingLearnedError:
            raise sfihilo.NothingLearnedError(NOTHING_LEARNED) from None
        except ValueError as error:
            if len(avoided) > len(record.painful):
                avoided = record.painful
                continue
            if not record.painful:
                raise
            raise ValueError(f"no policy can be recommended: {error}{way_out(record)}") from error


def _of_policy(tried: Sequence[Trial], unit: FloatArray | None) -> Tried | None:
    """The last trial with this policy."""
    for trial in reversed(tried):
        if unit is not None and np.array_equal(trial.unit, unit):
            return Tried(trial.number, dict(trial.policy))
    return None


def _verdict(record: Record, policy: Policy, found: Recommendation, best: Tried | None) -> str:
    """The advice in one sentence."""
    words = policy_words(record.space, policy)
    if best is None:
        return f"Set {words}; {_evidence(found.comparisons)}."
    likely = percent(found.preferred[BEST_TRIED])
    if not found.best_tried_is_as_good:
        compared = f"{likely} likely preferred to the best setting tried so far"
        return f"Set {words}; {compared} (trial {best.trial}); {_evidence(found.comparisons)}."
    again = policy_words(record.space, best.policy)
    if again == words:
        choice = f"Set {words}, as in trial {best.trial}, the best setting tried so far"
    else:
        choice = (
            f"Keep {again}, as in trial {best.trial}, the best setting tried so far: "
            f"{words} is not expected to be better ({likely} likely preferred)"
        )
    return f"{choice}; {_evidence(found.comparisons)}."


def evidence(comparisons: int) -> Literal["very few", "few", "enough"]:
    """Whether an advice rests on so few comparisons that the verdict has to say so."""
    if comparisons < VERY_FEW:
        return "very few"
    return "few" if comparisons < FEW else "enough"


def _evidence(comparisons: int) -> str:
    """How much the advice rests on."""
    count, amount = counted(comparisons, "comparison"), evidence(comparisons)
    if amount == "very few":
        return f"only {count}, so this may still change much"
    return f"{count}, so the interval is wide" if amount == "few" else count
