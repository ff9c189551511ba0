"""Figures from stored results: whole, partial, and none; the same bytes again."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from sfihilo.study import figures
from sfihilo.study.analysis import summary
from sfihilo.study.analysis.crossing import Crossing, find_crossing
from sfihilo.study.analysis.measures import POLICY_GAP, Cell, Results
from sfihilo.study.design.panels import LOOKAHEAD
from sfihilo.study.figures import (
    boxes,
    curves,
    extrapolation,
    preset_changes,
    presets,
    results,
    style,
    user_diagnostics,
)
from sfihilo.study.people.users import HeadSettings, UserSettings
from tests.study.invented import invented

SMALL = UserSettings(
    outcome=HeadSettings(64, 0.35, 0.65), reward=HeadSettings(64, 0.5, 0.8), calibration=200
)


@pytest.fixture(scope="module")
def whole() -> Results:
    return Results.of(invented(3, ["paper", "default"]))


@pytest.fixture(scope="module")
def base_only() -> Results:
    return Results.of(invented(2, ["paper"], ["base"]))


@pytest.fixture(scope="module")
def main_figure(whole: Results) -> Figure:
    figure = results.final_results(whole)
    figure.draw_without_rendering()  # once: the layout is what takes long
    return figure


def texts(figure: Figure) -> list[str]:
    """Everything that is written in a figure, except at its ticks."""
    found = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return [text for artist in found if (text := artist.get_text())]  # type: ignore[attr-defined]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = (axes for axes in figure.axes if axes.get_title(loc="left") == title)
    return found


def extent(text: Text) -> Bbox:
    """Where a text stands in a figure that was laid out, in pixels, without its box."""
    return Text.get_window_extent(text)


def numbers_on_the_left(axes: Axes) -> list[str]:
    """The vertical tick labels that one can see."""
    low, high = axes.get_ylim()
    shown = [tick for tick in axes.yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1.get_text() for tick in shown if tick.label1.get_visible()]


def test_main_figure_has_all_panels_and_says_how_many_users(main_figure: Figure) -> None:
    written = texts(main_figure)
    for letter, title in results.TITLE.items():
        assert letter in written
        assert title in written
    assert written.count("n = 3") == 9
    assert "not run" not in written


def test_missing_panels_and_conditions_say_so(base_only: Results) -> None:
    written = texts(results.final_results(base_only))
    # Panels G, H and I as a whole, 5 dimensionalities in C and 3 noise levels in E.
    assert written.count("not run") == 3 + 5 + 3
    assert written.count("n = 2") == 6


def test_notes_are_the_change_and_the_stars() -> None:
    results_ = Results.of(invented(6, conditions=["base"]))
    tests = summary.panel_tests(results_, "paper", "gap")
    random, lookahead = Cell("paper", "base", "random"), Cell("paper", "base", LOOKAHEAD)
    # The invented gap is 0.4 of Random's for every user.
    note = results.note_of(tests, lookahead, random, POLICY_GAP)
    assert note == "\u221260%***"
    assert results.note_of(tests, random, random, POLICY_GAP) == ""


def test_unlike_numbers_of_users_are_shown_as_a_range() -> None:
    assert results.users_text([30, 12, 30]) == "n = 12\u201330"
    assert results.users_text([]) == ""


def test_crossings_are_marked_where_the_mean_curve_crosses(
    whole: Results, main_figure: Figure
) -> None:
    written = texts(main_figure)
    curve = whole.curves(Cell("paper", "base", LOOKAHEAD), "preference_error")
    crossing = find_crossing(curve.queries, curve.values.mean(axis=0))
    assert crossing.kind == "observed"
    assert f"{crossing.queries:.0f}" in written


def test_close_crossings_do_not_run_into_each_other() -> None:
    figure = style.new_figure(1.6, 1.8, layout=None)
    axes = figure.subplots()
    axes.set(xlim=(0, 1050), ylim=(0, 35))
    found = [(697.0, style.GREY), (344.0, style.BLUE), (377.0, style.ORANGE)]
    results.mark_crossings(axes, found)
    figure.draw_without_rendering()
    assert [line.get_xdata()[0] for line in axes.lines] == [344, 377, 697]  # type: ignore[index]
    assert [text.get_text() for text in axes.texts] == ["344", "377", "697"]
    for one, other in combinations(axes.texts, 2):
        assert not extent(one).overlaps(extent(other))
    apart = np.diff([axes.transData.transform((x, 0))[0] for x in (344, 377)]) * 72 / figure.dpi
    assert apart > 2 * axes.lines[0].get_linewidth()


@pytest.mark.parametrize("title", ["By true reward gap", "Outcome dimensionality", "Noise"])
def test_notes_above_boxes_stay_inside_the_panel_and_use_its_height(
    main_figure: Figure, title: str
) -> None:
    axes = panel(main_figure, title)
    notes = [extent(text) for text in axes.texts if "%" in text.get_text()]
    assert notes
    bottom, top = axes.bbox.y0, axes.bbox.y1
    assert all(note.y1 <= top for note in notes)
    points = np.concatenate([np.ravel(line.get_ydata()) for line in axes.lines])
    highest = axes.transData.transform([(0, value) for value in points])[:, 1].max()
    assert max(highest, *(note.y1 for note in notes)) > bottom + 0.85 * (top - bottom)


def test_label_of_the_budget_line_is_outside_of_the_axes(main_figure: Figure) -> None:
    axes = panel(main_figure, "By true reward gap")
    (name,) = (text for text in axes.texts if text.get_text() == "1,000 run")
    assert extent(name).x0 > axes.bbox.x1


def test_upper_limit_leaves_room_only_above_boxes_with_notes() -> None:
    # 80 is 0.8 of the height above 0; without notes, a little air is enough.
    assert boxes.top_limit(0, 80, np.array([80.0]), 0.2) == pytest.approx(100)
    assert boxes.top_limit(0, 80, np.array([20.0]), 0.2) == pytest.approx(84)
    assert boxes.top_limit(20, 80, np.array([]), 0.2) == pytest.approx(83)


def test_own_rules_get_a_colour_and_a_name(base_only: Results) -> None:
    table = invented(2, conditions=["base"])
    own = table[table["rule"] == "random"].assign(rule="mine:nearest_middle")
    written = texts(results.final_results(Results.of(pd.concat([table, own]))))
    assert "Nearest middle" in written
    assert style.rule_colour("mine:nearest_middle") not in style.RULE_COLOURS.values()


def test_representative_run_has_the_median_crossing() -> None:
    runs = [
        extrapolation.Example("base", user, np.array([1.0]), np.array([0.2]), Crossing(at, "first"))
        for user, at in enumerate((500.0, 100.0, 300.0))
    ]
    chosen = extrapolation.representative(runs)
    assert chosen is not None
    assert chosen.user == 2
    assert extrapolation.representative([]) is None


def test_extrapolation_figure_says_when_there_is_no_such_run(base_only: Results) -> None:
    written = texts(extrapolation.log_extrapolation(base_only))
    assert "no extrapolated crossing" in written


def test_extrapolation_figure_marks_a_rule_without_results_as_not_run() -> None:
    table = invented(2, ["default"], ["base"])
    figure = extrapolation.log_extrapolation(
        Results.of(table[table["rule"] == "global_pairs"]), "default"
    )
    written = texts(figure)
    assert written.count("not run") == 4
    assert written.count("no observed crossing") == 0
    assert written.count("no extrapolated crossing") == 1
    figure.draw_without_rendering()
    (drawn,) = (axes for axes in figure.axes if axes.lines)
    assert numbers_on_the_left(drawn) == ["0%", "10%", "20%", "30%", "40%"]
    assert drawn.get_ylabel() == "preference error"


def test_an_empty_panel_leaves_its_neighbours_their_scale() -> None:
    figure = style.new_figure(4, 2)
    row = figure.subplots(1, 3, sharey=True)
    style.not_run(row[0])
    for axes in row[1:]:
        axes.plot([0, 1], [0, 4])
    style.label_leftmost(row, "height")
    figure.draw_without_rendering()
    assert numbers_on_the_left(row[0]) == []
    assert numbers_on_the_left(row[1]) == ["0", "1", "2", "3", "4"]
    assert numbers_on_the_left(row[2]) == []
    assert [axes.get_ylabel() for axes in row] == ["", "height", ""]


def test_preset_figures_name_both_presets(whole: Results) -> None:
    for figure in (presets.preset_curves(whole), presets.reliability(whole)):
        written = " ".join(texts(figure))
        assert "paper settings, BL" in written
        assert "default settings, GPL" in written


def test_conditions_figure_has_one_line_per_shared_condition(
    whole: Results, base_only: Results
) -> None:
    figure = preset_changes.preset_conditions(whole)
    written = texts(figure)
    for label in (
        "standard",
        "d = 12",
        "noise none",
        "drift, learned decay",
        "5 missing",
        "1 extra",
    ):
        assert f"{label} (n = 3)" in written
    error = figure.axes[0]
    assert error.get_title(loc="left") == "preference error"
    points = [line for line in error.lines if line.get_marker() == "o"]
    assert len(points) == len(error.get_yticks())
    assert all(
        (np.asarray(line.get_xdata()) < 0).all() for line in points
    )  # the invented default is better
    assert texts(preset_changes.preset_conditions(base_only)).count("not run") == len(
        preset_changes.DRAWN
    )


def test_conditions_figure_without_differences_has_distinct_ticks(whole: Results) -> None:
    forward = preset_changes.preset_conditions(whole).axes[1]
    assert forward.get_title(loc="left") == "forward error"
    low, high = forward.get_xlim()
    assert low <= -1
    assert high >= 1
    assert len(set(forward.get_xticks().round())) == len(forward.get_xticks())


def test_a_condition_without_a_relative_change_keeps_an_empty_line() -> None:
    table = invented(3, ["paper", "default"], ["base", "d02"])
    nothing = (table["condition"] == "d02") & (table["metric"] == "final_policy_gap")
    figure = preset_changes.preset_conditions(
        Results.of(table.assign(value=table["value"] * ~nothing))
    )
    error, _, missed, _ = figure.axes
    points = [[line for line in axes.lines if line.get_marker() == "o"] for axes in (error, missed)]
    assert [len(found) for found in points] == [2, 1]


@pytest.mark.parametrize(
    ("low", "high", "users", "colour"),
    [
        (-2.0, -1.0, 6, style.GREEN),
        (1.0, 2.0, 6, style.RED),
        (-1.0, 1.0, 6, style.GREY),
        (-1.0, -1.0, 1, style.GREY),
    ],
)
def test_colours_say_better_worse_or_undecided(
    low: float, high: float, users: int, colour: str
) -> None:
    assert preset_changes.change_colour(low, high, users) == colour


def test_the_reliability_legend_names_only_what_is_drawn() -> None:
    table = invented(2, ["paper"], ["base"])
    words = "that the person will answer so"
    assert words in texts(presets.reliability(Results.of(table)))
    without = table[~table["metric"].str.contains("answer")]
    assert words not in texts(presets.reliability(Results.of(without)))


def test_the_default_preset_is_drawn_by_its_own_rule(whole: Results) -> None:
    written = texts(results.final_results(whole, "default"))
    assert "Global Pair Lookahead" in written
    assert "Boundary Lookahead" not in written
    assert written.count("n = 3") == 9
    assert "not run" not in written
    assert "Global Pair Lookahead" in texts(extrapolation.log_extrapolation(whole, "default"))


def test_user_diagnostics_need_no_results() -> None:
    written = texts(user_diagnostics.truth_behavior(SMALL))
    assert [f"User {number}" in written for number in (1, 2, 3, 4)] == [True] * 4


def test_band_covers_the_mean_and_shrinks_with_users() -> None:
    rng = np.random.default_rng(1)
    few, many = rng.normal(size=(5, 3)), rng.normal(size=(200, 3))
    widths = []
    for values in (few, many):
        low, high = curves.mean_band(values)
        assert ((low <= values.mean(axis=0)) & (values.mean(axis=0) <= high)).all()
        widths.append((high - low).mean())
    assert widths[1] < widths[0] / 3


def test_boxes_keep_a_place_for_what_was_not_run() -> None:
    box = boxes.Box(np.array([1.0, 2.0]), style.BLUE, "")
    groups = [boxes.Group("a", (box, box)), boxes.Group("b", ()), boxes.Group("c", (box,))]
    assert boxes.positions(groups, gap=1.0) == [[0.0, 1.0], [3.0], [5.0]]


def test_files_are_the_same_bytes_again(
    tmp_path: Path, base_only: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "DOTS", 60)
    written = []
    for folder in ("one", "two"):
        figure = results.policy_reward_gap(base_only)
        paths = style.write(figure, tmp_path / folder, "gap")
        assert [path.suffix for path in paths] == [".png", ".pdf"]
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        *("gap.pdf", "gap.png"),
    ]


def built_only(figure: Figure, folder: Path, name: str) -> list[Path]:
    """In the place of `style.write`: the figure is built but not drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.txt"
    path.write_text("\n".join(texts(figure)))
    return [path]


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_figures_from_one_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: bool
) -> None:
    if not drawn:
        monkeypatch.setattr(style, "write", built_only)
    table = Results.of(invented(1, ["paper"], ["base"]))
    monkeypatch.setattr(figures, "truth_behavior", lambda: user_diagnostics.truth_behavior(SMALL))
    monkeypatch.setattr(style, "DOTS", 40)
    written = figures.draw_all(table, tmp_path)
    names = {path.stem for path in written}
    assert names == {
        *("final_results-paper", "log_extrapolation-paper"),
        *("policy_reward_gap-paper", "preset_curves", "preset_conditions", "reliability"),
        "truth_behavior",
    }
    assert all(path.stat().st_size > 0 for path in written)
