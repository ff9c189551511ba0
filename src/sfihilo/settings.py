"""Everything that can be set, as one frozen value; a preset is a value of it, never other code."""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from sfihilo import querying
from sfihilo.checks import Checked, checked_whole, is_number, is_whole, plain, within
from sfihilo.final_policy import SelectionSettings
from sfihilo.forward import ForwardSettings
from sfihilo.forward.recency import RecencySettings
from sfihilo.inverse import AverageSettings, InverseSettings
from sfihilo.inverse.grading import CUTS
from sfihilo.querying import PairSettings, QuerySettings

Table = TypeVar("Table")
Goal = Literal["understand", "best"]
GOALS: tuple[Goal, ...] = get_args(Goal)


@dataclass(frozen=True)
class NoiseSettings(Checked):
    """Noise levels that the lab knows of its own devices (tab:app_noise_settings)."""

    measurement: float = within(0, 1, 0.05)
    reward: float = within(0, 1, 0.02)


# Fields that came later, with the values that mean "as before": stored settings and the digests of
# results leave them out.
LATER: dict[str, Any] = {
    "average": None,
    "grades": 2,
    "goal": "understand",
    "recall": 1,
    "recall_noise": 0.0,
}
LATER_IN_TABLES: dict[str, dict[str, Any]] = {"query": {"common_samples": True}}

MOST_RECALLED = 5

# docs/default-preset.md says why, and what each part is worth.
DEFAULT_FORWARD = ForwardSettings(tuning_cap=512)
DEFAULT_INVERSE = InverseSettings(
    features="landmarks",
    feature_count=384,
    log_sharpness_mean=math.log(20),
    log_sharpness_std=0.5,
    iterations=40,
    # A just noticeable difference, 5 % of the four standard deviations that hold most rewards.
    own_noise=0.2,
    inference="variational",
)


class _OfPreset:
    """Stands for the preset's own table where none is given; None is a value of `average`."""

    def __repr__(self) -> str:
        return "<of the preset>"


_OF_PRESET: Any = _OfPreset()

# The tables in which the presets differ.
PRESETS: dict[str, dict[str, Checked | None]] = {
    "default": {
        "forward": DEFAULT_FORWARD,
        "inverse": DEFAULT_INVERSE,
        "average": AverageSettings(),
    },
    "paper": {"forward": ForwardSettings(), "inverse": InverseSettings(), "average": None},
}


