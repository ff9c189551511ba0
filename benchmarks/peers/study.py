"""`python -m benchmarks.peers.study`: ours and the peers on the same simulated people.

Every method talks to the same people, whose replies depend only on (person, round, policy), and is
judged by the study's own evaluation: balanced preference error on held-out pairs, forward RMSE, and
the clean reward lost by the final policy. There is one JSON file per person and method; a file that
exists is done, whatever commit it was computed at, so the same command continues where it stopped.

To keep the peers affordable, their hyperparameters are refitted only every `--refit` rounds (their
posteriors every round), and PairwiseGP's acquisitions score `--candidates` policies instead of
4000. The seconds per query therefore favour them; `benchmarks.peers` times them as users run them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.clock import commit
from sfihilo import Query, Settings, State, ask, begin, tell
from sfihilo.feasible import Feasible
from sfihilo.history import Choice, FloatArray, generator
from sfihilo.refit import is_checkpoint
from sfihilo.study.people.users import SimulatedUser, sample_user
from sfihilo.study.run import evaluation

if TYPE_CHECKING:  # the peers are imported where they run: our own methods do without them
    from benchmarks.peers.pairwise import Utility

DIMENSION = 8


@dataclass(frozen=True)
class Options:
    """How much is asked of how many, and how PairwiseGP is made affordable."""

    queries: int = 200
    refit: int = 10
    candidates: int = 500


@dataclass
class Record:
    """What one method did with one person."""

    method: str
    user: int
    curve: list[dict[str, float]] = field(default_factory=list)
    final_gap: float = float("nan")
    seconds_a_query: float = float("nan")
    notes: dict[str, float] = field(default_factory=dict)


def evaluated(
    state: State,
    posterior: evaluation.Posterior,
    user: SimulatedUser,
    held_out: evaluation.HeldOut,
) -> dict[str, float]:
    """One point of the learning curve; `queries` counts comparisons."""
    correct = evaluation.correct_probability(posterior, user, held_out)
    errors = evaluation.preference_errors(correct, held_out.bins)
    clean = user.outcomes(held_out.policies)
    rmse = evaluation.forward_rmse(state.forward, user, held_out, clean)
    return {"queries": state.round - 1, "error": float(errors.mean()), "rmse": rmse}


def learner_run(method: str, settings: Settings, user: SimulatedUser, options: Options) -> Record:
    """Our own loop."""
    record, spent = Record(method, user.seed), 0.0
    held_out = evaluation.hold_out(user, evaluation.EvaluationSettings())
    state = begin(settings, user.seed)
    for index in range(options.queries + 1):
        start = time.process_time()
        query = ask(state)
        spent += time.process_time() - start
        response = user.respond(query)
        start = time.process_time()
        state = tell(state, query, response)
        spent += time.process_time() - start
        if is_checkpoint(index) or index == options.queries:
            record.curve.append(evaluated(state, state.posterior(), user, held_out))
    record.final_gap = final_gap(state, state.posterior(), user)
    record.seconds_a_query = spent / options.queries
    return record


def pairwise_run(method: str, user: SimulatedUser, options: Options) -> Record:
    """PairwiseGP as the reward, our forward model as the way from policies to outcomes.

    The learner only carries the history and the forward model; its own reward is never asked.
    """
    from benchmarks.peers.pairwise import Utility

    record, spent = Record(method, user.seed), 0.0
    held_out = evaluation.hold_out(user, evaluation.EvaluationSettings())
    state = begin(Settings.paper(rule="random"), user.seed)
    utility: Utility | None = None
    failures = 0
    for index in range(options.queries + 1):
        start = time.process_time()
        policy = ask(state).policy if utility is None else choose(method, utility, state, options)
        query = Query(index, policy, state.history.anchor)
        spent += time.process_time() - start
        state = tell(state, query, user.respond(query))
        if index == 0:
            continue
        start = time.process_time()
        last = index == options.queries
        if utility is None or index % options.refit == 0 or last:
            utility = Utility(state.history).fit()
            failures += utility.failed
        else:
            utility = Utility(state.history, utility.kernel).evaluated()
        spent += time.process_time() - start
        if is_checkpoint(index) or last:
            record.curve.append(evaluated(state, utility, user, held_out))
    if utility is not None:
        record.final_gap = final_gap(state, utility, user)
    record.seconds_a_query = spent / options.queries
    record.notes = {"failed_fits": failures}
    return record


def choose(method: str, utility: Utility, state: State, options: Options) -> FloatArray:
    """The candidate with the best score against the anchor."""
    rng = generator(state.seed, state.round, "pool")
    pool = Feasible().sample(options.candidates, DIMENSION, rng, None)
    anchor = state.history.anchor
    if anchor is None:
        raise ValueError("expected a state with an anchor")
    outcomes = np.clip(state.forward.mean(pool), 0.0, 1.0)
    score = utility.bald if method == "pairwisegp_bald" else utility.eubo
    return np.asarray(pool[int(np.argmax(score(anchor, outcomes)))])


def optuna_run(method: str, user: SimulatedUser, options: Options) -> Record:
    """Optuna's sampler over policies; it has no outcomes and no reward over them to evaluate."""
    from benchmarks.peers.preferential import Preferential

    record, spent = Record(method, user.seed), 0.0
    study = Preferential(DIMENSION, user.seed, options.refit)
    anchor: FloatArray | None = None
    for index in range(options.queries + 1):
        start = time.process_time()
        policy = study.ask()
        spent += time.process_time() - start
        response = user.respond(Query(index, policy, anchor))
        choice: Choice | None = response.choice
        study.tell(choice)
        anchor = response.outcome
    clean = best_reward(user)
    own = user.rewards(user.outcomes(study.best_trials()))
    record.final_gap = float(clean - user.rewards(user.outcomes(study.best_by_model()[None]))[0])
    record.notes = {"mean_gap_of_best_trials": float(clean - own.mean()), "best_trials": len(own)}
    record.seconds_a_query = spent / options.queries
    return record


