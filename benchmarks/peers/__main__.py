"""`python -m benchmarks.peers`: a round of ours and of each peer, same person, same run, one core.

A round of PairwiseGP is a fit and one acquisition over the 4000 predicted outcomes of our own pool
(the prediction is given to it for nothing). A round of Optuna's sampler is one ask that follows
another, so that its own warm start helps it. A round of ours is tell + ask of Boundary Lookahead.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.clock import ROOT, ended, environment, in_turn, medians, one_core

if TYPE_CHECKING:
    from benchmarks.peers.preferential import Preferential
    from benchmarks.scenario import Told
    from sfihilo.study.people.users import SimulatedUser

COMPARISONS = (50, 100, 200)


def in_own_environment() -> None:
    """Start again in .venv-peers when the peers are not installed here."""
    if importlib.util.find_spec("botorch") is not None:
        return
    python = ROOT / ".venv-peers" / "bin" / "python"
    if not python.exists():
        sys.exit("the peers are not installed: run benchmarks/peers/setup")
    os.chdir(ROOT)
    os.execv(python, [str(python), "-m", "benchmarks.peers", *sys.argv[1:]])


def row(user: SimulatedUser, told: Told, comparisons: int, repeats: int) -> dict[str, Any]:
    """Milliseconds of a round at one t."""
    from benchmarks.peers.pairwise import Utility
    from benchmarks.scenario import Bench
    from sfihilo import Settings

    paper = Bench.make(Settings.paper(), user, told, comparisons, repeats)
    default = Bench.make(Settings(), user, told, comparisons, repeats)
    state = paper.state
    anchor = state.history.anchor
    if anchor is None:
        raise ValueError("expected a state with an anchor")
    predicted = state.forward.mean(paper.learner(0).pool)
    optuna = warm_optuna(told, comparisons)

    def ask_optuna(repeat: int) -> None:
        optuna.tell(told.responses[comparisons + repeat].choice)
        optuna.ask()

    actions = {
        "paper": paper.learner,
        "default": default.learner,
        "pairwisegp_bald": lambda _: Utility(state.history).fit().bald(anchor, predicted),
        "pairwisegp_eubo": lambda _: Utility(state.history).fit().eubo(anchor, predicted),
        "optuna": ask_optuna,
    }
    seconds = medians(in_turn(actions, repeats))
    fastest = min(seconds["pairwisegp_bald"], seconds["pairwisegp_eubo"])
    return {
        "t": comparisons,
        **{f"{name}_ms": 1e3 * value for name, value in seconds.items()},
        "pairwisegp_times": fastest / seconds["paper"],
        "optuna_times": seconds["optuna"] / seconds["paper"],
    }


def warm_optuna(told: Told, comparisons: int) -> Preferential:
    """A sampler that has asked once with all but the last of these comparisons."""
    from benchmarks.peers.preferential import Preferential

    study = Preferential(told.policies.shape[1], 0)
    for index in range(comparisons):
        study.add(told.policies[index])
        study.tell(told.responses[index].choice)
    study.ask()
    return study


def main() -> None:
    """Measures, prints, and writes benchmarks/latest.json."""
    in_own_environment()
    import torch  # type: ignore[import-not-found]

    from benchmarks import scenario
    from benchmarks.tables import headline_text, write_latest

    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=3)
    repeats = arguments.parse_args().repeats
    torch.set_num_threads(1)
    origin = environment("torch", "botorch", "gpytorch", "optuna", "optuna-dashboard")
    user = scenario.person()
    told = scenario.tell_all(user, max(COMPARISONS) + repeats + 10)
    names = ("paper", "default", "pairwisegp_bald", "pairwisegp_eubo", "optuna")
    print("Milliseconds per round, one core")
    print(f"{'t':>6}", *(f"{name:>16}" for name in names), "  PairwiseGP and Optuna / ours")
    rows = []
    with one_core():
        for comparisons in COMPARISONS:
            found = row(user, told, comparisons, repeats)
            rows.append(found)
            times = f"  {found['pairwisegp_times']:.0f}x {found['optuna_times']:.0f}x"
            print(f"{comparisons:6d}", *(f"{found[f'{name}_ms']:16.1f}" for name in names), times)
    last = rows[-1]
    figures = {
        "pairwisegp_t200": last["pairwisegp_times"],
        "optuna_t200": last["optuna_times"],
        "peers": {"repeats": repeats, "rounds": rows},
    }
    write_latest("peers", ended(origin), figures)
    print(headline_text("peers", figures))


if __name__ == "__main__":
    main()
