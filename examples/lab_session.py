"""A whole session with everything in Python: replace the three functions by your own devices.

python examples/lab_session.py
"""

import tempfile
from pathlib import Path

from sfihilo.experiment import Lab, Outcome, Parameter, Space, Trial
from sfihilo.experiment.output.export import export
from sfihilo.experiment.output.report import write_report
from sfihilo.history import Choice

TRIALS = 12  # a real session has some two hundred

space = Space(
    policy={
        "peak_torque": Parameter(0, 60, unit="Nm", max_step=15, start=0),
        "peak_time": Parameter(35, 60, unit="% stride"),
        "rise_time": Parameter(10, 40, unit="% stride", integer=True),
    },
    outcomes={
        "metabolic_rate": Outcome(2, 8, unit="W/kg", soft=(2.5, 7.5)),
        "comfort": Outcome(0, 10, unit="points"),
    },
    constraints=("peak_time + rise_time <= 90",),
)
walked: dict[int, dict[str, float]] = {}


def apply(policy: object) -> None:
    """Send the policy to the exoskeleton."""
    print("set", policy)


def measure(trial: Trial) -> dict[str, float]:
    """Two minutes of walking, then what the devices say. Here: somebody made up."""
    torque, time = trial.policy["peak_torque"] / 60, (trial.policy["peak_time"] - 35) / 25
    walked[trial.number] = {
        "metabolic_rate": 5.5 - 2.2 * torque * (1 - (time - 0.5) ** 2),
        "comfort": 8 - 5 * torque**2,
    }
    return walked[trial.number]


def choose(trial: Trial) -> Choice | None:
    """Ask the person: this one, the one before, or the same? None if they cannot say."""
    new, before = walked[trial.number], walked[trial.compare_with or 0]
    gain = (new["comfort"] - before["comfort"]) / 10
    gain -= (new["metabolic_rate"] - before["metabolic_rate"]) / 6
    if abs(gain) < 0.01:
        return "same"
    return "new" if gain > 0 else "previous"


def main(folder: Path) -> None:
    with Lab(folder / "study.db", actor="operator") as lab:
        session = lab.create(space, participant="P07", seed=7)
        session.run(apply=apply, measure=measure, choose=choose, trials=TRIALS)
        advice = session.recommend(feasible={"peak_torque": (0, 40)})
        print("recommended", advice.policy)
        for name, found in advice.outcomes.items():
            print(f"  {name}: {found.value:.2f} ({found.low:.2f} to {found.high:.2f})")
        print("report", write_report(session, folder / "report.html"))
        print(len(export(lab, folder / "export", formats=["csv", "jsonl"])), "files exported")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
