"""What a seventh attack on sessions found: forks among threads, walks that nobody can count."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space, Trial
from sfihilo.experiment.output.tables import answers_table
from sfihilo.experiment.record.recalled import nameable
from sfihilo.experiment.session import naming
from tests.cli.calls import run
from tests.experiment.people import PLAIN

EXO = Space({"torque": Parameter(0, 60, max_step=15, start=0)}, {"o": Outcome(0, 1)})
RECALLING = replace(PLAIN, recall=3)


def walked(session: Session, torque: float) -> Trial:
    """A trial as far as the question."""
    trial = session.start(session.suggest({"torque": torque}))
    return session.measure(trial, {"o": torque / 60})


def answered(session: Session, torque: float) -> None:
    trial = walked(session, torque)
    if trial.asks_choice:
        session.choose(trial, "new")


def begun(lab: Lab, recall: bool = False) -> Session:
    """After two walks."""
    session = lab.create(EXO, "P1", 1, settings=RECALLING if recall else PLAIN)
    for torque in (10.0, 20.0):
        answered(session, torque)
    return session


def compared(session: Session) -> set[int]:
    """The trials that the next one may be compared with, of which the learner names one."""
    trial = session.start(session.ask())
    return set(nameable(session.record, trial))


# Which walks can be counted


def test_withdrawing_an_aborted_trial_does_not_make_it_a_walk(lab: Lab) -> None:
    """Whether it was walked is not known: nobody could say how many walks ago trial 2 was."""
    session = begun(lab, recall=True)
    stopped = session.start(session.suggest({"torque": 25}))
    session.abort(stopped, "the motor did not move")
    session.withdraw(stopped, "nothing was recorded")
    answered(session, 20.0)
    assert compared(session) == {4}


def test_numbers_that_were_typed_by_mistake_and_withdrawn_are_no_walk(lab: Lab) -> None:
    session = begun(lab, recall=True)
    never_applied = session.suggest({"torque": 25})
    never_applied = session.measure(never_applied, {"o": 0.4})
    session.withdraw(never_applied, "typed too early; the device was never set")
    answered(session, 20.0)
    assert compared(session) == {4}


# Pain that is told late


def test_answer_across_a_trial_that_hurt_does_not_count(lab: Lab) -> None:
    """A refused trial hurt in fact: it was the walk before, when the answer was given."""
    session = begun(lab)
    refused = session.suggest({"torque": 25})
    session.veto(refused, "wrong button")
    answered(session, 15.0)
    session.veto(refused, "it hurt, in fact", pain=True)
    *_, last = answers_table(session.record).rows
    assert (last["trial"], last["compare_with"], last["learned"]) == (4, 2, False)
    assert "the answer does not count" in session.record.trial(4).warnings[-1]
    session.undo()  # what was said about the pain stays known
    assert not answers_table(session.record).rows[-1]["learned"]


def test_pain_of_a_known_walk_leaves_the_question(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial 2 was a walk before it hurt: "trial 1, two ago" stays what it was."""
    monkeypatch.setattr(naming, "_most_informative", lambda *_: 0)  # the oldest
    session = begun(lab, recall=True)
    assert walked(session, 28.0).compare_with == 1
    session.veto(2, "it hurt", pain=True)
    assert session.record.trial(3).asks_choice
    session.choose(3, "previous")
    assert answers_table(session.record).rows[-1]["learned"]


# Vetoes and keys


def test_vetoed_setting_of_a_coarse_grid_is_not_proposed_again(lab: Lab) -> None:
    """A value beside the veto, rounded to the grid, is the vetoed one."""
    knob = Parameter(0, 10, integer=True, max_step=1, start=5)
    space = Space({"a": knob, "b": knob}, {"o": Outcome(0, 1)})
    session = lab.create(space, "P1", 1, settings=PLAIN)
    proposed = []
    for _ in range(9):  # all that one step reaches
        trial = session.ask()
        proposed.append((trial.policy["a"], trial.policy["b"]))
        session.veto(trial, "no")
    assert len(set(proposed)) == 9


SPACE = """
[policy.a]
low = 0
high = 60
max_step = 15
start = 0
[policy.b]
low = 0
high = 60
max_step = 15
start = 0
[outcomes.c]
low = 0
high = 10
[outcomes.d]
low = 0
high = 10
"""


def test_shell_command_with_a_key_can_be_repeated_although_it_leaves_something_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("space.toml").write_text(SPACE, encoding="utf-8")
    run("new", "space.toml", "-p", "P1", "--seed", "1")
    run("place", "a=10", "b=10")
    for _ in range(2):
        run("suggest", "a=12", "--key", "k1")
    run("measure", "c=1", "d=1")
    run("amend", "1", "c=2", "--why", "x", "--key", "k2")
    run("amend", "1", "d=2", "--why", "x")
    run("amend", "1", "c=2", "--why", "x", "--key", "k2")
    run("place", "a=14", "--key", "k3")
    run("suggest", "b=20")
    run("place", "a=14", "--key", "k3")
    with Lab("sfihilo.db") as lab:
        kinds = [event.kind for event in lab.log.events("P1-1")]
        assert kinds == [
            "opened", "placed", "suggested", "measured", "amended", "amended", "placed",
            "suggested",
        ]  # fmt: skip
        assert lab.record("P1-1").trial(1).outcome == {"c": 2.0, "d": 2.0}
    run("suggest", "a=13", "--key", "k1", code=2)


def test_event_that_cannot_be_read_stops_every_call(lab: Lab) -> None:
    """Not only the first: the next one must not go on from the record of before."""
    session = begun(lab)
    lab.log.append(session.id, "later", {"trial": 2})
    for _ in range(2):
        with pytest.raises(ValueError, match="unknown kind 'later'"):
            session.ask()


# Forks

WHILE_ASKING = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from sfihilo.experiment import Lab
from sfihilo.experiment.session.proposals import Proposer
from tests.experiment.people import LINE, PLAIN, memory_folder
compute, computing = Proposer._compute, threading.Event()
def slow(proposer, course):
    computing.set()
    time.sleep(1)
    return compute(proposer, course)
with memory_folder() as folder, Lab(folder / "lab.db") as lab:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    Proposer._compute = slow
    thread = threading.Thread(target=session.ask)
    thread.start()
    assert computing.wait(30)  # the fork comes while another thread holds the session
    child = os.fork()
    if child == 0:
        os._exit(session.record.trials[-1].number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    thread.join()
"""
WHILE_BUSY = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from sfihilo.experiment import Lab
from tests.experiment.people import LINE, PLAIN, memory_folder
with memory_folder() as folder, Lab(folder / "lab.db") as lab:
    session = lab.create(LINE, "P1", 1, settings=PLAIN)
    over = threading.Event()
    def busy():
        while not over.is_set():
            trial = session.measure(session.ask(), {"o": 0.5})
            if trial.asks_choice:
                session.choose(trial, "new")
    thread = threading.Thread(target=busy)
    thread.start()
    waited = []
    for _ in range(12):
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(len(session.record.trials) > 0 and 7)
        waited.append(time.monotonic() - begun)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, 7)
        time.sleep(0.05)
    over.set()
    thread.join()
    assert max(waited) < 5, waited  # of at most 10 s: nobody waited for the thread that forked
    assert lab.verify().ok
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("program", [WHILE_ASKING, WHILE_BUSY])
def test_child_that_is_forked_beside_a_busy_thread_does_not_hang(program: str) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    command = [sys.executable, "-c", program]
    subprocess.run(command, env=environment, cwd=root, timeout=60, check=True)
