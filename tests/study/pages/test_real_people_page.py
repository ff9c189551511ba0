"""The page about real people, from invented summaries."""

from pathlib import Path

import pandas as pd

from sfihilo.study.pages.real_people_page import write_page
from sfihilo.study.real import predictors


def cells(name: str, people: str, answers: int, default: float) -> list[dict[str, object]]:
    """Summary rows of all models in one cell, with one log loss for all but the default preset."""
    losses = dict.fromkeys((*predictors.MODELS, *predictors.PENALISED), 0.66)
    losses["default"] = default
    return [
        {"set": name, "people": people, "answers": answers, "model": model, "persons": 9}
        | {"orders": 5, "worse_while_logit_is_not": 0.1}
        | {"log_loss": loss, "log_loss_gap": loss - 0.66, "log_loss_gap_error": 0.01}
        | {"accuracy": 0.6, "ece": 0.1, "slope": 0.7, "worse_than_coin": 0.5}
        for model, loss in losses.items()
    ]


def test_page_says_which_rows_miss_the_target(tmp_path: Path) -> None:
    lines = cells("train", "development", 5, 0.70)
    page = write_page(pd.DataFrame(lines), tmp_path, tmp_path / "page.md").read_text()
    assert "in 0 of 1 rows" in page
    assert (
        "while logit's is not: train 5; single people for whom that holds: 10 % of a row." in page
    )
    assert "its settings were chosen on" in page
    assert "+0.040 (0.010)" in page
    assert "nothing was chosen on" not in page


def test_page_shows_people_that_nothing_was_chosen_on(tmp_path: Path) -> None:
    out = tmp_path / "real"
    for folder, rows in {
        "lotteries": cells("lotteries1", "all", 5, 0.65)
        + cells("lotteries1_others", "all", 5, 0.70),
        "fresh": cells("routes", "all", 40, 0.65),
    }.items():
        (tmp_path / folder).mkdir()
        pd.DataFrame(rows).to_csv(tmp_path / folder / "summary.csv", index=False)
    lines = cells("train", "development", 5, 0.66)
    page = write_page(pd.DataFrame(lines), out, tmp_path / "page.md").read_text()
    assert "18 people of other public data sets" in page
    assert "conditional logit in 1 of 2 rows" in page
    assert "| lotteries 1, 5 | 9 | 0.700 |" in page
    assert "lotteries1" not in page  # people that the prior was chosen with
    assert "Rows that miss it: routes 40." in page


def test_page_shows_logit_with_the_best_penalty_of_each_row(tmp_path: Path) -> None:
    lines = pd.DataFrame(
        cells("train", "development", 5, 0.665) + cells("money", "development", 5, 0.665)
    )
    best = (lines["model"] == "logit_0.1") & (lines["set"] == "train")
    lines.loc[best, "log_loss"] = 0.6
    page = write_page(lines, tmp_path, tmp_path / "page.md").read_text()
    assert "conditional logit in 2 of 2 rows (in 1, if" in page
    assert "| train, 5 | 9 | 0.665 | 0.660 | +0.005 (0.010) | 0.600 |" in page
    assert "over all rows of development people has 0.1 (used: " in page


def test_people_of_two_sets_are_counted_once(tmp_path: Path) -> None:
    lines = [
        row for name in ("gambles", "regulated") for row in cells(name, "development", 80, 0.66)
    ]
    page = write_page(pd.DataFrame(lines), tmp_path, tmp_path / "page.md").read_text()
    assert "from 80 answers of that person alone" in page
    assert "On 9 people of 1 public sources" in page


def test_people_of_several_rows_are_those_of_the_largest(tmp_path: Path) -> None:
    lines = pd.DataFrame(
        [row for answers in (5, 80) for row in cells("train", "development", answers, 0.66)]
    )
    lines.loc[lines["answers"] == 80, "persons"] = 4  # not everybody made so many choices
    page = write_page(lines, tmp_path, tmp_path / "page.md").read_text()
    assert "On 9 people of 1 public sources" in page
