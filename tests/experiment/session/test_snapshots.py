"""Snapshots are a cache: one that does not fit the record changes nothing and stops nothing."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sfihilo
from sfihilo import State, load, save
from sfihilo.experiment import Lab
from tests.experiment.people import EXOSKELETON, LEAN, Person, finish, memory_folder

ROUNDS = 9


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        with Lab(made / "lab.db") as lab:
            Person(EXOSKELETON, 1).walk(lab.create(EXOSKELETON, "P1", 1, settings=LEAN), ROUNDS)
        yield made


def snapshot(folder: Path) -> Path:
    (path,) = (folder / "lab.db.snapshots").iterdir()
    return path


def advice(folder: Path) -> Any:
    with Lab(folder / "lab.db") as lab:
        session = lab.open("P1-1")
        found = session.recommend().to_dict(), save(session.state)
        assert lab.verify().ok
        return found


def expected(folder: Path) -> Any:
    """The advice without any snapshot."""
    path = snapshot(folder)
    text = path.read_text()
    path.unlink()
    found = advice(folder)
    path.write_text(text)
    return found


def poisoned(stored: dict[str, Any]) -> dict[str, Any]:
    """A valid state with the reward turned round, under the digest of the true one."""
    state = json.loads(stored["state"])
    state["mode"] = [-value for value in state["mode"]]
    text = json.dumps(state)
    load(text)
    return {**stored, "state": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_poisoned_snapshot_does_not_move_the_advice(folder: Path) -> None:
    true = expected(folder)
    path = snapshot(folder)
    path.write_text(json.dumps(poisoned(json.loads(path.read_text()))))
    assert advice(folder) == true


def test_snapshot_of_an_earlier_history_is_ignored_under_a_new_digest(folder: Path) -> None:
    """Its fingerprint is in the record, but an outcome was amended since."""
    path = snapshot(folder)
    old = json.loads(path.read_text())
    with Lab(folder / "lab.db") as lab:
        session = lab.open("P1-1")
        session.amend(2, why="typo", outcome={"metabolic_rate": 3.0, "comfort": 9.0})
        finish(session)
    new = json.loads(snapshot(folder).read_text())
    assert new["digest"] != old["digest"]
    true = expected(folder)
    path.write_text(json.dumps({**old, "digest": new["digest"]}))
    assert advice(folder) == true


def test_fitting_snapshot_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else the tests above would pass with no cache at all."""
    used = []

    def noted(text: str) -> State:
        used.append(text)
        return load(text)

    monkeypatch.setattr(sfihilo, "load", noted)
    true = advice(folder)
    assert len(used) == 1
    assert true == expected(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"digest": [], "state": 3}',
     b'{"digest": NaN, "state": NaN}'],
)  # fmt: skip
def test_damaged_snapshot_is_ignored(folder: Path, content: bytes) -> None:
    true = expected(folder)
    snapshot(folder).write_bytes(content)
    assert advice(folder) == true


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_snapshot_that_is_no_file_does_not_hang(folder: Path) -> None:
    true = expected(folder)
    path = snapshot(folder)
    path.unlink()
    os.mkfifo(path)
    assert advice(folder) == true


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_snapshots_are_for_the_owner_only(folder: Path) -> None:
    assert stat.S_IMODE((folder / "lab.db.snapshots").stat().st_mode) == 0o700
    assert stat.S_IMODE(snapshot(folder).stat().st_mode) == 0o600


FORK = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from sfihilo import State
from sfihilo.experiment import Lab
from tests.experiment.people import EXOSKELETON, LEAN, finish, good, memory_folder
reward = vars(State)["_average"]  # a cached property: it has a lock until Python 3.12
compute, computing = reward.func, threading.Event()
def slow(state):
    if threading.current_thread() is not threading.main_thread():
        computing.set()
        time.sleep(1)
    return compute(state)
reward.func = slow
with memory_folder() as folder, Lab(folder / "lab.db") as lab:
    session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
    finish(session)
    finish(session, "new", 0.1)
    trial = session.measure(session.ask(), good(session, 0.2))
    session.prepare()
    assert computing.wait(30)  # the fork comes in the middle of the preparation
    child = os.fork()
    if child == 0:
        session.choose(trial, "new")
        session.ask()
        session.leave()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert session.ask().number == trial.number + 1  # what the child asked
    assert lab.verify().ok
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_after_prepare_does_not_hang() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    command = [sys.executable, "-c", FORK]
    subprocess.run(command, env=environment, cwd=root, timeout=60, check=True)
