"""The command `sfihilo`.

Each part (study, session, serve, demo) is loaded only when it is called: `sfihilo --help` stays
quick, and a part whose optional packages are missing says how to install them without hiding the
others.
"""

import importlib
import importlib.util
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
    "study": ("sfihilo.cli.study.app", "study"),
    "session": ("sfihilo.cli.session.app", "experiment"),
    "serve": ("sfihilo.cli.serve", "console"),
}


class LazyParts(CommandGroup):
    """Loads the commands of a part when one of them is called or completed."""

    def resolve_command(self, *args: Any) -> Any:
        """The commands of a part, in place of its one line in the help."""
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
    queries: Annotated[int, typer.Option(min=2, help="Compared trials per person.")] = 60,
    people: Annotated[int, typer.Option(min=2, help="Simulated people.")] = 16,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
) -> None:
    """Learn simulated people for both goals and at random, print a table, draw a picture."""
    run = load("sfihilo.study.demo.show", "run", "study")
    with errors():
        run(queries=queries, people=people, out=out)
    if has_console():
        typer.echo(f"Try the console: {sys.argv[0]} serve --demo")


def has_console() -> bool:
    """Whether this version has the console, and its packages are installed."""
    return all(
        importlib.util.find_spec(name) is not None
        for name in ("fastapi", "uvicorn", "jinja2", "sfihilo.console")
    )


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
