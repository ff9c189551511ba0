"""Every engine is an executor, and all give the same results."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, wait
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run import engines
from sfihilo.study.run.engines import Engine, EngineError, SubmititExecutor, lost_errors
from sfihilo.study.run.result_files import Store
from sfihilo.study.run.runner import Silent
from tests.study.tiny import children_named, contents, run_units, tiny_units


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the local engine makes of the tiny study."""
    store = Store(tmp_path_factory.mktemp("local"), "paper")
    assert not run_units(tiny_units(2), store, Engine(workers=2)).failed
    return contents(store)


def of_first_user(stored: dict[str, bytes]) -> dict[str, bytes]:
    chosen = {name: content for name, content in stored.items() if "--u000" in name}
    assert len(chosen) == 2
    return chosen


class KillsOneWorker(Silent):
    """After the first unit, kills the Dask worker process that is not the nanny's own."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def note(self, unit: Unit, seconds: float | None) -> None:
        if self.killed:
            return
        for child in children_named("spawn_main"):
            self.killed.append(child.pid)
            child.kill()
            return


def test_dask_with_a_worker_killed_equals_local(tmp_path: Path, local: dict[str, bytes]) -> None:
    store, killer = Store(tmp_path, "paper"), KillsOneWorker()
    report = run_units(tiny_units(2), store, Engine("dask", workers=2), killer)
    assert not report.failed
    assert killer.killed
    assert contents(store) == local


def test_dask_on_a_running_scheduler_equals_local(tmp_path: Path, local: dict[str, bytes]) -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        store = Store(tmp_path, "paper")
        engine = Engine("dask", scheduler=cluster.scheduler_address)
        assert engine.ready() == 1
        assert not run_units(tiny_units(1), store, engine).failed
    assert contents(store) == of_first_user(local)


def test_running_scheduler_is_ready_with_the_threads_of_its_workers() -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=0,
        threads_per_worker=3,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        engine = Engine("dask", scheduler=cluster.scheduler_address)
        assert engine.ready() == 1  # workers may come yet, and time to go is a quotient
        cluster.scale(2)
        cluster.wait_for_workers(2, timeout=60)
        assert engine.ready() == 6


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "garbage", "cloud://127.0.0.1:1", "tls://127.0.0.1:1"]
)
def test_a_scheduler_that_cannot_be_reached_is_named(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_PATIENCE", "0.5s")
    engine = Engine("dask", scheduler=address)
    with pytest.raises(EngineError, match=f"'{address}' cannot be reached: "):
        engine.ready()
    with pytest.raises(EngineError, match=f"'{address}' cannot be reached: "), engine.start():
        pass


def test_engine_on_this_machine_is_ready_with_the_requested_workers() -> None:
    assert Engine(workers=3).ready() == 3
    assert Engine().ready() == os.cpu_count()
    assert Engine("dask", workers=3).ready() == 3
    assert Engine("slurm", workers=3, cluster="local").ready() == 3


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has Slurm's commands, though nothing behind them."""
    for name in ("srun", "sbatch"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.usefixtures("slurm")
def test_slurm_array_parallelism_is_the_number_of_workers(tmp_path: Path) -> None:
    engine = Engine("slurm", workers=40, folder=tmp_path / "jobs", options={"slurm_time": 60})
    assert engine.ready() == 40
    assert not engine.folder.exists()
    with engine.start() as executor:
        assert isinstance(executor, SubmititExecutor)
        parameters = executor._executor._executor.parameters
    assert parameters["array_parallelism"] == 40
    assert parameters["time"] == 60


@pytest.mark.parametrize("missing", ["srun", "sbatch"])
@pytest.mark.usefixtures("slurm")
def test_slurm_engine_without_slurm_is_refused(tmp_path: Path, missing: str) -> None:
    (tmp_path / "bin" / missing).unlink()
    with pytest.raises(EngineError, match="there is no Slurm here"):
        Engine("slurm", workers=2).ready()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nonsense": 1}, "'nonsense' need to be prefixed"),
        ({"slurm_nonsense": 1}, "Unknown argument 'nonsense'"),
        ({"mem_gb": "much"}, '"mem_gb" expected type'),
        ({"nodes": 2}, "only one node"),
    ],
)
def test_parameters_that_submitit_does_not_know_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        Engine("slurm", cluster="local", options=options).ready()
    assert "\n" not in str(caught.value)


class Jobs:
    """In submitit's place: jobs that are done when they have been asked about twice."""

    def __init__(self) -> None:
        self.under_way, self.most = 0, 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        yield

    def submit(self, call: Callable[[], object]) -> Job:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return Job(self, call)


