"""Runs what is missing of a study, on any engine, until nothing is missing.

A unit is stored atomically when it is done, and nothing else is remembered: stopping at any moment
loses at most the units under way, and running the same command again goes on. A unit's bytes depend
on the unit, the code and the machine, not on the order, the engine or the interruptions.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from sfihilo.inverse import InverseSettings, feature_map
from sfihilo.querying import rule
from sfihilo.study.design.conditions import Unit
from sfihilo.study.run.engines import Engine, lost_errors
from sfihilo.study.run.lock import only_run
from sfihilo.study.run.provenance import Provenance, describe
from sfihilo.study.run.simulate import run_unit
from sfihilo.study.run.store import Store, encode

_STALE_SECONDS = 3600
_STRIKES = 2  # how often a unit may take its worker down while it is alone
_IDLE_PASSES = 10  # passes in a row that finish nothing, before the rest is given up


@dataclass(frozen=True)
class Job:
    """What a worker is sent."""

    unit: Unit
    provenance: Provenance
    results: str | None  # None: send the table back, this worker may not see the folder
    search_path: tuple[str, ...] = ()  # where a user's own rule or reward model lies


@dataclass(frozen=True)
class Finished:
    """What a worker sends back."""

    seconds: float
    content: bytes | None


@dataclass(frozen=True)
class Report:
    """Keys of the units that were computed now, and why others could not be."""

    finished: tuple[str, ...]
    failed: Mapping[str, str]


class Watcher(Protocol):
    """Somebody who wants to know how it goes."""

    def note(self, unit: Unit, seconds: float | None) -> None: ...


@dataclass
class Forecast:
    """Time to go, from what units of the same condition and rule have cost so far."""

    workers: int
    left: list[Unit]
    costs: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, condition: str, rule: str, seconds: float) -> None:
        self.costs[condition, rule].append(seconds)

    def finish(self, unit: Unit, seconds: float | None) -> None:
        self.left = [other for other in self.left if other.key != unit.key]
        if seconds is not None:
            self.learn(unit.condition.name, unit.rule, seconds)

    def expected(self, unit: Unit) -> float | None:
        """The mean of its own kind, else of its rule, else of everything."""
        means = {kind: fmean(costs) for kind, costs in self.costs.items()}
        kind = (unit.condition.name, unit.rule)
        if kind in means:
            return means[kind]
        alike = [mean for (_, rule), mean in means.items() if rule == unit.rule]
        known = alike or list(means.values())
        return fmean(known) if known else None

    def seconds_to_go(self) -> float | None:
        """None until something has finished: a guess would not be honest."""
        costs = [self.expected(unit) for unit in self.left]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        # Whatever the number of workers, the longest unit takes its time.
        return max([sum(known) / self.workers, *known], default=0.0)


def execute(job: Job) -> Finished:
    """In a worker: compute one unit with one BLAS thread, and store it if the folder is shared."""
    for folder in reversed(job.search_path):  # so that the first is searched first
        if folder not in sys.path:
            sys.path.insert(0, folder)
    store = Store(Path(job.results), job.unit.preset) if job.results is not None else None
    if store is not None and store.has(job.unit):
        return Finished(0.0, None)  # another runner on the same folder was quicker
    begun = time.perf_counter()
    with threadpool_limits(limits=1):
        table = run_unit(job.unit)
    content = encode(table, describe(job.unit, job.provenance))
    seconds = time.perf_counter() - begun
    if store is None:
        return Finished(seconds, content)
    store.write(job.unit, content)
    return Finished(seconds, None)


def own_rule(name: str, search_path: list[str]) -> str:
    """A rule's name as workers import it; a ValueError now if they could not."""
    return _resolved("rule", name, search_path, rule)


def own_reward(name: str, search_path: list[str], outcome_dims: Iterable[int]) -> str:
    """The same for reward features, which are tried on so many outcomes each."""

    def try_out(importable: str) -> None:
        for dim in outcome_dims:
            settings = InverseSettings(features=importable)
            features = feature_map(settings, dim, np.random.default_rng(0))
            features(np.full((2, dim), 0.5))

    return _resolved("reward", name, search_path, try_out)


def _resolved(
    what: str, name: str, search_path: list[str], resolve: Callable[[str], object]
) -> str:
    before = sys.path[:]
    try:
        importable = _importable(name, search_path)
        sys.path[:0] = search_path
        resolve(importable)
    except ValueError as error:
        raise ValueError(f"{what} {name!r}: {error}") from error
    except (Exception, SystemExit) as error:  # a user's file may do anything when imported
        raise ValueError(f"{what} {name!r}: {type(error).__name__}: {error}") from error
    finally:
        sys.path[:] = before
    return importable


