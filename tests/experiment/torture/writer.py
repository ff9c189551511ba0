"""The child process of the torture tests: writes a planned session, and says what is acknowledged.

It is started on its own (`python -I -S writer.py PACKAGE LOG ...`), so that one start costs
milliseconds: a bare package stands in for `sfihilo`, whose imports would load NumPy.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import types
from pathlib import Path
from typing import Any, NamedTuple


class Step(NamedTuple):
    kind: str
    body: dict[str, Any]
    key: str


def plan(queries: int, session: str = "s") -> list[Step]:
    """A session as an operator runs it: opened, four events a query, closed."""
    steps = [Step("opened", {"seed": 7, "space": {f"p{i}": [0, 60] for i in range(40)}}, "open")]
    for query in range(queries):
        policy = [((query * 37 + i * 11) % 97) / 97 for i in range(8)]
        outcome = [((query * 53 + i * 29) % 89) / 89 for i in range(8)]
        steps += [
            Step("asked", {"trial": query, "policy": policy}, f"ask-{query}"),
            Step("started", {"trial": query}, f"start-{query}"),
            Step("measured", {"trial": query, "outcome": outcome}, f"measure-{query}"),
            Step("chosen", {"trial": query, "choice": "new"}, f"choose-{query}"),
        ]
    # One long event, so that overflow pages are part of every torture.
    return [*steps, Step("closed", {"session": session, "why": "end " * 2500}, "close")]


def load(package: str) -> None:
    """Make `sfihilo.experiment.log.store` importable without running the packages' own imports."""
    for name, folder in (("sfihilo", package), ("sfihilo.experiment", f"{package}/experiment")):
        module = types.ModuleType(name)
        module.__path__ = [folder]
        sys.modules[name] = module


def say(*words: object) -> None:
    """One line in one system call: a line that was seen was acknowledged."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def write(path: Path, session: str, queries: int, attempts: int) -> None:
    from sfihilo.experiment.log.errors import LogError
    from sfihilo.experiment.log.store import Log

    log = None
    for step in plan(queries, session):
        for _ in range(attempts):
            try:
                log = log or Log.open(path)
                event = log.append(session, step.kind, step.body, key=step.key, actor="operator")
            except LogError as problem:
                say("problem", step.key, type(problem).__name__)
            else:
                say("ack", step.key, event.hash)
                break
    if log is not None:
        log.close()
    say("done")


def race(path: Path, name: str) -> None:
    """At each start signal, try to be the one that writes the next event."""
    from sfihilo.experiment.log.errors import StaleError
    from sfihilo.experiment.log.store import Log

    with Log.open(path) as log:
        for line in sys.stdin:
            expected, instant = line.split()
            while time.time() < float(instant):  # all start at the same instant
                pass
            try:
                event = log.append("s", "asked", {"by": name}, expected=int(expected), actor=name)
            except StaleError as stale:
                say("stale", stale.current)
            else:
                say("won", event.number)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("log", type=Path)
    parser.add_argument("--session", default="s")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument("--race", metavar="NAME", help="race instead of writing the plan")
    parser.add_argument("--journal", help="a weaker journal mode, to see the tests fail")
    parser.add_argument("--synchronous", help="a weaker setting, to see the tests fail")
    options = parser.parse_args()
    load(options.package)
    from sfihilo.experiment.log import schema

    schema.JOURNAL = options.journal or schema.JOURNAL
    schema.SYNCHRONOUS = options.synchronous or schema.SYNCHRONOUS
    say("ready")
    if options.race:
        race(options.log, options.race)
    else:
        write(options.log, options.session, options.queries, options.attempts)


if __name__ == "__main__":
    main()
