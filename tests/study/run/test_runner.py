"""Interrupted however, the study ends with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run import runner
from sfihilo.study.run.engines import Engine
from sfihilo.study.run.folder_lock import FolderBusyError, only_run
from sfihilo.study.run.result_files import Store
from sfihilo.study.run.runner import Job, Plan, Silent, compute_unit, run
from tests.study import tiny
from tests.study.tiny import (
    PROVENANCE,
    children_named,
    contents,
    run_units,
    tiny_unit,
    tiny_units,
)

ROOT = Path(__file__).parents[3]


def start(folder: Path, users: int) -> subprocess.Popen[bytes]:
    workers = min(2, users)  # a single user is the quick test: one worker starts faster
    command = [sys.executable, tiny.__file__, str(folder), str(users), str(workers)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def kill_at_random(folder: Path, users: int, wait: float) -> bool:
    """Start the study, kill -9 its runner after a while; False when it was done before."""
    process = start(folder, users)
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(children, timeout=20)
        assert not alive, "workers must not outlive their runner"
        return True
    assert process.returncode == 0
    return False


def interrupted_equals_uninterrupted(tmp_path: Path, kills: int, users: int) -> None:
    begun = time.perf_counter()
    assert start(tmp_path / "whole", users).wait() == 0
    length = time.perf_counter() - begun
    whole = contents(Store(tmp_path / "whole", "paper"))
    assert len(whole) == 2 * users
    moments = random.Random(7)
    done, attempt = 0, 0
    while done < kills:
        folder = tmp_path / f"interrupted{attempt}"
        attempt += 1
        while done < kills and kill_at_random(folder, users, moments.uniform(0.1, 0.8) * length):
            done += 1
        assert start(folder, users).wait() == 0
        assert contents(Store(folder, "paper")) == whole


def test_resuming_after_kill_9_is_byte_identical(tmp_path: Path) -> None:
    interrupted_equals_uninterrupted(tmp_path, kills=2, users=1)


def start_smoke(folder: Path) -> subprocess.Popen[bytes]:
    """The smoke study of a panel, as a person starts it, in a process group of its own."""
    command = [sys.executable, "-c", "from sfihilo.cli.main import main; main()"]
    options = ["--scale", "smoke", "--workers", "2", "--out", str(folder)]
    return subprocess.Popen(
        [*command, "study", "run", "A", *options],
        # Tables name their commit, and somebody may commit while this runs: let it find none.
        env={**os.environ, "GIT_DIR": os.devnull},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def everything_stored(folder: Path) -> dict[str, bytes]:
    """Every file of a study but the lock, half-written ones, and the times, which do differ."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    kept = (path for path in files if path.name[0] != "." and path.name != "timings.jsonl")
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_resuming_after_50_kills_is_byte_identical(tmp_path: Path) -> None:
    begun = time.perf_counter()
    assert start_smoke(tmp_path / "whole").wait() == 0
    length = time.perf_counter() - begun
    whole = everything_stored(tmp_path / "whole")
    assert len(whole) == 3 * 3 + 1  # users and rules, and study.json
    moments = random.Random(7)
    kills, halfway, attempt = 0, 0, 0
    while kills < 50:  # a study that is done before its kill gives way to a new one
        folder = tmp_path / f"interrupted{attempt}"
        attempt += 1
        while kills < 50:
            process = start_smoke(folder)
            # The first unit takes half the time: mostly before that, now and then after it.
            moment = 0.8 * moments.random() ** 2 * length
            try:
                assert process.wait(moment) == 0
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            kills += 1
            halfway += 1 < len(everything_stored(folder)) < len(whole)
        assert start_smoke(folder).wait() == 0
        assert everything_stored(folder) == whole
    assert halfway > 0, "no kill ever found some units done and others not"


def test_second_run_computes_nothing(tmp_path: Path) -> None:
    store, units = Store(tmp_path, "paper"), tiny_units(1, queries=3)
    first = run_units(units, store)
    assert set(first.finished) == {unit.key for unit in units}
    assert Plan(units, store).left == ()
    again = run_units(units, store)
    assert again.finished == ()
    assert len(store.read_timings()) == 2
    assert run(Plan([], store)) == runner.Report((), {})


