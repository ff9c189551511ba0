"""A new session from a TOML text or from a form; both are the same tables."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfihilo.console.api.bodies import NewSession
from sfihilo.console.refusals import Problem
from sfihilo.experiment import Lab, Plan
from sfihilo.experiment.session.plan_file import described, tables_of

if TYPE_CHECKING:
    from sfihilo.settings import Goal

MOST_DIMENSIONS = 40  # of a form: what a page may ask for


def plan_of(body: NewSession) -> Plan:
    """What is to be begun; raises ValueError with the place in the description."""
    if (body.toml is None) == (body.form is None):
        raise Problem(400, "invalid", "toml, form: expected one of them, got both or neither")
    if body.toml is not None:
        where, tables = "file", tables_of(body.toml, "file")
    else:
        where, tables = "form", _without_blanks(body.form or {})
    try:
        _require_small(tables, where)
        space, settings, protocol = described(tables, where)
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{where}: expected a description of a session: {error}") from error
    if body.goal is not None:
        goal: Goal = body.goal
        settings = replace(settings, goal=goal, rule=None)
    return Plan(space, settings, protocol, body.seed)


def _require_small(tables: Mapping[str, Any], where: str) -> None:
    for part in ("policy", "outcomes"):
        given = tables.get(part)
        if isinstance(given, Mapping) and len(given) > MOST_DIMENSIONS:
            raise ValueError(
                f"{where}: {part}: expected at most {MOST_DIMENSIONS}, got {len(given)}"
            )


def _without_blanks(form: Mapping[str, Any]) -> dict[str, Any]:
    """The form without the fields that were left empty (null)."""
    tables = dict(form)
    for part in ("policy", "outcomes"):
        rows = tables.get(part)
        if isinstance(rows, Mapping):
            tables[part] = {
                name: {key: value for key, value in row.items() if value is not None}
                if isinstance(row, Mapping)
                else row
                for name, row in rows.items()
            }
    options = tables.get("session")
    if isinstance(options, Mapping):
        tables["session"] = {
            name: value
            for name, value in options.items()
            if value is not None or name == "break_minutes"
        }
    return tables


def check_plan(body: NewSession) -> dict[str, Any]:
    """Create the session in a file that is thrown away; returns what would be begun."""
    plan = plan_of(body)
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder) / "check.db") as lab:
        record = lab.create(replace(plan, seed=plan.seed or 0), body.participant).record
    return {
        "ok": True,
        "participant": record.participant,
        "space": record.space.to_dict(),
        "protocol": record.protocol.to_dict(),
        "goal": record.goal,
        "grades": record.grades,
    }


def create_session(lab: Lab, body: NewSession, key: str | None, actor: str) -> str:
    """Begin the session in the lab's file; returns its name, which is made here."""
    return lab.create(plan_of(body), body.participant, key=key, actor=actor).id
