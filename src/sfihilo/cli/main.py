"""The command `sfihilo`.

Each part (study, session, demo) is loaded only when it is called: `sfihilo --help` stays quick, and
a part whose optional packages are missing says how to install them without hiding the others.
"""

import importlib
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ModuleNotFoundError:  # the core alone has no command line
    sys.exit("The sfihilo command needs its extra. Install it: pip install 'sfihilo[cli]'")

app = typer.Typer(
    name="sfihilo",
    help="Learn what a person prefers, and why, from few questions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

# The part's own parser reads everything after its name, so none of it is parsed here.
FORWARDED: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "ignore_unknown_options": True,
    },
}


def load(module: str, name: str, extra: str) -> Callable[..., Any]:
    """The named object of a part of the package; leaves with advice when a package is missing."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.partition(".")[0] == "sfihilo":
            advice = f"This version of sfihilo has no {missing}."
        else:
            advice = f"This needs the package {missing}: pip install 'sfihilo[{extra}]'"
        typer.echo(advice, err=True)
        raise typer.Exit(1) from None
    return found


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
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
    load("sfihilo.study.demo", "run", "study")(queries=queries, out=out)


@app.command(**FORWARDED)
def study(context: typer.Context) -> None:
    """Reproduce the paper's simulation study."""
    load("sfihilo.cli.study", "app", "study")(args=context.args, prog_name="sfihilo study")


@app.command(**FORWARDED)
def session(context: typer.Context) -> None:
    """Run a session with a real person."""
    load("sfihilo.cli.session", "app", "experiment")(args=context.args, prog_name="sfihilo session")


def main() -> None:
    """Entry point of the console script."""
    app()
