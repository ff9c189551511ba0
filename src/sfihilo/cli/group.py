"""A group of commands that reports wrong usage as every other error: `error: ...`, exit code 2."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

# Typer brings its own copy of Click in newer versions, so the class is found through Typer.
ClickException: Any = typer.BadParameter.__mro__[2]


class CommandGroup(TyperGroup):
    """The class of every `typer.Typer(cls=CommandGroup)` of the command line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command; wrong usage is printed with the prefix of all errors."""
        extra |= {
            "prog_name": prog_name,
            "complete_var": complete_var,
            "windows_expand_args": windows_expand_args,
        }
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except ClickException as error:
            if not standalone_mode:
                raise
            shown = io.StringIO()
            error.show(shown)
            typer.echo(
                re.sub(r"^Error: ", "error: ", shown.getvalue(), flags=re.M), err=True, nl=False
            )
            code = error.exit_code
        except typer.Abort:
            if not standalone_mode:
                raise
            typer.echo("error: stopped", err=True)
            code = 1
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)
