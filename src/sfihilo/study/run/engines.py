"""The engines that run units: each is a ``concurrent.futures.Executor``.

local   loky processes on this machine
dask    its own local cluster, or any running scheduler
slurm   job arrays through submitit, which keeps its own files in a folder that all nodes see;
        with cluster="local", processes of this machine, to try the engine without Slurm

An executor may lose units when a worker dies. ``lost_errors`` lists the errors that mean this; the
runner submits such units again. Any other error is an error of the unit.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

EngineName = Literal["local", "dask", "slurm"]
_PATIENCE = "10s"  # with a scheduler that does not answer
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class EngineError(ValueError):
    """The engine cannot run here and now."""


@dataclass(frozen=True)
class Engine:
    """Which executor to start, and its parameters."""

    name: EngineName = "local"
    workers: int | None = None
    scheduler: str | None = None
    folder: Path = Path("slurm")
    cluster: str | None = None  # of submitit: "slurm" if None; "local" needs no Slurm
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in ("local", "dask", "slurm"):
            raise ValueError(f"engine: expected local, dask or slurm, got {self.name!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers: expected at least 1, got {self.workers}")
        if self.scheduler is not None and self.name != "dask":
            raise ValueError("scheduler: only the dask engine has one")
        if self.scheduler is not None and self.workers is not None:
            raise ValueError("workers: a running scheduler has its own, their number cannot be set")
        self._check_slurm()

    def _check_slurm(self) -> None:
        if self.name != "slurm":
            if self.options or self.cluster is not None:
                raise ValueError("slurm: only the slurm engine takes submitit's parameters")
            return
        if self.cluster not in (None, "slurm", "local"):
            raise ValueError(f"cluster: expected slurm or local, got {self.cluster!r}")
        if not self.is_here and self.workers is None:
            raise ValueError("workers: the slurm engine needs to know how many units run at once")

    @property
    def is_here(self) -> bool:
        """Whether the units run on this machine."""
        if self.name == "slurm":
            return self.cluster == "local"
        return self.scheduler is None

    @property
    def shares_files(self) -> bool:
        """Whether workers can write the results themselves; Dask workers may not see the folder."""
        return self.name != "dask"

    @property
    def count(self) -> int:
        """The number of units that run at once: `workers`, or one per core of this machine."""
        return self.workers or (os.cpu_count() or 1)

    def ready(self) -> int:
        """The number of units that run at once; raises an EngineError if the engine cannot run."""
        if self.name == "slurm":
            if not self.is_here and not (shutil.which("srun") and shutil.which("sbatch")):
                raise EngineError(
                    "there is no Slurm here: expected srun and sbatch on the PATH "
                    "(--slurm cluster=local tries the engine without)"
                )
            with tempfile.TemporaryDirectory() as folder:
                _submitit(self, Path(folder))
        if self.scheduler is None:
            return self.count
        # In a thread, because the thread of a notebook already runs an event loop.
        with ThreadPoolExecutor(1) as thread:
            threads = thread.submit(asyncio.run, _threads(self.scheduler)).result()
        return max(1, threads)  # an adaptive cluster may have no worker yet

    @contextmanager
    def start(self) -> Iterator[Executor]:
        """An executor that is stopped, with its running units, at the end of the block."""
        with {"local": _local, "dask": _dask, "slurm": _slurm}[self.name](self) as executor:
            yield executor


def lost_errors() -> tuple[type[BaseException], ...]:
    """Errors of an executor that mean a lost worker, not a wrong unit."""
    errors: list[type[BaseException]] = [BrokenExecutor, CancelledError]
    # An engine that was not loaded raises nothing, and loading it takes a second.
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
        max_workers=engine.count,
        initializer=_start_worker,
        initargs=(os.getpid(),),
        env=_ONE_THREAD,
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _start_worker(parent: int) -> None:
    """Worker start-up: lower priority, ignore SIGINT, exit when the runner dies."""
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
        engine.ready()
        with Client(engine.scheduler) as client:
            yield client.get_executor(pure=False)
        return
    # Workers listen on this machine only.
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


async def _threads(scheduler: str) -> int:
    """The number of threads of a running scheduler's workers."""
    from distributed import Client

    # Asynchronous, because only such a client can be closed when it could not connect; another
    # one's thread would stay, and lock up later clients of this process.
    client = Client(scheduler, asynchronous=True, set_as_default=False, timeout=_PATIENCE)
    try:
        await client
        threads: dict[str, int] = await client.nthreads()
    except (OSError, TypeError, ValueError) as error:
        raise EngineError(f"the scheduler {scheduler!r} cannot be reached: {error}") from error
    finally:
        await client.close()
    return sum(threads.values())


@contextmanager
def _slurm(engine: Engine) -> Iterator[Executor]:
    # Slurm counts the running tasks of an array itself; the local cluster starts all it is given.
    limit = engine.count if engine.is_here else None
    adapter = SubmititExecutor(_submitit(engine, engine.folder), limit=limit)
    try:
        yield adapter
    finally:
        adapter.shutdown(wait=True, cancel_futures=True)


def _submitit(engine: Engine, folder: Path) -> Any:
    """The executor of submitit with the engine's parameters."""
    import submitit

    executor = submitit.AutoExecutor(folder=folder, cluster=engine.cluster or "slurm")
    parameters = {"name": "sfihilo", "timeout_min": 720, "cpus_per_task": 1, "mem_gb": 4}
    if not engine.is_here:
        parameters["slurm_array_parallelism"] = engine.count
    try:
        executor.update_parameters(**{**parameters, **engine.options})
    except (AssertionError, NameError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]  # a list of all parameters follows
        raise EngineError(f"slurm: submitit refuses its parameters: {reason}") from error
    return executor


class SubmititExecutor(Executor):
    """submitit as a standard executor: simultaneous submissions become one job array.

    limit: the largest number of jobs at once; None means no limit.
    """

    def __init__(
        self, executor: Any, *, limit: int | None = None, gather: float = 0.3, poll: float = 0.2
    ) -> None:
        self._executor = executor
        self._limit, self._gather, self._poll = limit, gather, poll
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
                self._waiting.clear()
            for future in futures:
                future.cancel()
        else:
            while wait and (self._waiting or self._running):
                time.sleep(self._poll)
        self._closed.set()
        if wait:
            self._thread.join()
        if cancel_futures:
            # Only now: the thread may have been submitting jobs that must be cancelled too.
            with self._lock:
                jobs = list(self._running.values())
            for job in jobs:
                if not job.done():
                    job.cancel(check=False)

    def _serve(self) -> None:
        while not self._closed.wait(self._poll):
            self._launch()
            self._collect()

    def _launch(self) -> None:
        with self._lock:
            before = len(self._waiting)
            room = before if self._limit is None else self._limit - len(self._running)
        if not before or not room:
            return
        time.sleep(self._gather)
        with self._lock:
            if len(self._waiting) != before:
                return  # more are being submitted: they belong to the same array
            taken, self._waiting = self._waiting[:room], self._waiting[room:]
            batch = [item for item in taken if item[0].set_running_or_notify_cancel()]
        if not batch:
            return
        try:
            with self._executor.batch():
                jobs = [self._executor.submit(call) for _, call in batch]
        except Exception as error:  # noqa: BLE001 - passed on through the futures
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
            except Exception as error:  # noqa: BLE001 - passed on through the future
                future.set_exception(error)
            with self._lock:
                self._running.pop(future)
