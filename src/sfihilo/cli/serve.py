"""The command `sfihilo serve`: the console in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from sfihilo.cli.session.command import DEFAULT_DB, Db, session_errors
from sfihilo.console.config import Config, Part
from sfihilo.console.serve import run

DEMO_DB = Path("sfihilo-demo.db")
app = typer.Typer(name="serve", add_completion=False, rich_markup_mode=None)


@app.command()
def serve(  # noqa: PLR0913 - one parameter per option
    db: Db = DEFAULT_DB,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8765,
    host: Annotated[str, typer.Option(help="0.0.0.0: other machines too.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None, typer.Option(help="Name under which other machines reach this one.")
    ] = None,
    certfile: Annotated[Path | None, typer.Option(help="Certificate (PEM) for TLS.")] = None,
    keyfile: Annotated[Path | None, typer.Option(help="Key (PEM) for TLS.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow other machines without TLS.")
    ] = False,
    device: Annotated[
        list[str] | None,
        typer.Option(help="Device that sessions may use: a name, or a TOML file with [[device]]."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="A simulated device and person, in a file of their own.")
    ] = False,
    you: Annotated[
        str, typer.Option(help="Part that you play in the demo: nobody, operator, participant.")
    ] = "nobody",
    speed: Annotated[float, typer.Option(help="How much faster than real the demo is.")] = 20.0,
    by: Annotated[
        str | None, typer.Option(help="Who operates (a role or code), for the record.")
    ] = None,
    code_file: Annotated[
        Path | None, typer.Option(help="Write the operator's address to this file.")
    ] = None,
) -> None:
    """Operator and participant in the browser; prints the operator's address."""
    with session_errors():
        config = Config(
            db=DEMO_DB if demo and db == DEFAULT_DB else db,
            host=host,
            port=port,
            names=tuple(name or ()),
            certfile=certfile,
            keyfile=keyfile,
            insecure=insecure,
            by=by,
            devices=tuple(device or ()),
            demo=demo,
            you=cast("Part", you),
            speed=speed,
        )
        run(config, typer.echo, code_file)
