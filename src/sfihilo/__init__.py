"""SFIHILO: simultaneous forward and inverse human-in-the-loop optimisation."""

from sfihilo.feasible import Feasible
from sfihilo.history import Query, Response
from sfihilo.learner import State, ask, begin, look, recommend, tell
from sfihilo.saved import load, save
from sfihilo.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Feasible",
    "Query",
    "Response",
    "Settings",
    "State",
    "ask",
    "begin",
    "load",
    "look",
    "recommend",
    "save",
    "tell",
]
