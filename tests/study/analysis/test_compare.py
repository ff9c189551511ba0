"""Two result sets on the same users."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from sfihilo.study.analysis import compare
from sfihilo.study.run.description import Provenance, describe
from sfihilo.study.run.result_files import Store, encode
from tests.study.invented import UNIT, invented, write_results


@pytest.fixture
def two_sets(tmp_path: Path) -> tuple[Path, Path]:
    names = ["base", "linear"]
    first = write_results(tmp_path, invented(4, ["paper"], names))
    second = write_results(tmp_path, invented(3, ["default"], names))
    return first, second


def only(table: pd.DataFrame, rule: str, metric: str, condition: str = "base") -> pd.Series:
    rows = table[
        (table["condition"] == condition) & (table["rule"] == rule) & (table["metric"] == metric)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def test_differences_are_paired_over_common_users(two_sets: tuple[Path, Path]) -> None:
    row = only(compare.compare(*two_sets), "random", "final_policy_gap")
    # Users 0 to 2 are in both; the gap is 0.05 (1 + 0.05 user), times 0.8 in the second set.
    assert row["users"] == 3
    assert row["first"] == pytest.approx(0.05 * 1.05)
    assert row["second"] == pytest.approx(0.8 * 0.05 * 1.05)
    assert row["change"] == pytest.approx(-0.2)
    assert row["low"] <= row["difference"] <= row["high"] < 0


def test_sets_without_study_json_but_with_other_seeds_are_refused(tmp_path: Path) -> None:
    table = invented(1, ["paper"], ["base"])[["query", "metric", "value"]]
    for folder, seed in (("one", 0), ("two", 7)):
        unit = replace(UNIT, study_seed=seed)
        about = describe(unit, Provenance("0", "unknown"))
        Store(tmp_path / folder, "paper").write(unit, encode(table, about))
    assert not list(tmp_path.rglob("study.json"))
    with pytest.raises(ValueError, match="their study_seed differ"):
        compare.compare(tmp_path / "one", tmp_path / "two")


def test_no_difference_is_reported_as_none(two_sets: tuple[Path, Path]) -> None:
    row = only(compare.compare(*two_sets), "random", "forward_rmse_auc")
    assert (row["difference"], row["p"], row["p_holm"]) == (0.0, 1.0, 1.0)


def test_correction_counts_all_conditions_and_rules(two_sets: tuple[Path, Path]) -> None:
    table = compare.compare(*two_sets)
    rows = table[table["metric"] == "final_policy_gap"]
    assert len(rows) == 4  # two shared rules and the presets' own in base, the own ones in linear
    smallest = rows.loc[rows["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1.0, 4 * smallest["p"]))


def test_each_presets_own_rule_is_held_against_the_others(two_sets: tuple[Path, Path]) -> None:
    table = compare.compare(*two_sets)
    row = only(table, "boundary_lookahead", "final_policy_gap")
    assert row["against_rule"] == "global_pairs"
    assert row["change"] == pytest.approx(-0.2)
    assert "boundary_lookahead / global_pairs  " in compare.as_text(table)


def test_swapped_sets_give_the_opposite_difference(two_sets: tuple[Path, Path]) -> None:
    forth = compare.compare(*two_sets)
    back = compare.compare(two_sets[1], two_sets[0])
    assert back["difference"].to_numpy() == pytest.approx(-forth["difference"].to_numpy())
    assert back["p"].to_numpy() == pytest.approx(forth["p"].to_numpy())


def test_rules_option_compares_two_different_rules(two_sets: tuple[Path, Path]) -> None:
    table = compare.compare(*two_sets, rules=("random", "global_pairs"))
    assert set(table["rule"]) == {"random"}
    assert set(table["against_rule"]) == {"global_pairs"}
    assert only(table, "random", "final_policy_gap")["change"] == pytest.approx(0.4 * 0.8 - 1)


def test_results_folder_with_one_preset_is_a_result_set(tmp_path: Path) -> None:
    write_results(tmp_path / "a", invented(2, ["paper"], ["base"]))
    write_results(tmp_path / "b", invented(2, ["default"], ["base"]))
    assert len(compare.compare(tmp_path / "a", tmp_path / "b"))


def test_packed_results_are_read_too(two_sets: tuple[Path, Path]) -> None:
    raw = compare.compare(*two_sets)
    results = two_sets[0].parent
    for preset in ("paper", "default"):
        store = Store(results, preset)
        store.pack()
        for path in store.units.glob("*.parquet"):
            path.unlink()
    pd.testing.assert_frame_equal(compare.compare(*two_sets), raw)


def other_seed(tmp_path: Path) -> Path:
    return write_results(
        tmp_path / "b", invented(2, ["default"], ["base"]), replace(UNIT, study_seed=1)
    )


def other_users(tmp_path: Path) -> Path:
    table = invented(2, ["default"], ["base"])
    return write_results(tmp_path / "b", table.assign(user=table["user"] + 10))


def nothing_there(tmp_path: Path) -> Path:
    return tmp_path / "nothing"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (other_seed, "study_seed differ"),
        (other_users, "share no users"),
        (nothing_there, "no results"),
    ],
)
def test_sets_that_cannot_be_paired_are_refused(
    tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    first = write_results(tmp_path / "a", invented(2, ["paper"], ["base"]))
    with pytest.raises(ValueError, match=words):
        compare.compare(first, make(tmp_path))


def test_results_folder_with_several_presets_is_refused(two_sets: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="name one"):
        compare.compare(two_sets[0].parent, two_sets[1])


def test_unlike_budgets_share_only_checkpoints(tmp_path: Path) -> None:
    first = write_results(tmp_path / "a", invented(2, ["paper"], ["base"]))
    longer = replace(UNIT, queries=2000)
    second = write_results(tmp_path / "b", invented(2, ["default"], ["base"]), longer)
    table = compare.compare(first, second)
    assert all("_at_" in metric for metric in table["metric"])


def test_text_and_json_say_the_same(two_sets: tuple[Path, Path]) -> None:
    table = compare.compare(*two_sets)
    lines = compare.as_text(table).splitlines()
    assert len(lines) == 1 + len(table)
    records = json.loads(compare.as_json(table))
    assert len(records) == len(table)
    assert records[0]["metric"] == table["metric"][0]


def test_one_user_is_compared_without_a_test(tmp_path: Path) -> None:
    first = write_results(tmp_path, invented(1, ["paper"], ["base"]))
    second = write_results(tmp_path, invented(1, ["default"], ["base"]))
    table = compare.compare(first, second)
    assert table["p_holm"].isna().all()
    assert "no test" in compare.as_text(table)
    assert json.loads(compare.as_json(table))[0]["p"] is None
