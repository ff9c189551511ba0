"""The numbers over people, the sentence that they make, and the demonstration from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sfihilo.study.demo.courses import WAYS, Course, Plan, Way
from sfihilo.study.demo.findings import (
    Summary,
    headline,
    mean_liking,
    middle_person,
    overtakes,
    summarise,
)
from sfihilo.study.demo.show import show
from sfihilo.study.demo.why import Slice, Why
from sfihilo.study.figures import style
from sfihilo.study.figures.demo_picture import picture
from sfihilo.study.run.engines import Engine
from tests.study.tiny import EVALUATION, PEOPLE

GRID = np.linspace(0, 1, 5)
CUT = Slice(GRID, GRID - 0.5, GRID - 0.5, GRID - 0.7, GRID - 0.3, (0.2, 0.9), 0.5)
WHY = Why((CUT,) * 6, np.full(6, 1 / 6), np.full(6, 1 / 6))


def invented(person: int, way: Way, advice: Sequence[float], wrong: float = 0.2) -> Course:
    """A course of four comparisons, evaluated after two and after four."""
    return Course(
        person=person,
        way=way,
        queries=np.array([2.0, 4.0]),
        advice=np.array(advice),
        wrong=np.array([0.4, wrong]),
        liking=np.array([0.2, 0.4, 0.6, 0.8]),
        blind=0.5,
        advised=np.full(4, 0.5),
        why=WHY,
    )


def people(best: Sequence[float], random: Sequence[float]) -> Summary:
    """Three people, alike but for a little; the errors of the second are in the middle."""
    found = []
    for person, extra in enumerate((-0.01, 0.0, 0.01)):
        for way, advice in (("best", best), ("understand", best), ("random", random)):
            values = [value + extra * (way == "best") for value in advice]
            found.append(invented(person, way, values, 0.2 + extra))  # type: ignore[arg-type]
    return summarise(found[::-1])


def test_bands_are_means_and_standard_errors_over_people() -> None:
    summary = people((0.8, 0.9), (0.6, 0.7))
    assert (summary.people, summary.queries, summary.wins) == (3, 4, 3)
    np.testing.assert_allclose(summary.advice["best"].mean, [0.8, 0.9])
    np.testing.assert_allclose(summary.advice["best"].error, 0.01 / np.sqrt(3))
    np.testing.assert_allclose(summary.advice["random"].error, 0, atol=1e-15)
    assert {course.person for course in summary.example.values()} == {1}


def test_middle_of_an_even_number_is_the_lower_one() -> None:
    found = [invented(n, "best", (0, 0), wrong) for n, wrong in enumerate((0.4, 0.1, 0.3, 0.2))]
    assert middle_person(found) == 3


def test_liking_is_the_mean_of_all_trials_until_then() -> None:
    np.testing.assert_allclose(mean_liking(invented(0, "best", (0, 0))), [0.3, 0.5])


@pytest.mark.parametrize(
    ("best", "random", "matched"),
    [
        ((0.8, 0.9), (0.6, 0.7), 2),
        ((0.6, 0.9), (0.6, 0.7), 4),
        ((0.8, 0.6), (0.6, 0.7), None),  # a lead that is lost again does not count
    ],
)
def test_random_trials_are_matched_from_where_the_lead_stays(
    best: Sequence[float], random: Sequence[float], matched: int | None
) -> None:
    assert overtakes(people(best, random)) == matched


def test_headline_says_what_was_found() -> None:
    ahead = headline(people((0.8, 0.9), (0.6, 0.7)))
    assert "4 trials find a setting worth 90 %" in ahead
    assert "2 are enough to match 4 random ones (70 %)" in ahead
    behind = headline(people((0.5, 0.6), (0.6, 0.7)))
    assert "worth 60 %" in behind
    assert "4 random ones find one worth 70 %" in behind


def test_picture_of_equal_lines_labels_each(tmp_path: Path) -> None:
    figure = picture(people((0.8, 0.8), (0.8, 0.8)))
    labels = [text for text in figure.axes[0].texts if text.get_text() == "80 %"]
    heights = sorted(text.xy[1] for text in labels)  # type: ignore[attr-defined]
    assert len(labels) == len(WAYS)
    assert min(np.diff(heights)) > 0.04
    assert style.write_png(figure, tmp_path, "equal", dots=40).stat().st_size > 1000


def test_demo_prints_a_table_and_writes_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(people=2, queries=4, users=PEOPLE, evaluation=EVALUATION)
    path = show(plan, tmp_path / "out", Engine(workers=1))
    assert path.read_bytes().startswith(b"\x89PNG")
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("2 simulated people", "After 4 trials", "goal understand", "peak torque"):
        assert words in printed
    assert "6/6" in printed
