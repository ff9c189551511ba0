"""The page and the figure of graded answers, from results made by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.analysis.measures import Results, advice_after
from sfihilo.study.analysis.summary import panel_tests, summarise
from sfihilo.study.design.panels import ADVICE_AT
from sfihilo.study.figures.grade_curves import graded_answers
from sfihilo.study.pages.grades_page import PANEL, cell_of, page, stored, write_page
from sfihilo.study.run.description import preset_digest
from tests.study.invented import note_digest

QUERIES = (16, 25, 50, 75, 100, 125, 150)
USERS = 6


def table(names: tuple[str, ...]) -> pd.DataFrame:
    """Errors that fall from 30 % by a rate of each condition; the advice is better by 0.1 each."""
    rows = []
    for place, name in enumerate(names):
        for user in range(USERS):
            for query in QUERIES:
                error = 0.3 * np.exp(-query * (1 + place) / (100 + 5 * user))
                rows += [
                    (name, user, query, "preference_error", error),
                    (name, user, query, "forward_rmse", 0.1 + 0.01 * place),
                    (name, user, query, "ece_better", 0.05),
                ]
            for query in ADVICE_AT:
                reward = 0.5 + 0.1 * place + 0.01 * user
                rows.append((name, user, query, "advice_reward", reward))
    frame = pd.DataFrame(rows, columns=["condition", "user", "query", "metric", "value"])
    return frame.assign(preset="default", rule="global_pairs")


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Results:
    made = table(("two_answers", "seven_grades"))
    monkeypatch.setattr("sfihilo.study.pages.grades_page.read_results", lambda path: made)
    return Results.of(made)


def line_of(text: str, label: str, place: int = 0) -> list[str]:
    """The cells of a row of the page's tables."""
    found = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in found[place].split("|")[1:-1]]


def test_page_states_crossing_differences_and_advice(results: Results, tmp_path: Path) -> None:
    text = page(tmp_path, tmp_path / "page.md")
    two, seven = line_of(text, "two answers"), line_of(text, "seven grades")
    assert two[1] == str(USERS)
    assert 100 < float(two[2].split()[0]) < 150
    assert 50 < float(seven[2].split()[0]) < 75
    assert seven[3].startswith("−4")
    assert seven[4] == "0.110 (+0.010 [+0.010, +0.010])"
    assert line_of(text, "five grades")[2] == "not run yet"
    advice = line_of(text, "seven grades", 1)
    assert advice[1:] == ["0.625 (+0.100 [+0.100, +0.100])"] * len(ADVICE_AT)
    assert line_of(text, "two answers", 1)[1:] == ["0.525"] * len(ADVICE_AT)


def test_page_says_that_an_earlier_preset_computed_it(results: Results, tmp_path: Path) -> None:
    sentence = "computed with an earlier version"
    note_digest(tmp_path, preset_digest("default"))
    assert sentence not in page(tmp_path, tmp_path / "page.md")
    note_digest(tmp_path, "92237e705863")
    assert sentence in page(tmp_path, tmp_path / "page.md")


def test_page_without_results_says_that_nothing_was_run(tmp_path: Path) -> None:
    out = write_page(tmp_path / "missing", tmp_path / "page.md")
    text = out.read_text(encoding="utf-8")
    assert all(line_of(text, row.label)[2] == "not run yet" for row in PANEL)
    assert stored(tmp_path / "missing").presets == []


def test_figure_shows_the_conditions_that_were_run(results: Results) -> None:
    error, forward, advice = graded_answers(results).axes
    for axes in (error, forward, advice):
        labels = axes.get_legend_handles_labels()[1]
        assert labels == ["two answers", "seven grades"]
    assert advice.lines[0].get_xdata().tolist() == list(ADVICE_AT)  # type: ignore[union-attr]
    assert len(graded_answers(Results({})).axes[0].lines) == 0


def test_panel_is_summarised_and_tested_against_two_answers(results: Results) -> None:
    tests = panel_tests(results, "default", "grades")
    assert set(tests["condition"]) == {"seven_grades"}
    assert set(tests["against_condition"]) == {"two_answers"}
    advice = tests[tests["metric"] == advice_after(100).name]
    assert advice["mean"].tolist() == pytest.approx([0.625])
    summary = summarise(results)
    names = set(summary[summary["panel"] == "grades"]["metric"])
    assert {advice_after(query).name for query in ADVICE_AT} <= names


def test_cells_of_the_panel_are_the_default_preset_with_its_own_rule() -> None:
    assert {cell_of(row)[::2] for row in PANEL} == {("default", "global_pairs")}
