"""SFIHILO: simultaneous forward and inverse human-in-the-loop optimisation."""

import warnings
from typing import Any

from sfihilo.feasible import Feasible
from sfihilo.history import Query, Response
from sfihilo.learner import State, ask, begin, explain, recommend, tell
from sfihilo.recall import question
from sfihilo.recommendation import NothingLearnedError, Recommendation
from sfihilo.saved import load, save
from sfihilo.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Feasible",
    "NothingLearnedError",
    "Query",
    "Recommendation",
    "Response",
    "Settings",
    "State",
    "ask",
    "begin",
    "explain",
    "load",
    "question",
    "recommend",
    "save",
    "tell",
]


def __getattr__(name: str) -> Any:
    if name == "look":  # renamed in 0.2
        warnings.warn("sfihilo.look is now sfihilo.explain", DeprecationWarning, stacklevel=2)
        return explain
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
