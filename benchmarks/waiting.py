"""How long a person waits between their answer and the next query, in a real session on the disk.

Wall time of `choose` and `ask` together: both write to the log (flushed to the disk) and `ask`
returns the next query. Every second trial is prepared while the person would still be thinking, the
others are not. The queries must be those of the bare loop either way.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import scenario
from sfihilo import Query, Settings, ask, begin, tell
from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space
from sfihilo.study.people.users import SimulatedUser

DIMENSION = 8
SEED = 0


def unit_space(policy_dim: int = DIMENSION, outcome_dim: int = DIMENSION) -> Space:
    """A space whose physical values are the learner's own."""
    return Space(
        policy={f"policy_{index}": Parameter(0, 1) for index in range(policy_dim)},
        outcomes={f"outcome_{index}": Outcome(0, 1) for index in range(outcome_dim)},
    )


def waiting_times(
    user: SimulatedUser, trials: int, where: Path | None = None
) -> dict[str, float | bool]:
    """Milliseconds from an answer to the next query, with the log in the folder `where`."""
    if trials < 3:  # the first asks for no choice; then at least one of each kind
        raise ValueError(f"trials: expected at least 3, got {trials}")
    prepared: list[float] = []
    unprepared: list[float] = []
    asked: list[tuple[float, ...]] = []
    with (
        tempfile.TemporaryDirectory(dir=where) as folder,
        Lab(Path(folder) / "bench.sqlite") as lab,
    ):
        session = lab.create(unit_space(), "P1", SEED, settings=Settings.paper())
        trial = session.ask()
        anchor: np.ndarray | None = None
        for number in range(trials):
            asked.append(tuple(trial.unit))
            response = user.respond(Query(number, np.array(trial.unit), anchor))
            if response.outcome is None:
                raise ValueError("expected a person whose outcome is measured")
            anchor = np.asarray(response.outcome)
            names = [f"outcome_{index}" for index in range(DIMENSION)]
            trial = session.measure(trial, dict(zip(names, anchor.tolist(), strict=True)))
            if not trial.asks_choice:
                trial = session.ask()
                continue
            ready = number % 2 == 0
            if ready:
                wait_for(session)
            start = time.perf_counter()
            session.choose(trial, response.choice)
            trial = session.ask()
            (prepared if ready else unprepared).append(1e3 * (time.perf_counter() - start))
    return {
        "trials": trials,
        "prepared_ms": statistics.median(prepared),
        "prepared_worst_ms": max(prepared),
        "unprepared_ms": statistics.median(unprepared),
        "same_queries": asked == bare(user, trials),
    }


def wait_for(session: Session) -> None:
    """Prepare, as during the person's thinking time."""
    session.prepare()
    while not session.prepared:
        time.sleep(0.005)


def bare(user: SimulatedUser, trials: int) -> list[tuple[float, ...]]:
    """The policies of the bare loop."""
    state = begin(Settings.paper(), SEED)
    asked = []
    for _ in range(trials):
        query = ask(state)
        asked.append(tuple(query.policy.tolist()))
        state = tell(state, query, user.respond(query))
    return asked


if __name__ == "__main__":
    print(waiting_times(scenario.person(), 40))
