import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfihilo.experiment import Outcome, Parameter, Space
from sfihilo.experiment.log.event import canonical
from sfihilo.experiment.space.constraint import Constraint
from sfihilo.experiment.space.space import read_toml, space_from_tables
from tests.experiment.people import EXOSKELETON

ROOT = Path(__file__).parents[3]
OUTCOMES = {"comfort": Outcome(0, 10)}


def read_space(path: Path) -> Space:
    return space_from_tables(read_toml(path), str(path))


def one(**options: object) -> Space:
    return Space({"x": Parameter(**options)}, OUTCOMES)  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_units_map_into_the_declared_space_and_back(unit: list[float]) -> None:
    policy = EXOSKELETON.to_policy(np.array(unit))
    assert list(policy) == list(EXOSKELETON.policy)
    for name, knob in EXOSKELETON.policy.items():
        assert knob.problem(policy[name]) is None
    assert policy["offset"] == 1.5
    assert policy["cadence"] == int(policy["cadence"])
    back = EXOSKELETON.to_unit(policy)
    moved = EXOSKELETON.on_grid(np.array(unit))
    np.testing.assert_allclose(back, moved, atol=1e-12)
    assert EXOSKELETON.to_policy(moved) == policy  # what is told is what was set


def test_log_scale_explores_orders_of_magnitude() -> None:
    knob = Parameter(0.1, 10, log=True)
    assert knob.from_unit(np.array([0.0, 0.5, 1.0])) == pytest.approx([0.1, 1.0, 10.0])
    assert knob.to_unit(np.array([0.1, 1.0, 10.0])) == pytest.approx([0.0, 0.5, 1.0])


@given(st.floats(0.3, 7), st.floats(0, 1))
def test_a_step_reaches_only_its_grid(step: float, unit: float) -> None:
    knob = Parameter(-3, 11, step=step)
    value = float(knob.from_unit(np.array(unit)))
    assert -3 <= value <= 11
    assert knob.problem(value) is None


def test_the_unit_cube_is_untouched_where_nothing_scales() -> None:
    """A simulated session must see the very same floats as the bare loop."""
    space = Space({"x": Parameter(0, 1), "y": Parameter(0, 1)}, {"o": Outcome(0, 1)})
    unit = np.random.default_rng(0).uniform(size=(1000, 2))
    for row in unit:
        assert list(space.to_policy(row).values()) == row.tolist()
        assert space.on_grid(row).tolist() == row.tolist()
    assert space.unit_values({"o": 0.1 + 0.2}) == (0.1 + 0.2,)


@given(st.integers(0, 2**32 - 1))
def test_a_box_holds_exactly_what_one_step_reaches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positions = [EXOSKELETON.to_policy(rng.uniform(size=4))]
    lower, upper = EXOSKELETON.box(positions)
    for unit in [lower, upper, *rng.uniform(lower, upper, (20, 4))]:
        policy = EXOSKELETON.to_policy(unit)
        for name, knob in EXOSKELETON.policy.items():
            if knob.max_step is not None:
                assert abs(policy[name] - positions[0][name]) <= knob.max_step * (1 + 1e-12)
    for free, low, high in zip(EXOSKELETON.free, lower, upper, strict=True):
        if EXOSKELETON.policy[free].max_step is None:
            assert (low, high) == (0, 1)


def test_limits_narrow_a_box() -> None:
    lower, upper = EXOSKELETON.box((), EXOSKELETON.limits({"peak_torque": (15, 30)}))
    assert lower[0] == pytest.approx(0.25)
    assert upper[0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="peak_torque"):
        EXOSKELETON.box((), {"peak_torque": (70, 80)})