def final_gap(state: State, posterior: evaluation.Posterior, user: SimulatedUser) -> float:
    """The paper's final policy reward gap."""
    settings = evaluation.EvaluationSettings()
    return evaluation.final_policy_gap(state.forward, posterior, user, state.round, settings)


def best_reward(user: SimulatedUser) -> float:
    """The best clean reward in the same evaluation pool."""
    count = evaluation.EvaluationSettings().pool_policies
    pool = generator(user.seed, 0, "evaluation pool").uniform(size=(count, DIMENSION))
    return float(user.rewards(user.outcomes(pool)).max())


def _ours(settings: Settings) -> Callable[[str, SimulatedUser, Options], Record]:
    return lambda method, user, options: learner_run(method, settings, user, options)


METHODS: dict[str, Callable[[str, SimulatedUser, Options], Record]] = {
    "random": _ours(Settings.paper(rule="random")),
    "mutual_information": _ours(Settings.paper(rule="mutual_information")),
    "boundary_lookahead_paper": _ours(Settings.paper()),
    "boundary_lookahead_default": _ours(Settings(rule="boundary_lookahead")),
    "default": _ours(Settings()),
    "pairwisegp_bald": pairwise_run,
    "pairwisegp_eubo": pairwise_run,
    "optuna": optuna_run,
}


@dataclass(frozen=True)
class Job:
    """One method with one person, and the file that says that it is done."""

    method: str
    seed: int
    options: Options
    path: Path
    commit: str  # of the code that was loaded, which may be behind by the time that it is done


def missing(jobs: Iterable[Job]) -> list[Job]:
    """Those without a file."""
    return [job for job in jobs if not job.path.exists()]


def others(jobs: Iterable[Job]) -> list[str]:
    """Files that were computed at other commits than these jobs would be."""
    done = [(job, json.loads(job.path.read_text())) for job in jobs if job.path.exists()]
    return [job.path.name for job, record in done if record.get("commit") != job.commit]


def write(job: Job, record: Record) -> None:
    """Whole or not at all."""
    text: dict[str, Any] = {**vars(record), "options": vars(job.options), "commit": job.commit}
    partial = job.path.with_suffix(".partial")
    partial.write_text(json.dumps(text, indent=1) + "\n")
    os.replace(partial, job.path)


def one_thread() -> None:
    """Torch and linear algebra in one thread, for as long as this process lives."""
    if importlib.util.find_spec("torch") is not None:
        import torch  # type: ignore[import-not-found]

        torch.set_num_threads(1)
    threadpool_limits(limits=1)


def execute(job: Job) -> str:
    """In a worker: run, write, and say how long it took."""
    start = time.perf_counter()
    user = sample_user(DIMENSION, DIMENSION, job.seed)
    write(job, METHODS[job.method](job.method, user, job.options))
    return f"{job.method} {job.seed}: {time.perf_counter() - start:.0f} s"


def main() -> None:
    """Person by person, so that what is finished is paired."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--users", type=int, default=10)
    arguments.add_argument("--first", type=int, default=1000, help="seed of the first person")
    arguments.add_argument("--queries", type=int, default=Options.queries)
    arguments.add_argument("--refit", type=int, default=Options.refit)
    arguments.add_argument("--candidates", type=int, default=Options.candidates)
    arguments.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    arguments.add_argument("--out", type=Path, default=Path("results/peers"))
    arguments.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    chosen = arguments.parse_args()
    options = Options(chosen.queries, chosen.refit, chosen.candidates)
    now = commit()
    jobs = [
        Job(method, seed, options, chosen.out / f"{method}-{seed}.json", now)
        for seed in range(chosen.first, chosen.first + chosen.users)
        for method in chosen.methods
    ]
    if old := others(jobs):
        print(f"Kept from other commits than {now}; remove them to have them again:", *old)
    chosen.out.mkdir(parents=True, exist_ok=True)
    # Fresh processes: a copy of this one would share its threads' locks.
    with ProcessPoolExecutor(chosen.workers, get_context("spawn"), one_thread) as pool:
        for line in pool.map(execute, missing(jobs)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
