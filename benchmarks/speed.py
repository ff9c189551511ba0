"""`python -m benchmarks.speed`: how long a round takes, beside the plain transcription.

One thread; what is compared runs in turn on the same data in the same run; every figure is a
median. A round is tell + ask after t comparisons, in the paper's settings unless said otherwise. It
is never one of the checkpoints (every 25 to 50 rounds) at which hyperparameters are reselected;
those are a line of their own. The figures go to benchmarks/latest.json, the curve to
docs/images/growth.png.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import document, scenario
from benchmarks.clock import ROOT, environment, in_turn, medians, one_core, parts
from benchmarks.floor import floor_seconds, measure_rates
from benchmarks.prepared import waits
from benchmarks.report import growth_picture, print_table, write_latest
from benchmarks.rounds import Bench, compare
from sfihilo import Settings, tell
from sfihilo.study.users import SimulatedUser

COMPARISONS = (50, 100, 250, 500, 1000, 2000, 4000)
PLAIN_REPEATS = {2000: 2, 4000: 1}
MEMORY = Path("/dev/shm")
# What a round consists of: label -> (file, function).
PARTS = {
    "forward: append to the factor": ("forward.py", "append"),
    "inverse: mode (L-BFGS)": ("inverse.py", "append"),
    "inverse: precision and samples": ("inverse.py", "posterior"),
    "pool: kernel, outcomes, information": ("querying.py", "_information"),
    "pool: leverage and ranking": ("ranking.py", "rank_by_reducible"),
    "targets settled in double precision": ("querying.py", "_settled"),
    "belief at targets and candidates": ("forward.py", "at"),
    "lookahead over the shortlist": ("querying.py", "lookahead"),
}


def speed(user: SimulatedUser, told: scenario.Told, repeats: int, longest: int) -> dict[str, Any]:
    """Seconds of a round at every t, agreement with the plain transcription, growth."""
    rows: list[dict[str, Any]] = []
    for comparisons in (count for count in COMPARISONS if count <= longest):
        paper = Bench.make(Settings.paper(), user, told, comparisons, repeats)
        default = Bench.make(Settings.default(), user, told, comparisons, repeats)
        times = PLAIN_REPEATS.get(comparisons, repeats)
        agreements = [compare(paper.learner(k), paper.plain(k)) for k in range(times)]
        actions = {**paper.actions("tell", "round", "plain", "tuned"), "default": default.learner}
        seconds = medians(in_turn(actions, times))
        rows.append(
            {
                "t": comparisons,
                **{f"{name}_ms": 1e3 * value for name, value in seconds.items()},
                "speedup": seconds["plain"] / seconds["round"],
                "speedup_tuned": seconds["tuned"] / seconds["round"],
                "same_policy": sum(found.same for found in agreements),
                "of": len(agreements),
                "worst_loss": max(found.loss for found in agreements),
                "worst_difference": max(found.difference for found in agreements),
            }
        )
        print(f"t={comparisons}: {1e3 * seconds['round']:.1f} ms a round", flush=True)
    return {"rounds": rows, **_headlines({row["t"]: row for row in rows})}


def _headlines(rows: dict[int, dict[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for count in (250, 1000):
        if count in rows:
            found[f"speedup_t{count}"] = rows[count]["speedup"]
            found[f"speedup_tuned_t{count}"] = rows[count]["speedup_tuned"]
    for count in (1000, 4000):
        if count in rows and 250 in rows:
            found[f"growth_250_{count}"] = rows[count]["round_ms"] / rows[250]["round_ms"]
    return found


def where_time_goes(
    user: SimulatedUser, told: scenario.Told, comparisons: int, repeats: int
) -> dict[str, Any]:
    """Milliseconds of each part of a round beside the least that the arithmetic allows."""
    settings = Settings.paper()
    bench = Bench.make(settings, user, told, comparisons, repeats)
    whole = medians(in_turn(bench.actions("round"), repeats))["round"]
    spent = parts(bench.learner, repeats, PARTS)
    rates = measure_rates()
    least = floor_seconds(settings, comparisons, rates)
    unsummed = least.pop("leverage of the whole pool")
    return {
        "t": comparisons,
        "round_ms": 1e3 * whole,
        "parts_ms": {label: 1e3 * value for label, value in spent.items()},
        "floor_ms": 1e3 * sum(least.values()),
        "floor_parts_ms": {label: 1e3 * value for label, value in least.items()},
        "full_leverage_ms": 1e3 * unsummed,
        "rates_per_second": asdict(rates),
    }


def checkpoint_round(
    user: SimulatedUser, told: scenario.Told, comparisons: int, repeats: int
) -> float:
    """Milliseconds of a tell that also reselects the hyperparameters."""
    before = scenario.state_after(Settings.paper(), told, comparisons - 1)
    query, response = scenario.next_response(user, before, 0)
    seconds = in_turn({"tell": lambda _: tell(before, query, response)}, repeats)
    return 1e3 * medians(seconds)["tell"]


def whole_run(rounds: int, rule: str) -> dict[str, float]:
    """A run from nothing in a process of its own: seconds and peak memory."""
    command = [sys.executable, "-m", "benchmarks.whole_run", str(rounds), rule]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=7)
    arguments.add_argument("--longest", type=int, default=4000, help="largest t")
    arguments.add_argument("--run", type=int, default=1000, help="rounds of the whole run; 0: none")
    arguments.add_argument("--trials", type=int, default=60, help="trials of the timed session")
    chosen = arguments.parse_args()
    user = scenario.person()
    told = scenario.tell_all(user, chosen.longest + 10)
    figures: dict[str, Any] = {"environment": environment()}
    with one_core():
        figures |= speed(user, told, chosen.repeats, chosen.longest)
        profiled = [count for count in (250, 1000) if count <= chosen.longest]
        figures["profile"] = [
            where_time_goes(user, told, count, chosen.repeats) for count in profiled
        ]
        figures["checkpoint_tell_ms"] = {
            str(count): checkpoint_round(user, told, count, 3) for count in profiled
        }
        figures["waiting"] = waits(user, chosen.trials)
        figures["prepared_ms"] = figures["waiting"]["prepared_ms"]
        if MEMORY.is_dir():  # the same without a disk: what is left is ours
            figures["waiting_in_memory"] = waits(user, chosen.trials // 2, MEMORY)
    if chosen.run:
        figures["run"] = whole_run(chosen.run, "boundary_lookahead")
        figures[f"peak_mb_t{chosen.run}"] = figures["run"]["peak_mb"]
    figures["environment"]["load_average_after"] = os.getloadavg()[0]
    # What a shorter run than the last one did not measure must not stay as if it had.
    write_latest(figures, forget=("speedup_", "growth_", "peak_mb_", "run"))
    print_table(figures)
    growth_picture(figures, ROOT / "docs" / "images" / "growth.png")
    document.main()


if __name__ == "__main__":
    main()
