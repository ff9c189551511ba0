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
    ReplacedError,
    StaleError,
    deprecated,
)
from sfihilo.experiment.output.advice import Advice, Interval, Tried
from sfihilo.experiment.record.protocol import Protocol, Veto
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.commit import OvertakenError
from sfihilo.experiment.session.lab import Lab, Plan
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.space.measurement import BadMeasurementError
from sfihilo.experiment.space.parameter import Outcome, Parameter
from sfihilo.experiment.space.safety import UnsafePolicyError
from sfihilo.experiment.space.space import Space
from sfihilo.history import Choice

__all__ = [
    "Advice",
    "BadMeasurementError",
    "BusyError",
    "Choice",
    "DamagedError",
    "DiskFailureError",
    "Interval",
    "KeyConflictError",
    "Lab",
    "LogError",
    "NotALogError",
    "Outcome",
    "OvertakenError",
    "Parameter",
    "Plan",
    "Protocol",
    "ReadOnlyError",
    "Record",
    "ReplacedError",
    "Session",
    "Space",
    "StaleError",
    "Trial",
    "Tried",
    "UnsafePolicyError",
    "Veto",
]


def __getattr__(name: str) -> type[Exception]:
    return deprecated(name, __name__, {**DEPRECATED, "Overtaken": OvertakenError})
