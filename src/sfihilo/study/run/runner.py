"""Runs the missing units of a study on any engine.

A unit is stored atomically when it is done, and no other state is kept: stopping at any moment
loses only the units in progress, and the same command continues. The bytes of a unit depend on the
unit, the code and the machine, not on the order, the engine or interruptions.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run.description import Provenance, describe
from sfihilo.study.run.engines import Engine, lost_errors
from sfihilo.study.run.folder_lock import only_run
from sfihilo.study.run.plugins import extend_search_path
from sfihilo.study.run.result_files import Store, encode
from sfihilo.study.run.simulate import run_unit

_STALE_SECONDS = 3600
_STRIKES = 2  # how often a unit may kill its worker while it runs alone
_IDLE_PASSES = 10  # consecutive passes without a finished unit before the rest is given up


@dataclass(frozen=True)
class Job:
    """What is sent to a worker."""

    unit: Unit
    provenance: Provenance
    results: str | None  # None: the worker sends the table back
    search_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finished:
    """What a worker returns; `content` is None if it has stored the table itself."""

    seconds: float
    content: bytes | None


@dataclass(frozen=True)
class Report:
    """Keys of the units that were computed, and the errors of those that failed."""

    finished: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """The units to compute, where they are stored, and what computes them.

    search_path: where workers find a user's own rule or reward features.
    """

    units: Sequence[Unit]
    store: Store
    engine: Engine = Engine()
    search_path: tuple[str, ...] = ()
    provenance: Provenance | None = None

    @cached_property
    def left(self) -> tuple[Unit, ...]:
        """The units that were not stored at the first look, in their order, each once."""
        done = self.store.done()
        return tuple({unit.key: unit for unit in self.units if unit.key not in done}.values())

    def jobs(self) -> list[Job]:
        """One job per unit that is left."""
        provenance = self.provenance or Provenance.here()
        results = str(self.store.results.resolve()) if self.engine.shares_files else None
        return [Job(unit, provenance, results, self.search_path) for unit in self.left]


class Watcher(Protocol):
    """Is called when a run begins, after each finished or failed unit, and when the run ends.

    places: the number of units that run at once. seconds: None if the unit failed.
    """

    def begin(self, plan: Plan, places: int) -> None: ...
    def note(self, unit: Unit, seconds: float | None) -> None: ...
    def end(self) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def begin(self, plan: Plan, places: int) -> None: ...
    def note(self, unit: Unit, seconds: float | None) -> None: ...
    def end(self) -> None: ...


def compute_unit(job: Job) -> Finished:
    """Computes one unit in a worker, with one BLAS thread; stores it if the folder is shared."""
    extend_search_path(job.search_path)
    store = Store(Path(job.results), job.unit.preset) if job.results is not None else None
    if store is not None and store.has(job.unit):
        return Finished(0.0, None)  # another runner has stored it in the meantime
    begun = time.perf_counter()
    with threadpool_limits(limits=1):
        table = run_unit(job.unit)
    content = encode(table, describe(job.unit, job.provenance))
    seconds = time.perf_counter() - begun
    if store is None:
        return Finished(seconds, content)
    store.write(job.unit, content)
    return Finished(seconds, None)


def run(plan: Plan, watcher: Watcher | None = None) -> Report:
    """Computes and stores all units that are missing; reports the units that failed."""
    if not plan.units:
        return Report((), {})
    watcher = watcher or Silent()
    places = plan.engine.ready()
    plan.store.agree(plan.units[0])
    with only_run(plan.store.units):
        clear_partial(plan.store)
        watcher.begin(plan, places)
        try:
            return _run_missing(plan, watcher)
        finally:
            watcher.end()


def _run_missing(plan: Plan, watcher: Watcher) -> Report:
    """Repeats passes over the missing units until none is missing or nothing more can be done."""
    waiting = plan.jobs()
    finished: list[str] = []
    failed: dict[str, str] = {}
    strikes: Counter[str] = Counter()
    idle = 0
    while waiting and idle < _IDLE_PASSES:
        # After a pass that finished nothing, one unit at a time: this isolates the failing one.
        batch, rest = (waiting[:1], waiting[1:]) if idle else (waiting, [])
        before = len(finished) + len(failed)
        with plan.engine.start() as executor:
            lost = _one_pass(executor, batch, plan.store, watcher, finished, failed)
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
    watcher: Watcher,
    finished: list[str],
    failed: dict[str, str],
) -> list[Job]:
    """Submits all jobs and collects their results; returns the jobs that a dead worker lost."""
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
        watcher.note(unit, seconds)
    return lost + unsent


def _submit(
    executor: Executor, jobs: Sequence[Job], lost_types: tuple[type[BaseException], ...]
) -> tuple[dict[Future[Any], Job], list[Job]]:
    """The submitted jobs, and those that a pool which broke meanwhile did not take."""
    futures: dict[Future[Any], Job] = {}
    for index, job in enumerate(jobs):
        try:
            futures[executor.submit(compute_unit, job)] = job
        except lost_types:
            return futures, list(jobs[index:])
    return futures, []


def clear_partial(store: Store) -> None:
    """Removes partial files of killed workers; a recent file may still be being written."""
    for path in store.units.glob(".*.partial"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            path.unlink(missing_ok=True)
