"""The two tables of the study, on invented results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.analysis import summary
from sfihilo.study.analysis.measures import Results
from tests.study.invented import error_curve, invented


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
    own_people = {"grades"}  # conditions that no panel of the paper has
    assert set(table["panel"]) == set(summary.SUMMARISED) - own_people
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


def test_tables_are_written_with_the_same_bytes_again(tmp_path: Path) -> None:
    table = invented(2, conditions=["base"])
    first = [path.read_bytes() for path in summary.write_tables(Results.of(table), tmp_path)]
    again = [path.read_bytes() for path in summary.write_tables(Results.of(table), tmp_path)]
    assert first == again
    written = pd.read_csv(tmp_path / "summary.csv")
    assert list(written.columns) == summary.COLUMNS
    assert (written["users"] == 2).all()


def test_tests_of_a_panel_are_computed_once_per_results(monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results.of(invented(3, conditions=["base"]))
    first = summary.panel_tests(results, "paper", "D")
    monkeypatch.setattr(summary, "paired_test", None)  # a second computation would fail
    assert summary.panel_tests(results, "paper", "D") is first
