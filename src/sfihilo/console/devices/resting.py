"""When a device must be at rest, as the record tells: whoever wrote it, and by which action."""

from __future__ import annotations

from collections.abc import Collection

from sfihilo.console.devices.device import DeviceStoppedError
from sfihilo.console.devices.supervisor import HasRecord
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.requirements import require_reachable


class Stoppable:
    """A session as a device sees it: it has no record while a stop is not recorded yet."""

    def __init__(self, session: HasRecord, name: str, unrecorded: Collection[str]) -> None:
        self._session, self._name, self._unrecorded = session, name, unrecorded

    @property
    def record(self) -> Record:
        """The record; raises DeviceStoppedError if the session was stopped."""
        if self._name in self._unrecorded:
            raise DeviceStoppedError("the session was stopped, which is not recorded yet")
        return self._session.record


def walk_is_over(record: Record, trial: Trial) -> bool:
    """Whether the policy of a trial must not be applied any longer.

    After a measurement the person may go on walking. Not so after an abort, a veto, or when the
    start was undone, and not while the session is on hold.
    """
    if record.status != "open" or trial.ending in ("aborted", "vetoed"):
        return True
    return not trial.measured and (trial.ending is not None or not trial.started)


def must_rest(record: Record) -> bool:
    """Whether a device must be at rest: the last walk is over, or the session is on hold."""
    walked = [trial for trial in record.trials if trial.started or trial.walk_undone]
    if record.status != "open" or (walked and walk_is_over(record, walked[-1])):
        return True
    try:
        require_safe_walk(record)
    except ValueError:
        return True
    return False


def require_safe_walk(record: Record) -> None:
    """Raise if the started trial must not be applied from where the device may be now.

    `start` has checked it. But undo can open a trial again that a stop had aborted, when the device
    has been placed elsewhere since.
    """
    trial = record.current
    if trial is not None and trial.started and not trial.measured:
        require_reachable(record, trial)
