"""The command `sfihilo study`: list, run, pack, export, figures, claims, compare."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from tqdm import tqdm

from sfihilo.study import runner, store
from sfihilo.study.conditions import BASE, Preset, Unit
from sfihilo.study.engines import Engine
from sfihilo.study.evaluation import EvaluationSettings
from sfihilo.study.lock import FolderBusyError
from sfihilo.study.panels import (
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
from sfihilo.study.store import Store
from sfihilo.study.users import UserSettings

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
        typer.Option(metavar="KEY=VALUE", help="A submitit parameter, e.g. slurm_partition=cpu."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; by default results, or results-smoke.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="Only this rule: a name, module:function, or file.py:function."),
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help="Your own reward features: module:function.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is left.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run what is missing of the study. Stop it whenever you like: the same command goes on."""
    size = SCALES[scale.value]
    where = Store(out or size.results, preset.value)
    search = [os.getcwd()]
    try:
        rows = for_preset(panel_rows(panels or []), preset.value)
        rows = _changed(rows, rule or [], reward, search)
        units = _units(rows, size, preset.value, users, queries)
        chosen = Engine(
            name=engine.value,
            workers=workers,
            scheduler=scheduler,
            folder=where.results / "slurm",
            options=_parameters(slurm or []),
        )
        if not dry_run:
            where.agree(units[0])
    except ValueError as error:
        _refuse(error)
    left = runner.pending(units, where)
    if dry_run:
        _say_left(units, left, as_json)
        return
    _run(units, left, where, chosen, search, as_json)


def _changed(
    rows: list[Row], rules: Sequence[str], reward: str | None, search: list[str]
) -> list[Row]:
    """The panels' rows as they are, or with the user's own rules or reward model."""
    if rules:
        rows = with_rules(rows, [_importable(rule, search) for rule in rules])
    if reward is not None:
        rows = with_reward(rows, _importable(reward, search))
    if not rows:
        raise ValueError("nothing to run: these panels are drawn from the users themselves")
    return rows


def _importable(name: str, search: list[str]) -> str:
    """``folder/file.py:function`` as ``file:function``, with the folder on the search path."""
    path, colon, function = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        return name
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{name}: there is no file {file}")
    search.insert(0, str(file.resolve().parent))
    return f"{file.stem}:{function}"


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
        if not equals:
            raise ValueError(f"--slurm: expected KEY=VALUE, got {pair!r}")
        parameters[name] = int(value) if value.lstrip("-").isdigit() else value
    return parameters


def _refuse(error: Exception) -> NoReturn:
    typer.echo(f"Error: {error}", err=True)
    raise typer.Exit(2)


def _say_left(units: Sequence[Unit], left: Sequence[Unit], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"units": len(units), "left": [unit.key for unit in left]}))
        return
    for unit in left:
        typer.echo(unit.key)
    typer.echo(f"{len(left)} of {len(units)} units are left.", err=True)


class Bar:
    """Progress for a person: a bar in a terminal, a line now and then in a log."""

    def __init__(self, total: int, done: int, forecast: runner.Forecast) -> None:
        self.forecast = forecast
        terminal = sys.stderr.isatty()
        self.bar = tqdm(
            total=total,
            initial=done,
            unit="unit",
            file=sys.stderr,
            mininterval=0.1 if terminal else 30,
            bar_format="{n_fmt}/{total_fmt} units |{bar:30}| {elapsed} passed{postfix}",
            postfix=self._to_go(),
        )

    def note(self, unit: Unit, seconds: float | None) -> None:
        """One more unit is done (seconds) or failed (None)."""
        self.forecast.finish(unit, seconds)
        self.bar.set_postfix_str(self._to_go(), refresh=False)
        self.bar.update()

    def _to_go(self) -> str:
        return f"{duration(self.forecast.seconds_to_go())} to go"

    def close(self) -> None:
        """Leave the line as it is."""
        self.bar.close()


def duration(seconds: float | None) -> str:
    """Time for a person, no more precise than it is known."""
    if seconds is None:
        return "unknown time"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _run(
    units: Sequence[Unit],
    left: Sequence[Unit],
    where: Store,
    engine: Engine,
    search: Sequence[str],
    as_json: bool,
) -> None:
    forecast = runner.Forecast(engine.count, list(left))
    for timing in where.read_timings():
        if timing["queries"] == units[0].queries:
            forecast.learn(timing["condition"], timing["rule"], timing["seconds"])
    # A scheduler stops jobs with TERM: leave as orderly as after Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    bar = Bar(len(units), len(units) - len(left), forecast)
    try:
        report = runner.run(units, where, engine, bar, search)
    except KeyboardInterrupt:
        typer.echo("Stopped. Finished units are kept: the same command goes on.", err=True)
        raise typer.Exit(130) from None
    except FolderBusyError as error:
        _refuse(error)
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
    presets = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not presets:
        _refuse(ValueError(f"{folder}: no units here"))
    for preset in presets:
        for path in Store(results, preset).pack():
            typer.echo(f"{path}  {path.stat().st_size / 1024:.0f} kB")


@app.command("export")
def export_tables(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the CSV files.")] = Path("results-csv"),
) -> None:
    """All results as CSV files, one a preset and condition."""
    try:
        written = store.export(results, out)
    except ValueError as error:
        _refuse(error)
    for path in written:
        typer.echo(str(path))


@app.command()
def figures(
    results: ResultsOption = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Folder; by default RESULTS/figures.")] = None,
) -> None:
    """Draw every figure for which there are results, as PNG and PDF."""
    from sfihilo.study.figures import make_all

    try:
        written = make_all(results, out or results / "figures")
    except ValueError as error:
        _refuse(error)
    for path in written:
        typer.echo(str(path))


@app.command()
def claims(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
) -> None:
    """Put the results beside the paper's claims, one by one, on a page in Markdown."""
    from sfihilo.study.claims_page import write_page

    try:
        path = write_page(results, out)
    except ValueError as error:
        _refuse(error)
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
    from sfihilo.study import compare as comparison

    try:
        table = comparison.compare(first, second, rules)
    except ValueError as error:
        _refuse(error)
    typer.echo(comparison.as_json(table) if as_json else comparison.as_text(table))


if __name__ == "__main__":
    app()
