"""The command `sfihilo study`: list, run, pack, export, figures, claims, compare."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sfihilo.cli.real import real
from sfihilo.study.design.conditions import BASE, Preset, Unit
from sfihilo.study.design.panels import (
    EVERY_PANEL,
    RANDOM,
    TITLES,
    Row,
    for_preset,
    panel_rows,
    units_of,
    with_reward,
    with_rules,
)
from sfihilo.study.people.users import UserSettings
from sfihilo.study.run import runner, store
from sfihilo.study.run.engines import Engine
from sfihilo.study.run.evaluation import EvaluationSettings
from sfihilo.study.run.progress import Bar
from sfihilo.study.run.store import Store

app = typer.Typer(
    help="Reproduce the paper's simulation study.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class ScaleName(StrEnum):
    """How large a study is."""

    smoke = "smoke"
    paper = "paper"


class PresetName(StrEnum):
    """Whose inference is studied."""

    paper = "paper"
    default = "default"


class EngineName(StrEnum):
    """Where the units run."""

    local = "local"
    dask = "dask"
    slurm = "slurm"


@dataclass(frozen=True)
class Scale:
    """What a scale stands for."""

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

PanelArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[PANEL]...", help="Panels; all when none is named.")
]
PresetOption = Annotated[PresetName, typer.Option(help="Whose inference.")]
JsonOption = Annotated[bool, typer.Option("--json", help="For a script instead of a person.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder with the results.")]


@app.command("list")
def list_panels(preset: PresetOption = PresetName.paper, as_json: JsonOption = False) -> None:
    """What there is to run: panels, their conditions and rules."""
    if as_json:
        typer.echo(json.dumps({name: _panel(name, preset.value) for name in EVERY_PANEL}, indent=1))
        return
    for name, rows in EVERY_PANEL.items():
        typer.echo(f"{name:<14}{TITLES[name]}")
        for row in for_preset(rows, preset.value):
            typer.echo(f"{'':<14}  {row.condition.name:<18}{', '.join(row.rules)}")


def _panel(name: str, preset: str) -> dict[str, Any]:
    rows = [
        {"condition": row.condition.name, "label": row.label, "x": row.x, "rules": list(row.rules)}
        for row in for_preset(EVERY_PANEL[name], preset)
    ]
    return {"title": TITLES[name], "rows": rows}


@app.command()
def run(  # noqa: PLR0913 - each is an option of the command line
    panels: PanelArgument = None,
    scale: Annotated[ScaleName, typer.Option(help="How large.")] = ScaleName.paper,
    preset: PresetOption = PresetName.paper,
    users: Annotated[int | None, typer.Option(min=1, help="How many users.")] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="Comparisons a user.")] = None,
    engine: Annotated[EngineName, typer.Option(help="Where the units run.")] = EngineName.local,
    workers: Annotated[int | None, typer.Option(min=1, help="Units at once.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask scheduler.")
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A submitit parameter, e.g. slurm_partition=cpu; cluster=local needs no Slurm.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; by default results, or results-smoke.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="Only this rule: a name, module:function, or file.py:function."),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(help="Your own reward features: module:function, or file.py:function."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is left.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run what is missing of the study. Stop it whenever you like: the same command goes on."""
    size = SCALES[scale.value]
    where = Store(out or size.results, preset.value)
    search = [os.getcwd()]
    with _explained():
        rows = for_preset(panel_rows(panels or []), preset.value)
        rows = _changed(rows, rule or [], reward, search)
        units = _units(rows, size, preset.value, users, queries)
        parameters = _parameters(slurm or [])
        chosen = Engine(
            name=engine.value,
            workers=workers,
            scheduler=scheduler,
            folder=where.results / "slurm",
            cluster=parameters.pop("cluster", None),
            options=parameters,
        )
        _check_folder(where.results)
        left = runner.pending(units, where)
    if dry_run:
        _say_left(units, left, as_json)
        return
    with _explained():
        at_once = chosen.ready()
        where.agree(units[0])
    _run(units, left, where, chosen, at_once, search, as_json)


