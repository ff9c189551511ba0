"""Which earlier trials a new one can be compared with, where the person recalls several.

`Settings.recall` says how many. With 1 it is the anchor: the last trial with a measured outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import TAKEN_OUT, Trial


def with_comparable(record: Record) -> Iterator[tuple[Trial | None, Mapping[int, int]]]:
    """Each trial that the learner is told, with those that it could be compared with; None: next.

    They map from the number of the trial to its round, the newest first. As the learner has it
    (`History.recent`): the last `recall` measured ones, but none as long as some outcome was never
    measured, since the learner cannot predict what it was.
    """
    told = [trial for trial in record.trials if trial.ended and trial.ending != "undone"]
    past: list[tuple[int, Trial]] = []
    measured: set[str] = set()
    for round, trial in enumerate([*told, None]):
        everything = measured == set(record.space.outcomes)
        newest = past[: -record.recall - 1 : -1] if everything else []
        yield trial, {earlier.number: index for index, earlier in newest}
        if trial is not None and trial.known_outcome:
            measured |= trial.known_outcome.keys()
            past.append((round, trial))


def nameable(record: Record, trial: Trial) -> Mapping[int, int]:
    """The trials that an open trial may be compared with, and their rounds, the newest first.

    Only walks whose order is certain and, but for the last one, that were felt since the last
    break. A trial whose outcome is missing counts as a walk, but cannot be named.
    """
    *_, (_, comparable) = with_comparable(record)
    found = {}
    walks = 0
    for earlier in reversed(record.trials[: trial.number - 1]):
        if not earlier.may_have_been_walked:
            continue
        walks += 1
        forgotten = walks > 1 and earlier.number < record.recalled_from
        if forgotten or walks > record.recall or not _was_walked(earlier):
            break
        if earlier.number in comparable:
            found[earlier.number] = comparable[earlier.number]
    return found


def walks_ago(record: Record, number: int, named: int) -> int:
    """How many walks before a trial the named one was; 1 for the one before."""
    between = record.trials[named : number - 1]
    return 1 + sum(trial.may_have_been_walked for trial in between)


def _was_walked(trial: Trial) -> bool:
    """Whether the person has felt this trial, and not only perhaps.

    A number or an answer says so, unless it was taken out: it may have been typed by mistake. A
    start alone does if the trial was not aborted: it is written before the device moves, and the
    device may fail. "Not measured" and "cannot say" do not.
    """
    if trial.ending in TAKEN_OUT:
        return False
    measured = any(value is not None for value in (trial.outcome or {}).values())
    told = measured or trial.choice is not None
    return told or (trial.started and trial.ending != "aborted")
