"""Which policy to ask next: the query rules by name.

A rule is a function Situation -> Decision. `random` and `mutual_information` are the paper's
baselines, `boundary_lookahead` is its rule, `global_pairs` that of the default preset. These
learn what a person values. `best`, `thompson`, `knowledge_gradient` and `eubo` seek a good setting.
"""

from __future__ import annotations

import warnings
from typing import Any

from sfihilo.checks import named_function
from sfihilo.querying.baselines import mutual_information, random
from sfihilo.querying.entropy_search import entropy_search
from sfihilo.querying.knowledge_gradient import knowledge_gradient
from sfihilo.querying.lookahead import QuerySettings, boundary_lookahead
from sfihilo.querying.pairs import PairSettings, global_pairs
from sfihilo.querying.seeking import best, eubo
from sfihilo.querying.situation import Decision, Rule, Situation
from sfihilo.querying.thompson import thompson

__all__ = [
    "RULES",
    "SEEKING",
    "Decision",
    "PairSettings",
    "QuerySettings",
    "Rule",
    "Situation",
    "best",
    "boundary_lookahead",
    "entropy_search",
    "eubo",
    "global_pairs",
    "knowledge_gradient",
    "mutual_information",
    "random",
    "rule",
    "thompson",
]

RULES: dict[str, Rule] = {
    "random": random,
    "mutual_information": mutual_information,
    "boundary_lookahead": boundary_lookahead,
    "global_pairs": global_pairs,
    "best": best,
    "entropy_search": entropy_search,
    "thompson": thompson,
    "knowledge_gradient": knowledge_gradient,
    "eubo": eubo,
}


# Rules whose questions and advice rest on the outcomes' processes (forward/gaussian_process.py).
SEEKING = frozenset({"best", "entropy_search", "thompson", "knowledge_gradient", "eubo"})


def rule(name: str) -> Rule:
    """Return the rule of this name, or a user's own given as "module:function"."""
    return RULES[name] if name in RULES else named_function(name, "rule", tuple(RULES))


def __getattr__(name: str) -> Any:
    if name == "Selection":  # renamed in 0.2
        warnings.warn("querying.Selection is now Decision", DeprecationWarning, stacklevel=2)
        return Decision
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