@contextmanager
def _explained() -> Iterator[None]:
    """What was asked for and cannot be done ends the command with one sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


def _changed(
    rows: list[Row], rules: Sequence[str], reward: str | None, search: list[str]
) -> list[Row]:
    """The panels' rows as they are, or with the user's own rules or reward model."""
    if rules:
        rows = with_rules(rows, [runner.own_rule(name, search) for name in rules])
    if reward is not None:
        outcome_dims = {row.condition.visible for row in rows}
        rows = with_reward(rows, runner.own_reward(reward, search, outcome_dims))
    if not rows:
        raise ValueError("nothing to run: these panels are drawn from the users themselves")
    return rows


def _units(
    rows: Sequence[Row], size: Scale, preset: Preset, users: int | None, queries: int | None
) -> list[Unit]:
    template = Unit(
        BASE,
        RANDOM,
        preset,
        0,
        queries=queries or size.queries,
        evaluation=size.evaluation,
        users=size.people,
        lean=size.lean,
    )
    return units_of(rows, range(users or size.users), preset, template)


def _parameters(pairs: Sequence[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ValueError(f"--slurm: expected KEY=VALUE, got {pair!r}")
        parameters[name] = int(value) if value.lstrip("-").isdigit() else value
    return parameters


def _check_folder(folder: Path) -> None:
    """Refuse a folder that a file is in the way of."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out: expected a folder, got the file {path}")


def _say_left(units: Sequence[Unit], left: Sequence[Unit], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"units": len(units), "left": [unit.key for unit in left]}))
        return
    for unit in left:
        typer.echo(unit.key)
    typer.echo(f"{len(left)} of {len(units)} units are left.", err=True)


def _run(
    units: Sequence[Unit],
    left: Sequence[Unit],
    where: Store,
    engine: Engine,
    at_once: int,
    search: Sequence[str],
    as_json: bool,
) -> None:
    forecast = runner.Forecast(at_once, list(left))
    for timing in where.read_timings():
        if timing["queries"] == units[0].queries:
            forecast.learn(timing["condition"], timing["rule"], timing["seconds"])
    # A scheduler stops jobs with TERM: leave as orderly as after Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    bar = Bar(len(units), len(units) - len(left), forecast)
    try:
        with _explained():
            report = runner.run(units, where, engine, bar, search)
    except KeyboardInterrupt:
        typer.echo("Stopped. Finished units are kept: the same command goes on.", err=True)
        raise typer.Exit(130) from None
    finally:
        bar.close()
        signal.signal(signal.SIGTERM, before)
    _say_report(report, where, as_json)


def _say_report(report: runner.Report, where: Store, as_json: bool) -> None:
    if as_json:
        summary = {"finished": list(report.finished), "failed": dict(report.failed)}
        typer.echo(json.dumps(summary, indent=1))
    else:
        typer.echo(f"{len(report.finished)} units computed, results in {where.results}.")
    for key, reason in report.failed.items():
        typer.echo(f"Failed: {key}\n{reason}", err=True)
    if report.failed:
        raise typer.Exit(1)


@app.command()
def pack(results: ResultsOption = Path("results")) -> None:
    """Fold the units' files into one small table a condition, which can be committed."""
    folder = results / "units"
    with _explained():
        presets = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if not presets:
            raise ValueError(f"{folder}: no units here")
        written = {preset: Store(results, preset).pack() for preset in presets}
    for preset, paths in written.items():
        for path in paths:
            typer.echo(f"{path}  {path.stat().st_size / 1024:.0f} kB")
        if paths and not Store(results, preset).study.exists():
            typer.echo(
                f"{results / preset} has no study.json, and its units are too old to give one: "
                "copy it from where they were computed, or run their command again here.",
                err=True,
            )


@app.command("export")
def export_tables(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the CSV files.")] = Path("results-csv"),
) -> None:
    """All results as CSV files, one a preset and condition."""
    with _explained():
        written = store.export(results, out)
    for path in written:
        typer.echo(str(path))


@app.command()
def figures(
    results: ResultsOption = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Folder; by default RESULTS/figures.")] = None,
) -> None:
    """Draw every figure for which there are results, as PNG and PDF."""
    from sfihilo.study.figures import make_all

    with _explained():
        written = make_all(results, out or results / "figures")
    for path in written:
        typer.echo(str(path))


@app.command()
def claims(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
) -> None:
    """Put the results beside the paper's claims, one by one, on a page in Markdown."""
    from sfihilo.study.analysis.claims_page import write_page

    with _explained():
        path = write_page(results, out)
    typer.echo(str(path))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A result set, e.g. results/paper.")],
    second: Annotated[Path, typer.Argument(help="Another, e.g. results/default.")],
    rules: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="RULE RULE", help="Hold a rule of the first against one of the other."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Two result sets on the same users, with paired statistics."""
    from sfihilo.study.analysis import compare as comparison

    with _explained():
        table = comparison.compare(first, second, rules)
    typer.echo(comparison.as_json(table) if as_json else comparison.as_text(table))


app.command()(real)


if __name__ == "__main__":
    app()
