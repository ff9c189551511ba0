"""Calibration over the pairs of all users together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.analysis import summary
from sfihilo.study.analysis.calibration import reliability_of
from sfihilo.study.analysis.measures import Cell, Results
from sfihilo.study.design.panels import LOOKAHEAD
from tests.study.invented import invented

CELL = Cell("paper", "base", LOOKAHEAD)


def histograms(rows: list[tuple[int, str, float, float, float]]) -> Results:
    """Rows (user, bin, count, confidence, correct) at 200 queries."""
    names = ("count", "confidence", "correct")
    table = [
        ("paper", "base", LOOKAHEAD, user, 200, f"{bin_name}_{what}", value)
        for user, bin_name, *values in rows
        for what, value in zip(names, values, strict=True)
    ]
    columns = ["preset", "condition", "rule", "user", "query", "metric", "value"]
    return Results.of(pd.DataFrame(table, columns=columns))


def test_users_are_pooled_by_their_pairs() -> None:
    results = histograms([(0, "reliability_02", 10, 0.6, 0.5), (1, "reliability_02", 30, 0.6, 0.9)])
    found = reliability_of(results, CELL, 200, "clean")
    assert found is not None
    assert found.pooled() == pytest.approx(np.array([[40, 0.6, 0.8]]))
    # 0.1 too confident for one and 0.3 too little for the other: together 0.2 off.
    assert found.error().estimate == pytest.approx(0.2)
    assert found.error().low == pytest.approx(0.1)
    assert found.error().high == pytest.approx(0.3)


def test_errors_of_different_users_cancel_only_within_a_bin() -> None:
    results = histograms([(0, "reliability_01", 10, 0.5, 0.6), (1, "reliability_03", 10, 0.7, 0.6)])
    found = reliability_of(results, CELL, 200, "clean")
    assert found is not None
    assert found.error().estimate == pytest.approx(0.1)


def test_reliability_of_each_kind_reads_its_own_histogram() -> None:
    results = histograms(
        [(0, "reliability_02", 10, 0.6, 0.5), (0, "reliability_better_02", 10, 0.6, 0.6)]
    )
    answer = reliability_of(results, CELL, 200, "clean")
    better = reliability_of(results, CELL, 200, "better")
    assert answer is not None
    assert better is not None
    assert len(answer.pooled()) == len(better.pooled()) == 1
    assert answer.error().estimate == pytest.approx(0.1)
    assert better.error().estimate == pytest.approx(0.0)
    assert reliability_of(results, CELL, 1000, "better") is None


def test_the_summary_has_pooled_errors_of_every_kind() -> None:
    table = summary.summarise(Results.of(invented(3, ["paper", "default"], ["base"])))
    rows = table[(table["panel"] == "A") & table["metric"].str.startswith("pooled")]
    found = rows.groupby("metric")["mean"].agg(["count", "mean"])
    # Three rules and two presets; the last bin of confidence cannot be 0.03 too low.
    assert found["count"].to_dict() == dict.fromkeys(
        (f"pooled_{name}_{when}" for name in ("ece_better", "ece_answer", "ece") for when in WHEN),
        6,
    )
    assert found["mean"]["pooled_ece_better_at_200"] == pytest.approx(0.01)
    assert found["mean"]["pooled_ece_end"] == pytest.approx((9 * 0.03 + 0.025) / 10)


WHEN = ("at_200", "end")
