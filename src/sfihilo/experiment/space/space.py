"""The physical space of an experiment: converts between physical units and the learner's cubes.

Notation
--------
policy    name -> value, all parameters, in physical units
unit      tau       (d_policy,)    the free parameters in [0, 1], in the order of their declaration
columns   name -> (n,)             n policies, in physical units
"""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfihilo.experiment.space.constraint import Columns, Constraint, PolicyRule
from sfihilo.experiment.space.parameter import (
    FloatArray,
    Outcome,
    Parameter,
    finite_number,
    shortened,
)

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
# Functions of constraints, and columns that the exported tables have of their own.
RESERVED = frozenset({
    "abs", "exp", "log", "max", "min", "sqrt", "session", "participant", "trial", "round", "source",
    "status", "asked_at", "started_at", "measured_at", "answered_at", "compare_with", "repeats",
    "outcome", "value", "unit", "warning", "choice", "learned", "fingerprint", "chance_new",
})  # fmt: skip
RESERVED_PREFIXES = ("predicted_", "deviation_")
Policy = dict[str, float]


@dataclass(frozen=True)
class Space:
    """What may be set, what is measured, and which combinations are allowed.

    A constraint is a text ("peak_time + rise_time <= 60") or a function of a policy that returns
    True where the policy is allowed. Anything else that a function does (False, NaN, an exception)
    means "not allowed". Functions cannot be stored: they have to be given again when a session is
    opened.
    """

    policy: Mapping[str, Parameter]
    outcomes: Mapping[str, Outcome]
    constraints: tuple[str | PolicyRule, ...] = ()

    def __post_init__(self) -> None:
        _check_names(self.policy, Parameter, "policy")
        _check_names(self.outcomes, Outcome, "outcomes")
        both = set(self.policy) & set(self.outcomes)
        if both:
            raise ValueError(f"expected different names for policy and outcomes, got both {both}")
        if not self.free:
            raise ValueError("policy: expected at least one parameter that is not fixed, got none")
        given: Any = self.constraints
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ValueError(f"constraints: expected a list, got {shortened(given)}")
        object.__setattr__(self, "policy", dict(self.policy))
        object.__setattr__(self, "outcomes", dict(self.outcomes))
        object.__setattr__(self, "constraints", tuple(given))
        _ = self.rules

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The parameters that are not fixed, which the learner sets."""
        return tuple(name for name, knob in self.policy.items() if knob.fixed is None)

    @property
    def start(self) -> dict[str, float]:
        """The values on the device before the first trial, as far as they are given."""
        return {
            name: float(knob.start) for name, knob in self.policy.items() if knob.start is not None
        }

    @cached_property
    def rules(self) -> tuple[Constraint, ...]:
        """The text constraints, compiled."""
        names = frozenset(self.policy)
        for given in self.constraints:
            if not isinstance(given, str) and not callable(given):
                raise ValueError(f"constraint: expected text or a function, got {shortened(given)}")
        return tuple(Constraint(text, names) for text in self.constraints if isinstance(text, str))

    @property
    def functions(self) -> tuple[PolicyRule, ...]:
        """The constraints that are functions."""
        return tuple(rule for rule in self.constraints if not isinstance(rule, str))

    def to_unit(self, policy: Mapping[str, float]) -> FloatArray:
        """The free parameters of a policy, in [0, 1]."""
        return np.array(
            [float(self.policy[name].to_unit(np.asarray(policy[name]))) for name in self.free]
        )

    def columns(self, units: FloatArray) -> Columns:
        """Policies (n, d_policy) in physical units, on the grid, with the fixed parameters."""
        units = np.atleast_2d(units)
        return {
            name: self.policy[name].from_unit(units[:, self.free.index(name)])
            if knob.fixed is None
            else np.full(len(units), float(knob.fixed))
            for name, knob in self.policy.items()
        }

    def to_policy(self, unit: FloatArray) -> Policy:
        """One policy in physical units."""
        return {name: float(column[0]) for name, column in self.columns(unit).items()}

    def on_grid(self, unit: FloatArray) -> FloatArray:
        """The unit policy that is really set: each parameter with a grid moved to its grid."""
        policy = self.to_policy(unit)
        return np.array(
            [
                float(value)
                if self.policy[name].grid is None
                else float(self.policy[name].to_unit(np.asarray(policy[name])))
                for name, value in zip(self.free, unit, strict=True)
            ]
        )

    def allows(self, units: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of n unit policies satisfy every constraint once they are on the grid."""
        columns = self.columns(units)
        allowed = np.ones(len(np.atleast_2d(units)), dtype=bool)
        for rule in self.rules:
            allowed &= rule.holds(columns)
        for function in self.functions:
            for row in np.flatnonzero(allowed):
                policy = {name: float(column[row]) for name, column in columns.items()}
                allowed[row] = _permits(function, policy)
        return allowed

    def box(
        self,
        positions: Iterable[Mapping[str, float]] = (),
        limits: Mapping[str, tuple[float, float]] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """The lowest and highest unit policy within `limits` and one step of all `positions`."""
        positions = tuple(positions)
        corners = []
        for name in self.free:
            knob = self.policy[name]
            low, high = float(knob.low), float(knob.high)
            if limits and name in limits:
                low, high = max(low, limits[name][0]), min(high, limits[name][1])
            if knob.max_step is not None:
                places = [last[name] for last in positions if name in last]
                low = max([low, *(place - knob.max_step for place in places)])
                high = min([high, *(place + knob.max_step for place in places)])
            try:
                corners.append(knob.to_unit(np.array(knob.inside(low, high))))
            except ValueError as error:
                raise ValueError(f"{name} from {low} to {high}: {error}") from error
        lower, upper = np.array(corners).T
        return lower, upper

    def limits(self, feasible: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
        """Validates the ranges that an operator gives for some parameters."""
        if feasible is not None and not isinstance(feasible, Mapping):
            raise ValueError(f"feasible: expected name -> (low, high), got {shortened(feasible)}")
        checked = {}
        for name, pair in (feasible or {}).items():
            if name not in self.free:
                raise ValueError(
                    f"feasible: expected names among {', '.join(self.free)}, got {name!r}"
                )
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"feasible {name}: expected two numbers, got {shortened(pair)}")
            low, high = (finite_number(value, f"feasible {name}") for value in pair)
            if low > high:
                raise ValueError(f"feasible {name}: expected low <= high, got {low} and {high}")
            checked[name] = (low, high)
        return checked

    def complete(self, policy: Mapping[str, object]) -> Policy:
        """Validates a policy that an operator gives; fills in the fixed parameters."""
        if not isinstance(policy, Mapping):
            raise ValueError(f"policy: expected name -> value, got {shortened(policy)}")
        unknown = [name for name in policy if name not in self.policy]
        if unknown:
            raise ValueError(
                f"policy: expected names among {', '.join(self.policy)}, got {shortened(unknown)}"
            )
        absent = [name for name in self.free if name not in policy]
        if absent:
            raise ValueError(f"policy: expected all parameters, missing {', '.join(absent)}")
        fixed = {name: knob.fixed for name, knob in self.policy.items()}
        return {name: finite_number(policy.get(name, fixed[name]), name) for name in self.policy}

    def check_bounds(self, policy: Policy) -> None:
        """Raise unless every parameter of a whole policy is within its bounds."""
        for name, value in policy.items():
            knob = self.policy[name]
            if not knob.low <= value <= knob.high:
                unit = f" {knob.unit}" if knob.unit else ""
                raise ValueError(f"{name}: expected {knob.low} to {knob.high}{unit}, got {value}")

    def unit_values(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """A measured outcome in [0, 1]."""
        return tuple(outcome.to_unit(values[name]) for name, outcome in self.outcomes.items())

    def physical_outcomes(self, units: FloatArray) -> dict[str, Any]:
        """Unit outcomes (..., d_outcome) in physical units."""
        units = np.asarray(units, dtype=float)
        return {
            name: outcome.from_unit(units[..., index])
            for index, (name, outcome) in enumerate(self.outcomes.items())
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; lists keep the order, which the learner's coordinates follow."""
        return {
            "policy": [{"name": name, **asdict(knob)} for name, knob in self.policy.items()],
            "outcomes": [
                {
                    key: list(value) if isinstance(value, tuple) else value
                    for key, value in {"name": name, **asdict(outcome)}.items()
                }
                for name, outcome in self.outcomes.items()
            ],
            "constraints": [rule for rule in self.constraints if isinstance(rule, str)],
            "functions": [function_name(rule) for rule in self.functions],
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any], functions: Iterable[PolicyRule] = ()) -> Space:
        """The inverse of `to_dict`; functions have to be given again."""
        if not isinstance(stored, Mapping):
            raise ValueError(f"space: expected a mapping, got {shortened(stored)}")
        parts = {}
        for part in ("policy", "outcomes", "constraints"):
            if not isinstance(stored.get(part), list | tuple):
                got = shortened(stored.get(part))
                raise ValueError(f"space: expected a list of {part}, got {got}")
            parts[part] = stored[part]
        return Space(
            _named(parts["policy"], Parameter, "policy"),
            _named(parts["outcomes"], Outcome, "outcomes"),
            (*parts["constraints"], *functions),
        )


def function_name(function: PolicyRule) -> str:
    """The name of a constraint function in the record."""
    module = getattr(function, "__module__", type(function).__module__)
    return f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"


def _permits(function: PolicyRule, policy: Policy) -> bool:
    """Whether a constraint function says True; whatever else it does, the policy is not allowed."""
    try:
        answer = function(policy)
    except Exception:  # noqa: BLE001 - a constraint that fails must not let a policy through
        return False
    return isinstance(answer, bool | np.bool_) and bool(answer)


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a TOML file: {error}") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error


def space_from_tables(tables: Mapping[str, Any], where: str) -> Space:
    """The space in [policy.NAME] and [outcomes.NAME] tables and a list `constraints`."""
    unknown = set(tables) - {"policy", "outcomes", "constraints", "session"}
    if unknown:
        raise ValueError(
            f"{where}: expected policy, outcomes, constraints and session, got {sorted(unknown)}"
        )
    parts: dict[str, dict[str, Any]] = {}
    for part, kind in (("policy", Parameter), ("outcomes", Outcome)):
        given = tables.get(part)
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{where}: expected at least one table [{part}.NAME]")
        parts[part] = {}
        for name, options in given.items():
            if not isinstance(options, Mapping):
                raise ValueError(f"{where}: expected a table [{part}.{name}], got {options!r}")
            try:
                parts[part][name] = _described(kind, options)
            except ValueError as error:
                raise ValueError(f"{where}: [{part}.{name}] {error}") from error
    texts = tables.get("constraints", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where}: constraints: expected a list of texts, got {texts!r}")
    try:
        return Space(parts["policy"], parts["outcomes"], tuple(texts))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _named(items: Iterable[Any], kind: type[Any], part: str) -> dict[str, Any]:
    """Parameters or outcomes from a list of their fields, each with its name."""
    named: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise ValueError(f"{part}: expected fields with a name, got {shortened(item)}")
        name = item["name"]
        if name in named:
            raise ValueError(f"{part}: expected different names, got {name!r} twice")
        named[name] = _described(kind, {k: v for k, v in item.items() if k != "name"})
    return named


def _described(kind: type[Any], options: Mapping[str, Any]) -> Any:
    """A Parameter or Outcome from its fields as they stand in a file."""
    known = [field.name for field in fields(kind)]
    unknown = sorted(str(name) for name in set(options) - set(known))
    if unknown:
        raise ValueError(f"expected {', '.join(known)}, got {', '.join(unknown)}")
    absent = [name for name in ("low", "high") if name not in options]
    if absent:
        raise ValueError(f"expected low and high, missing {' and '.join(absent)}")
    return kind(**options)


def _check_names(items: object, kind: type[Any], what: str) -> None:
    if not isinstance(items, Mapping) or not items:
        raise ValueError(f"{what}: expected name -> {kind.__name__}, got {shortened(items)}")
    for name, item in items.items():
        if not isinstance(name, str) or not NAME.fullmatch(name) or keyword.iskeyword(name):
            raise ValueError(
                f"{what}: expected a name of letters, digits and _, got {shortened(name)}"
            )
        if name in RESERVED or name.startswith(RESERVED_PREFIXES):
            raise ValueError(f"{what}: {name!r} has a meaning of its own: choose another name")
        if not isinstance(item, kind):
            raise ValueError(f"{what} {name}: expected {kind.__name__}, got {shortened(item)}")
