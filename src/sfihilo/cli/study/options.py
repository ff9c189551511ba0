"""The options of `sfihilo study run`, in groups: which units to run, and what runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sfihilo.study.design.conditions import BASE, STUDY_SEED, Preset, Unit
from sfihilo.study.design.panels import (
    RANDOM,
    Row,
    for_preset,
    panel_rows,
    units_of,
    with_reward,
    with_rules,
)
from sfihilo.study.people.users import UserSettings
from sfihilo.study.run.engines import Engine
from sfihilo.study.run.evaluation import EvaluationSettings
from sfihilo.study.run.plugins import resolve_reward, resolve_rule


class ScaleName(StrEnum):
    """The size of a study."""

    smoke = "smoke"
    paper = "paper"


class PresetName(StrEnum):
    """The settings that are studied."""

    paper = "paper"
    default = "default"


class EngineName(StrEnum):
    """Where the units run."""

    local = "local"
    dask = "dask"
    slurm = "slurm"


@dataclass(frozen=True)
class Scale:
    """The numbers that a scale sets."""

    users: int
    queries: int
    results: Path
    evaluation: EvaluationSettings = EvaluationSettings()
    people: UserSettings = UserSettings()
    lean: bool = False


SCALES = {
    "paper": Scale(users=30, queries=1000, results=Path("results")),
    "smoke": Scale(
        users=3,
        queries=60,
        results=Path("results-smoke"),
        evaluation=EvaluationSettings(
            pairs_per_bin=100, pair_policies=1000, error_policies=500, pool_policies=1000
        ),
        people=UserSettings(calibration=1000),
        lean=True,
    ),
}

PresetOption = Annotated[PresetName, typer.Option(help="The settings to study.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON for scripts instead of text.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder with the results.")]


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each dataclass parameter replaced by one option per field of it."""
    groups = get_type_hints(command)
    options: list[Parameter] = []
    for name, parameter in signature(command, eval_str=True).parameters.items():
        kind = groups[name]
        if is_dataclass(kind):
            hints = get_type_hints(kind, include_extras=True)
            options += [
                Parameter(
                    field.name,
                    Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=hints[field.name],
                )
                for field in fields(kind)
            ]
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        arguments = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
            if is_dataclass(kind) and isinstance(kind, type)
        }
        command(**arguments, **values)

    run.__signature__ = signature(command).replace(parameters=options)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class UnitOptions:
    """Which units to run."""

    panels: Annotated[
        list[str] | None, typer.Argument(metavar="[PANEL]...", help="Panels; all if none is named.")
    ] = None
    condition: Annotated[
        list[str] | None, typer.Option(help="Only this condition of the panels, by its name.")
    ] = None
    scale: Annotated[ScaleName, typer.Option(help="Size of the study.")] = ScaleName.paper
    preset: PresetOption = PresetName.paper
    users: Annotated[int | None, typer.Option(min=1, help="Number of users.")] = None
    queries: Annotated[int | None, typer.Option(min=1, help="Comparisons per user.")] = None
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the study: another one means other people.")
    ] = STUDY_SEED
    rule: Annotated[
        list[str] | None,
        typer.Option(help="Only this rule: a name, module:function, or file.py:function."),
    ] = None
    reward: Annotated[
        str | None,
        typer.Option(help="Your own reward features: module:function, or file.py:function."),
    ] = None

    @property
    def size(self) -> Scale:
        return SCALES[self.scale.value]

    def units(self, rows: Sequence[Row]) -> list[Unit]:
        """All units of the rows."""
        size = self.size
        preset: Preset = self.preset.value
        template = Unit(
            BASE,
            RANDOM,
            preset,
            0,
            queries=self.queries or size.queries,
            study_seed=self.seed,
            evaluation=size.evaluation,
            users=size.people,
            lean=size.lean,
        )
        return units_of(rows, range(self.users or size.users), preset, template)

    def rows(self) -> tuple[list[Row], tuple[str, ...]]:
        """The rows of the panels, with a user's own rules and reward, and where these lie."""
        rows = for_preset(panel_rows(self.panels or []), self.preset.value)
        names = sorted({row.condition.name for row in rows})
        if unknown := sorted(set(self.condition or ()) - set(names)):
            raise ValueError(f"--condition: expected some of {', '.join(names)}, got {unknown}")
        rows = [row for row in rows if not self.condition or row.condition.name in self.condition]
        search_path: tuple[str, ...] = (os.getcwd(),)
        rules = []
        for name in self.rule or ():
            plugin = resolve_rule(name, search_path)
            rules.append(plugin.name)
            search_path = plugin.search_path
        if rules:
            rows = with_rules(rows, rules)
        if self.reward is not None:
            outcome_dims = {row.condition.visible for row in rows}
            plugin = resolve_reward(self.reward, search_path, outcome_dims)
            rows = with_reward(rows, plugin.name)
            search_path = plugin.search_path
        if not rows:
            raise ValueError("nothing to run: these panels are drawn from the users themselves")
        return rows, search_path


@dataclass(frozen=True)
class EngineOptions:
    """What runs the units."""

    engine: Annotated[EngineName, typer.Option(help="Where the units run.")] = EngineName.local
    workers: Annotated[int | None, typer.Option(min=1, help="Number of units at once.")] = None
    scheduler: Annotated[str | None, typer.Option(help="Address of a running Dask scheduler.")] = (
        None
    )
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A submitit parameter, e.g. slurm_partition=cpu; cluster=local needs no Slurm.",
        ),
    ] = None

    def build(self, folder: Path) -> Engine:
        """The engine; submitit keeps its files in `folder`."""
        parameters: dict[str, Any] = {}
        for pair in self.slurm or ():
            name, equals, value = pair.partition("=")
            if not name or not equals:
                raise ValueError(f"--slurm: expected KEY=VALUE, got {pair!r}")
            parameters[name] = int(value) if value.lstrip("-").isdigit() else value
        return Engine(
            name=self.engine.value,
            workers=self.workers,
            scheduler=self.scheduler,
            folder=folder,
            cluster=parameters.pop("cluster", None),
            options=parameters,
        )
