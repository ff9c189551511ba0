"""A new session from a TOML file; nothing is left behind where it cannot be begun."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from sfihilo.cli.output import errors
from sfihilo.cli.session.command import lab_at
from sfihilo.experiment.record.protocol import Protocol
from sfihilo.experiment.session.lab import Lab
from sfihilo.experiment.session.plan_file import described
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.space.space import Space, read_toml

if TYPE_CHECKING:
    from sfihilo import Settings
    from sfihilo.settings import Goal


@contextmanager
def begin(
    path: Path,
    participant: str,
    db: Path,
    *,
    seed: int | None = None,
    goal: str | None = None,
    name: str | None = None,
    key: str | None = None,
    actor: str | None = None,
) -> Iterator[tuple[Session, Lab]]:
    """Begin a session in the space that a file describes; the lab stays open in the block."""
    with errors():
        space, settings, protocol = read_space(path)
        if goal is not None:  # given here, it goes before a rule of the file
            settings = replace(settings, goal=cast("Goal", goal), rule=None)
        if not db.exists():  # what would be refused must not leave a file
            with TemporaryDirectory() as folder, Lab(Path(folder) / "check.db") as check:
                check.create(
                    space, participant, seed or 0,
                    settings=settings, protocol=protocol, session=name,
                )  # fmt: skip
    with lab_at(db, make=True, actor=actor) as lab:
        begun = lab.log.begun(key) if key is not None and seed is None else None
        if seed is None:  # a retry means the seed that was drawn the first time
            seed = secrets.randbelow(2**31) if begun is None else int(begun.body["seed"])
        session = lab.create(
            space, participant, seed, settings=settings, protocol=protocol, session=name, key=key
        )
        yield session, lab


def read_space(path: Path) -> tuple[Space, Settings, Protocol]:
    """The space, the learner's settings and the protocol that a TOML file describes."""
    return described(read_toml(path), str(path))
