"""Outcomes from raw samples: one number per trial, or a plain refusal."""

from sfihilo.experiment.estimators.transient import (
    PoorDataError,
    SteadyState,
    TransientSettings,
    metabolic_rate,
    steady_state,
)
from sfihilo.experiment.estimators.window import SUMMARIES, Summary, summary

__all__ = [
    "SUMMARIES",
    "PoorDataError",
    "SteadyState",
    "Summary",
    "TransientSettings",
    "metabolic_rate",
    "steady_state",
    "summary",
]
