"""The command `sfihilo study`: list, run, pack, export, tables, figures, claims, compare.

Exit codes: 2 for wrong usage or input, 1 for units that failed, 130 after an interruption.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from sfihilo.cli.output import errors
from sfihilo.cli.study.options import (
    EngineOptions,
    JsonOption,
    PresetName,
    PresetOption,
    ResultsOption,
    UnitOptions,
    option_groups,
)
from sfihilo.cli.study.real import real
from sfihilo.study.design.panels import EVERY_PANEL, TITLES, for_preset
from sfihilo.study.run import result_files
from sfihilo.study.run.progress import Bar
from sfihilo.study.run.result_files import Store
from sfihilo.study.run.runner import Plan, Report
from sfihilo.study.run.runner import run as run_plan

app = typer.Typer(
    help="Reproduce the paper's simulation study.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("list")
def list_panels(preset: PresetOption = PresetName.paper, as_json: JsonOption = False) -> None:
    """List the panels, their conditions and rules."""
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
@option_groups
def run(
    what: UnitOptions,
    engine: EngineOptions,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; by default results, or results-smoke.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what is left.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run what is missing of the study. It can be stopped at any time; run it again to continue."""
    with errors():
        plan = _plan(what, engine, Store(out or what.size.results, what.preset.value))
        if dry_run:
            _show_left(plan, as_json)
        else:
            _show_report(plan, _run(plan), as_json)


def _plan(what: UnitOptions, engine: EngineOptions, where: Store) -> Plan:
    """What the options ask for, checked as far as that is possible without running anything."""
    rows, search_path = what.rows()
    plan = Plan(what.units(rows), where, engine.build(where.results / "slurm"), search_path)
    for path in (where.results, *where.results.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out: expected a folder, got the file {path}")
    return plan


def _run(plan: Plan) -> Report:
    # A scheduler stops jobs with TERM: end in the same way as after Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run_plan(plan, Bar())
    except KeyboardInterrupt:
        typer.echo("Stopped. Finished units are kept: the same command continues.", err=True)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _show_left(plan: Plan, as_json: bool) -> None:
    if as_json:
        keys = [unit.key for unit in plan.left]
        typer.echo(json.dumps({"units": len(plan.units), "left": keys}))
        return
    for unit in plan.left:
        typer.echo(unit.key)
    typer.echo(f"{len(plan.left)} of {len(plan.units)} units are left.", err=True)


def _show_report(plan: Plan, report: Report, as_json: bool) -> None:
    """Shows what was computed; exits with code 1 if units failed."""
    if as_json:
        summary = {"finished": list(report.finished), "failed": dict(report.failed)}
        typer.echo(json.dumps(summary, indent=1))
    else:
        typer.echo(f"{len(report.finished)} units computed, results in {plan.store.results}.")
    for key, reason in report.failed.items():
        typer.echo(f"error: {key} failed\n{reason}", err=True)
    if report.failed:
        raise typer.Exit(1)


def _show_paths(paths: Iterable[Path], as_json: bool) -> None:
    """The files that a command has written."""
    names = [str(path) for path in paths]
    typer.echo(json.dumps({"written": names}, indent=1) if as_json else "\n".join(names))


@app.command()
def pack(results: ResultsOption = Path("results"), as_json: JsonOption = False) -> None:
    """Pack the units' files into one small table per condition, which can be committed."""
    folder = results / "units"
    with errors():
        presets = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if not presets:
            raise ValueError(f"{folder}: no units here")
        written = {preset: Store(results, preset).pack() for preset in presets}
    sizes = {str(path): path.stat().st_size for paths in written.values() for path in paths}
    if as_json:
        typer.echo(json.dumps({"written": sizes}, indent=1))
    else:
        for path, size in sizes.items():
            typer.echo(f"{path}  {size / 1024:.0f} kB")
    for preset, paths in written.items():
        if paths and not Store(results, preset).study.exists():
            typer.echo(
                f"warning: {results / preset} has no study.json, and its units are too old to give "
                "one: copy it from where they were computed, or run their command again here.",
                err=True,
            )


@app.command("export")
def export_tables(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the CSV files.")] = Path("results-csv"),
    as_json: JsonOption = False,
) -> None:
    """Write all results as CSV files, one per preset and condition."""
    with errors():
        written = result_files.export(results, out)
    _show_paths(written, as_json)


@app.command()
def tables(results: ResultsOption = Path("results"), as_json: JsonOption = False) -> None:
    """Write summary.csv (means with intervals) and tests.csv (paired tests) into RESULTS."""
    from sfihilo.study.analysis.measures import Results
    from sfihilo.study.analysis.summary import write_tables

    with errors():
        written = write_tables(Results.of(result_files.read_results(results)), results)
    _show_paths(written, as_json)


@app.command()
def figures(
    results: ResultsOption = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Folder; by default RESULTS/figures.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw every figure for which there are results, as PNG and PDF."""
    from sfihilo.study.analysis.measures import Results
    from sfihilo.study.figures import draw_all

    with errors():
        table = Results.of(result_files.read_results(results))
        written = draw_all(table, out or results / "figures")
    _show_paths(written, as_json)


@app.command()
def claims(
    results: ResultsOption = Path("results"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
    as_json: JsonOption = False,
) -> None:
    """Compare the results with the paper's claims, one by one, on a page in Markdown."""
    from sfihilo.study.pages.results_page import write_page

    with errors():
        path = write_page(results, out)
    _show_paths([path], as_json)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A result set, e.g. results/paper.")],
    second: Annotated[Path, typer.Argument(help="Another, e.g. results/default.")],
    rules: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="RULE RULE", help="Compare a rule of the first with a rule of the second."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two result sets on the same users, with paired statistics."""
    from sfihilo.study.analysis import compare as comparison

    with errors():
        table = comparison.compare(first, second, rules)
    typer.echo(comparison.as_json(table) if as_json else comparison.as_text(table))


app.command()(real)


@app.command()
def grades(
    results: ResultsOption = Path("results/grades"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/graded-answers.md"),
    as_json: JsonOption = False,
) -> None:
    """Write the page about graded answers and its figure, from results of the panel grades."""
    from sfihilo.study.figures import style
    from sfihilo.study.figures.grade_curves import graded_answers
    from sfihilo.study.pages.grades_page import stored, write_page

    with errors():
        table = stored(results)
        written = []
        if table.presets:
            folder = results / "figures"
            written += style.write(graded_answers(table), folder, "graded_answers")
        written.append(write_page(results, out))
    _show_paths(written, as_json)


@app.command()
def advice(
    results: Annotated[
        list[Path],
        typer.Option(
            help="Folders with results; a later one adds queries that no earlier one has."
        ),
    ] = [Path("results/advice"), Path("results/advice200")],  # noqa: B006, typer copies it
    out: Annotated[Path, typer.Option(help="The page to update.")] = Path("docs/best-setting.md"),
    as_json: JsonOption = False,
) -> None:
    """Write the tables and the figure about the advice, from results of the panel advice."""
    from sfihilo.study.figures import style
    from sfihilo.study.figures.advice_curves import advice_gap
    from sfihilo.study.pages.advice_page import stored, write_tables

    with errors():
        figure = advice_gap(stored(results))
        written = style.write(figure, results[0] / "figures", "advice_gap")
        written.append(write_tables(results, out))
    _show_paths(written, as_json)


if __name__ == "__main__":
    app()
