"""The conditions of the study as data, and its unit: one user, one rule, one condition.

panels.py lists the conditions that each panel of the paper shows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from sfihilo.forward.recency import RecencySettings
from sfihilo.settings import Settings
from sfihilo.study.people.answering import Answering
from sfihilo.study.people.lifelike import Shape, with_shape
from sfihilo.study.people.noise import NoiseLevels
from sfihilo.study.people.users import Judges, SimulatedUser, UserSettings, sample_user
from sfihilo.study.run.evaluation import EvaluationSettings

Preset = Literal["paper", "default"]
Recency = Literal["unweighted", "known", "learned"]
STUDY_SEED = 2026


@dataclass(frozen=True)
class Condition:
    """A simulated world and what the learner knows about it.

    `name` is unique: result files carry it.
    """

    name: str
    policy_dim: int = 8
    outcome_dim: int = 8
    noise_scale: float = 1.0
    drift: bool = False
    recency: Recency = "unweighted"
    missing: int = 0
    extra: int = 0
    reward: str = "rbf"
    judges: Judges = "measured"
    # How this person differs from the learner's prior; the learner is not told.
    shape: Shape | None = None
    judgement: float = 1.0  # factor of the noise of the person's own judgement
    lapses: float = 0.0
    answering: Answering = Answering()
    # Early queries after which predicted answers are evaluated, too.
    early: tuple[int, ...] = ()
    # Queries after which the recommended policy is evaluated, in place of everything else.
    advice: tuple[int, ...] = ()
    # Queries after which the reward of the advice is evaluated.
    advice_at: tuple[int, ...] = ()
    # Settings of the learner other than the preset's, by their dotted names.
    changes: tuple[tuple[str, str | float], ...] = ()

    @property
    def visible(self) -> int:
        """The number of outcomes that the learner sees."""
        return self.outcome_dim - self.missing + self.extra

    @property
    def noise(self) -> NoiseLevels:
        """The levels that the learner is told."""
        return NoiseLevels().scaled(self.noise_scale)

    @property
    def own_noise(self) -> NoiseLevels:
        """The levels of this person."""
        return replace(self.noise, reward=self.judgement * self.noise.reward)


@dataclass(frozen=True)
class Unit:
    """The smallest part of the study: one user, rule, condition and preset, from start to end."""

    condition: Condition
    rule: str
    preset: Preset
    user: int
    queries: int = 1000
    study_seed: int = STUDY_SEED
    evaluation: EvaluationSettings = EvaluationSettings()
    users: UserSettings = UserSettings()
    lean: bool = False  # a coarser query rule and posterior, for smoke runs

    @property
    def key(self) -> str:
        """Identifies the unit within a preset's results."""
        return f"{self.condition.name}--{file_name(self.rule)}--u{self.user:03d}"


BASE = Condition("base")


def file_name(text: str) -> str:
    """The name of a rule or reward model as part of a file name."""
    return text.replace(":", ".").replace("/", ".")


def derived_seed(study_seed: int, user: int, purpose: str) -> int:
    """The seed of a user or learner: the same for every rule, preset and condition."""
    text = f"{study_seed}/{user}/{purpose}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "big")


def simulated_user(unit: Unit) -> SimulatedUser:
    """The simulated user of a unit: the same for every rule and preset."""
    condition = unit.condition
    user = sample_user(
        condition.policy_dim,
        condition.outcome_dim,
        derived_seed(unit.study_seed, unit.user, "user"),
        visible=condition.visible,
        noise=condition.own_noise,
        judges=condition.judges,
        drift=condition.drift,
        settings=unit.users,
    )
    if condition.shape is not None:
        user = with_shape(user, condition.shape)
    return replace(user, lapses=condition.lapses, answering=condition.answering)


def preset_settings(preset: Preset) -> Settings:
    """The settings of a preset."""
    return Settings.paper() if preset == "paper" else Settings()


def learner_settings(unit: Unit) -> Settings:
    """The preset with what a lab knows: dimensions, noise levels, the chosen models."""
    condition, noise = unit.condition, unit.condition.noise
    settings = replace(
        preset_settings(unit.preset),
        policy_dim=condition.policy_dim,
        outcome_dim=condition.visible,
        rule=unit.rule,
        grades=condition.answering.grades,
    )
    inverse = settings.inverse
    if condition.reward != "rbf":
        inverse = replace(inverse, features=condition.reward)
    query = settings.query
    if unit.lean:
        query = replace(query, pool_minimum=200, pool_per_dimension=0, targets=8)
        inverse = replace(inverse, samples=128)
    settings = replace(
        settings,
        inverse=inverse,
        query=query,
        recency=_recency(settings.recency, condition, unit.users),
        noise=replace(settings.noise, measurement=noise.measurement, reward=noise.reward),
    )
    for name, value in condition.changes:
        settings = _with(settings, name, value)
    return settings


def _with(settings: Settings, name: str, value: str | float) -> Settings:
    """The settings with one of them replaced, by dotted name ("forward.residual")."""
    part, _, field = name.rpartition(".")
    if not part:
        return replace(settings, **{field: value})  # type: ignore[arg-type]
    return replace(settings, **{part: replace(getattr(settings, part), **{field: value})})


def _recency(
    recency: RecencySettings, condition: Condition, users: UserSettings
) -> RecencySettings:
    if condition.recency == "known":
        return replace(recency, variant="known", decay_time=users.time_constant)
    return replace(recency, variant=condition.recency)