@pytest.mark.parametrize(
    ("feasible", "message"),
    [
        ({"nothing": (0, 1)}, "expected names among"),
        ({"offset": (0, 1)}, "expected names among"),
        ({"peak_time": (50, 40)}, "low <= high"),
        ({"peak_time": 50}, "two numbers"),
        ({"peak_time": (float("nan"), 50)}, "finite"),
    ],
)
def test_bad_limits_are_refused(feasible: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EXOSKELETON.limits(feasible)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"low": 1, "high": 1}, "low < high"),
        ({"low": 2, "high": 1}, "low < high"),
        ({"low": float("nan"), "high": 1}, "finite"),
        ({"low": 0, "high": float("inf")}, "finite"),
        ({"low": -1e308, "high": 1e308}, "low < high"),
        ({"low": True, "high": 2}, "expected a number"),
        ({"low": "0", "high": 1}, "expected a number"),
        ({"low": 0, "high": 1, "log": True}, "low > 0"),
        ({"low": 0, "high": 1, "max_step": 0}, "above 0"),
        ({"low": 0, "high": 1, "step": -1}, "above 0"),
        ({"low": 0, "high": 1, "step": 2}, "at most"),
        ({"low": 0.5, "high": 4, "integer": True}, "whole low"),
        ({"low": 0, "high": 4, "integer": True, "max_step": 0.5}, "at least one step"),
        ({"low": 0, "high": 1, "fixed": 2}, "fixed"),
        ({"low": 0, "high": 4, "integer": True, "fixed": 1.5}, "whole number"),
        ({"low": 0, "high": 1, "fixed": 0.5}, "at least one parameter that is not fixed"),
    ],
)
def test_an_impossible_parameter_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        one(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"soft": (3, 2)}, "rising"),
        ({"soft": (-1, 2)}, "within"),
        ({"hard": (0, 11)}, "within"),
        ({"hard": (2, 8), "soft": (1, 9)}, "within 2 to 8"),
        ({"hard": 3}, "two numbers"),
        ({"lower_is_better": "yes"}, "true, false or nothing"),
    ],
)
def test_an_impossible_outcome_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Outcome(0, 10, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["", "1x", "a b", "a-b", "and", "max", "trial", "predicted_x", "é"]
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="policy"):
        Space({name: Parameter(0, 1)}, OUTCOMES)


def test_names_of_policy_and_outcomes_differ() -> None:
    with pytest.raises(ValueError, match="different names"):
        Space({"comfort": Parameter(0, 1)}, OUTCOMES)


def test_space_read_back_from_its_dictionary_is_equal() -> None:
    assert Space.from_dict(EXOSKELETON.to_dict()) == EXOSKELETON


NAMES = frozenset({"a", "b"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b <= 3", [True, False, True]),
        ("0 < a <= b", [True, True, False]),
        ("a * 2 - b / 4 >= 1 and abs(-a) < 3", [True, True, False]),
        ("a > 2 or b > 2", [False, True, True]),
        ("max(a, b, 2) <= 2 + 1e-9", [True, False, False]),
        ("sqrt(a) + log(b) + exp(0) < 100", [True, True, False]),
        ("1 / (a - b) < 0", [True, True, False]),
        ("a ** 2 <= 4", [True, True, False]),
    ],
)
def test_constraints_compute(text: str, expected: list[bool]) -> None:
    columns = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([2.0, 4.0, 0.0])}
    assert Constraint(text, NAMES).holds(columns).tolist() == expected


def test_what_cannot_be_computed_does_not_hold() -> None:
    columns = {"a": np.array([0.0, -1.0]), "b": np.array([0.0, 0.0])}
    assert not Constraint("b / a <= 1", NAMES).holds(columns)[0]
    assert not Constraint("sqrt(a) <= 1", NAMES).holds(columns)[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a + b",
        "a == b",
        "a <= c",
        "a <= b <=",
        "__import__('os').system('true') <= 1",
        "a.__class__ <= b",
        "a[0] <= 1",
        "(lambda: 1)() <= 1",
        "[x for x in (1, 2)] <= a",
        "open('x') <= a",
        "a <= 'x'",
        "a <= True",
        "a <= 1e999",
        "a <= 9" + "9" * 400,
        "a if b <= 1 else b",
        "not a <= 1",
        "(a := 3) <= 1",
        "abs(a, b) <= 1",
        "max(*a) <= 1",
        "max(a, key=b) <= 1",
        "f'{a}' <= 1",
        "a <= b\x00",
        "-" * 2000 + "a <= 1",
    ],
)
def test_nothing_but_arithmetic_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="constraint"):
        Constraint(text, NAMES)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        Constraint(text, NAMES)
    except ValueError as error:
        assert str(error)  # noqa: PT017


def test_functions_are_constraints_too() -> None:
    space = Space(
        {"x": Parameter(0, 4, integer=True), "y": Parameter(0, 4)},
        OUTCOMES,
        (lambda policy: policy["x"] >= 3,),
    )
    units = np.array([[0.5, 0.0], [0.7, 0.0], [1.0, 1.0]])  # x: 2, 3, 4
    assert space.allows(units).tolist() == [False, True, True]
    assert space.to_dict()["functions"]