def test_a_damaged_unit_is_computed_again_to_the_same_bytes(tmp_path: Path) -> None:
    store, units = Store(tmp_path, "paper"), tiny_units(1, queries=3)
    run_units(units, store)
    path = store.path(units[0])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    again = run_units(units, store)
    assert again.finished == (units[0].key,)
    assert path.read_bytes() == whole


def test_a_unit_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path, "paper")
    units = [tiny_unit("no_such_rule", queries=3), tiny_unit("random", queries=3)]
    report = run_units(units, store)
    assert report.finished == (units[1].key,)
    assert "no_such_rule" in report.failed[units[0].key]
    assert Plan(units, store).left == (units[0],)


class Recorder(Silent):
    def __init__(self) -> None:
        self.noted: list[tuple[str, bool]] = []
        self.victim = True

    def note(self, unit: Unit, seconds: float | None) -> None:
        """Kill a worker as soon as the first unit is done."""
        self.noted.append((unit.key, seconds is not None))
        if self.victim:
            self.victim = False
            for child in children_named("popen_loky"):
                os.kill(child.pid, signal.SIGKILL)


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    units = tiny_units(2, queries=16)
    broken, whole = Store(tmp_path / "broken", "paper"), Store(tmp_path / "whole", "paper")
    recorder = Recorder()
    report = run_units(units, broken, Engine(workers=2), recorder)
    assert not report.failed
    assert not recorder.victim
    for unit in units:
        compute_unit(Job(unit, PROVENANCE, str(whole.results)))
    assert contents(broken) == contents(whole)
    assert len(contents(whole)) == 4


def test_a_unit_that_always_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os\n\ndef rule(situation):\n    os._exit(9)\n", encoding="utf-8"
    )
    units = [tiny_unit("deadly:rule", queries=2), tiny_unit("random", queries=2)]
    store = Store(tmp_path, "paper")
    report = run(Plan(units, store, Engine(workers=1), search_path=(str(tmp_path),)))
    assert "took its worker down" in report.failed[units[0].key]
    assert store.done() == {units[1].key}


def test_a_table_is_sent_back_when_the_folder_is_not_shared(tmp_path: Path) -> None:
    unit = tiny_unit(queries=2)
    sent = compute_unit(Job(unit, PROVENANCE, None))
    stored = compute_unit(Job(unit, PROVENANCE, str(tmp_path)))
    assert stored.content is None
    assert sent.content == Store(tmp_path, "paper").path(unit).read_bytes()
    assert compute_unit(Job(unit, PROVENANCE, str(tmp_path))).seconds == 0


def test_the_same_unit_again_gives_the_same_bytes() -> None:
    job = Job(tiny_unit(queries=2), PROVENANCE, None)
    assert compute_unit(job).content == compute_unit(job).content


TWIN = "from sfihilo.querying import random\n\ndef rule(situation):\n    {}\n"


def test_the_first_folder_of_the_search_path_is_searched_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name, body in (("own", "return random(situation)"), ("other", "raise ValueError")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twin_rule.py").write_text(TWIN.format(body), encoding="utf-8")
    unit = tiny_unit("twin_rule:rule", queries=2)
    folders = (str(tmp_path / "own"), str(tmp_path / "other"))
    try:
        assert compute_unit(Job(unit, PROVENANCE, None, folders)).content is not None
    finally:
        sys.modules.pop("twin_rule", None)


def test_stale_partial_files_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path, "paper")
    store.units.mkdir(parents=True)
    old, young = (store.units / f".{name}.partial" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    runner.clear_partial(store)
    assert not old.exists()
    assert young.exists()


HOLDER = """
import sys, time
from pathlib import Path
from sfihilo.study.run.folder_lock import only_run
with only_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_run_on_the_same_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    store, units = Store(tmp_path, "paper"), [tiny_unit(queries=2)]
    command = [sys.executable, "-c", HOLDER, str(store.units)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderBusyError, match=f"process {holder.pid} on .*--out"):
            run_units(units, store)
        with only_run(Store(tmp_path, "default").units):
            pass  # another preset's folder is another matter
        holder.kill()
    with only_run(store.units):
        pass
