"""What a session waits for, in words, and where a trial's settings lie beside the last ones."""

from __future__ import annotations

import numpy as np

from sfihilo.experiment.output.digits import physical, physical_unit, policy_words
from sfihilo.experiment.record.answers import STRENGTHS
from sfihilo.experiment.record.kept import last_policy
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.allowed import is_painful, way_out
from sfihilo.experiment.session.commit import now
from sfihilo.experiment.session.decide import pause_is_break
from sfihilo.experiment.session.requirements import require_reachable
from sfihilo.experiment.space.parameter import Parameter
from sfihilo.experiment.space.safety import UnsafePolicyError
from sfihilo.experiment.space.space import Policy

AGO = {2: "two", 3: "three", 4: "four", 5: "five"}
WHY_ANCHOR = (
    "This is the last condition again: after a break the person needs to feel it anew, so that "
    "the next one can be compared with it."
)

NOTHING_MEASURED = "nothing was measured, so an answer would not be used"


def next_step(record: Record) -> str:
    """What to do now, as the command that does it."""
    if record.closed:
        return "Next: session report --out report.html"
    if record.interrupted:
        return "Next: session resume (or session ask) when the person is back"
    trial = record.current
    if trial is None:
        return "Next: session ask"
    if pause_is_break(record, now()):
        return (
            "Next: session ask, before anything is set: the pause counts as a break, so what may "
            "be applied or compared now is checked anew"
        )
    if not trial.measured:
        return _next_of_walk(record, trial)
    if not trial.known_outcome:
        return (
            f"Next: session choose c, without asking: {NOTHING_MEASURED}; or, if the outcome "
            f"comes, session amend {trial.number} first"
        )
    how_much = f" {'|'.join(STRENGTHS[record.grades])}" if record.grades > 2 else ""
    return (
        f"Next: ask which was better, this one (n) or {compared(trial)} (p): session choose n|p|s|c"
        f"{how_much}"
    )


def _next_of_walk(record: Record, trial: Trial) -> str:
    """What to do with a trial that has no outcome yet."""
    measure = "session measure " + " ".join(f"{name}=VALUE" for name in record.space.outcomes)
    if trial.started and record.left_open != trial.number:
        return f"Next: {measure}"
    known = f"Next: {measure}, if it was walked before the break. " if trial.started else ""
    try:
        require_applicable(record, trial)
    except UnsafePolicyError as error:
        return f"{known}DO NOT APPLY. {error}."
    again = f"{known}To walk it again: " if trial.started else "Next: "
    return f"{again}set the device, session start; after the walk {measure}"


def compared(trial: Trial) -> str:
    """The condition that a trial is compared with."""
    if trial.ago is not None and trial.ago > 1:
        return f"trial {trial.compare_with}, {AGO.get(trial.ago, trial.ago)} ago"
    if trial.compare_with == trial.number - 1:
        return f"the one before, trial {trial.compare_with}"
    return f"trial {trial.compare_with}"


def remarks(record: Record, trial: Trial) -> list[str]:
    """What an operator should know about a new trial."""
    if trial.awaits_name and not trial.measured:
        return [
            f"Which of the last {record.recall} walks to compare with is named after measuring."
        ]
    return [WHY_ANCHOR] if trial.source == "anchor" else []


def named_words(record: Record, trial: Trial) -> list[str]:
    """Which trial the open one is compared with, and its settings, where the learner named it."""
    if trial.ago is None or trial.compare_with is None or trial.ended:
        return []
    settings = policy_words(record.space, record.trial(trial.compare_with).policy)
    return [f"Compare with {compared(trial)}: {settings}."]


def require_applicable(record: Record, trial: Trial) -> None:
    """Raise if the settings of an open trial must not be applied, or applied again, now."""
    require_reachable(record, trial)
    if is_painful(record, np.array(trial.unit))[0]:
        raise UnsafePolicyError(
            f"trial {trial.number}: it must not be applied, since it is near settings that caused "
            f"pain: abort, veto or undo it{way_out(record)}"
        )


def change(record: Record, trial: Trial, name: str) -> str:
    """How far a setting lies from where the device is, or from the last trial, with its sign."""
    parameter, value = record.space.policy[name], trial.policy[name]
    source, last = last_policy(record, trial.number)
    places = _places_before(record, trial)
    if all(place == last for place in places):
        return _step(value - last[name], parameter, f" from {source}") if name in last else ""
    steps = sorted(value - place[name] for place in places if name in place)
    if not steps:
        return ""
    if physical(steps[0], parameter) == physical(steps[-1], parameter):
        return _step(steps[0], parameter, " from where the device is")
    low, high = (_step(step, parameter) for step in (steps[0], steps[-1]))
    return f"{low} to {high}, place unsure"


def _places_before(record: Record, trial: Trial) -> tuple[Policy, ...]:
    """Where the device may be if the trial was not applied yet; none once it was walked."""
    if trial != record.current or trial.measured or trial.answered:
        return ()
    others = tuple(place for place in record.positions if place != trial.policy)
    return others or record.positions


def _step(step: float, parameter: Parameter, origin: str = "") -> str:
    text = physical(step, parameter)
    if text == "0":
        return "unchanged"
    return f"{'' if text.startswith('-') else '+'}{text}{origin}"


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
