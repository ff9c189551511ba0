"""The last layer against policies that are wrong in one way, and 100,000 proposals against it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sfihilo
from sfihilo.experiment import Lab, Outcome, Parameter, Space, UnsafePolicyError
from sfihilo.experiment.record.protocol import Protocol, Veto
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.allowed import feasible_now
from sfihilo.experiment.space import safety
from sfihilo.feasible import Feasible
from sfihilo.history import Query
from tests.experiment.people import EXOSKELETON, LEAN, finish, memory_folder

SAFE = {"peak_torque": 30.0, "peak_time": 50.0, "cadence": 100.0, "gain": 1.0, "offset": 1.5}


def test_a_safe_policy_passes() -> None:
    safety.check(EXOSKELETON, SAFE)
    safety.check(EXOSKELETON, SAFE, [SAFE, {**SAFE, "peak_torque": 15.0}])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peak_torque": 60.000001}, "0 to 60"),
        ({"peak_torque": -1e-9}, "0 to 60"),
        ({"peak_torque": math.nan}, "finite"),
        ({"peak_torque": math.inf}, "finite"),
        ({"peak_torque": "30"}, "finite"),
        ({"peak_torque": True}, "finite"),
        ({"cadence": 100.5}, "whole number"),
        ({"offset": 1.4}, "fixed at 1.5"),
        ({"peak_torque": 45.1}, "at most 15"),
        ({"peak_torque": 14.9}, "at most 15"),
        ({"gain": 4.1}, "at most 3"),
        ({"extra": 1.0}, "expected"),
        ({"peak_torque": 40.0, "gain": 8.0}, "peak_torque"),
    ],
)
def test_policy_with_one_fault_is_refused_with_its_reason(
    change: dict[str, float], message: str
) -> None:
    with pytest.raises(UnsafePolicyError, match=message):
        safety.check(EXOSKELETON, {**SAFE, **change}, [SAFE])


def test_a_missing_parameter_is_found() -> None:
    with pytest.raises(UnsafePolicyError):
        safety.check(EXOSKELETON, {"peak_torque": 3.0})


def test_a_constraint_is_checked_on_its_own() -> None:
    with pytest.raises(UnsafePolicyError, match=r"peak_torque \* gain <= 300"):
        safety.check(EXOSKELETON, {**SAFE, "peak_torque": 40.0, "gain": 8.0})
    never = Space({"x": Parameter(0, 1)}, {"o": Outcome(0, 1)}, (lambda policy: False,))
    with pytest.raises(UnsafePolicyError, match="lambda"):
        safety.check(never, {"x": 0.5})


def test_a_step_grid_is_checked() -> None:
    space = Space({"x": Parameter(1, 2, step=0.1)}, {"o": Outcome(0, 1)})
    safety.check(space, {"x": 1 + 3 * 0.1})
    with pytest.raises(UnsafePolicyError, match=r"k \* 0.1"):
        safety.check(space, {"x": 1.35})


def test_an_unsafe_proposal_is_never_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the optimiser returns: nothing is shown, nothing is stored but the refusal."""
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        finish(session)
        monkeypatch.setattr(
            sfihilo, "ask", lambda state, feasible: Query(1, np.full(4, 0.999), None)
        )
        before = session.trials
        with pytest.raises(UnsafePolicyError):
            session.ask()
        assert session.trials == before
        assert session.events[-1].kind == "refused"
        assert session.events[-1].body["what"] == "policy"


def random_space(rng: np.random.Generator) -> Space:
    """A space with everything in it: logs, grids, steps, fixed ones, constraints."""
    policy = {}
    for index in range(rng.integers(1, 7)):
        low = float(rng.uniform(-100, 100))
        high = low + float(10 ** rng.uniform(-3, 3))
        kind = rng.integers(5)
        reach = high - low
        step = float(reach * rng.uniform(0.05, 1)) if rng.random() < 0.7 else None
        if kind == 0:
            knob = Parameter(abs(low) + 1e-3, abs(low) + 1e-3 + reach, log=True, max_step=step)
        elif kind == 1:
            knob = Parameter(round(low), round(low) + 7, integer=True, max_step=2)
        elif kind == 2:
            knob = Parameter(low, high, step=reach / 13, max_step=reach / 4)
        elif kind == 3 and index:
            knob = Parameter(low, high, fixed=low + reach / 3)
        else:
            knob = Parameter(low, high, max_step=step)
        policy[f"p{index}"] = knob
    first = policy["p0"]
    if first.fixed is not None:
        policy["p0"] = replace(first, fixed=None)
    middle = (first.low + first.high) / 2 + 0.3 * (first.high - first.low)
    constraints = (f"p0 <= {middle!r}",) if rng.random() < 0.5 else ()
    return Space(policy, {"o": Outcome(0, 1)}, constraints)


def proposals(count: int, each: int) -> None:
    """Walk through random spaces; every candidate that a rule could choose must be safe."""
    rng = np.random.default_rng(5)
    checked = 0
    while checked < count:
        space = random_space(rng)
        record = Record("s", "P", space, {}, Protocol(), 1, "", positions=())
        for _ in range(5):
            feasible = feasible_now(record, record.vetoes)
            pool = (feasible or Feasible()).sample(each, len(space.free), rng, None)
            for unit in pool:
                settled = space.on_grid(unit)
                assert safety.problems(space, space.to_policy(settled), record.positions) == []
            checked += len(pool)
            chosen = space.to_policy(pool[0])
            maybe = [chosen] if rng.random() < 0.7 else [*record.positions, chosen][-2:]
            vetoes = (Veto(0, tuple(pool[1].tolist())),)
            record = replace(record, positions=tuple(maybe), vetoes=vetoes)


def test_proposals_are_safe() -> None:
    proposals(2_000, 20)


@pytest.mark.slow
def test_a_hundred_thousand_proposals_are_safe() -> None:
    proposals(100_000, 100)


def walked(queries: int) -> None:
    """The policies that really leave a session, each checked against the one before."""
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        last: dict[str, float] | None = None
        for number in range(queries):
            trial = finish(session, step=0.1 * number)
            safety.check(EXOSKELETON, dict(trial.policy), [] if last is None else [last])
            last = dict(trial.policy)


def test_what_a_session_asks_is_safe() -> None:
    walked(60)


@pytest.mark.slow
def test_what_a_long_session_asks_is_safe() -> None:
    walked(600)


def test_the_first_step_counts_from_where_the_device_starts() -> None:
    space = Space(
        policy={
            "torque": Parameter(0, 60, max_step=15, start=0),
            "timing": Parameter(0, 1, max_step=0.1, start=0.5),
        },
        outcomes={"comfort": Outcome(0, 10)},
    )
    with memory_folder() as folder, Lab(folder / "study.db") as lab:
        for seed in range(8):
            first = lab.create(space, participant="P01", seed=seed).ask()
            assert first.policy["torque"] <= 15
        with pytest.raises(ValueError, match="at most 15"):
            lab.create(space, participant="P01", seed=99).suggest({"torque": 20, "timing": 0.5})


def test_a_start_outside_the_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="start: expected 0 to 60"):
        Parameter(0, 60, start=61)
