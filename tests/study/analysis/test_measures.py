"""Stored curves by cell, and measures of one number per user."""

from __future__ import annotations

import pandas as pd
import pytest

from sfihilo.study.analysis.calibration import KINDS, PooledError, calibration_end
from sfihilo.study.analysis.measures import (
    FORWARD_AREA,
    POLICY_GAP,
    QUERIES_TO_10,
    Area,
    AtEnd,
    AtQuery,
    Cell,
    LateMean,
    MeanCurveCrossing,
    Measure,
    QueriesToTarget,
    Results,
    area_under_curve,
    extrapolated,
    gap_error,
    immediate,
    paired,
)
from tests.study.invented import invented

BASE = Cell("paper", "base", "random")


def test_area_under_a_line() -> None:
    assert area_under_curve([0, 100, 400], [0.0, 1.0, 1.0]) == pytest.approx(350)


def one_curve(values: list[float], queries: list[int], metric: str = "preference_error") -> Results:
    rows = [("paper", "base", "random", 4, q, metric, v) for q, v in zip(queries, values)]  # noqa: B905
    columns = ["preset", "condition", "rule", "user", "query", "metric", "value"]
    return Results.of(pd.DataFrame(rows, columns=columns))


def test_queries_to_target_are_interpolated_per_user() -> None:
    results = one_curve([0.2, 0.05], [100, 200])
    found = results.measure(BASE, QueriesToTarget())
    assert found.to_dict() == {4: pytest.approx(100 + 100 * 0.1 / 0.15)}
    assert results.measure(BASE, extrapolated()).to_dict() == {4: 0.0}


def test_queries_to_target_of_a_run_that_never_crosses_are_extrapolated() -> None:
    # 0.30 and 0.20 at log(1 + q) = log 10 and log 100: one more factor of ten reaches 0.10.
    results = one_curve([0.3, 0.2], [9, 99])
    assert results.measure(BASE, QueriesToTarget()).to_dict() == {4: pytest.approx(999)}
    assert results.measure(BASE, extrapolated()).to_dict() == {4: 1.0}


def test_areas_ends_late_means_and_checkpoints_by_hand() -> None:
    results = one_curve([1.0, 0.5, 0.3, 0.2], [0, 100, 200, 400], "forward_rmse")
    assert results.measure(BASE, Area("forward_rmse"))[4] == pytest.approx(75 + 40 + 50)
    assert results.measure(BASE, AtEnd("forward_rmse"))[4] == 0.2
    assert results.measure(BASE, LateMean("forward_rmse"))[4] == pytest.approx(0.25)
    assert results.measure(BASE, AtQuery("forward_rmse", 100))[4] == 0.5
    assert results.measure(BASE, AtQuery("forward_rmse", 150)).empty


def test_measure_of_a_cell_without_results_is_empty() -> None:
    results = one_curve([0.2, 0.05], [100, 200])
    elsewhere = Cell("default", "base", "random")
    for measure in (QUERIES_TO_10, FORWARD_AREA, AtEnd("ece"), POLICY_GAP):
        assert results.measure(elsewhere, measure).empty
        assert measure.estimate(results, elsewhere) is None


def test_incomplete_curves_and_columns_are_refused() -> None:
    table = invented(2, conditions=["base"])
    hole = (table["metric"] == "preference_error") & (table["user"] == 1) & (table["query"] == 50)
    with pytest.raises(ValueError, match=r"preference_error: users \[1\] lack"):
        Results.of(table[~hole]).curves(BASE, "preference_error")
    with pytest.raises(ValueError, match="expected 14 values, got 28"):
        Results.of(pd.concat([table, table])).curves(BASE, "preference_error")
    with pytest.raises(ValueError, match="missing: \\['rule'\\]"):
        Results.of(table.drop(columns="rule"))


def test_pairing_keeps_only_common_users_in_order() -> None:
    first = pd.Series([1.0, 2.0, 3.0], index=[5, 1, 2])
    second = pd.Series([10.0, 20.0], index=[2, 5])
    one, two = paired(first, second)
    assert one.tolist() == [3.0, 1.0]
    assert two.tolist() == [10.0, 20.0]


def test_rules_come_in_the_papers_order_and_own_ones_last() -> None:
    table = invented(1, conditions=["base"])
    own = table[table["rule"] == "random"].assign(rule="mine:rule")
    results = Results.of(pd.concat([own, table]))
    assert results.rules("paper", "base") == [
        *("random", "mutual_information", "boundary_lookahead", "mine:rule"),
    ]


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        (QUERIES_TO_10, "queries_to_10"),
        (QueriesToTarget(gap_error(3)), "queries_to_10_gap3"),
        (extrapolated(), "extrapolated"),
        (immediate(gap_error(4)), "immediate_gap4"),
        (AtQuery("preference_error", 200), "preference_error_at_200"),
        (AtEnd("ece"), "ece_end"),
        (LateMean("forward_rmse"), "forward_rmse_late"),
        (FORWARD_AREA, "forward_rmse_auc"),
        (POLICY_GAP, "final_policy_gap"),
        (MeanCurveCrossing(), "queries_to_10_of_mean_curve"),
        (PooledError("better", 200), "pooled_ece_better_at_200"),
        (PooledError("clean"), "pooled_ece_end"),
        (calibration_end("answer"), "ece_answer_end"),
    ],
)
def test_measure_names_are_those_of_stored_tables(measure: Measure, name: str) -> None:
    assert measure.name == name


def test_measures_with_other_words_are_equal() -> None:
    assert AtEnd("ece", words="one") == AtEnd("ece", words="two") != AtEnd("ece_better")
    assert len({calibration_end(kind) for kind in KINDS}) == 3


def test_results_among_users_contain_only_their_curves() -> None:
    results = Results.of(invented(4, conditions=["base"]))
    whole = results.measure(BASE, POLICY_GAP)
    some = results.among([1, 3])
    assert some.measure(BASE, POLICY_GAP).to_dict() == {1: whole[1], 3: whole[3]}
    assert results.among([9]).curves(BASE, "preference_error").count == 0
    assert len(results.measure(BASE, POLICY_GAP)) == 4
