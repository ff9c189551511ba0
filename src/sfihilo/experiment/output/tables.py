"""A session as tidy tables: trials, outcomes, answers, and what the model predicted for each trial.

Each table describes its own columns, so that a README, a BIDS sidecar and a plot agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output.text import counted, printable
from sfihilo.experiment.record.answers import STRENGTHS, offered
from sfihilo.experiment.record.places import TRIAL_MADE, taken_back
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.rounds import used_answers

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: what it holds, in which unit, of which type (text, number, integer, boolean)."""

    name: str
    kind: str
    about: str
    unit: str = ""
    levels: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Table:
    """Rows with described columns; a missing value is None."""

    name: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        rows = counted(len(self.rows), "row")
        return f"<Table {self.name}: {rows} of {', '.join(column.name for column in self.columns)}>"


KEYS = (
    Column("session", "text", "session, as named in the record"),
    Column("participant", "text", "participant's code"),
    Column("trial", "integer", "number of the trial within the session, from 1, never used again"),
)
# Columns of these tables that parameters and outcomes may be named like; other names of columns are
# refused as names (space.RESERVED).
OWN_COLUMNS = frozenset({"goal", "reason", "pain", "pain_reason", "lifted_reason", "strength"})
PREFIXES = re.compile("^((policy|outcome)_)+")
STATUSES = {
    "asked": "proposed, not applied yet",
    "started": "applied to the device",
    "measured": "outcome known, answer not yet",
    "chosen": "answer known, outcome not yet",
    "complete": "outcome and answer settled",
    "aborted": "ended early",
    "vetoed": "refused by the operator before it was applied",
    "withdrawn": "its data were taken out",
    "undone": "taken back as if it had not been asked",
}
SOURCES = {
    "learner": "the learner's query",
    "operator": "the operator's own suggestion",
    "repeat": "an earlier policy once more, to see how consistent the person is",
    "anchor": "the last condition again after a break; no comparison was asked",
}
CHOICES = {
    "new": "this trial was preferred",
    "previous": "the trial it was compared with was preferred",
    "same": "neither was preferred",
    "cannot_say": "asked, but the person could not say",
}


PAIN = {
    "holds": "it caused pain: settings near it are avoided until the veto is lifted",
    "lifted": "it caused pain; settings near it are allowed again",
}
GOALS = {
    "understand": "learn what this person values, everywhere",
    "best": "find a good setting",
}


def tables(record: Record, events: Sequence[Event]) -> tuple[Table, ...]:
    """All tables of one session; their texts print, whatever is in the record."""
    made = (
        trials_table(record, events),
        outcomes_table(record),
        answers_table(record),
        model_table(record),
    )
    return tuple(_printable(table) for table in made)


def _printable(table: Table) -> Table:
    columns = tuple(
        replace(column, unit=printable(column.unit), about=printable(column.about))
        for column in table.columns
    )
    texts = [column.name for column in columns if column.kind == "text"]
    rows = tuple(
        {**row, **{name: printable(row[name]) for name in texts if row[name] is not None}}
        for row in table.rows
    )
    return replace(table, columns=columns, rows=rows)


def trials_table(record: Record, events: Sequence[Event]) -> Table:
    """One row per trial: what was set, when, who proposed it, how it ended."""
    times = _times(events)
    columns = (
        *KEYS,
        Column("round", "integer", "the learner's round"),
        Column("source", "text", "who proposed the policy", levels=SOURCES),
        Column("status", "text", "where the trial stands", levels=STATUSES),
        Column("goal", "text", "what the learner's queries were for", levels=GOALS),
        Column("reason", "text", "why it was aborted, vetoed or withdrawn"),
        Column("pain", "text", "whether it caused pain", levels=PAIN),
        Column("pain_reason", "text", "what was said about the pain"),
        Column("lifted_reason", "text", "why a veto because of pain was lifted"),
        Column("asked_at", "text", "when it was stored, before it was shown; ISO 8601, UTC"),
        Column("started_at", "text", "when it was applied; ISO 8601, UTC"),
        Column("measured_at", "text", "when its outcome came; ISO 8601, UTC"),
        Column("answered_at", "text", "when its answer came; ISO 8601, UTC"),
        Column("compare_with", "integer", "trial it is compared with, if any"),
        Column("repeats", "integer", "earlier trial that it repeats, if any"),
        *(
            Column(
                column_name(name, "policy"),
                "number",
                f"policy: {name}, from {knob.low} to {knob.high}",
                knob.unit,
            )
            for name, knob in record.space.policy.items()
        ),
    )
    rows = tuple(
        {
            **_keys(record, trial),
            "round": trial.round,
            "source": trial.source,
            "status": trial.status,
            "goal": trial.goal,
            "reason": trial.why or None,
            **_pain(record, trial),
            **times[trial.number],
            "compare_with": trial.compare_with if trial.asks_choice else None,
            "repeats": trial.repeats,
            **{column_name(name, "policy"): value for name, value in trial.policy.items()},
        }
        for trial in record.trials
    )
    return Table("trials", "One row for each trial that was asked.", columns, rows)


