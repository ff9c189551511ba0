"""The paper's claims (section "Results and discussion", appendix `app:policy-reward-gap`) as data.

To add a claim, add a row to `CLAIMS`. verdicts.py defines when a claim is reproduced.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from sfihilo.study.analysis.measures import (
    ERROR_END,
    FORWARD_AREA,
    POLICY_GAP,
    QUERIES_TO_10,
    Area,
    Cell,
    LateMean,
    QueriesToTarget,
    Results,
    UserMeasure,
    error_after,
    gap_error,
)
from sfihilo.study.analysis.quantities import (
    Comparison,
    Measured,
    change,
    contrast,
    crossing,
    crossing_against,
    level,
)
from sfihilo.study.analysis.summary import TESTED, find_test, panel_tests
from sfihilo.study.design.conditions import BASE
from sfihilo.study.design.panels import INFORMATION, LOOKAHEAD, RANDOM
from sfihilo.study.pages.markdown import minus
from sfihilo.study.pages.verdicts import Check, Claim, Expectation, Finding


def findings(results: Results) -> list[Finding]:
    """Every claim of the paper with what the stored results say about it."""
    tests = {name: panel_tests(results, "paper", name) for name in TESTED}
    return [
        Finding(
            claim,
            tuple(
                _corrected(check.quantity(results), tests[claim.panel]) for check in claim.checks
            ),
        )
        for claim in CLAIMS
    ]


def _corrected(measured: Measured | None, tests: pd.DataFrame) -> Measured | None:
    """The same with the panel's Holm-corrected p-value, if the panel tests this comparison."""
    if measured is None or measured.compared is None:
        return measured
    rows = find_test(tests, *measured.compared)
    return measured if rows.empty else replace(measured, p=float(rows["p_holm"].iloc[0]))


def _cell(condition: str, rule: str = LOOKAHEAD) -> Cell:
    return Cell("paper", condition, rule)


def _gain(measure: UserMeasure, rule: str, condition: str = BASE.name) -> Comparison:
    """The comparison of a rule with Random in the same condition."""
    return measure, _cell(condition, rule), _cell(condition, RANDOM)


