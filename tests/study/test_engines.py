"""Every engine is an executor, and all give the same results."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Executor, wait
from pathlib import Path

import psutil
import pytest

from sfihilo.study.conditions import Unit
from sfihilo.study.engines import Engine, lost_errors
from sfihilo.study.runner import run
from sfihilo.study.store import Store
from tests.study.tiny import PROVENANCE, children_named, contents, tiny_units


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the local engine makes of the tiny study."""
    store = Store(tmp_path_factory.mktemp("local"), "paper")
    assert not run(tiny_units(2), store, Engine(workers=2), provenance=PROVENANCE).failed
    return contents(store)


def of_first_user(stored: dict[str, bytes]) -> dict[str, bytes]:
    chosen = {name: content for name, content in stored.items() if "--u000" in name}
    assert len(chosen) == 2
    return chosen


class KillsOneWorker:
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
    report = run(tiny_units(2), store, Engine("dask", workers=2), killer, provenance=PROVENANCE)
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
        assert not run(tiny_units(1), store, engine, provenance=PROVENANCE).failed
    assert contents(store) == of_first_user(local)


def test_submitit_equals_local(tmp_path: Path, local: dict[str, bytes]) -> None:
    store = Store(tmp_path / "results", "paper")
    engine = Engine("slurm", folder=tmp_path / "jobs", cluster="local")
    report = run(tiny_units(1), store, engine, provenance=PROVENANCE)
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


def test_local_workers_use_one_thread_and_give_way() -> None:
    with Engine(workers=1).start() as executor:
        assert executor.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"
        assert executor.submit(os.nice, 0).result() >= 5


def test_a_lost_worker_is_told_from_a_wrong_unit() -> None:
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
    ],
)
def test_impossible_engines_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(**arguments)  # type: ignore[arg-type]
