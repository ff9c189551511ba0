"""The command `sfihilo study real`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfihilo.cli.output import errors
from sfihilo.cli.study.options import JsonOption
from sfihilo.study.people.real_choices import REAL_SETS, ChoiceData, own_table


class PeopleName(StrEnum):
    """Which people of a data set."""

    development = "development"
    confirmation = "confirmation"


def real(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your own table, CSV or Parquet: columns person, a_<name> and b_<name> for each "
            "attribute of two options, and answer (a, b or same). All of its people are used."
        ),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(help=f"Data sets, by commas; by default {','.join(REAL_SETS)}."),
    ] = None,
    people: Annotated[
        PeopleName,
        typer.Option(help="The third that everything was chosen on, or the others."),
    ] = PeopleName.development,
    orders: Annotated[int, typer.Option(min=1, help="Random orders of a person's choices.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="People at once.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("results/real"),
    page: Annotated[
        Path | None, typer.Option(help="Also write the page in Markdown, e.g. docs/real-people.md.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict held-out choices of real people, each person learned alone."""
    from sfihilo.study.real import publish
    from sfihilo.study.real.predictions import parts, predict_all
    from sfihilo.study.run.folder_lock import only_run

    def note(name: str, done: int, count: int) -> None:
        if not as_json and (done == count or done % 100 == 0):
            typer.echo(f"{name}: {done} of {count}", err=True)

    with errors():
        todo = [
            part
            for chosen in _chosen(data, sets, page)
            for part in parts(chosen, "all" if data is not None else people.value, orders)
        ]
        if not todo:
            raise ValueError("people: expected somebody with at least 7 choices, got nobody")
        with only_run(out / "units"):  # also finds out whether it can be written to
            predictions = predict_all(todo, out / "units", workers, note)
            table = publish.update(predictions, out)
            written = publish.write(out, page)
    if as_json:
        typer.echo(json.dumps(json.loads(table.to_json(orient="records")), indent=1))
        return
    typer.echo(publish.as_text(table))
    for path in written:
        typer.echo(str(path), err=True)


def _chosen(data: Path | None, sets: str | None, page: Path | None) -> list[ChoiceData]:
    """The data sets asked for: a user's own table, or some of the known ones."""
    if data is not None:
        for option, value in (("--sets", sets), ("--page", page)):
            if value is not None:
                raise ValueError(f"{option}: expected none together with --data, got both")
        return [own_table(data)]
    names = sets.split(",") if sets else list(REAL_SETS)
    unknown = [name for name in names if name not in REAL_SETS]
    if unknown:
        raise ValueError(f"--sets: expected some of {', '.join(REAL_SETS)}, got {unknown[0]!r}")
    return [REAL_SETS[name]() for name in names]