BELOW, ABOVE = Expectation("below"), Expectation("above")
Q10, END, GAP = QUERIES_TO_10, ERROR_END, POLICY_GAP
Q10_SMALL_GAPS, Q10_LARGE_GAPS = (QueriesToTarget(gap_error(number)) for number in (2, 4))
ERROR_AREA, LARGE_GAP_AREA = Area("preference_error"), Area(gap_error(4))
FORWARD_LATE = LateMean("forward_rmse")
_DIMENSIONS = {2: "d02", 4: "d04", 6: "d06", 8: "base", 10: "d10", 12: "d12"}
_NAMES = {RANDOM: "Random", INFORMATION: "Mutual Information", LOOKAHEAD: "Boundary Lookahead"}
_HIDDEN = (1, 2, 3, 5)
_COUNTS = {RANDOM: 958, INFORMATION: 563, LOOKAHEAD: 413}

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "A",
        "Random, Mutual Information and Boundary Lookahead need 958, 563 and 413 queries until "
        "the mean curve reaches 10 % error.",
        tuple(
            Check(
                _NAMES[rule], crossing(_cell("base", rule)), Expectation("like", count), f"{count}"
            )
            for rule, count in _COUNTS.items()
        ),
    ),
    Claim(
        "A",
        "Relative to Random, Mutual Information saves 41 % of the queries and Boundary "
        "Lookahead 57 %.",
        tuple(
            Check(
                f"{_NAMES[rule]} against Random, mean curves",
                crossing_against(_cell("base", rule), _cell("base", RANDOM)),
                Expectation("like", _COUNTS[rule] / _COUNTS[RANDOM] - 1),
                minus(f"{100 * (_COUNTS[rule] / _COUNTS[RANDOM] - 1):+.0f} %"),
            )
            for rule in (INFORMATION, LOOKAHEAD)
        ),
    ),
    Claim(
        "A",
        "Boundary Lookahead needs fewer queries than either of the others.",
        (
            Check("against Random, a count per user", change(*_gain(Q10, LOOKAHEAD)), BELOW),
            Check(
                "against Mutual Information, a count per user",
                change(Q10, _cell("base"), _cell("base", INFORMATION)),
                BELOW,
            ),
        ),
    ),
    Claim(
        "B",
        "The relative benefit of Boundary Lookahead is largest where reward gaps are small.",
        (
            Check(
                "its gain at gaps 0.04-0.08 less its gain at gaps above 0.16",
                contrast(_gain(Q10_SMALL_GAPS, LOOKAHEAD), _gain(Q10_LARGE_GAPS, LOOKAHEAD)),
                BELOW,
            ),
        ),
    ),
    Claim(
        "B",
        "On the easiest pairs, Mutual Information is worse than Random, and Boundary Lookahead "
        "keeps its advantage.",
        (
            Check(
                "Mutual Information against Random, gaps above 0.16",
                change(*_gain(Q10_LARGE_GAPS, INFORMATION)),
                ABOVE,
            ),
            Check(
                "Boundary Lookahead against Random, gaps above 0.16",
                change(*_gain(Q10_LARGE_GAPS, LOOKAHEAD)),
                BELOW,
            ),
            Check(
                "Mutual Information against Random, area under the error on these pairs",
                change(*_gain(LARGE_GAP_AREA, INFORMATION)),
                ABOVE,
            ),
            Check(
                "Boundary Lookahead against Random, area under the error on these pairs",
                change(*_gain(LARGE_GAP_AREA, LOOKAHEAD)),
                BELOW,
            ),
        ),
    ),
    Claim(
        "C",
        "Mutual Information loses its advantage as dimensions are added, and ends up worse than "
        "Random at the highest dimensionality (here 12).",
        (
            Check("against Random at d = 2", change(*_gain(Q10, INFORMATION, "d02")), BELOW),
            Check("against Random at d = 4", change(*_gain(Q10, INFORMATION, "d04")), BELOW),
            Check(
                "its gain at d = 12 less its gain at d = 4",
                contrast(_gain(Q10, INFORMATION, "d12"), _gain(Q10, INFORMATION, "d04")),
                ABOVE,
            ),
            Check("against Random at d = 12", change(*_gain(Q10, INFORMATION, "d12")), ABOVE),
        ),
    ),
    Claim(
        "C",
        "Boundary Lookahead keeps its advantage over Random at every dimensionality.",
        tuple(
            Check(f"against Random at d = {dim}", change(*_gain(Q10, LOOKAHEAD, name)), BELOW)
            for dim, name in _DIMENSIONS.items()
        ),
    ),
    Claim(
        "C",
        "Boundary Lookahead learns preferences from fewer queries than Mutual Information does "
        "(abstract), across dimensionalities.",
        tuple(
            Check(
                f"area under the error against Mutual Information's at d = {dim}",
                change(ERROR_AREA, _cell(name), _cell(name, INFORMATION)),
                BELOW,
            )
            for dim, name in _DIMENSIONS.items()
        ),
    ),
    Claim(
        "D",
        "Boundary Lookahead learns the forward model as well as Random does; Mutual Information "
        "learns it worse.",
        (
            Check(
                "Boundary Lookahead's RMSE area against Random's (equal: within 5 %)",
                change(*_gain(FORWARD_AREA, LOOKAHEAD)),
                Expectation("near", 0.0, 0.05),
            ),
            Check(
                "Mutual Information's RMSE area against Random's",
                change(*_gain(FORWARD_AREA, INFORMATION)),
                ABOVE,
            ),
        ),
    ),
    Claim(
        "E",
        "Noise raises the number of queries, and the relative gain of active querying with it.",
        (
            *(
                Check(
                    f"{_NAMES[rule]}'s queries, double noise against none",
                    change(Q10, _cell("noise2", rule), _cell("noise0", rule)),
                    ABOVE,
                )
                for rule in (RANDOM, INFORMATION, LOOKAHEAD)
            ),
            *(
                Check(
                    f"gain of {_NAMES[rule]} with double noise less that without noise",
                    contrast(_gain(Q10, rule, "noise2"), _gain(Q10, rule, "noise0")),
                    BELOW,
                )
                for rule in (INFORMATION, LOOKAHEAD)
            ),
        ),
    ),
    Claim(
        "F",
        "A linear reward model saturates above 10 % error, while the Gaussian process goes on "
        "improving.",
        (
            Check(
                "error of the linear model at the end",
                level(_cell("linear"), END),
                Expectation("above", 0.10),
                "above 10 %",
            ),
            Check(
                "linear: from 500 to 1,000 queries (saturated: within 10 %)",
                change(END, _cell("linear"), _cell("linear"), error_after(500)),
                Expectation("near", 0.0, 0.10),
            ),
            Check(
                "Gaussian process: from 500 to 1,000 queries",
                change(END, _cell("base"), _cell("base"), error_after(500)),
                BELOW,
            ),
        ),
    ),
    Claim(
        "G",
        "Under motor adaptation, learned decay comes close to known decay and has a lower late "
        "error than no weighting.",
        (
            Check(
                "late RMSE, learned against known decay (close: within 5 %)",
                change(FORWARD_LATE, _cell("drift_learned"), _cell("drift_known")),
                Expectation("near", 0.0, 0.05),
            ),
            Check(
                "late RMSE, learned decay against unweighted",
                change(FORWARD_LATE, _cell("drift_learned"), _cell("drift_unweighted")),
                BELOW,
            ),
        ),
    ),
    Claim(
        "H",
        "Missing outcomes sharply increase the preference error.",
        tuple(
            Check(
                f"final error, {count} missing against none",
                change(END, _cell(f"missing{count}"), _cell("d10")),
                ABOVE,
            )
            for count in _HIDDEN
        ),
    ),
    Claim(
        "H",
        "Missing outcomes that matter do more harm than extra ones that do not.",
        tuple(
            Check(
                f"final error, {count} missing against {count} extra",
                change(END, _cell(f"missing{count}"), _cell(f"extra{count}")),
                ABOVE,
            )
            for count in _HIDDEN
        ),
    ),
    Claim(
        "I",
        "Extra outcomes cost only a modest amount of accuracy.",
        tuple(
            Check(
                f"final error, {count} extra against none (modest: below 25 %)",
                change(END, _cell(f"extra{count}"), _cell("d10")),
                Expectation("below", 0.25),
                "modest",
            )
            for count in _HIDDEN
        ),
    ),
    Claim(
        "gap",
        "The final policies are comparable: Mutual Information has the lowest mean reward gap, "
        "Boundary Lookahead a lower one than Random, and no difference is significant.",
        tuple(
            Check(f"{words}: {what}", change(GAP, *cells), expected)
            for words, cells in (
                ("Mutual Information against Random", _gain(GAP, INFORMATION)[1:]),
                ("Boundary Lookahead against Random", _gain(GAP, LOOKAHEAD)[1:]),
            )
            for what, expected in (
                ("lower on average", Expectation("mean_below")),
                ("no clear difference", Expectation("no_effect")),
            )
        )
        + tuple(
            Check(
                f"Boundary Lookahead against Mutual Information: {what}",
                change(GAP, _cell("base"), _cell("base", INFORMATION)),
                expected,
            )
            for what, expected in (
                ("higher on average", Expectation("mean_above")),
                ("no clear difference", Expectation("no_effect")),
            )
        ),
    ),
)
