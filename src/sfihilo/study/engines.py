"""Where the units run: every engine is a ``concurrent.futures.Executor``.

local   loky processes on this machine
dask    its own local cluster, or any running scheduler
slurm   job arrays through submitit, which keeps its own files in a folder that all nodes see

An executor may lose work when a worker dies. ``LOST`` names the errors that mean this; the runner
submits such units again. Any other error is the unit's own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

EngineName = Literal["local", "dask", "slurm"]
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Engine:
    """Which executor to start, and with what."""

    name: EngineName = "local"
    workers: int | None = None
    scheduler: str | None = None
    folder: Path = Path("slurm")
    cluster: str | None = None  # submitit's word: None finds Slurm, "local" tries it without one
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in ("local", "dask", "slurm"):
            raise ValueError(f"engine: expected local, dask or slurm, got {self.name!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers: expected at least 1, got {self.workers}")
        if self.scheduler is not None and self.name != "dask":
            raise ValueError("scheduler: only the dask engine takes one")

    @property
    def shares_files(self) -> bool:
        """Whether workers can write the results themselves; a Dask worker may be anywhere."""
        return self.name != "dask"

    @property
    def count(self) -> int:
        """How many units run at once, as far as is known."""
        return self.workers or (os.cpu_count() or 1)

    @contextmanager
    def start(self) -> Iterator[Executor]:
        """An executor that is stopped at once, with what it is doing, when the block is left."""
        with {"local": _local, "dask": _dask, "slurm": _slurm}[self.name](self) as executor:
            yield executor


def lost_errors() -> tuple[type[BaseException], ...]:
    """Errors of an executor that say: the worker went away, not: the unit is wrong."""
    errors: list[type[BaseException]] = [BrokenExecutor, CancelledError]
    # An engine that was never loaded raises nothing, and loading it takes a second.
    for module, name in (
        ("distributed.scheduler", "KilledWorker"),
        ("submitit.core.utils", "UncompletedJobError"),
    ):
        if module in sys.modules:
            errors.append(getattr(sys.modules[module], name))
    return tuple(errors)


@contextmanager
def _local(engine: Engine) -> Iterator[Executor]:
    import loky

    executor = loky.ProcessPoolExecutor(
        max_workers=engine.count, initializer=_settle_in, initargs=(os.getpid(),), env=_ONE_THREAD
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _settle_in(parent: int) -> None:
    """A worker gives way to people, leaves Ctrl-C to the runner, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _dask(engine: Engine) -> Iterator[Executor]:
    from distributed import Client, LocalCluster

    if engine.scheduler is not None:
        with Client(engine.scheduler) as client:
            yield client.get_executor(pure=False)
        return
    # Workers must not listen to the world: the cluster is this machine's alone.
    with (
        LocalCluster(
            n_workers=engine.count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            env=_ONE_THREAD,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor(pure=False)


@contextmanager
def _slurm(engine: Engine) -> Iterator[Executor]:
    import submitit

    executor = submitit.AutoExecutor(folder=engine.folder, cluster=engine.cluster)
    parameters = {"name": "sfihilo", "timeout_min": 720, "cpus_per_task": 1, "mem_gb": 4}
    if engine.cluster is None:
        parameters["slurm_array_parallelism"] = engine.count
    executor.update_parameters(**{**parameters, **engine.options})
    adapter = SubmititExecutor(executor)
    try:
        yield adapter
    finally:
        adapter.shutdown(wait=True, cancel_futures=True)


class SubmititExecutor(Executor):
    """submitit as a standard executor: submissions that come together become one job array."""

    def __init__(self, executor: Any, *, gather: float = 0.3, poll: float = 0.2) -> None:
        self._executor = executor
        self._gather, self._poll = gather, poll
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._running: dict[Future[Any], Any] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._closed.is_set():
            raise RuntimeError("cannot submit after shutdown")
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            with self._lock:
                futures = [future for future, _ in self._waiting]
                jobs = list(self._running.values())
                self._waiting.clear()
            for future in futures:
                future.cancel()
            for job in jobs:
                if not job.done():
                    job.cancel(check=False)
            self._closed.set()
        else:
            while wait and (self._waiting or self._running):
                time.sleep(self._poll)
            self._closed.set()
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        while not self._closed.wait(self._poll):
            self._launch()
            self._collect()

    def _launch(self) -> None:
        with self._lock:
            before = len(self._waiting)
        if not before:
            return
        time.sleep(self._gather)
        with self._lock:
            if len(self._waiting) != before:
                return  # more are still coming: they belong to the same array
            batch = [item for item in self._waiting if item[0].set_running_or_notify_cancel()]
            self._waiting.clear()
        if not batch:
            return
        try:
            with self._executor.batch():
                jobs = [self._executor.submit(call) for _, call in batch]
        except Exception as error:  # noqa: BLE001 - whoever waits for the futures must hear of it
            for future, _ in batch:
                future.set_exception(error)
            return
        futures = [future for future, _ in batch]
        with self._lock:
            self._running.update(zip(futures, jobs, strict=True))

    def _collect(self) -> None:
        with self._lock:
            running = list(self._running.items())
        for future, job in running:
            if not job.done():
                continue
            try:
                future.set_result(job.result())
            except Exception as error:  # noqa: BLE001 - handed on to whoever waits
                future.set_exception(error)
            with self._lock:
                self._running.pop(future)
