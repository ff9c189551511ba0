"""From stored curves to one number a user, and from those to the two tables."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.analysis import summary
from sfihilo.study.analysis.measures import Cell, Results, paired
from tests.study.invented import error_curve, invented

BASE = Cell("paper", "base", "random")


def one_curve(values: list[float], queries: list[int], metric: str = "preference_error") -> Results:
    rows = [("paper", "base", "random", 4, q, metric, v) for q, v in zip(queries, values)]  # noqa: B905
    columns = ["preset", "condition", "rule", "user", "query", "metric", "value"]
    return Results.of(pd.DataFrame(rows, columns=columns))


def test_crossing_is_interpolated_for_each_user() -> None:
    results = one_curve([0.2, 0.05], [100, 200])
    found = results.measure(BASE, "queries_to_10")
    assert found.to_dict() == {4: pytest.approx(100 + 100 * 0.1 / 0.15)}
    assert results.measure(BASE, "extrapolated").to_dict() == {4: 0.0}


def test_a_run_that_never_crosses_is_extrapolated_and_says_so() -> None:
    # 0.30 and 0.20 at log(1 + q) = log 10 and log 100: one more factor of ten reaches 0.10.
    results = one_curve([0.3, 0.2], [9, 99])
    assert results.measure(BASE, "queries_to_10").to_dict() == {4: pytest.approx(999)}
    assert results.measure(BASE, "extrapolated").to_dict() == {4: 1.0}


def test_areas_ends_late_means_and_checkpoints() -> None:
    results = one_curve([1.0, 0.5, 0.3, 0.2], [0, 100, 200, 400], "forward_rmse")
    assert results.measure(BASE, "forward_rmse_auc")[4] == pytest.approx(75 + 40 + 50)
    assert results.measure(BASE, "forward_rmse_end")[4] == 0.2
    assert results.measure(BASE, "forward_rmse_late")[4] == pytest.approx(0.25)
    assert results.measure(BASE, "forward_rmse_at_100")[4] == 0.5
    assert results.measure(BASE, "forward_rmse_at_150").empty


def test_what_was_not_run_is_empty() -> None:
    results = one_curve([0.2, 0.05], [100, 200])
    elsewhere = Cell("default", "base", "random")
    for name in ("queries_to_10", "forward_rmse_auc", "ece_end", "final_policy_gap"):
        assert results.measure(elsewhere, name).empty


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


def test_summary_has_the_agreed_columns_and_the_right_means() -> None:
    table = summary.summarise(Results.of(invented(3, conditions=["base"])))
    assert list(table.columns) == [
        *("panel", "condition", "preset", "rule", "users", "metric", "mean", "low", "high"),
    ]
    row = table[
        (table["panel"] == "A")
        & (table["rule"] == "random")
        & (table["metric"] == "preference_error_end")
    ].iloc[0]
    ends = [error_curve(0.40, 0.04 * (1 + 0.05 * user) * 1.5)[-1] for user in range(3)]
    assert row["mean"] == pytest.approx(np.mean(ends))
    assert row["users"] == 3
    assert ends[0] <= row["low"] <= row["mean"] <= row["high"] <= ends[2]


def test_summary_covers_every_panel_once() -> None:
    table = summary.summarise(Results.of(invented(2)))
    assert set(table["panel"]) == set(summary.PANEL_METRICS)
    keys = ["panel", "condition", "preset", "rule", "metric"]
    assert not table.duplicated(keys).any()
    assert not table[["mean", "low", "high"]].isna().any().any()


def test_conditions_of_the_default_preset_are_compared_under_its_own_rule() -> None:
    results = Results.of(invented(3, ["default"], ["base", "linear"]))
    tests = summary.panel_tests(results, "default", "F")
    assert list(tests["rule"]) == ["global_pairs"]
    table = summary.summarise(results)
    assert set(table[table["panel"] == "F"]["rule"]) == {"global_pairs"}


def test_a_users_own_condition_is_listed_apart() -> None:
    table = invented(1, conditions=["base"])
    own = table.assign(condition="base-mine.features")
    found = summary.summarise(Results.of(pd.concat([table, own])))
    assert set(found[found["condition"] == "base-mine.features"]["panel"]) == {"own"}


def test_tests_are_paired_against_random_and_corrected_within_a_panel() -> None:
    table = summary.panel_tests(Results.of(invented(4, conditions=["base"])), "paper", "D")
    pairs = list(zip(table["rule"], table["against_rule"], strict=True))
    assert pairs == [
        ("mutual_information", "random"),
        ("boundary_lookahead", "random"),
        ("boundary_lookahead", "mutual_information"),
    ]
    # The invented forward error does not depend on the rule: nothing to be found.
    assert (table["p_holm"] == 1).all()
    assert (table["change"] == 0).all()


def test_condition_panels_compare_with_their_first_condition() -> None:
    results = Results.of(invented(4))
    table = summary.panel_tests(results, "paper", "H")
    assert set(table["against_condition"]) == {"d10"}
    assert list(table["condition"]) == ["missing1", "missing2", "missing3", "missing5"]
    drift = summary.panel_tests(results, "paper", "G")
    assert ("drift_learned", "drift_known") in set(
        zip(drift["condition"], drift["against_condition"], strict=True)
    )


def test_one_user_has_no_p_values_but_all_means() -> None:
    table = summary.significance(Results.of(invented(1)))
    assert table["p"].isna().all()
    assert not table["mean"].isna().any()


def test_a_reference_of_zero_has_no_relative_change() -> None:
    table = invented(2, conditions=["base"])
    table.loc[table["metric"] == "final_policy_gap", "value"] = 0.0
    tests = summary.panel_tests(Results.of(table), "paper", "gap")
    assert tests["change"].isna().all()
    assert (tests["p"] == 1).all()


def test_tables_are_written_beside_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "read_results", lambda path: invented(2, conditions=["base"]))
    first = [path.read_bytes() for path in summary.write_tables(tmp_path)]
    again = [path.read_bytes() for path in summary.write_tables(tmp_path)]
    assert first == again
    table = pd.read_csv(tmp_path / "summary.csv")
    assert list(table.columns) == summary.COLUMNS
    assert math.isclose(table["users"].mean(), 2)
