"""SFIHILO: simultaneous forward and inverse human-in-the-loop optimisation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfihilo.compared_trial import question
    from sfihilo.comparisons import reward_from_comparisons
    from sfihilo.feasible import Feasible
    from sfihilo.history import Query, Response
    from sfihilo.learner import ask, begin, explain, recommend, tell, with_goal
    from sfihilo.recommendation import NothingLearnedError, Recommendation
    from sfihilo.saved import load, save
    from sfihilo.settings import Settings
    from sfihilo.state import State

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
    "reward_from_comparisons",
    "save",
    "tell",
    "with_goal",
]


# Where each public name is defined. It is loaded on first use, so that a command of a session
# which only reads or writes the record does not load the learner.
_HOMES = {
    "Feasible": "feasible",
    "NothingLearnedError": "recommendation",
    "Query": "history",
    "Recommendation": "recommendation",
    "Response": "history",
    "Settings": "settings",
    "State": "state",
    "ask": "learner",
    "begin": "learner",
    "explain": "learner",
    "load": "saved",
    "question": "compared_trial",
    "recommend": "learner",
    "reward_from_comparisons": "comparisons",
    "save": "saved",
    "tell": "learner",
    "with_goal": "learner",
}
_PARTS = frozenset({"forward", "inverse", "querying", *_HOMES.values()})


def __getattr__(name: str) -> Any:
    if name == "look":  # renamed in 0.2
        import warnings

        warnings.warn("sfihilo.look is now sfihilo.explain", DeprecationWarning, stacklevel=2)
        name = "explain"
    if name in _PARTS:
        return import_module(f"sfihilo.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"sfihilo.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