def column_name(name: str, part: str) -> str:
    """The column of a parameter or an outcome, which is never one of the table's own.

    Nor that of another one: what is named like such a column (`policy_goal`) gets the part as well.
    """
    return f"{part}_{name}" if PREFIXES.sub("", name) in OWN_COLUMNS else name


def _pain(record: Record, trial: Trial) -> Row:
    """Whether a veto because of pain stands behind the trial, and why it was lifted."""
    vetoes = [veto for veto in record.vetoes if veto.trial == trial.number and veto.pain]
    if not vetoes:
        return {"pain": None, "pain_reason": None, "lifted_reason": None}
    veto = vetoes[-1]
    return {
        "pain": "lifted" if veto.lifted else "holds",
        "pain_reason": veto.why or None,
        "lifted_reason": veto.lifted_why or None,
    }


def outcomes_table(record: Record) -> Table:
    """One row per trial and outcome."""
    columns = (
        *KEYS,
        Column("outcome", "text", "name of the outcome"),
        Column("value", "number", "what was measured, in the unit beside it; empty: missing"),
        Column("unit", "text", "unit of the value"),
        Column("warning", "text", "said when the value lies outside its usual limits"),
        Column("learned", "boolean", "whether it counts: its trial was not taken out"),
    )
    rows = tuple(
        {
            **_keys(record, trial),
            "outcome": name,
            "value": None if trial.outcome is None else trial.outcome[name],
            "unit": outcome.unit,
            "warning": next((w for w in trial.warnings if w.startswith(f"{name}:")), None),
            "learned": name in trial.known_outcome,
        }
        for trial in record.trials
        if trial.measured
        for name, outcome in record.space.outcomes.items()
    )
    return Table("outcomes", "One row for each outcome of each measured trial.", columns, rows)


def answers_table(record: Record) -> Table:
    """One row per answer."""
    columns = (
        *KEYS,
        Column("compare_with", "integer", "trial that this one was compared with"),
        Column("choice", "text", "what the person answered", levels=CHOICES),
        Column(
            "strength",
            "integer",
            f"how much better, of {offered(record.grades)} answers; empty: not graded",
            levels={str(n): word for n, word in enumerate(STRENGTHS[record.grades], start=1)},
        ),
        Column("learned", "boolean", "whether the learner uses it: both outcomes are known"),
    )
    used = used_answers(record)
    rows = tuple(
        {
            **_keys(record, trial),
            "compare_with": trial.compare_with,
            "choice": trial.choice or "cannot_say",
            "strength": trial.strength,
            "learned": trial.number in used,
        }
        for trial in record.trials
        if trial.answered
    )
    return Table("answers", "One row for each answer of the person.", columns, rows)


def model_table(record: Record) -> Table:
    """What the model predicted for each policy before it was tried."""
    outcomes = record.space.outcomes.items()
    columns = (
        *KEYS,
        Column("round", "integer", "the learner's round"),
        Column("fingerprint", "text", "SHA-256 of the learner's state when it was asked"),
        Column("chance_new", "number", "predicted probability that the person prefers this trial"),
        *(
            Column(f"{part}_{name}", "number", about.format(name), outcome.unit)
            for name, outcome in outcomes
            for part, about in (
                ("predicted", "predicted {}"),
                ("deviation", "standard deviation of that prediction of {}"),
            )
        ),
    )
    rows = tuple(
        {
            **_keys(record, trial),
            "round": trial.round,
            "fingerprint": trial.model["fingerprint"],
            "chance_new": trial.model["chance_new"],
            **{
                f"{part}_{name}": (trial.model[field] or {}).get(name)
                for name, _ in outcomes
                for part, field in (("predicted", "outcome"), ("deviation", "deviation"))
            },
        }
        for trial in record.trials
    )
    return Table("model", "What the model believed before each trial.", columns, rows)


def _keys(record: Record, trial: Trial) -> Row:
    return {
        "session": record.session,
        "participant": record.participant,
        "trial": trial.number,
    }


def _times(events: Sequence[Event]) -> dict[int, Row]:
    """When each trial was asked, started, measured and answered, without what was undone."""
    empty = {"asked_at": None, "started_at": None, "measured_at": None, "answered_at": None}
    names = {"started": "started_at", "measured": "measured_at", "chosen": "answered_at"}
    gone = taken_back(events)
    times: dict[int, Row] = {}
    for event in events:
        if event.kind in TRIAL_MADE:
            times[event.body["trial"]] = {**empty, "asked_at": event.wall}
        elif event.kind in names and event.number not in gone:
            times[event.body["trial"]][names[event.kind]] = event.wall
        elif event.kind == "amended" and event.number not in gone and "outcome" in event.body:
            row = times[event.body["trial"]]  # an outcome may come late, as a correction
            row["measured_at"] = row["measured_at"] or event.wall
    return times
