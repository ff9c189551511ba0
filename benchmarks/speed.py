"""`python -m benchmarks.speed`: how long a round takes, beside the plain transcription.

One thread; what is compared runs in turn on the same data in the same run; every figure is a
median. A round is tell + ask after t comparisons, in the paper's settings unless said otherwise. It
is never one of the checkpoints (every 25 to 50 rounds) at which hyperparameters are reselected;
those have a table of their own. The figures go to benchmarks/latest.json; `benchmarks.publish`
puts them into docs/speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import scenario
from benchmarks.clock import (
    ROOT,
    ended,
    environment,
    in_turn,
    medians,
    one_core,
    parts,
    times_longer,
)
from benchmarks.floor import floor_seconds, measure_rates
from benchmarks.scenario import Bench, compare
from benchmarks.tables import speed_text, write_latest
from benchmarks.waiting import waiting_times
from sfihilo import Settings, forward, inverse
from sfihilo.querying import baselines, lookahead, ranking
from sfihilo.refit import SHARPNESS_DELAY
from sfihilo.study.people.users import SimulatedUser


@dataclass(frozen=True)
class Repeats:
    """How often our own rounds are timed, and those of the plain transcription."""

    ours: int = 7
    plain: int = 7

    def at_most(self, most: int) -> Repeats:
        return Repeats(min(self.ours, most), min(self.plain, most))


# Targets stand at 250 and 1000, so the medians must be steady there; a plain round at 4000 takes
# so long that it is timed only to be seen.
REPEATS = {
    50: Repeats(),
    100: Repeats(),
    250: Repeats(15, 15),
    500: Repeats(),
    1000: Repeats(15, 15),
    2000: Repeats(plain=3),
    4000: Repeats(plain=2),
}
CHECKPOINTS = (200, 250, 1000)
MEMORY = Path("/dev/shm")
# Figures of a longer run before that must not stay beside those of a shorter run.
FORGET = (
    "speedup_",
    "growth_",
    "peak_mb_",
    "run",
    "default_query_",
    "waiting_in_memory",
    "environment",  # the origin in older files
    "checkpoint_tell_ms",  # the checkpoints in older files
)
# The parts of a round. Functions and not their names, so that a renamed one is an error.
PARTS: dict[str, Callable[..., object]] = {
    "forward: append to the factor": forward.append,
    "inverse: mode (L-BFGS)": inverse.append,
    "inverse: precision and samples": inverse.reward_posterior,
    "pool: kernel, outcomes, information": baselines.information_of_pool,
    "pool: leverage and ranking": ranking.rank_by_reducible,
    "targets settled in double precision": lookahead._rerank_in_double,
    "belief at targets and candidates": forward.ForwardBelief.at,
    "lookahead over the shortlist": lookahead.lookahead,
}


def speed(user: SimulatedUser, told: scenario.Told, most: int, longest: int) -> dict[str, Any]:
    """Seconds of a round at every t, agreement with the plain transcription, growth."""
    rows: list[dict[str, Any]] = []
    for comparisons in (count for count in REPEATS if count <= longest):
        times = REPEATS[comparisons].at_most(most)
        paper = Bench.make(Settings.paper(), user, told, comparisons, times.ours)
        default = Bench.make(Settings(), user, told, comparisons, times.ours)
        chosen = [paper.learner(k) for k in range(times.plain)]
        agreements = [compare(ours, paper.to_the_end(k)) for k, ours in enumerate(chosen)]
        as_timed = [compare(ours, paper.plain(k)) for k, ours in enumerate(chosen)]
        actions = {**paper.actions("tell", "round", "plain", "tuned"), "default": default.learner}
        fewer = {"plain": times.plain, "tuned": times.plain}
        turns = in_turn(actions, times.ours, fewer)
        seconds = medians(turns)
        rows.append(
            {
                "t": comparisons,
                "repeats": times.ours,
                "plain_repeats": times.plain,
                **{f"{name}_ms": 1e3 * value for name, value in seconds.items()},
                "speedup": times_longer(turns["plain"], turns["round"]),
                "speedup_tuned": times_longer(turns["tuned"], turns["round"]),
                "same_policy": sum(found.same for found in agreements),
                "same_policy_as_timed": sum(found.same for found in as_timed),
                "of": len(agreements),
                "worst_loss": max(found.loss for found in agreements),
                "worst_loss_as_timed": max(found.loss for found in as_timed),
                "worst_difference": max(found.difference for found in agreements),
            }
        )
        print(f"t={comparisons}: {1e3 * seconds['round']:.1f} ms per round", flush=True)
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


def checkpoint(
    settings: Settings, user: SimulatedUser, told: scenario.Told, comparisons: int, repeats: int
) -> dict[str, Any]:
    """Milliseconds of a usual round, and of those that reselect the kernel and the sharpness."""
    after = {
        "usual": comparisons,
        "kernel": comparisons - 1,
        "sharpness": comparisons - 1 + SHARPNESS_DELAY,
    }
    actions = {
        name: Bench.make(settings, user, told, count, repeats).learner
        for name, count in after.items()
    }
    found = {name: 1e3 * value for name, value in medians(in_turn(actions, repeats)).items()}
    return {
        "preset": settings.preset,
        "t": comparisons,
        "repeats": repeats,
        **{f"{name}_ms": value for name, value in found.items()},
        "most_ms": max(found.values()),
    }


def default_queries(checkpoints: list[dict[str, Any]]) -> dict[str, float]:
    """Milliseconds of the default preset's slowest kind of query, where there is a target."""
    return {
        f"default_query_ms_t{row['t']}": row["most_ms"]
        for row in checkpoints
        if row["preset"] == "default" and row["t"] in (200, 1000)
    }


def whole_run(rounds: int, rule: str) -> dict[str, float]:
    """Seconds and peak memory of a whole run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scenario", str(rounds), rule]
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
    """Measures, prints, and writes benchmarks/latest.json."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=15, help="of anything, at most")
    arguments.add_argument("--longest", type=int, default=4000, help="largest t")
    arguments.add_argument("--run", type=int, default=1000, help="rounds of the whole run; 0: none")
    arguments.add_argument("--trials", type=int, default=60, help="trials of the timed session")
    chosen = arguments.parse_args()
    origin = environment()
    repeats = min(chosen.repeats, 7)
    user = scenario.person()
    told = scenario.tell_all(user, chosen.longest + 2 * SHARPNESS_DELAY)
    figures: dict[str, Any] = {}
    with one_core():
        figures |= speed(user, told, chosen.repeats, chosen.longest)
        figures["profile"] = [
            where_time_goes(user, told, count, repeats)
            for count in (250, 1000)
            if count <= chosen.longest
        ]
        figures["checkpoints"] = [
            checkpoint(settings, user, told, count, repeats)
            for settings in (Settings.paper(), Settings())
            for count in CHECKPOINTS
            if count <= chosen.longest
        ]
        figures |= default_queries(figures["checkpoints"])
        figures["waiting"] = waiting_times(user, chosen.trials)
        figures["prepared_ms"] = figures["waiting"]["prepared_ms"]
        if MEMORY.is_dir():  # the same without a disk: only the time of our code
            figures["waiting_in_memory"] = waiting_times(user, chosen.trials // 2, MEMORY)
    if chosen.run:
        figures["run"] = whole_run(chosen.run, "boundary_lookahead")
        figures[f"peak_mb_t{chosen.run}"] = figures["run"]["peak_mb"]
    origin = ended(origin)
    write_latest("speed", origin, figures, FORGET)
    print(f"\n{speed_text({**figures, 'origins': {'speed': origin}})}")


if __name__ == "__main__":
    main()
