"""The forecast of the remaining time, and the progress bar."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfihilo.study.run.progress import Bar, Forecast, duration
from sfihilo.study.run.result_files import Store
from sfihilo.study.run.runner import Plan
from tests.study.tiny import tiny_unit, tiny_units


def test_forecast_is_unknown_until_a_unit_finished_then_averages_by_rule() -> None:
    units = tiny_units(4)
    forecast = Forecast(2, list(units))
    assert forecast.seconds_to_go() is None
    forecast.finish(units[0], 10.0)  # random
    assert forecast.seconds_to_go() == pytest.approx(7 * 10 / 2)
    forecast.finish(units[1], 100.0)  # boundary_lookahead
    assert forecast.seconds_to_go() == pytest.approx((3 * 10 + 3 * 100) / 2)
    for unit in units[2:7]:
        forecast.finish(unit, None)
    assert forecast.seconds_to_go() == pytest.approx(100)  # one unit left uses one worker
    forecast.finish(units[7], 100.0)
    assert forecast.seconds_to_go() == 0


def test_bar_shows_finished_units_and_remaining_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units = tiny_units(1)
    bar = Bar()
    bar.begin(Plan(units, Store(tmp_path, "paper")), places=1)
    bar.note(units[0], 30.0)
    bar.note(units[1], None)
    bar.end()
    said = capsys.readouterr().err
    assert "0/2 units" in said
    assert "unknown time to go" in said
    assert "2/2 units" in said
    assert "0 s to go" in said


def test_bar_begins_with_the_timings_of_runs_with_as_many_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, units = Store(tmp_path, "paper"), tiny_units(1)
    store.note_timing(units[0], 40.0)
    store.note_timing(tiny_unit(queries=999), 4000.0)
    bar = Bar()
    bar.begin(Plan(units, store), places=2)
    bar.end()
    assert "40 s to go" in capsys.readouterr().err


def test_duration_is_rounded_to_a_suitable_unit() -> None:
    assert [duration(s) for s in (None, 12.4, 600, 9000)] == [
        "unknown time",
        "12 s",
        "10 min",
        "2.5 h",
    ]
