"""The tables about the advice, from invented results whose means are known."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sfihilo.study.analysis.measures import Results
from sfihilo.study.pages.advice_page import (
    BEGIN,
    CONTENDERS,
    END,
    OTHERS,
    PANEL,
    SEEKER,
    Contender,
    stored,
    tables,
    write_tables,
)
from tests.study.invented import note_digest

ROW = PANEL[1]


def _table(contender: Contender, gaps: list[float], query: int = 60) -> pd.DataFrame:
    """One metric of every kind at one query, one person per gap."""
    lines = [
        (*contender.cell(ROW), user, query, metric, value)
        for user, gap in enumerate(gaps)
        for metric, value in (("advice_gap", gap), ("advice_share", 1 - gap), ("asked_reward", 0.5))
    ]
    return pd.DataFrame(
        lines, columns=["preset", "condition", "rule", "user", "query", "metric", "value"]
    )


def _text(*parts: pd.DataFrame) -> str:
    return "\n".join(tables(Results.of(pd.concat(parts))))


def test_tables_of_all_contenders_show_mean_and_standard_error_of_the_gap() -> None:
    text = _text(
        *(_table(each, [0.1 * place, 0.1 * place + 0.2]) for place, each in enumerate(CONTENDERS))
    )
    for place, contender in enumerate(CONTENDERS):
        mean = 0.1 * place + 0.1
        assert f"| n = 2 | {contender.label} | {mean:.3f} (0.100) |" in text


def test_tables_share_of_people_with_an_outlier_is_its_median() -> None:
    text = _text(_table(SEEKER, [0.1, 0.2, 0.3, 0.4, 51.0]))
    assert "| goal `best` | 0.70 (0.60 to 0.80) |" in text


def test_tables_differences_are_paired_by_person() -> None:
    text = _text(_table(SEEKER, [0.0, 0.1, 0.5]), _table(OTHERS[0], [0.1, 0.2, 0.6]))
    assert "after 60 trials" in text
    assert "after 200 trials" not in text
    assert f"| {ROW.label} | n = 3 | 0.100 (0.000), p = " in text


def test_stored_a_later_folder_adds_the_queries_that_an_earlier_one_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = _table(SEEKER, [0.4, 0.4])
    old = pd.concat(
        [
            _table(SEEKER, [0.9, 0.9]),
            _table(SEEKER, [0.2, 0.2], query=200),
            _table(OTHERS[0], [0.3, 0.3]),
        ]
    )
    folders = {tmp_path / "new": new, tmp_path / "old": old}
    monkeypatch.setattr("sfihilo.study.pages.advice_page.read_results", folders.__getitem__)
    results = stored(list(folders))
    curves = results.curves(SEEKER.cell(ROW), "advice_gap")
    assert list(curves.queries) == [60, 200]
    assert curves.values.mean(axis=0) == pytest.approx([0.4, 0.2])
    assert list(results.curves(OTHERS[0].cell(ROW), "advice_gap").queries) == [60]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with results of two people."""
    tables = {tmp_path: _table(SEEKER, [0.1, 0.2])}
    monkeypatch.setattr("sfihilo.study.pages.advice_page.read_results", tables.__getitem__)
    return tmp_path


def test_write_tables_replaces_only_what_stands_between_the_marks(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write_tables([folder], page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "0.150 (0.050)" in text


def test_write_tables_says_that_an_earlier_preset_computed_them(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(f"{BEGIN}{END}", encoding="utf-8")
    write_tables([folder], page)
    assert "earlier version" not in page.read_text(encoding="utf-8")
    note_digest(folder, "92237e705863")
    write_tables([folder], page)
    assert "computed with an earlier version" in page.read_text(encoding="utf-8")


def test_write_tables_a_page_without_marks_is_refused_and_left_as_it_is(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="expected the marks"):
        write_tables([folder], page)
    assert page.read_text(encoding="utf-8") == "no marks"
