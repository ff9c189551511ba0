"""Sessions with real people: physical space, durable record, safety, export, report."""

from sfihilo.experiment.log.errors import (
    DEPRECATED,
    BusyError,
    DamagedError,
    DiskFailureError,
    KeyConflictError,
    LogError,
    NotALogError,
    ReadOnlyError,
    StaleError,
    deprecated,
)
from sfihilo.experiment.output.advice import Advice
from sfihilo.experiment.session.journal import Overtaken
from sfihilo.experiment.session.lab import Lab
from sfihilo.experiment.session.record import Protocol, Record
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.session.trial import Trial
from sfihilo.experiment.space.measurement import BadMeasurementError
from sfihilo.experiment.space.parameter import Outcome, Parameter
from sfihilo.experiment.space.safety import UnsafePolicyError
from sfihilo.experiment.space.space import Space

__all__ = [
    "Advice",
    "BadMeasurementError",
    "BusyError",
    "DamagedError",
    "DiskFailureError",
    "KeyConflictError",
    "Lab",
    "LogError",
    "NotALogError",
    "Outcome",
    "Overtaken",
    "Parameter",
    "Protocol",
    "ReadOnlyError",
    "Record",
    "Session",
    "Space",
    "StaleError",
    "Trial",
    "UnsafePolicyError",
]


def __getattr__(name: str) -> type[Exception]:
    return deprecated(name, __name__, DEPRECATED)
