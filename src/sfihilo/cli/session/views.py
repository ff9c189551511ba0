"""Tables about a session: its trials, and the advice."""

from __future__ import annotations

from textwrap import wrap

from sfihilo.cli.output import Output, line_width
from sfihilo.experiment.output.advice import Advice, preference_rows, reward_words
from sfihilo.experiment.output.digits import percent, physical
from sfihilo.experiment.record.answers import strength_word
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial


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
            answer_words(record, trial) if trial.answered else None,
        ]
        for trial in record.trials
    ]
    if any(trial.why for trial in record.trials):
        headings.append("reason")
        for row, trial in zip(rows, record.trials, strict=True):
            row.append(trial.why or None)
    return headings, rows


def answer_words(record: Record, trial: Trial) -> str:
    """The answer of a trial, with its strength if it has one."""
    word = strength_word(trial.strength, record.grades)
    named = trial.choice == "previous" and trial.ago is not None and trial.ago > 1
    answer = f"trial {trial.compare_with}" if named else trial.choice or "cannot say"
    return answer + ("" if word is None else f", {word}")


def advice_tables(output: Output, record: Record, advice: Advice) -> None:
    """The verdict and its cautions, then the numbers: settings, preference, outcomes."""
    space = record.space
    for text in (advice.verdict, *advice.remarks):
        output.say(*wrap(text, line_width()))
    output.say("")
    output.table(
        "Recommended",
        ["set", "value", "unit"],
        [
            [name, physical(value, space.policy[name]), space.policy[name].unit]
            for name, value in advice.policy.items()
        ],
    )
    output.table(
        "Probability that this person prefers it to",
        ["compared with", "settings", "preferred"],
        [[name, words, percent(value)] for name, words, value in preference_rows(record, advice)],
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
    output.say(*wrap(reward_words(advice), line_width()))
