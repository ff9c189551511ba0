"""What the benchmarks say of their figures; no test here depends on the clock."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import clock, document, floor, report, rounds, study_hours
from benchmarks.plain_query import Looked
from sfihilo import Settings
from sfihilo.querying import Selection


def looked(chosen: int, utilities: list[float]) -> Looked:
    scores = np.zeros(4)
    rows = np.arange(len(utilities))
    return Looked(chosen, scores, scores, rows, rows, np.array(utilities))


def selection(row: int, utilities: list[float]) -> Selection:
    pool = np.arange(8.0).reshape(4, 2) / 8
    rows = np.arange(len(utilities))
    return Selection(pool[row], pool, np.zeros(4), rows, rows, np.array(utilities))


def test_a_different_choice_shows_what_it_gives_away() -> None:
    same = rounds.compare(selection(1, [0.1, 0.4, 0.2]), looked(1, [0.1, 0.4, 0.2]))
    assert same == rounds.Agreement(True, 0.0, 0.0)
    other = rounds.compare(selection(2, [0.1, 0.3, 0.31]), looked(1, [0.1, 0.4, 0.3]))
    assert not other.same
    assert other.loss == pytest.approx(0.25)
    assert other.difference == pytest.approx(0.25)


def test_actions_take_turns() -> None:
    order: list[str] = []
    actions = {name: lambda _, name=name: order.append(name) for name in "ab"}
    seconds = clock.in_turn(actions, 3)
    assert order == ["a", "a", "b", "b"] * 3  # the first of each is not timed
    assert [len(values) for values in seconds.values()] == [3, 3]
    assert clock.medians({"a": [3.0, 1.0, 2.0]}) == {"a": 2.0}


def test_parts_are_found_by_file_and_function() -> None:
    def busy(_: int) -> None:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    spent = clock.parts(busy, 2, {"busy": ("test_benchmarks.py", "busy"), "none": ("x.py", "y")})
    assert spent["busy"] >= 0.015
    assert spent["none"] == 0.0


def test_the_floor_grows_with_the_observations() -> None:
    rates = floor.Rates(1e9, 1e9, 1e9, 1e9)
    few = floor.floor_seconds(Settings.paper(), 100, rates)
    many = floor.floor_seconds(Settings.paper(), 1000, rates)
    assert few.keys() == many.keys()
    assert many["pool kernel"] == pytest.approx(10 * few["pool kernel"])
    assert many["leverage of the whole pool"] == pytest.approx(4000 * 1000**2 / 1e9)
    assert many["pool labels"] == few["pool labels"]


def test_a_shorter_run_leaves_no_figures_of_a_longer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "LATEST", tmp_path / "latest.json")
    report.write_latest({"speedup_t250": 5.0, "speedup_t1000": 8.0, "optuna_t200": 70.0})
    report.write_latest({"speedup_t250": 6.0}, forget=("speedup_",))
    written = json.loads((tmp_path / "latest.json").read_text())
    assert written == {"optuna_t200": 70.0, "speedup_t250": 6.0}


def record(method: str, user: int, error: float) -> dict[str, Any]:
    curve = [
        {"queries": queries, "error": error + change, "rmse": 0.1}
        for queries, change in ((50, 0.1), (100, 0.05), (200, 0.0))
    ]
    return {
        "method": method,
        "user": user,
        "curve": [] if method == "optuna" else curve,
        "final_gap": 0.2,
        "seconds_a_query": 0.5,
        "notes": {"mean_gap_of_best_trials": 0.3},
        "options": {"queries": 200},
    }


def test_only_people_that_every_method_finished_are_counted(tmp_path: Path) -> None:
    assert "No person" in document.quality_text(tmp_path)
    for method, users in (("random", (1, 2, 3)), ("default", (1, 2)), ("optuna", (1, 2))):
        for user in users:
            text = json.dumps(record(method, user, 0.08 if method == "default" else 0.12))
            (tmp_path / f"{method}-{user}.json").write_text(text)
    text = document.quality_text(tmp_path)
    assert text.startswith("2 people, 200 queries")
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    assert "17.0 ± 0.0 | 12.0 ± 0.0 | > 200" in lines["Random (paper settings)"]
    assert "13.0 ± 0.0 | 8.0 ± 0.0 | 160" in lines["SFIHILO default"]
    assert "0.200 ± 0.000 (its set: 0.300 ± 0.000)" in lines["Optuna PreferentialGPSampler"]


@pytest.mark.parametrize("page", ["speed.md", "peers.md"])
def test_pages_have_a_place_for_their_figures(page: str, tmp_path: Path) -> None:
    copy = tmp_path / page
    copy.write_text((clock.ROOT / "docs" / page).read_text())
    document.replace_between(copy, "once")
    document.replace_between(copy, "twice")
    assert "twice" in copy.read_text()
    assert "once" not in copy.read_text().split(document.BEGIN)[1].split(document.END)[0]
    with pytest.raises(ValueError, match="expected the comments"):
        document.replace_between(_written(tmp_path / "bare.md"), "x")


def _written(path: Path) -> Path:
    path.write_text("nothing")
    return path


def test_the_stand_in_answers_like_a_person() -> None:
    told = study_hours.stand_in(3, 2, 5)
    assert told.responses[0].choice is None
    assert {response.choice for response in told.responses[1:]} <= {"new", "previous"}
    assert told.query(0).anchor is None
    np.testing.assert_array_equal(told.query(2).anchor, told.responses[1].outcome)
