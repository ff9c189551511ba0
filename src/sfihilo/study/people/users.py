"""Simulated users (paper: app:simulated_user_generation).

A user is a pair of random smooth maps: policies to outcomes, and outcomes to one reward. All
randomness of a reply derives from (user seed, round, purpose): replying is pure, and two query
rules that ask the same policy in the same round of the same person get the same answer.

Notation
    frequencies    omega_m / l   (M, d)    head frequencies, already divided by the length scale
    phases         b_m           (M,)
    weights        w_m sqrt(2/M) (M,)
    length_scale   l
    low, high                    min and max of the raw head over the calibration points
    adaptation     alpha(t)      share of the transition to the steady-state map
    lapses                       share of answers that are given at random
    time_constant  T_star        queries

Coordinates. The reward depends on the first ``relevant`` outcomes; the learner sees the first
``visible``. Fewer visible than relevant are missing outcomes, more are extra ones (heads are
independent and alike, so which ones are hidden does not matter). A head depends only on the seed
and its own index: a person keeps their maps whatever the learner sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfihilo.history import FloatArray, Query, Response, generator
from sfihilo.study.people.answering import Answering, Judgement
from sfihilo.study.people.noise import NoiseLevels, evaluate_rewards, measure, perturb

Judges = Literal["measured", "true"]
_BLOCK = 256  # rows at once, so that their features stay in the cache


@dataclass(frozen=True)
class HeadSettings:
    """One column of tab:simulated_user_rff."""

    features: int
    shortest: float
    longest: float


@dataclass(frozen=True)
class UserSettings:
    """tab:simulated_user_rff, and the motor adaptation of the same appendix."""

    outcome: HeadSettings = HeadSettings(features=1024, shortest=0.35, longest=0.65)
    reward: HeadSettings = HeadSettings(features=512, shortest=0.50, longest=0.80)
    calibration: int = (
        20_000  # policies; the reward is normalised over the outcomes that they induce
    )
    adapted_share: float = 0.95
    adapted_by: float = 200.0

    @property
    def time_constant(self) -> float:
        """T_star, the time constant of motor adaptation in queries."""
        # eq:app_motor_adaptation_time_constant
        return -self.adapted_by / math.log(1 - self.adapted_share)


@dataclass(frozen=True, eq=False)
class Head:
    """A scalar random-Fourier-feature function, min-max normalised over its calibration points."""

    frequencies: FloatArray
    phases: FloatArray
    weights: FloatArray
    length_scale: float
    low: float = 0.0
    high: float = 1.0

    def __call__(self, points: FloatArray) -> FloatArray:
        # The float32 cosine is ten times faster and changes a normalised value by less than 1e-6.
        raw = np.empty(len(points))
        weights = self.weights.astype(np.float32)
        for start in range(0, len(points), _BLOCK):
            rows = slice(start, start + _BLOCK)
            angles = (points[rows] @ self.frequencies.T + self.phases).astype(np.float32)
            raw[rows] = np.cos(angles, out=angles) @ weights  # eq:truth_rff_head
        return (raw - self.low) / (self.high - self.low)


def calibrate(head: Head, points: FloatArray) -> tuple[Head, FloatArray]:
    """The same head scaled so that it spans [0, 1] over ``points``, and its values there."""
    values = head(points)
    low, high = float(values.min()), float(values.max())
    scaled = Head(head.frequencies, head.phases, head.weights, head.length_scale, low, high)
    return scaled, (values - low) / (high - low)


@dataclass(frozen=True, eq=False)
class OutcomeMap:
    """Policies (n, d_policy) to clean outcomes (n, heads), within the unit cube."""

    heads: tuple[Head, ...]

    def __call__(self, policies: FloatArray) -> FloatArray:
        # A few points in 100,000 lie beyond the calibration extremes: projected onto the cube.
        return np.clip(np.stack([head(policies) for head in self.heads], axis=1), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class RewardMap:
    """Outcomes (n, relevant) to rewards (n,): [0, 1] over the calibration set, free beyond it."""

    head: Head

    def __call__(self, outcomes: FloatArray) -> FloatArray:
        return self.head(outcomes)


@dataclass(frozen=True, eq=False)
class Experience:
    """The outcomes of one executed policy, including those that the learner never sees."""

    measured: FloatArray
    true: FloatArray


@dataclass(frozen=True, eq=False)
class SimulatedUser:
    """A simulated person who executes policies and compares each with an earlier one."""

    seed: int
    outcome_map: OutcomeMap
    reward_map: Callable[[FloatArray], FloatArray]
    relevant: int
    visible: int
    noise: NoiseLevels = NoiseLevels()
    judges: Judges = "measured"
    initial_map: OutcomeMap | None = None
    time_constant: float = UserSettings().time_constant
    lapses: float = 0.0
    answering: Answering = Answering()

    def adaptation(self, round: int) -> float:
        """alpha_star: the adapted share at that round (1 for a stationary person)."""
        if self.initial_map is None:
            return 1.0
        return 1.0 - math.exp(-round / self.time_constant)

    def outcomes(self, policies: FloatArray, round: int = 0) -> FloatArray:
        """Clean outcomes under the map that is current in ``round`` (n, heads)."""
        steady = self.outcome_map(policies)
        if self.initial_map is None:
            return steady
        share = self.adaptation(round)
        initial = self.initial_map(policies)
        return (1 - share) * initial + share * steady  # eq:app_motor_adaptation_oracle

    def rewards(self, outcomes: FloatArray) -> FloatArray:
        """Clean rewards of complete outcomes (n,)."""
        return self.reward_map(outcomes[:, : self.relevant])

    def seen(self, outcomes: FloatArray) -> FloatArray:
        """The part of complete outcomes that the learner sees."""
        return outcomes[..., : self.visible]

    def experience(self, round: int, policy: FloatArray) -> Experience:
        """The experience of one policy; a pure function of (user, round, policy)."""
        executed = perturb(policy, self.noise, generator(self.seed, round, "execution noise"))
        true = self.outcomes(executed[None, :], round)[0]
        measured = measure(true, self.noise, generator(self.seed, round, "measurement noise"))
        return Experience(measured, true)

    def judge(self, round: int, previous: Experience, new: Experience, age: int = 1) -> Judgement:
        """The answer about two experiences by noisy evaluations of their rewards, or a lapse.

        age: how many rounds ago the previous one was.
        """
        if self.lapses:
            rng = generator(self.seed, round, "lapse")
            if rng.uniform() < self.lapses:
                return self.answering.lapse(rng)
        pair = (previous.measured, new.measured)
        if self.judges == "true":
            pair = (previous.true, new.true)
        rng = generator(self.seed, round, "reward noise")
        felt_previous, felt_new = evaluate_rewards(self.rewards(np.stack(pair)), self.noise, rng)
        gap = float(felt_new - felt_previous)
        if forgotten := self.answering.memory_noise(age):
            rng = generator(self.seed, round, "memory noise")
            gap += forgotten * math.sqrt(2) * self.noise.reward * rng.standard_normal()
        return self.answering.judgement(gap, self.seed, round)

    def answer(self, query: Query, new: Experience, previous: Experience | None) -> Response:
        """The visible outcome of ``new``, and the answer if there is a previous experience."""
        outcome = self.seen(new.measured)
        if previous is None:
            return Response(outcome, None)
        age = 1 if query.compared_with is None else query.round - query.compared_with
        return Response(outcome, *self.judge(query.round, previous, new, age))

    def respond(self, query: Query) -> Response:
        """Replies to a query whose anchor contains everything that the person judges by.

        For a person who judges true outcomes, or outcomes that the learner does not see, keep the
        experiences and use ``experience`` and ``answer``.
        """
        new = self.experience(query.round, query.policy)
        if query.anchor is None:
            return self.answer(query, new, None)
        if self.judges != "measured" or self.visible < self.relevant:
            raise ValueError(
                "respond: expected a user who judges measured outcomes that the learner sees, "
                f"got one who judges {self.judges} outcomes and shows {self.visible} of "
                f"{self.relevant}; use user.experience and user.answer instead"
            )
        anchor = np.asarray(query.anchor, dtype=float)
        return self.answer(query, new, Experience(measured=anchor, true=anchor))


def sample_head(dim: int, settings: HeadSettings, rng: np.random.Generator) -> Head:
    """A raw (not yet normalised) head."""
    share = rng.uniform()
    log_scale = (1 - share) * math.log(settings.shortest) + share * math.log(settings.longest)
    length_scale = math.exp(log_scale)  # eq:truth_rff_lengthscale
    count = settings.features
    return Head(
        frequencies=rng.standard_normal((count, dim)) / length_scale,
        phases=rng.uniform(0, 2 * math.pi, count),
        weights=rng.standard_normal(count) * math.sqrt(2 / count),
        length_scale=length_scale,
    )


def sample_outcome_map(
    policies: FloatArray, heads: int, seed: int, settings: HeadSettings, purpose: str
) -> tuple[OutcomeMap, FloatArray]:
    """Independent heads calibrated on ``policies``, and the outcomes that these induce."""
    calibrated = [
        calibrate(
            sample_head(policies.shape[1], settings, generator(seed, index, purpose)), policies
        )
        for index in range(heads)
    ]
    return (
        OutcomeMap(tuple(head for head, _ in calibrated)),
        np.stack([values for _, values in calibrated], axis=1),
    )


def sample_user(
    policy_dim: int = 8,
    outcome_dim: int = 8,
    seed: int = 0,
    *,
    visible: int | None = None,
    noise: NoiseLevels = NoiseLevels(),
    judges: Judges = "measured",
    drift: bool = False,
    settings: UserSettings = UserSettings(),
) -> SimulatedUser:
    """A person whose reward depends on ``outcome_dim`` outcomes; the learner sees ``visible``.

    With ``drift`` the maps of the stationary person of the same seed are the steady state, and the
    reward is normalised over the steady state's outcomes.
    """
    visible = outcome_dim if visible is None else visible
    if policy_dim < 1 or outcome_dim < 1 or visible < 1:
        raise ValueError(
            "policy_dim, outcome_dim, visible: expected at least 1 each, "
            f"got {policy_dim}, {outcome_dim}, {visible}"
        )
    if judges not in ("measured", "true"):
        raise ValueError(f"judges: expected 'measured' or 'true', got {judges!r}")
    count = max(outcome_dim, visible)
    policies = generator(seed, 0, "calibration policies").uniform(
        size=(settings.calibration, policy_dim)
    )
    steady, induced = sample_outcome_map(policies, count, seed, settings.outcome, "outcome head")
    raw_reward = sample_head(outcome_dim, settings.reward, generator(seed, 0, "reward head"))
    reward, _ = calibrate(raw_reward, induced[:, :outcome_dim])
    initial = None
    if drift:
        initial, _ = sample_outcome_map(policies, count, seed, settings.outcome, "initial head")
    return SimulatedUser(
        seed=seed,
        outcome_map=steady,
        reward_map=RewardMap(reward),
        relevant=outcome_dim,
        visible=visible,
        noise=noise,
        judges=judges,
        initial_map=initial,
        time_constant=settings.time_constant,
    )
