"""The rule that decides whether a claim of the paper is reproduced.

A claim is one row: a statement of the paper and one or more checks. A check is a measured quantity,
the paper's own figure for it if stated, and what must hold.

    expectation  yes                                      leaning                       no
    below v      the interval is below v, and p < 0.05    the estimate is               otherwise
    above v      the interval is above v, and p < 0.05    the estimate is               otherwise
    near v       the interval is within v +- tolerance    the estimate is               otherwise
    like v       v is in the interval, the estimate       one of the two                otherwise
                 within 20 % of v
    no_effect    p >= 0.05                                -                             otherwise
    mean_below v the estimate is below v                  -                             otherwise
    mean_above v the estimate is above v                  -                             otherwise

p is that of the paired t-test between two cells (v = 0), with Holm's correction over the panel
where the panel tests that pair; a contrast of changes and a bound other than 0 have none.
All checks yes: reproduced. All no: not. Anything between: partly. With fewer than `FEWEST` users
nothing is concluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfihilo.study.analysis.quantities import Measured, Quantity

FEWEST = 6
SIGNIFICANT = 0.05
ALL_USERS = 30
Kind = Literal["below", "above", "near", "like", "no_effect", "mean_below", "mean_above"]
Answer = Literal["yes", "leaning", "no"]
Verdict = Literal["reproduced", "partly", "not", "not run yet"]


@dataclass(frozen=True)
class Expectation:
    """What must hold for a quantity (see the table at the top of this module)."""

    kind: Kind
    value: float = 0.0
    tolerance: float = 0.0


@dataclass(frozen=True)
class Check:
    """One measurable part of a claim."""

    what: str
    quantity: Quantity
    expected: Expectation
    paper: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper."""

    panel: str
    text: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Finding:
    """A claim and the measured quantities of its checks; None if a check was not run."""

    claim: Claim
    measured: tuple[Measured | None, ...]

    @property
    def users(self) -> int:
        """The smallest number of users of any check."""
        return min(0 if part is None else part.users for part in self.measured)

    @property
    def answers(self) -> tuple[Answer | None, ...]:
        """The answer of each check; None if there are too few users."""
        return tuple(
            None if part is None or part.users < FEWEST else judge(part, check.expected)
            for part, check in zip(self.measured, self.claim.checks, strict=True)
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim, by the rule at the top of this module."""
        answers = self.answers
        if None in answers:
            return "not run yet"
        if all(answer == "yes" for answer in answers):
            return "reproduced"
        return "not" if all(answer == "no" for answer in answers) else "partly"


def judge(measured: Measured, expected: Expectation) -> Answer:
    """Whether a quantity is as expected, by the table at the top of this module."""
    low, high, estimate = (
        measured.interval.low,
        measured.interval.high,
        measured.interval.estimate,
    )
    value, reach = expected.value, expected.tolerance
    covered = low <= value <= high
    # Where there is no test, the interval alone decides.
    significant = value != 0 or not measured.p >= SIGNIFICANT
    sure, leaning = {
        "below": (high < value and significant, estimate < value),
        "above": (low > value and significant, estimate > value),
        "near": (value - reach <= low and high <= value + reach, abs(estimate - value) <= reach),
        "like": (
            covered and abs(estimate - value) <= 0.2 * abs(value),
            covered or abs(estimate - value) <= 0.2 * abs(value),
        ),
        "no_effect": (measured.p >= SIGNIFICANT, False),
        "mean_below": (estimate < value, False),
        "mean_above": (estimate > value, False),
    }[expected.kind]
    return "yes" if sure else "leaning" if leaning else "no"
