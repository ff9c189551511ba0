"""Comparisons that are no longer asked, since the person felt something else in between."""

from __future__ import annotations

from dataclasses import replace

from sfihilo.experiment.record.recalled import with_comparable
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial


def not_last(record: Record, trial: Trial) -> Record:
    """Ask for no comparison of a trial, if the person may have walked a later one before it."""
    last = record.last_walked
    if not trial.asks_choice or trial.answered or last is None or last.number <= trial.number:
        return record
    warning = f"no comparison is asked: the person may have walked trial {last.number} before it"
    return unasked(record, trial, warning)


def not_comparable(record: Record) -> Record:
    """Ask for no comparison with a trial whose outcome was taken out while the question is open."""
    trial = record.current
    if trial is None or trial.answered or not trial.asks_choice or trial.compare_with is None:
        return record
    *_, (_, comparable) = with_comparable(record)
    if trial.compare_with in comparable:
        return record
    named = trial.compare_with
    return unasked(
        record, trial, f"no comparison is asked: the outcome of trial {named} no longer counts"
    )


def felt_between(record: Record, number: int) -> Record:
    """Ask for no comparison across a refused trial, now that it is told that the person felt it.

    An answer that was given does not count: "the one before" was that trial.
    """
    for trial in record.trials[number:]:
        across = trial.compare_with is not None and trial.compare_with < number
        if across and trial.asks_choice:
            what = "the answer does not count" if trial.answered else "no comparison is asked"
            warning = f"{what}: the person felt trial {number} in between"
            record = unasked(record, trial, warning)
    return record


def unasked(record: Record, trial: Trial, warning: str) -> Record:
    """The record in which a trial has no question, and why."""
    warnings = (*trial.warnings, warning)
    return record.with_trial(replace(trial, asks_choice=False, warnings=warnings))
