"""What a session waits for, in words, and where a trial's settings lie beside the last ones."""

from __future__ import annotations

from sfihilo.experiment.output.digits import physical, physical_unit
from sfihilo.experiment.session.answers import STRENGTHS
from sfihilo.experiment.session.kept import last_policy
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.trial import Trial

WHY_ANCHOR = (
    "This is the last condition again: after a break the person needs to feel it anew, so that "
    "the next one can be compared with it."
)


def next_step(record: Record) -> str:
    """What to do now, as the command that does it."""
    if record.closed:
        return "Next: session report --out report.html"
    if record.interrupted:
        return "Next: session resume (or session ask) when the person is back"
    trial = record.current
    if trial is None:
        return "Next: session ask"
    measure = "session measure " + " ".join(f"{name}=VALUE" for name in record.space.outcomes)
    if not trial.started and not trial.measured and not trial.answered:
        return f"Next: set the device, session start; after the walk {measure}"
    if not trial.measured:
        return f"Next: {measure}"
    how_much = f" {'|'.join(STRENGTHS[record.grades])}" if record.grades > 2 else ""
    return (
        f"Next: ask which was better, this one (n) or {compared(trial)} (p): session choose n|p|s|c"
        f"{how_much}"
    )


def compared(trial: Trial) -> str:
    """The condition that a trial is compared with."""
    if trial.compare_with == trial.number - 1:
        return f"the one before, trial {trial.compare_with}"
    return f"trial {trial.compare_with}"


def remarks(record: Record, trial: Trial) -> list[str]:
    """What an operator should know about a new trial."""
    return [WHY_ANCHOR] if trial.source == "anchor" else []


def change(record: Record, trial: Trial, name: str) -> str:
    """How far a setting lies from the last one, with its sign."""
    source, last = last_policy(record, trial.number)
    if name not in last:
        return ""
    parameter = record.space.policy[name]
    step = physical(trial.policy[name] - last[name], parameter)
    if step == "0":
        return "unchanged"
    sign = "" if step.startswith("-") else "+"
    return f"{sign}{step} from {source}"


def trial_rows(record: Record, trial: Trial) -> list[list[object]]:
    """A row per setting: name, value, unit, change."""
    return [
        [name, physical(value, parameter), parameter.unit, change(record, trial, name)]
        for name, value in trial.policy.items()
        for parameter in [record.space.policy[name]]
    ]


def outcome_words(record: Record, trial: Trial) -> str:
    """What was measured, in one line."""
    given = trial.outcome or {}
    return ", ".join(
        f"{name} {physical_unit(given.get(name), outcome)}"
        for name, outcome in record.space.outcomes.items()
    )
