"""A simple person and a small lab, for tests."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space, Trial
from sfihilo.final_policy import SelectionSettings
from sfihilo.history import Choice
from sfihilo.inverse import InverseSettings
from sfihilo.querying import QuerySettings
from sfihilo.settings import Settings

# Small enough that a thousand rounds take seconds; the same code as the real settings.
LEAN = Settings(
    rule="random",
    inverse=InverseSettings(feature_count=24, samples=16, iterations=15),
    query=QuerySettings(pool_minimum=64, pool_per_dimension=8),
    selection=SelectionSettings(pool=64, starts=1, iterations=5),
)

EXOSKELETON = Space(
    policy={
        "peak_torque": Parameter(0, 60, unit="Nm", max_step=15, start=30),
        "peak_time": Parameter(35, 60, unit="% stride"),
        "cadence": Parameter(80, 120, unit="1/min", integer=True, max_step=10, start=100),
        "gain": Parameter(0.1, 10, log=True, max_step=3, start=2),
        "offset": Parameter(-5, 5, fixed=1.5),
    },
    outcomes={
        "metabolic_rate": Outcome(2, 8, unit="W/kg", soft=(2.5, 7.5)),
        "comfort": Outcome(0, 10),
    },
    constraints=("peak_torque * gain <= 300",),
)

# For tests of the record, which need no advice.
PLAIN = replace(LEAN, average=None)
LINE = Space({"x": Parameter(0, 10, max_step=2, start=5)}, {"o": Outcome(0, 1)})


def unit_space(policy_dim: int = 3, outcome_dim: int = 2) -> Space:
    """A space in which physical values are the learner's own."""
    return Space(
        policy={f"p{i}": Parameter(0, 1) for i in range(policy_dim)},
        outcomes={f"o{i}": Outcome(0, 1) for i in range(outcome_dim)},
    )


class Person:
    """Walks, is measured, and prefers; noise comes from a seed."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.map = self.rng.normal(size=(len(space.outcomes), len(space.free)))
        self.taste = self.rng.normal(size=len(space.outcomes))
        self.felt: dict[int, np.ndarray] = {}

    def unit_outcome(self, unit: np.ndarray) -> np.ndarray:
        raw = self.map @ (unit - 0.5) + 0.05 * self.rng.normal(size=len(self.map))
        return np.asarray(1 / (1 + np.exp(-2 * raw)))

    def prefers(self, new: np.ndarray, anchor: np.ndarray) -> Choice:
        gap = float(self.taste @ (new - anchor))
        if abs(gap) < 0.02:
            return "same"
        return "new" if gap > 0 else "previous"

    def measure(self, trial: Trial) -> Mapping[str, float]:
        self.felt[trial.number] = outcome = self.unit_outcome(np.array(trial.unit))
        values = self.space.physical_outcomes(outcome)
        return {name: float(value) for name, value in values.items()}

    def choose(self, trial: Trial) -> Choice:
        assert trial.compare_with is not None
        return self.prefers(self.felt[trial.number], self.felt[trial.compare_with])

    def walk(self, session: Session, trials: int) -> None:
        session.run(apply=lambda _: None, measure=self.measure, choose=self.choose, trials=trials)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder whose syncs cost nothing where the system has one; what is tested is the same."""
    shared = Path(os.sep) / "dev" / "shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        yield Path(name)


def good(session: Session, step: float = 0.0) -> dict[str, float]:
    """Some measurement that the session accepts."""
    return {
        name: outcome.low + (0.3 + step) % 1 * (outcome.high - outcome.low)
        for name, outcome in session.record.space.outcomes.items()
    }


def finish(session: Session, choice: Choice | None = "new", step: float = 0.0) -> Trial:
    """Ask, measure and answer one trial."""
    trial = session.ask()
    trial = session.measure(trial, good(session, step))
    return session.choose(trial, choice) if trial.asks_choice else trial


def stepping(lab: Lab, seed: int = 1) -> Session:
    """A session in one parameter with a step far below the range."""
    space = Space({"x": Parameter(0, 100, max_step=20, start=50)}, {"o": Outcome(0, 1)})
    return lab.create(space, "P1", seed, settings=LEAN)
