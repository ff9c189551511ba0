"""`session run` in a real terminal: a whole session with the mistakes that operators make."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfihilo.experiment import Lab, Record
from tests.cli.calls import command_line, run

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

READY, WALKING, BETWEEN = r"\[Enter\] start", "Walking 0:0", r"\[Enter\] next settings"
ANSWER = r"\[n\] this one"
PATIENCE = 10  # seconds: a busy machine is no failure


class Operator:
    """A person at a terminal of 80 columns; each call waits for what it expects to see."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.effort = 3.0
        self.open()

    def open(self) -> None:
        program, *words = command_line("session", "run", *self.words)
        self.child = pexpect.spawn(
            program, words, encoding="utf-8", timeout=PATIENCE, dimensions=(50, 80),
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip

    def press(self, keys: str, then: str) -> str:
        self.child.send(keys)
        return self.see(then)

    def see(self, expected: str) -> str:
        self.child.expect(expected)
        return str(self.child.before)

    def to_outcomes(self) -> None:
        """From settings on the screen to the first question about outcomes."""
        self.press("\r", WALKING)
        self.press("\r", "effort, 2 to 8 W/kg .*: ")

    def enter(self, then: str) -> None:
        """Both outcomes; the efforts rise, so that each trial can be told from the others."""
        self.effort = round(self.effort + 0.25, 2)
        self.press(f"{self.effort}\r", "comfort, 0 to 10 .*: ")
        self.press("5\r", then)

    def trial(self, answer: str | None, start: bool = True) -> None:
        """One trial without a mistake."""
        if start:
            self.press("\r", READY)
        self.to_outcomes()
        self.enter(BETWEEN if answer is None else ANSWER)
        if answer is not None:
            self.press(answer, BETWEEN)

    def leave(self) -> int:
        self.child.send("q")
        self.see("Everything is stored")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus)


@pytest.fixture
def operator(folder: Path) -> Iterator[Operator]:
    person = Operator("space.toml", "-p", "P01", "--seed", "7")
    yield person
    person.child.close(force=True)


def recorded(folder: Path) -> tuple[Record, list[str]]:
    with Lab(folder / "sfihilo.db") as lab:
        session = lab.open("P01-1")
        return session.record, [event.kind for event in session.events]


