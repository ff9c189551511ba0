"""A new session from a TOML file; nothing is left behind where it cannot be begun."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import sfihilo
from sfihilo.cli.output import errors
from sfihilo.cli.session.command import lab_at
from sfihilo.experiment.record.answers import OFFERED
from sfihilo.experiment.record.protocol import Protocol
from sfihilo.experiment.session.lab import Lab
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.space.parameter import finite_number
from sfihilo.experiment.space.space import Space, read_toml, space_from_tables

if TYPE_CHECKING:
    from sfihilo import Settings
    from sfihilo.settings import Goal

LEARNER_OPTIONS = (
    "preset", "goal", "rule", "answers", "recall", "recall_noise", "measurement_noise",
    "reward_noise",
)  # fmt: skip
PROTOCOL_OPTIONS = ("drift", "reanchor", "break_minutes")


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
    tables = read_toml(path)
    space = space_from_tables(tables, str(path))
    return space, *session_options(tables.get("session", {}), str(path))


def session_options(table: Any, where: str) -> tuple[Settings, Protocol]:
    """The optional table [session] of the TOML file."""
    known = (*LEARNER_OPTIONS, *PROTOCOL_OPTIONS)
    if not isinstance(table, dict) or set(table) - set(known):
        raise ValueError(f"{where}: [session] expected some of {', '.join(known)}, got {table!r}")
    preset = table.get("preset", "default")
    if preset not in ("default", "paper"):
        raise ValueError(f"{where}: preset: expected default or paper, got {preset!r}")
    settings = sfihilo.Settings.paper() if preset == "paper" else sfihilo.Settings()
    answers = table.get("answers", "two")
    if not isinstance(answers, str) or answers not in OFFERED:
        raise ValueError(f"{where}: answers: expected {', '.join(OFFERED)}, got {answers!r}")
    noise = {
        name: finite_number(table[f"{name}_noise"], f"{where}: {name}_noise")
        for name in ("measurement", "reward")
        if f"{name}_noise" in table
    }
    try:
        settings = replace(
            settings,
            rule=table.get("rule", settings.rule),
            goal=table.get("goal", settings.goal),
            grades=OFFERED[answers],
            recall=table.get("recall", settings.recall),
            recall_noise=finite_number(
                table.get("recall_noise", settings.recall_noise), "recall_noise"
            ),
            noise=replace(settings.noise, **noise),
        )
        protocol = Protocol(**{name: table[name] for name in PROTOCOL_OPTIONS if name in table})
    except ValueError as error:
        raise ValueError(f"{where}: [session] {error}") from error
    return settings, protocol