def _importable(name: str, search_path: list[str]) -> str:
    """``folder/file.py:function`` as ``file:function``, with the folder first on the path."""
    path, _, function = name.rpartition(":")
    if name.endswith(".py"):
        raise ValueError("expected file.py:function, got a file alone")
    if not path.endswith(".py"):
        return name
    file = Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    loaded = sys.modules.get(file.stem)
    if loaded is not None and Path(getattr(loaded, "__file__", None) or "").resolve() != file:
        raise ValueError(f"another module is called {file.stem}: give the file another name")
    search_path.insert(0, str(file.parent))
    return f"{file.stem}:{function}"


def pending(units: Sequence[Unit], store: Store) -> list[Unit]:
    """The units that are not stored yet, in their order, each once."""
    done = store.done()
    return list({unit.key: unit for unit in units if unit.key not in done}.values())


def run(
    units: Sequence[Unit],
    store: Store,
    engine: Engine,
    watcher: Watcher | None = None,
    search_path: Sequence[str] = (),
    provenance: Provenance | None = None,
) -> Report:
    """Compute and store all units that are missing; units that fail are reported at the end."""
    if not units:
        return Report((), {})
    store.agree(units[0])
    with only_run(store.units):
        clear_partial(store)
        return _run_missing(units, store, engine, watcher, search_path, provenance)


def _run_missing(
    units: Sequence[Unit],
    store: Store,
    engine: Engine,
    watcher: Watcher | None,
    search_path: Sequence[str],
    provenance: Provenance | None,
) -> Report:
    """Pass after pass over what is missing, until nothing is or nothing more can be done."""
    provenance = provenance or Provenance.here()
    results = str(store.results.resolve()) if engine.shares_files else None
    waiting = [Job(unit, provenance, results, tuple(search_path)) for unit in pending(units, store)]
    finished: list[str] = []
    failed: dict[str, str] = {}
    strikes: Counter[str] = Counter()
    idle = 0
    while waiting and idle < _IDLE_PASSES:
        # After a pass that finished nothing, one unit at a time: the guilty one is then alone.
        batch, rest = (waiting[:1], waiting[1:]) if idle else (waiting, [])
        before = len(finished) + len(failed)
        with engine.start() as executor:
            lost = _one_pass(executor, batch, store, watcher, finished, failed)
        if lost and len(batch) == 1:
            strikes[batch[0].unit.key] += 1
            if strikes[batch[0].unit.key] >= _STRIKES:
                failed[batch[0].unit.key] = f"took its worker down {_STRIKES} times while alone"
        idle = 0 if len(finished) + len(failed) > before else idle + 1
        waiting = rest + [job for job in lost if job.unit.key not in failed]
    failed.update({job.unit.key: "lost its worker, as all others did" for job in waiting})
    return Report(tuple(finished), failed)


def _one_pass(
    executor: Executor,
    jobs: Sequence[Job],
    store: Store,
    watcher: Watcher | None,
    finished: list[str],
    failed: dict[str, str],
) -> list[Job]:
    """Submit everything, take what comes; returns the jobs that went down with a worker."""
    lost_types = lost_errors()
    lost = []
    futures, unsent = _submit(executor, jobs, lost_types)
    for future in as_completed(futures):
        job = futures.pop(future)
        unit = job.unit
        seconds: float | None = None
        try:
            result: Finished = future.result()
        except lost_types:
            lost.append(job)
            continue
        except Exception as error:  # noqa: BLE001 - one bad unit must not stop the others
            failed[unit.key] = "".join(traceback.format_exception(error))
        else:
            if result.content is not None:
                store.write(unit, result.content)
            seconds = result.seconds or None
            if seconds is not None:
                store.note_timing(unit, seconds)
            finished.append(unit.key)
        if watcher is not None:
            watcher.note(unit, seconds)
    return lost + unsent


def _submit(
    executor: Executor, jobs: Sequence[Job], lost_types: tuple[type[BaseException], ...]
) -> tuple[dict[Future[Any], Job], list[Job]]:
    """A pool may break while it is being filled: what was not taken is lost too."""
    futures: dict[Future[Any], Job] = {}
    for index, job in enumerate(jobs):
        try:
            futures[executor.submit(execute, job)] = job
        except lost_types:
            return futures, list(jobs[index:])
    return futures, []


def clear_partial(store: Store) -> None:
    """Remove what killed workers left half written; young files may be somebody's under way."""
    for path in store.units.glob(".*.partial"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            path.unlink(missing_ok=True)
