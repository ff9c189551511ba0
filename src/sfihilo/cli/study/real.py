"""The command `sfihilo study real`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfihilo.cli.output import errors
from sfihilo.cli.study.options import JsonOption
from sfihilo.study.people.choice_data import ChoiceData
from sfihilo.study.people.own_table import own_table
from sfihilo.study.people.real_choices import ALL_DEVELOPED, REAL_SETS
from sfihilo.study.real.predictions import (
    LEAST_CHOICES,
    ORDERS,
    Part,
    People,
    parts,
    predict_all,
)


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
        typer.Option(
            help=f"Data sets, by commas; by default {','.join(REAL_SETS)}, for confirmation "
            f"without {','.join(ALL_DEVELOPED)}."
        ),
    ] = None,
    people: Annotated[
        PeopleName | None,
        typer.Option(
            help="Of the named sets: the third that everything was chosen on, which is the "
            "default, or the others."
        ),
    ] = None,
    orders: Annotated[
        int, typer.Option(min=1, help="Random orders of each person's choices.")
    ] = ORDERS,
    workers: Annotated[int | None, typer.Option(min=1, help="People at once.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("results/real"),
    page: Annotated[
        Path | None, typer.Option(help="Also write the page in Markdown, e.g. docs/real-people.md.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict held-out choices of real people, each person learned alone."""
    from sfihilo.study.real import publish
    from sfihilo.study.run.folder_lock import only_run

    def note(name: str, done: int, count: int) -> None:
        if not as_json and (done == count or done % 100 == 0):
            typer.echo(f"{name}: {done} of {count}", err=True)

    with errors():
        todo = _parts(data, sets, people, page, orders)
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


def _parts(
    data: Path | None, sets: str | None, people: PeopleName | None, page: Path | None, orders: int
) -> list[Part]:
    """What the options ask for: a user's own table, or people of some of the known sets."""
    if data is not None:
        for option, value in (("--sets", sets), ("--people", people), ("--page", page)):
            if value is not None:
                raise ValueError(f"{option}: expected none together with --data, got both")
        return _anybody(own_table(data), "all", orders)
    names = list(REAL_SETS) if sets is None else sets.split(",")
    unknown = [name for name in names if name not in REAL_SETS]
    if unknown:
        raise ValueError(f"--sets: expected some of {', '.join(REAL_SETS)}, got {unknown[0]!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"--sets: expected every set once, got {sets}")
    kind: People = "confirmation" if people is PeopleName.confirmation else "development"
    if sets is None and kind == "confirmation":  # everybody of the others is for development
        names = [name for name in names if name not in ALL_DEVELOPED]
    return [part for name in names for part in _anybody(REAL_SETS[name](), kind, orders)]


def _anybody(chosen: ChoiceData, kind: People, orders: int) -> list[Part]:
    """The parts of a set, of which there is at least one."""
    found = parts(chosen, kind, orders)
    if not found:
        raise ValueError(
            f"{chosen.name}: expected {'' if kind == 'all' else kind + ' '}people with at least "
            f"{LEAST_CHOICES} choices, got none"
        )
    return found
