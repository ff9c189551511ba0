"""A scripted operator: takes a real session to its end from wherever it stands; also a child.

`python scripted.py LOG QUERIES` prints every query that was shown.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space, Trial

SPACE = Space(
    policy={
        "peak_torque": Parameter(0, 60, unit="Nm", max_step=15, start=0),
        "peak_time": Parameter(35, 60, unit="% stride"),
    },
    outcomes={"metabolic_rate": Outcome(2, 8, unit="W/kg"), "comfort": Outcome(0, 10)},
)


def measured(trial: Trial) -> dict[str, float]:
    torque, time = trial.policy["peak_torque"] / 60, (trial.policy["peak_time"] - 35) / 25
    return {"metabolic_rate": 3 + 4 * (torque - 0.4) ** 2 + time, "comfort": 9 - 6 * torque * time}


def settle(session: Session, trial: Trial) -> None:
    """Do with a trial whatever is still to be done."""
    if not trial.started:
        trial = session.start(trial)
    if not trial.measured:
        trial = session.measure(trial, measured(trial))
    if trial.asks_choice and not trial.answered:
        session.choose(trial, ("new", "previous", "same")[trial.number % 3])


def open_session(lab: Lab) -> Session:
    """Create the session unless an earlier process has."""
    if "s" in lab.sessions():
        return lab.open("s")
    return lab.create(SPACE, participant="P07", seed=7, session="s")


def run(path: Path, queries: int) -> None:
    with Lab(path) as lab:
        session = open_session(lab)
        os.write(1, b"ready\n")
        while len(session.trials) < queries or session.record.current is not None:
            trial = session.ask()
            os.write(1, f"shown {trial.number} {dict(trial.policy)!r}\n".encode())
            settle(session, trial)
    os.write(1, b"done\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
