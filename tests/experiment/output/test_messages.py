"""What people read: hints, units, counts, titles."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfihilo.cli.session.app import app
from sfihilo.experiment import BadMeasurementError, Outcome, Parameter, Space
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.measurement import accepted


@pytest.mark.parametrize(
    ("low", "high", "value", "hint"),
    [
        (0, 10, 11, None),
        (2, 8, 8.5, None),
        (2, 8, 1.9, None),
        (-10, -2, -10.5, None),
        (0, 10, -1, None),
        (2, 8, 0, None),
        (2, 8, 5000, "/ 1000 = 5"),
        (2, 8, 0.005, r"\* 1000 = 5"),
        (2, 8, 280, "/ 100 = 2.8"),
        (2, 8, 24, "/ 4.184"),
        (-10, -2, -0.005, r"\* 1000 = -5"),
    ],
)
def test_another_unit_is_named_only_far_out_of_range(
    low: float, high: float, value: float, hint: str | None
) -> None:
    space = Space({"x": Parameter(0, 1)}, {"o": Outcome(low, high)})
    with pytest.raises(BadMeasurementError) as caught:
        accepted(space, {"o": value})
    if hint is None:
        assert "another unit" not in str(caught.value)
    else:
        assert re.search(rf"another unit\? \S+ {hint}", str(caught.value))


@pytest.mark.parametrize(
    ("low", "high", "unit", "value", "hint"),
    [
        (0, 10, "points", 60, "another scale? 60 / 10 = 6 would fit"),
        (0, 10, "", 60, "another scale? 60 / 10 = 6 would fit"),
        (0, 10, "cm", 60, None),
        (2, 8, "W/kg", 450, "for the whole body, not per kilogram? 450 / 70 = 6.429 would fit"),
        (2, 8, "W kg⁻¹", 450, "not per kilogram? 450 / 70 = 6.429 would fit"),
        (2, 8, "W", 450, "another unit? 450 / 100 = 4.5 would fit"),
        (0.2, 2, "m/s", 4.5, "in km/h? 4.5 / 3.6 = 1.25 would fit"),
        (0.2, 2, "m s⁻¹", 4.5, "in km/h? 4.5 / 3.6 = 1.25 would fit"),
        (0.2, 2, "cm", 4.5, "another unit? 4.5 / 4.184"),
        (2, 8, "W/kg", 4100, "another unit? 4100 / 1000 = 4.1 would fit"),
    ],
)
def test_unit_hints_fit_the_unit(
    low: float, high: float, unit: str, value: float, hint: str | None
) -> None:
    space = Space({"x": Parameter(0, 1)}, {"o": Outcome(low, high, unit=unit)})
    with pytest.raises(BadMeasurementError) as caught:
        accepted(space, {"o": value})
    assert (hint or "") in str(caught.value)
    assert ("would fit" in str(caught.value)) == (hint is not None)


def test_refused_values_are_shown_with_six_digits() -> None:
    space = Space({"x": Parameter(0, 1)}, {"o": Outcome(0.0, 10.0, unit="cm")})
    with pytest.raises(BadMeasurementError, match=r"o: expected 0 to 10 cm, got 11\.2667$"):
        accepted(space, {"o": 11.266666666666667})


def test_messages_without_a_unit_have_no_gap() -> None:
    space = Space({"a": Parameter(0, 10, max_step=1)}, {"o": Outcome(0, 10, soft=(1, 9))})
    assert accepted(space, {"o": 9.5}).warnings == ("o: 9.5 is outside the usual 1 to 9",)
    found = safety.problems(space, {"a": 50.0}, [{"a": 0.0}])
    assert found == [
        "a: expected 0 to 10, got 50.0",
        "a: expected a step of at most 1 from 0.0, got 50",
    ]


def test_titles_are_whole_and_counts_agree(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        "[policy.x]\nlow = 0\nhigh = 1\n[outcomes.o]\nlow = 0\nhigh = 1\n[session]\nrule = 'random'"
    )
    db = ["--db", str(tmp_path / "lab.db")]
    runner = CliRunner()
    for words in (
        ["new", str(tmp_path / "s.toml"), "-p", "P1"], ["ask"], ["measure", "o=0.5"], ["ask"],
        ["measure", "o=0.6"], ["choose", "n"],
    ):  # fmt: skip
        assert runner.invoke(app, [*words, *db]).exit_code == 0
    lines = runner.invoke(app, ["recommend", *db]).output.splitlines()
    assert "only 1 comparison, so" in " ".join(lines)
    assert "Recommended" in lines
    assert "Expected, with 95 % intervals" in lines


@pytest.mark.parametrize("given", [lambda _: True, [("x", (0, 1))], "x=0:1", 7])
def test_ranges_that_are_no_mapping_are_refused(given: Any) -> None:
    space = Space({"x": Parameter(0, 1)}, {"o": Outcome(0, 1)})
    with pytest.raises(ValueError, match="feasible: expected name"):
        space.limits(given)
