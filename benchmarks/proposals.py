"""`python -m benchmarks.proposals`: how long a session's whole proposal takes, default preset.

A proposal of a session is the query of `ask` with what the learner predicts for it, which is stored
before the trial: the outcome, and the probability that the person prefers it (`chance_new`). In the
default preset that probability is an average over a grid of fits, which `ask` alone does not need.
One thread, as in benchmarks/speed.py; disk and loading are not included. The figures go to
benchmarks/latest.json; `benchmarks.publish` puts them into docs/speed.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import scenario
from benchmarks.clock import ended, environment, in_turn, medians, one_core
from benchmarks.scenario import Bench
from benchmarks.tables import proposals_text, write_latest
from benchmarks.waiting import unit_space
from sfihilo import Settings, ask
from sfihilo.experiment import Lab
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.proposals import preference_for_new, proposal
from sfihilo.study.people.users import SimulatedUser

AFTER = (60, 200, 1000)


def proposal_times(
    settings: Settings, user: SimulatedUser, told: scenario.Told, comparisons: int, repeats: int
) -> dict[str, Any]:
    """Milliseconds from an answer to the query, to the whole proposal, and of the grid alone."""
    bench = Bench.make(settings, user, told, comparisons, repeats)
    record = empty_record(settings)

    # `told` returns a new state every time: nothing is left over from another action.
    def query(repeat: int) -> None:
        ask(bench.told(repeat))

    def whole(repeat: int) -> None:
        state = bench.told(repeat)
        proposal(record, state, ask(state).policy)

    def predicted(repeat: int) -> None:
        state = bench.told(repeat)
        anchor = state.history.anchor
        assert anchor is not None
        preference_for_new(state, anchor, anchor)

    actions = {"tell": bench.told, "query": query, "proposal": whole, "predicted": predicted}
    found = {name: 1e3 * value for name, value in medians(in_turn(actions, repeats)).items()}
    return {
        "t": comparisons,
        "repeats": repeats,
        "query_ms": found["query"],
        "chance_new_ms": found["predicted"] - found["tell"],
        "proposal_ms": found["proposal"],
    }


def empty_record(settings: Settings) -> Record:
    """The record of a new session; a proposal needs only its space."""
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder) / "bench.sqlite") as lab:
        space = unit_space(settings.policy_dim, settings.outcome_dim)
        return lab.create(space, "P1", 0, settings=settings).record


def main() -> None:
    """Measures, prints, and writes benchmarks/latest.json."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=15)
    chosen = arguments.parse_args()
    origin = environment()
    user = scenario.person()
    told = scenario.tell_all(user, max(AFTER) + 1)
    with one_core():
        rows = [proposal_times(Settings(), user, told, each, chosen.repeats) for each in AFTER]
    origin = ended(origin)
    write_latest("proposals", origin, {"proposals": rows})
    print(proposals_text({"proposals": rows, "origins": {"proposals": origin}}))


if __name__ == "__main__":
    main()