def test_the_example_file_describes_a_space() -> None:
    space = read_space(ROOT / "examples" / "space.toml")
    assert space.policy["peak_torque"].max_step == 15
    assert "gain" not in space.free
    assert space.outcomes["metabolic_rate"].soft == (2.5, 7.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "expected a TOML file"),
        ("[policy.x]\nlow=0\nhigh=1", "at least one table"),
        ("[policy.x]\nlow=0\n[outcomes.o]\nlow=0\nhigh=1", r"policy.x.*missing high"),
        ("[policy.x]\nlow=0\nhigh=1\nunits='m'\n[outcomes.o]\nlow=0\nhigh=1", "got units"),
        ("[policy.x]\nlow=0\nhigh=1\n[outcomes.o]\nlow=0\nhigh=0", r"outcomes.o.*low < high"),
        ("[policy.x]\nlow=0\nhigh=1\nlog=1\n[outcomes.o]\nlow=0\nhigh=1", "true or false"),
        ("policies=1\n[policy.x]\nlow=0\nhigh=1\n[outcomes.o]\nlow=0\nhigh=1", "policies"),
        ("constraints='x<1'\n[policy.x]\nlow=0\nhigh=1\n[outcomes.o]\nlow=0\nhigh=1", "a list"),
        (
            "constraints=['y<1']\n[policy.x]\nlow=0\nhigh=1\n[outcomes.o]\nlow=0\nhigh=1",
            "'y' is no",
        ),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_space(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_space(tmp_path / "none.toml")


@pytest.mark.parametrize("value", [None, 7, b"Nm", ["Nm"], {"a": 1}])
def test_unit_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="unit: expected a text"):
        Parameter(0, 1, unit=value)
    with pytest.raises(ValueError, match="unit: expected a text"):
        Outcome(0, 1, unit=value)


@pytest.mark.parametrize("name", ["low", "high", "max_step", "step", "fixed", "start"])
@pytest.mark.parametrize("value", ["0.5", b"1", [0.5], {}, True, object(), np.array([0.5]), 1j])
def test_number_of_a_wrong_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected a number"):
        Parameter(**{"low": 0, "high": 1, name: value})
    if name in ("low", "high"):
        with pytest.raises(ValueError, match=f"{name}: expected a number"):
            Outcome(**{"low": 0, "high": 1, name: value})


@pytest.mark.parametrize("value", [1, "true", None, [True]])
def test_flag_of_a_wrong_type_is_refused(value: Any) -> None:
    for name in ("log", "integer"):
        with pytest.raises(ValueError, match=f"{name}: expected true or false"):
            Parameter(1, 2, **{name: value})
    if value is not None:
        with pytest.raises(ValueError, match="lower_is_better"):
            Outcome(1, 2, lower_is_better=value)


def test_numpy_numbers_are_stored_as_plain_ones() -> None:
    knob = Parameter(np.int64(0), np.float32(2), step=np.float64(0.5))  # type: ignore[arg-type]
    assert [type(value) for value in (knob.low, knob.high, knob.step)] == [int, float, float]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = ["name", "low", "high", "unit", "max_step", "log", "integer", "step", "fixed", "start"]


@given(
    st.sampled_from(["policy", "outcomes", "constraints", "functions"]),
    st.sampled_from([*FIELDS, "soft", "hard", "lower_is_better", "other"]),
    ANYTHING,
    st.booleans(),
)
def test_stored_space_with_anything_in_it_is_read_or_refused(
    part: str, field: str, value: Any, whole: bool
) -> None:
    stored = EXOSKELETON.to_dict()
    if whole or part in ("constraints", "functions"):
        stored[part] = value
    else:
        stored[part][0][field] = value
    try:
        space = Space.from_dict(stored)
    except ValueError as error:
        assert str(error)  # noqa: PT017
    else:
        assert Space.from_dict(json.loads(canonical(space.to_dict()))) == space


@given(ANYTHING)
def test_anything_instead_of_a_space_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        Space.from_dict(value)


@pytest.mark.parametrize("kind", [Parameter, Outcome])
@pytest.mark.parametrize("ends", [(0.0, 1e-320), (0.0, 5e-324), (-1e308, 1e308), (1.0, 1.0)])
def test_a_range_whose_width_cannot_be_computed_with_is_refused(
    kind: type[Parameter | Outcome], ends: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match="expected low < high"):
        kind(*ends)
