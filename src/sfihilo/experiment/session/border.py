"""What callers of a session give, checked: trial numbers, answers, texts; what a trial allows."""

from __future__ import annotations

from sfihilo.experiment.session.trial import Trial
from sfihilo.history import CHOICES, Choice, known_choice

LONGEST_TEXT = 2000


def trial_number(trial: Trial | int) -> int:
    """The number of a trial that is given as itself or as its number."""
    if isinstance(trial, Trial):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, int):
        raise ValueError(f"trial: expected a trial or its number, got {trial!r}")
    return trial


def answer(choice: object) -> Choice | None:
    """One of the known answers; None says that the person cannot say."""
    if isinstance(choice, str) or choice is None:
        return known_choice(choice)
    raise ValueError(f"choice: expected one of {', '.join(CHOICES)} or None, got {choice!r}")


def short_text(value: object) -> str:
    """A reason or a note."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {type(value).__name__}")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"expected at most {LONGEST_TEXT} characters, got {len(value)}")
    return value


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 trial", "2 trials"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def require_unfinished(trial: Trial) -> None:
    """Raise if nothing more is expected of the trial."""
    if trial.ended:
        raise ValueError(f"trial {trial.number}: it is over ({trial.status})")


def require_comparison(trial: Trial) -> None:
    """Raise if the person is not asked to compare this trial."""
    if not trial.asks_choice:
        raise ValueError(
            f"trial {trial.number}: there is nothing to compare it with, so no answer is expected"
        )