def test_twelve_trials_with_mistakes_are_recorded_as_meant(
    operator: Operator, folder: Path
) -> None:
    operator.see(BETWEEN)
    operator.trial(None)  # 1: nothing to compare with
    operator.press("\r", READY)  # 2: wrong keys, and numbers that cannot be
    operator.press("x", "x means nothing here")
    operator.press("\x1b[A", "that key means nothing here")
    operator.to_outcomes()
    operator.press("60\r", "error: .*expected 2 to 8 W/kg")
    operator.press("abc\r", "error: effort: expected a number")
    operator.press("3,25\r", "comfort, 0 to 10 .*: ")
    operator.effort = 3.25
    operator.press("\r", ANSWER)  # comfort was not measured
    operator.press("y", "y means nothing here")
    operator.press("u", "effort, 2 to 8 W/kg .*: ")  # undo: the outcome is entered again
    operator.enter(ANSWER)
    operator.press("N", BETWEEN)
    operator.trial("p")  # 3: answered by mistake, taken back
    operator.press("u", ANSWER)
    operator.press("s", BETWEEN)
    operator.press("\r", READY)  # 4: refused before it is applied
    operator.press("v", "Why are these settings refused")
    operator.press("too strong\r", "Because of pain")
    operator.press("maybe\r", "expected y or n")
    operator.press("n\r", BETWEEN)
    operator.press("\r", READY)  # 5: Ctrl-C while walking
    operator.press("\r", WALKING)
    operator.press("\x03", "Stopped. Everything is stored")
    operator.child.expect(pexpect.EOF)
    operator.words = ()
    operator.open()
    operator.see("was started and has no outcome yet")
    operator.press("w", WALKING)
    operator.press("\r", "effort, 2 to 8 W/kg .*: ")
    operator.enter(ANSWER)
    operator.press("c", BETWEEN)
    operator.trial("n")  # 6
    operator.press("b", "How many minutes")  # short: nothing is repeated
    operator.press("5\r", "no condition is repeated")
    operator.press("\r", READY)  # 7: killed at the question
    operator.to_outcomes()
    operator.enter(ANSWER)
    operator.child.kill(signal.SIGKILL)
    operator.child.wait()
    operator.open()
    operator.see("Which was better")
    operator.see(ANSWER)
    operator.press("p", BETWEEN)
    operator.press("b", "How many minutes")  # long: the last condition comes again
    operator.press("\r", "Press Enter when the person is back")
    operator.press("\r", BETWEEN)
    operator.child.send("\r")  # 8
    operator.see("the last condition again")
    operator.see(READY)
    operator.trial(None, start=False)
    for answer in "nps":  # 9, 10, 11
        operator.trial(answer)
    operator.press("\r", READY)  # 12: ended early
    operator.press("\r", WALKING)
    operator.press("a", "Why does this trial end early")
    operator.press("stumbled\r", "Because of pain")
    operator.press("n\r", BETWEEN)
    operator.press("d", "x, 0 to 10 Nm .Enter: .*: ")  # the device was set by hand
    operator.press("4,5\r", "y, 0 to 10 .Enter: .*: ")
    operator.press("\r", "The place of the device is recorded")
    operator.trial(None)  # 13: the walk before it was not felt to the end, so nothing is asked
    operator.trial("n")  # 14
    operator.press("r", "Probability that this person prefers it to")
    operator.see("95 % intervals")
    operator.press("?", "what would be recommended now")
    assert operator.leave() == 0

    record, kinds = recorded(folder)
    rows = [
        (trial.status, (trial.outcome or {}).get("effort"), trial.choice) for trial in record.trials
    ]
    assert rows == [
        ("complete", 3.25, None),
        ("complete", 3.5, "new"),
        ("complete", 3.75, "same"),
        ("vetoed", None, None),
        ("complete", 4.0, None),
        ("complete", 4.25, "new"),
        ("complete", 4.5, "previous"),
        ("complete", 4.75, None),
        ("complete", 5.0, "new"),
        ("complete", 5.25, "previous"),
        ("complete", 5.5, "same"),
        ("aborted", None, None),
        ("complete", 5.75, None),
        ("complete", 6.0, "new"),
    ]
    assert record.trials[4].answered
    assert record.trials[7].source == "anchor"
    assert record.trials[1].outcome == {"effort": 3.5, "comfort": 5.0}
    assert kinds.count("vetoed") == kinds.count("interrupted") == kinds.count("aborted") == 1
    assert "intact" in run("verify")


def test_keys_pressed_while_computing_do_not_start_the_device(operator: Operator) -> None:
    operator.see(BETWEEN)
    operator.child.send("\r\r\r")  # one to ask, two too many
    operator.see(READY)
    with pytest.raises(pexpect.TIMEOUT):
        operator.child.expect(WALKING, timeout=2)


def test_timer_ends_the_walk_by_itself(folder: Path) -> None:
    operator = Operator("space.toml", "-p", "P01", "--seed", "7", "--seconds", "2")
    operator.see(BETWEEN)
    operator.press("\r", READY)
    operator.press("\r", "Walking 0:01 of 0:02")
    operator.see("Walked 0:02")
    operator.see("effort, 2 to 8 W/kg .*: ")
    assert operator.child.terminate()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_closed_terminal_leaves_a_record_that_goes_on(
    operator: Operator, folder: Path, number: int
) -> None:
    operator.see(BETWEEN)
    operator.press("\r", READY)
    operator.press("\r", WALKING)
    operator.child.kill(number)
    operator.child.expect(pexpect.EOF)
    operator.child.close()
    assert operator.child.exitstatus == 128 + number
    record, _ = recorded(folder)
    assert record.trials[0].status == "started"


