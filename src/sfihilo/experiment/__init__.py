"""Sessions with real people: physical space, durable record, safety, export, report."""

from sfihilo.experiment.advice import Advice
from sfihilo.experiment.journal import Overtaken
from sfihilo.experiment.lab import Lab
from sfihilo.experiment.measurement import BadMeasurementError
from sfihilo.experiment.parameter import Outcome, Parameter
from sfihilo.experiment.problems import (
    Busy,
    Damaged,
    DiskFailure,
    KeyConflict,
    LogProblem,
    NotALog,
    ReadOnly,
    Stale,
)
from sfihilo.experiment.record import Protocol, Record
from sfihilo.experiment.safety import UnsafePolicyError
from sfihilo.experiment.session import Session
from sfihilo.experiment.space import Space
from sfihilo.experiment.trial import Trial

__all__ = [
    "Advice",
    "BadMeasurementError",
    "Busy",
    "Damaged",
    "DiskFailure",
    "KeyConflict",
    "Lab",
    "LogProblem",
    "NotALog",
    "Outcome",
    "Overtaken",
    "Parameter",
    "Protocol",
    "ReadOnly",
    "Record",
    "Session",
    "Space",
    "Stale",
    "Trial",
    "UnsafePolicyError",
]
