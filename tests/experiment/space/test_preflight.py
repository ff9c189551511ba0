"""What is refused before a session is created: steps without a start, parts that cannot fit."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Space, UnsafePolicyError
from sfihilo.experiment.space import safety
from sfihilo.experiment.space.preflight import check_new
from tests.experiment.people import LEAN, memory_folder

OUTCOMES = {"comfort": Outcome(0, 10)}


def refused(lab: Lab, space: Space, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lab.create(space, "P1", 1, settings=LEAN)
    assert lab.sessions() == []


def test_max_step_without_start_makes_no_session(lab: Lab) -> None:
    refused(lab, Space({"torque": Parameter(0, 60, max_step=15)}, OUTCOMES), "torque: start: exp")


def test_stored_session_without_start_still_opens() -> None:
    golden = Path(__file__).parents[1] / "log" / "golden" / "session-1.db"
    with memory_folder() as folder:
        copy = folder / "lab.db"
        copy.write_bytes(golden.read_bytes())
        with Lab(copy) as lab:
            (name,) = lab.sessions()
            space = lab.record(name).space
            assert any(k.max_step and k.start is None for k in space.policy.values())
            with pytest.raises(ValueError, match="start"):
                check_new(space)
            assert lab.open(name).trials


@pytest.mark.parametrize("path", [Path("examples/lab_session.py"), Path("docs/sessions.md")])
def test_examples_name_a_start_for_every_max_step(path: Path) -> None:
    text = (Path(__file__).parents[3] / path).read_text()
    lines = [line for line in text.splitlines() if "max_step=" in line and "Parameter(" in line]
    assert lines
    assert all("start=" in line for line in lines)


@pytest.mark.parametrize(
    ("knob", "message"),
    [
        (Parameter(0, 10, fixed=5, start=0, max_step=1), "fixed: expected at most max_step"),
        (Parameter(0, 1e6, start=0, max_step=1e-3), "max_step: expected at least"),
        (Parameter(0, 1e9, step=1), "step: expected at least"),
    ],
)
def test_steps_that_cannot_fit_make_no_session(lab: Lab, knob: Parameter, message: str) -> None:
    refused(lab, Space({"x": Parameter(0, 1), "y": knob}, OUTCOMES), f"y: {message}")


def test_step_on_a_logarithmic_range_is_bounded_in_physical_units() -> None:
    """The former tolerance, a billionth of the range, was a hundred times this max_step."""
    space = Space({"gain": Parameter(1e-3, 1e6, log=True, max_step=1e-5, start=1e-3)}, OUTCOMES)
    at = {"gain": 0.5}
    safety.check(space, {"gain": 0.5 + 1e-5}, [at])
    for step in (1.1e-5, 1e-4, 1e-3):
        with pytest.raises(UnsafePolicyError, match="step of at most"):
            safety.check(space, {"gain": 0.5 + step}, [at])


def test_step_in_a_message_has_sensible_digits() -> None:
    """4.6 - 6.0 is -1.4000000000000004."""
    space = Space({"x": Parameter(0, 10, max_step=1, start=5)}, OUTCOMES)
    with pytest.raises(UnsafePolicyError, match=r"step of at most 1 from 6.0, got 1.4$"):
        safety.check(space, {"x": 4.6}, [{"x": 6.0}])


def test_grid_is_checked_relative_to_its_step() -> None:
    space = Space({"x": Parameter(0, 1e9, step=0.25)}, OUTCOMES)
    safety.check(space, {"x": 0.75})
    with pytest.raises(UnsafePolicyError, match=r"k \* 0.25"):
        safety.check(space, {"x": 0.6})


def raises(policy: dict[str, float]) -> bool:
    raise ZeroDivisionError(policy)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda policy: math.nan, "returned a float"),
        (lambda policy: 1, "returned a int"),
        (lambda policy: "no", "returned a str"),
        (lambda policy: None, "returned a NoneType"),
        (lambda policy: np.array([True, False]), "returned a ndarray"),
        (raises, "raised ZeroDivisionError"),
    ],
)
def test_constraint_function_that_does_not_say_true_allows_nothing(
    lab: Lab, answer: Any, message: str
) -> None:
    space = Space({"x": Parameter(0, 1)}, OUTCOMES, (answer,))
    assert not space.allows(np.array([[0.2], [0.8]])).any()
    with pytest.raises(UnsafePolicyError, match=message):
        safety.check(space, {"x": 0.5})
    refused(lab, space, message)


def test_constraint_function_may_return_a_numpy_boolean() -> None:
    below_half: Any = lambda policy: np.float64(policy["x"]) < 0.5  # noqa: E731
    space = Space({"x": Parameter(0, 1)}, OUTCOMES, (below_half,))
    assert space.allows(np.array([[0.2], [0.8]])).tolist() == [True, False]
    safety.check(space, {"x": 0.2})


@pytest.mark.parametrize("unit", ["a\nb", "\x1b[31m", "\udc80", "x" * 41])
def test_unit_that_does_not_print_makes_no_session(lab: Lab, unit: str) -> None:
    refused(lab, Space({"x": Parameter(0, 1, unit=unit)}, OUTCOMES), "x: unit: expected at most 40")
    with_unit = {"comfort": Outcome(0, 10, unit=unit)}
    refused(lab, Space({"x": Parameter(0, 1)}, with_unit), "comfort: unit: expected at most 40")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": {"rule": "random"}}, "settings: expected Settings"),
        ({"protocol": {"drift": True}}, "protocol: expected a Protocol"),
        ({"settings": LEAN, "space": {"x": Parameter(0, 1)}}, "space: expected a Space"),
    ],
)
def test_create_with_a_wrong_type_stores_nothing(
    lab: Lab, given: dict[str, Any], message: str
) -> None:
    space = given.pop("space", Space({"x": Parameter(0, 1)}, OUTCOMES))
    with pytest.raises(ValueError, match=message):
        lab.create(space, "P1", 1, **given)
    assert lab.sessions() == []
