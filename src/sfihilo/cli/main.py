"""The command `sfihilo`.

Each part (study, session, serve, demo) is loaded only when it is called: `sfihilo --help` stays
quick, and a part whose optional packages are missing says how to install them without hiding the
others.
"""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ModuleNotFoundError:  # the core alone has no command line
    sys.exit("The sfihilo command needs its extra. Install it: pip install 'sfihilo[cli]'")

from sfihilo.cli.group import CommandGroup
from sfihilo.cli.output import FAILED, errors, fail

# Commands that are groups of their own: module, optional packages that it needs.
PARTS = {
    "study": ("sfihilo.cli.study", "study"),
    "session": ("sfihilo.cli.session", "experiment"),
    "serve": ("sfihilo.cli.serve", "console"),
}


class LazyParts(CommandGroup):
    """Loads the commands of a part when one of them is called or completed."""

    def resolve_command(self, *args: Any) -> Any:
        """The part itself in place of the line that stands for it in the help."""
        name, command, rest = super().resolve_command(*args)
        if name in PARTS:
            module, extra = PARTS[name]
            command = typer.main.get_command(load(module, "app", extra))
        return name, command, rest


app = typer.Typer(
    name="sfihilo",
    cls=LazyParts,
    help="Learn what a person prefers, and why, from few questions.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def load(module: str, name: str, extra: str) -> Any:
    """The named object of a part of the package; leaves with advice when a package is missing."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.partition(".")[0] == "sfihilo":
            advice = f"This version of sfihilo has no {missing}."
        else:
            advice = f"This needs the package {missing}: pip install 'sfihilo[{extra}]'"
        fail(advice, FAILED)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sfihilo {version('sfihilo')}")
        raise typer.Exit


@app.callback()
def options(
    show: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn what a person prefers, and why, from few questions."""


@app.command()
def demo(
    queries: Annotated[
        int, typer.Option(min=2, help="Questions that the simulated person is asked.")
    ] = 150,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
) -> None:
    """Learn one simulated person, print a table, draw a picture."""
    run = load("sfihilo.study.demo", "run", "study")
    with errors():
        run(queries=queries, out=out)


@app.command()
def study() -> None:
    """Reproduce the paper's simulation study."""


@app.command()
def session() -> None:
    """Run a session with a real person."""


@app.command()
def serve() -> None:
    """Operator and participant in the browser, devices on the wire."""


def main() -> None:
    """Entry point of the console script."""
    app()
