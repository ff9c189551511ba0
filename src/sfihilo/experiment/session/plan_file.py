"""A session's plan in the tables of a TOML file: space, learner and protocol."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sfihilo
from sfihilo.experiment.record.answers import OFFERED
from sfihilo.experiment.record.protocol import Protocol
from sfihilo.experiment.space.parameter import finite_number
from sfihilo.experiment.space.space import Space, space_from_tables

if TYPE_CHECKING:
    from sfihilo import Settings

LEARNER_OPTIONS = (
    "preset", "goal", "rule", "answers", "recall", "recall_noise", "measurement_noise",
    "reward_noise",
)  # fmt: skip
PROTOCOL_OPTIONS = ("drift", "reanchor", "break_minutes")


def tables_of(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: expected a TOML file: {error}") from error


def described(tables: Mapping[str, Any], where: str) -> tuple[Space, Settings, Protocol]:
    """The space, the learner's settings and the protocol that tables describe."""
    space = space_from_tables(tables, where)
    return space, *session_options(tables.get("session", {}), where)


def session_options(table: Any, where: str) -> tuple[Settings, Protocol]:
    """The optional table [session] of the TOML file."""
    known = (*LEARNER_OPTIONS, *PROTOCOL_OPTIONS)
    if not isinstance(table, dict) or set(table) - set(known):
        raise ValueError(f"{where}: [session] expected some of {', '.join(known)}, got {table!r}")
    try:
        settings = sfihilo.Settings(preset=table.get("preset", "default"))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
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
