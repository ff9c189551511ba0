"""The answers that a person is offered: which condition was better and, if graded, how much.

`Settings(grades=...)` decides: two answers, five or seven. The strength of a graded answer counts
from 1; each has its word, which the shell, the tables and the report share.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfihilo.history import CHOICES, Choice, known_strength

# The name of a set of answers, as TOML files have it, and its number of grades.
OFFERED: Mapping[str, int] = {"two": 2, "five": 5, "seven": 7}
STRENGTHS: Mapping[int, tuple[str, ...]] = {
    2: (),
    5: ("better", "much"),
    7: ("slightly", "clearly", "much"),
}

Answer = tuple[Choice | None, int | None]


def offered(grades: int) -> str:
    """The name of a set of answers."""
    return next(name for name, number in OFFERED.items() if number == grades)


def all_answers(grades: int) -> list[Answer]:
    """Every answer that can be given, "cannot say" last; graded ones with their strength."""
    strengths = [*range(1, len(STRENGTHS[grades]) + 1)] or [None]
    graded: list[Answer] = [
        (choice, strength) for strength in strengths for choice in CHOICES if choice != "same"
    ]
    return [*graded, ("same", None), (None, None)]


def strength_word(strength: int | None, grades: int) -> str | None:
    """The word of a strength: "slightly", "clearly", ...; None if the answer was not graded."""
    words = STRENGTHS[grades]
    return None if strength is None or strength > len(words) else words[strength - 1]


def checked_strength(strength: object, choice: Choice | None, grades: int) -> int | None:
    """Validates the strength of an answer in a session with this many grades."""
    words = STRENGTHS[grades]
    try:
        return known_strength(strength, choice, len(words))
    except ValueError as error:
        meant = ", ".join(f"{number} ({word})" for number, word in enumerate(words, start=1))
        about = f"grades its answers: {meant}" if words else "has two answers without grades"
        raise ValueError(f"{error}; this session {about}") from None
