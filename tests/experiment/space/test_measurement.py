"""Measurements of every kind: none accepted wrongly, none crashes."""

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfihilo.experiment import BadMeasurementError, Lab
from sfihilo.experiment.log.event import canonical
from sfihilo.experiment.session.rounds import rounds_of
from sfihilo.experiment.space.measurement import accepted, described
from tests.experiment.people import EXOSKELETON, LEAN, finish, memory_folder

RANGES = {name: outcome.accepted for name, outcome in EXOSKELETON.outcomes.items()}


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __float__(self) -> float:
        return 4.0


ODD_VALUES: list[object] = [
    math.nan, math.inf, -math.inf, 1e309, -1e309, 1e308, -0.0, 5e-324, 10**400, -(10**400), True,
    False, "4.1", "4.1 W/kg", "", "NaN", b"4", [], [4.1], (4.1,), {}, {"value": 4.1}, object(),
    Hostile(), 4.1 + 0j, Decimal("4.1"), Fraction(41, 10), np.float64("nan"), np.float32("inf"),
    np.bool_(True), np.array(4.1), np.array([4.1]), np.datetime64("2026-01-01"), float, print,
    "x" * 100_000, "\ud800", "\x00", range(3), memoryview(b"x"), np.int64(5), np.float32(4.5), 4, 8,
    2, 0, 10, None,
]  # fmt: skip


def measurements(count: int, seed: int) -> Iterator[object]:
    rng = np.random.default_rng(seed)
    names: list[object] = ["metabolic_rate", "comfort", "Comfort", "", 3, None, ("a",), "x" * 5000]
    for _ in range(count):
        kind = rng.random()
        if kind < 0.05:
            yield ODD_VALUES[rng.integers(len(ODD_VALUES))]
            continue
        values: dict[object, object] = {}
        for name in ("metabolic_rate", "comfort"):
            if rng.random() < 0.95:
                values[name] = one_value(rng)
        if rng.random() < 0.1:
            values[names[rng.integers(len(names))]] = one_value(rng)
        yield values


def one_value(rng: np.random.Generator) -> object:
    kind = rng.random()
    if kind < 0.35:
        return float(rng.uniform(2, 8))
    if kind < 0.5:
        return float(rng.normal() * 10 ** rng.uniform(-5, 300))
    if kind < 0.6:
        return int(rng.integers(-5, 15))
    if kind < 0.7:  # any bits at all
        return float(np.frombuffer(rng.bytes(8), dtype=np.float64)[0])
    return ODD_VALUES[rng.integers(len(ODD_VALUES))]


def acceptable(values: object) -> bool:
    """Written on its own: exactly the outcomes, each None or a plain finite number in range."""
    if values is None:
        return True
    if not isinstance(values, dict) or set(values) != set(RANGES):
        return False
    for name, (low, high) in RANGES.items():
        value = values[name]
        if value is None:
            continue
        if type(value) not in (int, float, np.float64, np.float32, np.int64):
            return False
        if not (low <= value <= high):  # false for NaN
            return False
    return True


def fuzz(count: int) -> tuple[int, int]:
    taken = refused = 0
    for values in measurements(count, 1):
        try:
            found = accepted(EXOSKELETON, values)
        except BadMeasurementError as error:
            refused += 1
            assert not acceptable(values), values
            message = str(error)
            assert 10 < len(message) < 5000
            canonical({"given": described(values)})  # it can be recorded, whatever it was
            continue
        taken += 1
        assert acceptable(values), values
        if found.values is not None and None not in found.values.values():
            numbers = {name: float(v) for name, v in found.values.items() if v is not None}
            unit = np.array(EXOSKELETON.unit_values(numbers))
            assert ((unit >= 0) & (unit <= 1)).all()
        canonical({"outcome": found.values})
    return taken, refused


def test_measurements_of_every_kind() -> None:
    taken, refused = fuzz(2_000)
    assert taken > 100
    assert refused > 1_000


@pytest.mark.slow
def test_a_hundred_thousand_measurements() -> None:
    taken, refused = fuzz(100_000)
    assert taken > 5_000
    assert refused > 50_000


def through_a_session(count: int) -> None:
    """The same through the whole session: refused ones are recorded and change nothing."""
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        finish(session)
        for values in measurements(count, 2):
            trial = session.ask()
            before, refusals = rounds_of(session.record), session.record.refused
            try:
                session.measure(trial, values)  # type: ignore[arg-type]
            except BadMeasurementError:
                assert not acceptable(values)
                assert session.trials[-1] == trial
                assert rounds_of(session.record) == before
                assert session.record.refused == refusals + 1
                continue
            assert acceptable(values)
            if session.record.current is not None:
                session.choose(trial, "same")
        assert lab.verify().ok
        assert lab.record(session.id).refused == session.record.refused


def test_session_refuses_or_records_random_measurements() -> None:
    through_a_session(150)


@pytest.mark.slow
def test_session_refuses_or_records_many_random_measurements() -> None:
    through_a_session(3_000)
