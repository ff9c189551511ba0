"""The courses of all people in a few numbers: means with standard errors, the finding in words.

Notation
    courses of one way   (people,)
    Band.mean, .error    (n,)      mean over people, and its standard error
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfihilo.history import FloatArray
from sfihilo.study.demo.courses import WAYS, Course, Way


@dataclass(frozen=True, eq=False)
class Band:
    """The mean over people and its standard error, after each number of comparisons."""

    queries: FloatArray
    mean: FloatArray
    error: FloatArray

    @property
    def last(self) -> float:
        """The mean after all comparisons."""
        return float(self.mean[-1])


@dataclass(frozen=True, eq=False)
class Summary:
    """What the picture and the table show.

    advice, wrong, liking: per way. wins: how many people got better advice with the goal `best`
    than from random trials. blind: a setting drawn at random, as a share of the best reachable.
    example: the courses of the person whose preferences were learned as well as those of the
    person in the middle.
    """

    people: int
    queries: int
    advice: Mapping[Way, Band]
    wrong: Mapping[Way, Band]
    liking: Mapping[Way, Band]
    blind: float
    wins: int
    example: Mapping[Way, Course]


def summarise(courses: Sequence[Course]) -> Summary:
    """The summary of all courses, in whatever order they finished."""
    ways = {
        way: sorted((c for c in courses if c.way == way), key=lambda c: c.person) for way in WAYS
    }
    pairs = zip(ways["best"], ways["random"], strict=True)
    middle = middle_person(ways["understand"])
    return Summary(
        people=len(ways["best"]),
        queries=int(courses[0].queries[-1]),
        advice={way: band(found, lambda c: c.advice) for way, found in ways.items()},
        wrong={way: band(found, lambda c: c.wrong) for way, found in ways.items()},
        liking={way: band(found, mean_liking) for way, found in ways.items()},
        blind=float(np.mean([course.blind for course in ways["best"]])),
        wins=sum(bool(best.advice[-1] > other.advice[-1]) for best, other in pairs),
        example={course.way: course for course in courses if course.person == middle},
    )


def band(courses: Sequence[Course], measure: Callable[[Course], FloatArray]) -> Band:
    """The mean of a measure over people, and its standard error."""
    values = np.stack([measure(course) for course in courses])
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return Band(courses[0].queries, values.mean(axis=0), error)


def mean_liking(course: Course) -> FloatArray:
    """The mean liking of all trials until each of the evaluations."""
    return np.array([course.liking[: int(queries)].mean() for queries in course.queries])


def middle_person(courses: Sequence[Course]) -> int:
    """The person in the middle by the share of wrong predictions at the end (the lower one)."""
    ranked = sorted(courses, key=lambda course: float(course.wrong[-1]))
    return ranked[(len(ranked) - 1) // 2].person


def overtakes(summary: Summary) -> int | None:
    """The comparisons from which on goal `best` advises as well as all random trials do."""
    advice = summary.advice["best"]
    below = np.flatnonzero(advice.mean < summary.advice["random"].last)
    first = below[-1] + 1 if len(below) else 0
    return int(advice.queries[first]) if first < len(advice.queries) else None


def headline(summary: Summary) -> str:
    """The finding of this run in one sentence, on two lines."""
    best, random = summary.advice["best"].last, summary.advice["random"].last
    asked, soon = summary.queries, overtakes(summary)
    found = f"{asked} trials find a setting worth {percent(best)} of the best possible;\n"
    if soon is not None and soon < asked:
        return f"{found}{soon} are enough to match {asked} random ones ({percent(random)})"
    return f"{found}{asked} random ones find one worth {percent(random)}"


def percent(share: float, decimals: int = 0) -> str:
    """A share in percent."""
    return f"{100 * share:.{decimals}f} %"
