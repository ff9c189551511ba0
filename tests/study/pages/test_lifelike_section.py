"""The part of the page about simulated people who are like real ones."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from sfihilo.study.analysis.lifelike import MEASURES, compared, lifelike_table
from sfihilo.study.design.panels import panel_rows, preset_rule
from sfihilo.study.pages.lifelike_section import lifelike_section
from sfihilo.study.run.description import describe
from sfihilo.study.run.result_files import Store, encode
from tests.study.tiny import PROVENANCE, tiny_unit

CONDITION = panel_rows(["lifelike"])[2].condition  # judgement noise 6x


def stored(folder: Path, user: int, default: float, before: float) -> None:
    """One unit of the default preset with these values of every measure after 10 queries."""
    unit = replace(tiny_unit(user=user), condition=CONDITION, preset="default")
    unit = replace(unit, rule=preset_rule("default"))
    rows = [(10, name, default) for name in MEASURES]
    rows += [(10, f"rule_{name}", before) for name in MEASURES]
    rows.append((16, "preference_error", 0.9))  # a checkpoint without a log loss
    table = pd.DataFrame(rows, columns=["query", "metric", "value"])
    Store(folder, "default").write(unit, encode(table, describe(unit, PROVENANCE)))


def test_default_and_the_one_before_are_paired_by_person(tmp_path: Path) -> None:
    for user, (default, before) in enumerate([(0.2, 0.5), (0.3, 0.4), (0.1, 0.3)]):
        stored(tmp_path, user, default, before)
    rows = compared(lifelike_table(tmp_path))
    assert rows["query"].tolist() == [10]
    row = rows.iloc[0]
    assert row["people"] == "judgement noise 6x"
    assert row["users"] == 3
    assert row["default_log_loss_answer"] == pytest.approx(0.2)
    assert row["before_log_loss_answer"] == pytest.approx(0.4)
    assert row["gap_log_loss_answer"] == pytest.approx(-0.2)
    assert row["gap_error_log_loss_answer"] == pytest.approx(pd.Series([0.3, 0.1, 0.2]).sem())
    text = "\n".join(lifelike_section(tmp_path))
    assert "not corrected for the number of cells): nowhere." in text
    assert "0.200; 0.400; not run (−0.200, 0.058)" in text


def test_section_names_where_the_default_is_worse(tmp_path: Path) -> None:
    for user, (default, before) in enumerate([(0.5, 0.2), (0.5, 0.25), (0.45, 0.2)]):
        stored(tmp_path, user, default, before)
    text = "\n".join(lifelike_section(tmp_path))
    alone, _, corrected = text.partition("With Holm's correction: ")
    assert "judgement noise 6x, 10 (log loss)" in alone
    assert "judgement noise 6x, 10 (log loss)" in corrected  # p = 0.005, three cells


def test_chance_findings_among_many_cells_are_corrected_away(tmp_path: Path) -> None:
    for user, (default, before) in enumerate([(0.5, 0.2), (0.5, 0.3), (0.45, 0.25)]):
        stored(tmp_path, user, default, before)  # p = 0.02
    alone, _, corrected = "\n".join(lifelike_section(tmp_path)).partition("Holm's correction: ")
    assert "judgement noise 6x, 10 (log loss)" in alone
    assert corrected.startswith("nowhere.")


def test_people_whom_only_one_of_both_has_are_not_counted(tmp_path: Path) -> None:
    for user, (default, before) in enumerate([(0.2, 0.5), (0.3, 0.4), (0.1, 0.3), (0.2, 0.2)]):
        stored(tmp_path, user, default, before)
    table = lifelike_table(tmp_path)
    row = compared(table[(table["model"] == "default") | (table["user"] < 3)]).iloc[0]
    assert row["users"] == 3
    assert row["gap_preference_error"] == pytest.approx(-0.2)


def test_section_without_results_is_empty(tmp_path: Path) -> None:
    assert list(lifelike_section(tmp_path)) == []