@dataclass(frozen=True)
class Settings:
    """Without arguments, the default preset; `Settings.paper` is the paper to the letter.

    preset: "default" or "paper". It fills in the tables forward, inverse and average where they are
    not given, and names the rule of the goal "understand". `dataclasses.replace` keeps the tables:
    take `Settings.paper(...)` instead of replacing the name.
    goal: "understand" learns what this person values, everywhere; "best" seeks a good setting.
    rule: the name of a query rule, or a user's own as "module:function", which must be importable.
    None, and the goal's own rule by its name, mean the rule of the goal: `rule_name` tells which.
    grades: how many answers the person is offered: 2 (better or worse, and perhaps "same"), 5
    (same, better and much better in either direction) or 7 (slightly, clearly, much).
    recall: how many of the last trials `question` may choose from for the comparison, 1 to 5; 1
    always compares with the last one. recall_noise: kappa; the variance of the answer noise grows
    by this share with each round between the compared ones.
    """

    policy_dim: int = 8
    outcome_dim: int = 8
    rule: str | None = None
    preset: str = "default"
    forward: ForwardSettings = _OF_PRESET
    recency: RecencySettings = field(default_factory=RecencySettings)
    inverse: InverseSettings = _OF_PRESET
    average: AverageSettings | None = _OF_PRESET
    query: QuerySettings = field(default_factory=QuerySettings)
    pairs: PairSettings = field(default_factory=PairSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    grades: int = 2
    goal: Goal = "understand"
    recall: int = 1
    recall_noise: float = 0.0

    def __post_init__(self) -> None:
        self._check_tables()
        self._check_counts()
        if self.goal not in GOALS:
            raise ValueError(f"goal: expected {' or '.join(GOALS)}, got {self.goal!r}")
        if self.rule is None or self.rule == own_rule(self.preset, self.goal):
            object.__setattr__(self, "rule", None)  # so that another goal brings another rule
        elif not isinstance(self.rule, str):
            raise ValueError(f"rule: expected the name of a rule, got {self.rule!r}")
        if self.grades > 2 and self.inverse.inference == "joint_map":
            raise ValueError(f"grades: expected 2 with the paper's inference, got {self.grades}")
        if not is_number(self.recall_noise) or not 0 <= self.recall_noise < math.inf:
            raise ValueError(f"recall_noise: expected a number from 0, got {self.recall_noise!r}")
        object.__setattr__(self, "recall_noise", plain(self.recall_noise))
        querying.rule(self.rule_name)  # an unknown name fails here, not at the first question

    def _check_tables(self) -> None:
        """Fill in the tables of the preset; every table must be of its kind."""
        if not isinstance(self.preset, str) or self.preset not in PRESETS:
            raise ValueError(f"preset: expected {' or '.join(PRESETS)}, got {self.preset!r}")
        for name, table in PRESETS[self.preset].items():
            if getattr(self, name) is _OF_PRESET:
                object.__setattr__(self, name, table)
        for name, kind in _tables().items():
            table = getattr(self, name)
            if not isinstance(table, kind) and not (name == "average" and table is None):
                raise ValueError(f"{name}: expected {kind.__name__}(...), got {table!r}")
        # Only a `replace` of the name gives this: the tables would stay the default's.
        if self.preset == "paper" and _are_tables_of("default", vars(self)):
            raise ValueError("preset: expected Settings.paper(...), got only the name replaced")

    def _check_counts(self) -> None:
        """Whole numbers become plain ones: those of NumPy cannot be written as JSON."""
        counts = {
            "policy_dim": checked_whole(self.policy_dim, "policy_dim", 1),
            "outcome_dim": checked_whole(self.outcome_dim, "outcome_dim", 1),
            "recall": checked_whole(self.recall, "recall", 1, MOST_RECALLED),
        }
        if not is_whole(self.grades) or self.grades not in CUTS:
            raise ValueError(f"grades: expected one of {list(CUTS)}, got {self.grades!r}")
        for name, value in {**counts, "grades": int(self.grades)}.items():
            object.__setattr__(self, name, value)

    @property
    def rule_name(self) -> str:
        """The rule that is asked by: the named one, or else that of the goal."""
        return own_rule(self.preset, self.goal) if self.rule is None else self.rule

    @property
    def averaged(self) -> AverageSettings | None:
        """The average that makes the predictions, where there is one."""
        # Linear or own features say what the reward is made of: nothing is added to them.
        return self.average if self.inverse.features in ("rbf", "landmarks") else None

    @staticmethod
    def paper(
        policy_dim: int = 8,
        outcome_dim: int = 8,
        rule: str | None = None,
        **changes: Any,
    ) -> Settings:
        """The paper's tables to the letter."""
        return Settings(policy_dim, outcome_dim, rule, "paper", **changes)

    @staticmethod
    def default(*args: Any, **changes: Any) -> Settings:
        """Deprecated: the same as `Settings(...)`."""
        warnings.warn("Settings.default is now Settings", DeprecationWarning, stacklevel=2)
        return Settings(*args, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists; always with the name of the rule."""
        values = {**dataclasses.asdict(self), "rule": self.rule_name}
        return {
            name: _listed(_earlier(name, value)) if isinstance(value, dict) else value
            for name, value in values.items()
            if name not in LATER or value != LATER[name]  # as it was before there were such
        }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Settings:
        """The settings that `to_dict` wrote, also before there were averages.

        What is missing has its default.
        """
        values = dict(record)
        # `to_dict` leaves out an average of None, and wrote none before there were averages. It has
        # always written these three: a record without them is a user's own, with the preset's.
        stored = {"preset", "forward", "inverse"} <= set(values)
        if stored:
            values.setdefault("average", None)
        for name, kind in _tables().items():
            if isinstance(values.get(name), dict):
                values[name] = _table(kind, values[name], name)
            elif name in values and not (name == "average" and values[name] is None):
                raise ValueError(f"{name}: expected a table, got {values[name]!r}")
        # Once `replace` could change the name alone: it did as the default, by the stored rule.
        if stored and values["preset"] == "paper" and _are_tables_of("default", values):
            values["preset"] = "default"
        return _table(Settings, values, "settings")


def own_rule(preset: str, goal: Goal) -> str:
    """The rule that a preset asks by for a goal, unless another one is named."""
    if goal == "best":
        return "best"
    return "boundary_lookahead" if preset == "paper" else "global_pairs"


def checked_settings(settings: object) -> Settings:
    """The settings that a caller gave; the name of a preset, say, is refused."""
    if not isinstance(settings, Settings):
        raise ValueError(f"settings: expected Settings(...), got {settings!r}")
    return settings


def checked_seed(seed: object) -> int:
    """The seed that a caller gave, as a plain number."""
    return checked_whole(seed, "seed", 0)


@functools.cache
def _tables() -> dict[str, type[Checked]]:
    """The fields of Settings that are settings themselves."""
    hints = typing.get_type_hints(Settings)
    return {
        name: kind
        for name, hint in hints.items()
        for kind in (hint, *typing.get_args(hint))  # AverageSettings | None is two
        if isinstance(kind, type) and issubclass(kind, Checked)
    }


def _are_tables_of(preset: str, values: Mapping[str, Any]) -> bool:
    return all(values[name] == table for name, table in PRESETS[preset].items())


def _earlier(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """A table without the fields that came later, where they mean "as before"."""
    later = LATER_IN_TABLES.get(name, {})
    return {key: value for key, value in table.items() if key not in later or value != later[key]}


def _listed(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in table.items()
    }


def _table(kind: type[Table], values: dict[str, Any], name: str) -> Table:
    known = {entry.name for entry in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"{name}: expected some of {sorted(known)}, got also {unknown}")
    defaults = {entry.name: entry.default for entry in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: _read(value, defaults[key]) for key, value in values.items()})


def _read(value: Any, default: Any) -> Any:
    """A stored value as its field takes it: lists were tuples, and 16.0 was once taken for 16."""
    if isinstance(value, list):
        return tuple(value)
    counted = is_whole(default) and isinstance(value, float) and value.is_integer()
    return int(value) if counted else value