def test_settings_stand_large_with_units_and_change(operator: Operator) -> None:
    operator.see(BETWEEN)
    operator.trial(None)
    text = operator.press("\r", READY)
    assert re.search(r"x +[|_ .]+ Nm +\([+-][\d.]+ from trial 1\)", text)
    assert max(len(line) for line in text.splitlines()) <= 80


def test_long_messages_are_broken_between_words(operator: Operator) -> None:
    operator.see(BETWEEN)
    operator.press("\r", READY)
    operator.to_outcomes()
    shown = operator.press("450\r", "effort, 2 to 8 W/kg .*: ")
    error = shown[shown.index("error:") :].split("\r\n")
    assert max(map(len, error)) <= 80
    assert "not per kilogram? 450 / 70 = 6.429 would fit" in " ".join(error)


def test_session_is_driven_by_a_pipe_and_resumed(folder: Path) -> None:
    script = ["", "", "", "4", "6", "", "", "", "5", "none", "n", "q"]
    assert "Left. Everything is stored." in piped(script, "space.toml", "-p", "P01", "--seed", "7")
    shown = piped(["", "", "", "4.5"], "space.toml", "-p", "P01")  # the input ends in the middle
    assert "Goes on with P01-1" in shown
    record, _ = recorded(folder)
    assert [(trial.outcome, trial.choice) for trial in record.trials] == [
        ({"effort": 4.0, "comfort": 6.0}, None),
        ({"effort": 5.0, "comfort": None}, "new"),
        (None, None),
    ]


def piped(lines: list[str], *words: str) -> str:
    done = subprocess.run(
        command_line("session", "run", *words),
        input="\n".join([*lines, ""]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_run_refuses_another_space_for_an_open_session(folder: Path) -> None:
    piped(["q"], "space.toml", "-p", "P01")
    text = (folder / "space.toml").read_text()
    (folder / "other.toml").write_text(text.replace("high = 8", "high = 9"))
    assert "open with another space" in run("run", "other.toml", "-p", "P01", code=2)
    assert "--participant" in run("run", "space.toml", code=2)


def test_outcome_that_was_typed_before_leaving_is_not_called_stored(folder: Path) -> None:
    operator = Operator("space.toml", "-p", "P01", "--seed", "7")
    operator.see(BETWEEN)
    operator.press("\r", READY)
    operator.to_outcomes()
    operator.press("4.1\r", "comfort, 0 to 10 .*: ")
    operator.press("q\r", "Not stored, since some were not entered: effort=4.1")
    operator.see("Left. Everything else is stored")
    operator.child.expect(pexpect.EOF)
    assert not recorded(folder)[0].trials[0].measured


@pytest.mark.parametrize("seconds", ["nan", "inf"])
def test_walk_has_a_finite_length(folder: Path, seconds: str) -> None:
    said = run("run", "space.toml", "-p", "P01", "--seconds", seconds, code=2)
    assert "--seconds" in said
    assert not (folder / "sfihilo.db").exists()


def test_run_refuses_the_session_of_another_participant(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable may still name the session of the person before."""
    for code in ("P01", "P02"):
        run("new", "space.toml", "-p", code)
    monkeypatch.setenv("SFIHILO_SESSION", "P01-1")
    said = run("run", "-p", "P02", code=2)
    assert "expected P01, whose session P01-1 was named" in " ".join(said.split())


def test_variable_of_the_terminal_does_not_name_a_new_session(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be left from another person and another file: P02 must not get a session P01-1."""
    monkeypatch.setenv("SFIHILO_SESSION", "P01-1")
    said = " ".join(run("run", "space.toml", "-p", "P02", code=2).split())
    assert "SFIHILO_SESSION is P01-1, which is no open session of P02" in said
    assert not (folder / "sfihilo.db").exists()


def test_variable_with_the_participant_goes_on_with_their_session(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFIHILO_SESSION", "P02")
    for said in ("Session P02-1 begun", "Goes on with P02-1"):
        operator = Operator("space.toml", "-p", "P02")
        operator.see(said)
        operator.see(BETWEEN)
        operator.leave()
