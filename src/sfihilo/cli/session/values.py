"""What people type: numbers, answers, NAME=VALUE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sfihilo.experiment.record.answers import STRENGTHS
from sfihilo.experiment.space.space import Space
from sfihilo.history import Choice

MISSING_WORDS = frozenset({"none", "missing", "na", "-"})
COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?([eE][-+]?\d+)?")
CHOICE_WORDS: Mapping[str, Choice | None] = {
    "n": "new", "new": "new",
    "p": "previous", "previous": "previous",
    "s": "same", "same": "same",
    "c": None, "cannot": None, "cannot say": None, "can't say": None, "none": None,
}  # fmt: skip
STRENGTH_HELP = (
    "How much better, if answers are graded: slightly, clearly, much; of five better, much."
)
CHOICE_HELP = "n (new), p (previous), s (same) or c (cannot say)"


def parse_choice(text: str) -> Choice | None:
    """An answer as one letter or as a word; None is "cannot say"."""
    word = text.strip().lower()
    if word not in CHOICE_WORDS:
        raise ValueError(f"choice: expected {CHOICE_HELP}, got {text!r}")
    return CHOICE_WORDS[word]


def parse_strength(text: str | None, grades: int) -> int | None:
    """How much better, as a word of the session's answers, its first letters or its number."""
    if text is None:
        return None
    words = STRENGTHS[grades]
    if not words:
        raise ValueError(f"strength: expected none, since answers are not graded, got {text!r}")
    given = text.strip().lower()
    for number, word in enumerate(words, start=1):
        if given and (given == str(number) or word.startswith(given)):
            return number
    raise ValueError(f"strength: expected {' or '.join(words)}, got {text!r}")


def parse_number(text: str, name: str) -> float:
    """A number with a decimal point or comma; raises where a comma could mean either thing."""
    stripped = text.strip()
    if THOUSANDS.fullmatch(stripped):
        point, joined = stripped.replace(",", ".", 1), stripped.replace(",", "")
        either = f"{point} or {joined}" if stripped.count(",") == 1 else joined
        raise ValueError(f"{name}: {stripped} could mean {either}: write it without a comma")
    if COMMA.fullmatch(stripped):
        stripped = stripped.replace(",", ".")
    try:
        if "_" in stripped:  # which Python reads as 41 where 4_1 was a slip of 4.1
            raise ValueError
        return float(stripped)
    except ValueError:
        raise ValueError(f"{name}: expected a number such as 4.1, got {text!r}") from None


def is_missing(text: str) -> bool:
    """Whether a typed value says that nothing could be measured."""
    return text.strip().lower() in MISSING_WORDS


def split_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE arguments as texts."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"expected NAME=VALUE, got {pair!r}")
        if name in found:
            raise ValueError(f"{name}: given twice")
        found[name] = text
    return found


def parse_policy(pairs: Sequence[str]) -> dict[str, float]:
    """NAME=VALUE arguments for settings of the device."""
    return {name: parse_number(text, name) for name, text in split_pairs(pairs).items()}


def parse_outcome(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE arguments for outcomes; NAME=none where nothing could be measured.

    A text that is not a number is kept: the session refuses it and records the refusal.
    """
    found: dict[str, Any] = {}
    for name, text in split_pairs(pairs).items():
        try:
            found[name] = None if is_missing(text) else parse_number(text, name)
        except ValueError:
            if "," in text:
                raise
            found[name] = text
    return found


def whole_outcome(space: Space, given: Mapping[str, Any]) -> dict[str, Any]:
    """All outcomes of the space; raises, in the words of the shell, where some are not named."""
    unknown = [name for name in given if name not in space.outcomes]
    absent = [name for name in space.outcomes if name not in given]
    problems = [f"{name}: expected one of {', '.join(space.outcomes)}" for name in unknown]
    problems += [
        f"{name}: expected a value (give {name}=none if it could not be measured)"
        for name in absent
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return dict(given)


def parse_ranges(pairs: Sequence[str]) -> dict[str, tuple[float, float]]:
    """NAME=LOW:HIGH arguments."""
    found = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        low, colon, high = text.partition(":")
        if not colon:
            raise ValueError(f"--within: expected NAME=LOW:HIGH, got {pair!r}")
        found[name] = (parse_number(low, name), parse_number(high, name))
    return found


def parse_comparisons(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """NAME:PARAMETER=VALUE,... arguments: named settings to compare the advice with."""
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, colon, values = text.partition(":")
        if not name or not colon or not values:
            raise ValueError(f"--compare: expected NAME:PARAMETER=VALUE,..., got {text!r}")
        if name in found:
            raise ValueError(f"--compare: {name} is given twice")
        found[name] = parse_policy(values.split(","))
    return found
