"""The query rules by name."""

from __future__ import annotations

from sfihilo.names import named_function
from sfihilo.pairs import global_pairs
from sfihilo.querying import Rule, boundary_lookahead, mutual_information, random

RULES: dict[str, Rule] = {
    "random": random,
    "mutual_information": mutual_information,
    "boundary_lookahead": boundary_lookahead,
    "global_pairs": global_pairs,
}


def rule(name: str) -> Rule:
    """The rule of this name, or a user's own "module:function"."""
    return RULES[name] if name in RULES else named_function(name, "rule", tuple(RULES))
