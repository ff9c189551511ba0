"""The paper's claims: rules of judgement, and the page, on results whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.analysis import quantities, summary
from sfihilo.study.analysis.measures import (
    POLICY_GAP,
    QUERIES_TO_10,
    Cell,
    QueriesToTarget,
    Results,
    gap_error,
)
from sfihilo.study.analysis.quantities import Measured
from sfihilo.study.analysis.statistics import Interval, contrast_interval, crossing_change
from sfihilo.study.design.panels import PANELS
from sfihilo.study.pages import claims, markdown
from sfihilo.study.pages.claims import CLAIMS
from sfihilo.study.pages.results_page import page as results_page
from sfihilo.study.pages.results_page import write_page
from sfihilo.study.pages.verdicts import Check, Claim, Expectation, Finding, Kind, judge
from tests.study.invented import invented, write_results


def measured(estimate: float, low: float, high: float, users: int = 30) -> Measured:
    return Measured(Interval(estimate, low, high), users, "change")


@pytest.mark.parametrize(
    ("expected", "interval", "answer"),
    [
        (Expectation("below"), (-0.2, -0.3, -0.1), "yes"),
        (Expectation("below"), (-0.2, -0.5, 0.1), "leaning"),
        (Expectation("below"), (0.1, -0.1, 0.3), "no"),
        (Expectation("above", 0.1), (0.2, 0.11, 0.3), "yes"),
        (Expectation("above", 0.1), (0.2, 0.05, 0.3), "leaning"),
        (Expectation("near", 0, 0.05), (0.01, -0.04, 0.05), "yes"),
        (Expectation("near", 0, 0.05), (0.01, -0.06, 0.05), "leaning"),
        (Expectation("near", 0, 0.05), (0.06, 0.05, 0.07), "no"),
        (Expectation("like", 413), (350, 300, 420), "yes"),
        (Expectation("like", 413), (350, 340, 360), "leaning"),  # close, but surely lower
        (Expectation("like", 413), (200, 100, 900), "leaning"),  # not excluded, but far
        (Expectation("like", 413), (200, 100, 300), "no"),
        (Expectation("mean_below"), (-0.1, -0.3, 0.1), "yes"),
        (Expectation("mean_below"), (0.1, -0.3, 0.1), "no"),
    ],
)
def test_check_answers_by_interval_and_expectation(
    expected: Expectation, interval: tuple[float, float, float], answer: str
) -> None:
    assert judge(measured(*interval), expected) == answer


@pytest.mark.parametrize(
    ("kind", "p", "answer"),
    [
        ("below", 0.049, "yes"),
        ("below", 0.05, "leaning"),
        ("below", float("nan"), "yes"),  # nothing that could be tested
        ("no_effect", 0.05, "yes"),
        ("no_effect", 0.049, "no"),
    ],
)
def test_check_of_a_direction_needs_significance_and_of_no_effect_its_absence(
    kind: Kind, p: float, answer: str
) -> None:
    found = replace(measured(-0.2, -0.3, -0.1), p=p)
    assert judge(found, Expectation(kind)) == answer
    # A test against zero says nothing about another bound.
    assert judge(replace(found, p=0.9), Expectation("below", -0.05)) == "yes"


def test_p_values_are_those_of_the_panel(whole: Results) -> None:
    tests = summary.panel_tests(whole, "paper", "gap")
    gap = next(one for one in claims.findings(whole) if one.claim.panel == "gap")
    shown = [one.p for one in gap.measured if one is not None]
    assert sorted(set(shown)) == pytest.approx(sorted(set(tests["p_holm"])))
    assert len(shown) == 6


def finding(*parts: Measured | None) -> Finding:
    check = Check("", lambda results: None, Expectation("below"))
    return Finding(Claim("A", "", (check,) * len(parts)), parts)


def test_a_verdict_needs_every_check_and_enough_users() -> None:
    good, bad = measured(-0.2, -0.3, -0.1), measured(0.2, 0.1, 0.3)
    assert finding(good, good).verdict == "reproduced"
    assert finding(good, bad).verdict == "partly"
    assert finding(measured(-0.2, -0.3, 0.1)).verdict == "partly"
    assert finding(bad, bad).verdict == "not"
    assert finding(good, None).verdict == "not run yet"
    assert finding(good, measured(-0.2, -0.3, -0.1, users=5)).verdict == "not run yet"
    assert finding(good, measured(-0.2, -0.3, -0.1, users=12)).users == 12


def test_every_panel_with_a_claim_of_the_paper_has_one() -> None:
    assert {claim.panel for claim in CLAIMS} == {*"ABCDEFGHI", "gap"}


def test_claims_ask_only_for_cells_that_the_study_runs() -> None:
    everything = Results.of(invented(2))
    for one in claims.findings(everything):
        assert None not in one.measured, one.claim.text


@pytest.fixture(scope="module")
def whole() -> Results:
    return Results.of(invented(7))


def verdicts(results: Results, panel: str) -> list[str]:
    return [one.verdict for one in claims.findings(results) if one.claim.panel == panel]


def test_invented_results_are_judged_by_what_was_invented(whole: Results) -> None:
    found = claims.findings(whole)
    order = next(one for one in found if "fewer queries than either" in one.claim.text)
    assert order.verdict == "reproduced"
    # The forward error does not depend on the rule: equal as claimed, but no rule is worse.
    assert verdicts(whole, "D") == ["partly"]
    # Neither does drift depend on its weighting, nor harm on which outcomes the learner sees.
    assert verdicts(whole, "G") == ["partly"]
    assert verdicts(whole, "H") == ["not", "not"]
    assert verdicts(whole, "I") == ["reproduced"]
    # The linear model is invented to end at 14 % times each user's difficulty.
    linear = next(one for one in found if one.claim.panel == "F")
    assert linear.answers[0] == "yes"
    first = linear.measured[0]
    assert first is not None
    assert first.interval.estimate == pytest.approx(0.14 * 1.15 * 0.9)


def test_verdict_of_a_panel_without_results_is_not_run_yet(tmp_path: Path) -> None:
    results = Results.of(invented(7, ["paper"], ["base"]))
    assert set(verdicts(results, "C")) == {"not run yet"}
    assert set(verdicts(results, "D")) == {"partly"}


def test_change_of_the_crossing_is_that_of_the_mean_curves() -> None:
    queries = [100.0, 200.0]
    slow, fast = np.array([[0.2, 0.0], [0.2, 0.0]]), np.array([[0.15, 0.0], [0.15, 0.0]])
    found = crossing_change(queries, fast, slow)
    assert found.estimate == pytest.approx((100 + 100 / 3) / 150 - 1)
    assert (found.low, found.high) == pytest.approx((found.estimate, found.estimate))
    with pytest.raises(ValueError, match="the same users"):
        crossing_change(queries, fast[:1], slow)


def test_contrast_is_the_difference_of_two_changes() -> None:
    found = contrast_interval(([1.0, 2.0], [2.0, 4.0]), ([3.0, 6.0], [4.0, 8.0]))
    assert (found.estimate, found.low, found.high) == pytest.approx((-0.25, -0.25, -0.25))
    with pytest.raises(ValueError, match="the same users"):
        contrast_interval(([1.0], [2.0]), ([3.0, 6.0], [4.0, 8.0]))


def test_changes_are_paired_and_say_what_was_extrapolated() -> None:
    table = invented(3, conditions=["base"])
    table = table[~((table["rule"] == "random") & (table["user"] == 0))]
    random, lookahead = (Cell("paper", "base", rule) for rule in ("random", "boundary_lookahead"))
    found = quantities.change(POLICY_GAP, lookahead, random)(Results.of(table))
    assert found is not None
    assert found.users == 2
    assert found.interval.estimate == pytest.approx(-0.6)
    high = table.assign(
        value=table["value"].where(table["metric"] != "preference_error", table["value"] + 0.2)
    )
    found = quantities.change(QUERIES_TO_10, lookahead, random)(Results.of(high))
    assert found is not None
    assert found.note == "extrapolated: 3 of 3 and 2 of 2"
    low = table.assign(value=table["value"].where(table["metric"] != "preference_error_gap4", 0.05))
    found = quantities.change(QueriesToTarget(gap_error(4)), lookahead, random)(Results.of(low))
    assert found is not None
    assert found.note == "from the first: 3 of 3 and 2 of 2"


@pytest.mark.parametrize(
    ("scale", "text"),
    [
        ("queries", "413 [350, 1,480]"),
        ("share", "41300.0 % [35000.0, 148000.0]"),
        ("change", "+41300 % [+35000, +148000]"),
    ],
)
def test_numbers_are_written_with_their_interval(scale: quantities.Scale, text: str) -> None:
    assert markdown.number(Measured(Interval(413, 350, 1480), 9, scale)) == text


def test_page_of_one_condition_shows_verdicts_and_remaining_commands(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_results(results, invented(6, ["paper"], ["base"]))
    page = results_page(results, tmp_path / "docs" / "results.md")
    assert "| D | Boundary Lookahead learns the forward model" in page
    assert "**partly reproduced** | 6 of 30 |" in page
    assert "the two presets share no users so far" in page
    assert "`sfihilo study run C --preset paper --users 30`" in page
    assert "| A | paper | 18 of 90 | 72 |" in page
    assert "| A | default | 0 of 90 | 90 | `sfihilo study run A --preset default" in page
    assert "| `default`, Global Pair Lookahead | | not run yet | | |" in page
    assert "| `paper`, Boundary Lookahead | 200 | 0.010 [0.010, 0.010], 6 users | 0.0" in page
    assert all(f"| {panel} |" in page for panel, rows in PANELS.items() if rows)
    assert str(tmp_path) not in page


def test_presets_are_compared_on_the_same_users_only(tmp_path: Path) -> None:
    results = tmp_path / "results"
    table = invented(8, ["paper"], ["base"])
    write_results(results, table)
    write_results(results, invented(3, ["default"], ["base"]))
    lookahead = table[table["rule"] == "boundary_lookahead"]
    few = Results.of(lookahead[lookahead["user"] < 3])
    expected = quantities.crossing(Cell("paper", "base", "boundary_lookahead"))(few)
    assert expected is not None
    line = f"| `paper`, Boundary Lookahead | {markdown.number(expected)} | 3 |"
    assert line in results_page(results, tmp_path / "page.md")


@pytest.mark.parametrize(
    ("value", "text"), [(3280.4, "3,280"), (-947.0, "−947"), (0.01234, "0.0123"), (52.52, "52.5")]
)
def test_plain_number_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert markdown.plain(value) == text


def test_the_page_compares_the_presets_and_shows_the_figures(tmp_path: Path) -> None:
    for preset in ("paper", "default"):
        write_results(tmp_path / "results", invented(2, [preset], ["base", "linear"]))
    (tmp_path / "results" / "figures").mkdir()
    (tmp_path / "results" / "figures" / "reliability.png").touch()
    path = write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    page = path.read_text()
    assert "(../results/figures/reliability.png)" in page
    row = "| Boundary Lookahead / Global Pair Lookahead | reward missed by the final policy | 2 "
    assert row in page
    assert "| condition | users | queries to 10 % error |" in page
    assert "| linear reward | 2 |" in page
    assert "`sfihilo study compare`: nowhere." in page
    assert _rectangular(page)


def test_the_page_names_where_the_default_preset_is_worse(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_results(results, invented(6, ["paper"], ["base", "d12"]))
    table = invented(6, ["default"], ["base", "d12"])
    worse = (table["condition"] == "d12") & (table["metric"] == "forward_rmse")
    table.loc[worse, "value"] *= 1.5
    write_results(results, table)
    page = results_page(results, tmp_path / "page.md")
    assert "`: d = 12 (forward RMSE, area under the curve)." in page


def _rectangular(page: str) -> bool:
    """Every row of a table has as many cells as its head."""
    blocks = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    counts = pd.Series([len({line.count("|") for line in block}) for block in blocks])
    return bool((counts == 1).all())