class Job:
    def __init__(self, jobs: Jobs, call: Callable[[], object]) -> None:
        self.jobs, self.call, self.asked = jobs, call, 0

    def done(self) -> bool:
        self.asked += 1
        return self.asked > 2

    def result(self) -> object:
        self.jobs.under_way -= 1
        return self.call()


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (None, 5), (9, 5)])
def test_submitit_runs_at_most_its_limit_of_jobs(limit: int | None, most: int) -> None:
    jobs = Jobs()
    with SubmititExecutor(jobs, limit=limit, gather=0.01, poll=0.01) as executor:
        futures = [executor.submit(pow, 2, exponent) for exponent in range(5)]
        assert [future.result(timeout=20) for future in futures] == [1, 2, 4, 8, 16]
    assert jobs.most == most


class SlowJobs(Jobs):
    """Submitting takes a while, as it does on a busy cluster."""

    def __init__(self) -> None:
        super().__init__()
        self.submitting = threading.Event()
        self.cancelled: list[bool] = []

    def submit(self, call: Callable[[], object]) -> Job:
        self.submitting.set()
        time.sleep(0.3)
        return CancelledJob(self, call)


class CancelledJob(Job):
    jobs: SlowJobs

    def done(self) -> bool:
        return False

    def cancel(self, check: bool) -> None:
        self.jobs.cancelled.append(check)


def test_submitit_job_submitted_during_shutdown_is_cancelled() -> None:
    jobs = SlowJobs()
    executor = SubmititExecutor(jobs, gather=0.01, poll=0.01)
    executor.submit(pow, 2, 5)
    assert jobs.submitting.wait(20)
    executor.shutdown(cancel_futures=True)
    assert jobs.cancelled == [False]


def test_submitit_equals_local(tmp_path: Path, local: dict[str, bytes]) -> None:
    store = Store(tmp_path / "results", "paper")
    engine = Engine("slurm", folder=tmp_path / "jobs", cluster="local")
    report = run_units(tiny_units(1), store, engine)
    assert not report.failed
    assert contents(store) == of_first_user(local)


def test_submitit_is_an_executor(tmp_path: Path) -> None:
    with Engine("slurm", folder=tmp_path, cluster="local").start() as executor:
        assert isinstance(executor, Executor)
        good, bad = executor.submit(pow, 2, 5), executor.submit(int, "x")
        wait([good, bad])
        assert good.result() == 32
        assert "ValueError" in str(bad.exception())
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(pow, 2, 2)


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Tests in the background ignore SIGINT, and so would the jobs, which submitit ends by it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# submitit's stand-in for Slurm does not wait for the jobs that it cancels.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("hears_ctrl_c")
def test_submitit_jobs_are_cancelled_when_the_runner_leaves(tmp_path: Path) -> None:
    with Engine("slurm", folder=tmp_path, cluster="local").start() as executor:
        future = executor.submit(time.sleep, 600)
        while not (jobs := submitit_processes()):
            assert not future.done()
            time.sleep(0.05)
    _, alive = psutil.wait_procs(jobs, timeout=20)
    assert not alive


def submitit_processes() -> list[psutil.Process]:
    return children_named("submitit")


def test_local_workers_use_one_thread_and_low_priority() -> None:
    with Engine(workers=1).start() as executor:
        assert executor.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"
        assert executor.submit(os.nice, 0).result() >= 5


def test_lost_errors_contain_dead_workers_but_no_errors_of_units() -> None:
    with Engine(workers=1).start() as executor:
        assert isinstance(executor.submit(os._exit, 1).exception(), lost_errors())
    with Engine(workers=1).start() as executor:
        assert not isinstance(executor.submit(int, "x").exception(), lost_errors())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "cloud"}, "local, dask or slurm"),
        ({"workers": 0}, "at least 1"),
        ({"scheduler": "tcp://x"}, "only the dask engine"),
        ({"name": "dask", "scheduler": "tcp://x", "workers": 2}, "has its own"),
        ({"options": {"slurm_partition": "cpu"}}, "only the slurm engine"),
        ({"name": "dask", "cluster": "local"}, "only the slurm engine"),
        ({"name": "slurm", "cluster": "cloud"}, "slurm or local, got 'cloud'"),
        ({"name": "slurm"}, "how many units run at once"),
    ],
)
def test_engine_with_wrong_arguments_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(**arguments)  # type: ignore[arg-type]
