"""Tables about a session: its trials, and the advice."""

from __future__ import annotations

from sfihilo.cli.output import Output
from sfihilo.cli.values import physical
from sfihilo.experiment.output.advice import Advice
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.trial import counted


def trial_table(record: Record) -> tuple[list[str], list[list[object]]]:
    """Headings and a row per trial."""
    space = record.space
    headings = ["trial", "source", "status", *space.policy, *space.outcomes, "with", "choice"]
    rows: list[list[object]] = [
        [
            trial.number,
            trial.source,
            trial.status,
            *(physical(value, space.policy[name]) for name, value in trial.policy.items()),
            *(
                physical((trial.outcome or {}).get(name), outcome)
                for name, outcome in space.outcomes.items()
            ),
            trial.compare_with if trial.asks_choice else None,
            (trial.choice or "cannot say") if trial.answered else None,
        ]
        for trial in record.trials
    ]
    return headings, rows


def advice_tables(output: Output, record: Record, advice: Advice) -> None:
    """The recommended settings, the outcomes they should bring, and what to be careful about."""
    space = record.space
    output.table(
        f"Recommended after {counted(advice.trials, 'trial')}",
        ["set", "value", "unit"],
        [
            [name, physical(value, space.policy[name]), space.policy[name].unit]
            for name, value in advice.policy.items()
        ],
    )
    output.table(
        "Expected, with 95 % intervals",
        ["outcome", "value", "low", "high", "unit"],
        [
            [
                name,
                *(physical(v, space.outcomes[name]) for v in (found.value, found.low, found.high)),
                space.outcomes[name].unit,
            ]
            for name, found in advice.outcomes.items()
        ],
    )
    if advice.extrapolates:
        output.say("Careful: less is known about these settings than about any that were tried.")
    if not advice.one_step:
        output.say("They are more than one allowed step away: approach them in steps.")
