"""The dialogue with the operator: show what the session waits for, read a key, do it.

A key is about the record on the screen: if somebody else continued the session since, nothing is
done and the screen is drawn again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfihilo.cli.interactive.screens import (
    ANSWERS,
    END,
    ENTER,
    KEYS,
    Action,
    Stage,
    Walk,
    action_of,
    clock,
    event_words,
    help_lines,
    hint,
    other_trial,
    outcome_prompt,
    place_prompt,
    read_outcome,
    screen,
    stage_of,
    typed,
    what_counts,
)
from sfihilo.cli.interactive.terminal import Terminal
from sfihilo.cli.output import Output
from sfihilo.cli.session.operator import avoided, is_short
from sfihilo.cli.session.steps import require_applicable
from sfihilo.cli.session.values import parse_number
from sfihilo.cli.session.views import advice_tables
from sfihilo.experiment.log.errors import BusyError, DamagedError, LogError
from sfihilo.experiment.output.digits import policy_words
from sfihilo.experiment.record.kept import certain_settings
from sfihilo.experiment.record.places import longest_break
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.session.commit import now
from sfihilo.experiment.session.decide import pause_is_break
from sfihilo.experiment.session.session import Session

if TYPE_CHECKING:
    from sfihilo.settings import Goal

LINES_PER_LARGE_NUMBER, OTHER_LINES = 4, 8
LOOK_AGAIN = 10.0  # seconds after which a screen that nobody touches is checked for a break
NUMBER_KEYS = frozenset("0123456789.,+-")
ENTER_BEHIND = 3.0  # seconds


@dataclass
class Dialogue:
    """Shows what the session waits for, reads a key, does it, until the operator leaves."""

    session: Session
    terminal: Terminal
    seconds: float
    walk: Walk | None = None
    shown: Record | None = None  # what the operator sees, and therefore means
    lost: bool = False  # whether outcomes that were typed last are not stored
    number_at: float = -math.inf  # when a number was typed where none is expected

    def run(self) -> None:
        """The whole loop."""
        with self._errors_shown():
            self._find_open_trial()
        drawn: object = None
        while True:
            try:
                record, self.lost = self.session.record, False
            except BusyError as error:  # it was waited for; the operator can wait longer, or leave
                self.terminal.show(f"error: {error}")
                continue
            self.shown = record
            stage = self._stage()
            if (stage, record.number) != drawn:
                self._show(stage)
                drawn = (stage, record.number)
            with self._errors_shown():
                action = self._action(stage)
                if action == "leave":
                    return
                if action is not None and stage == self._stage():
                    self._act(action, stage)

    def _stage(self) -> Stage:
        """What the session on the screen waits for; a long pause in an open trial is a break."""
        record = self._meant()
        stage = stage_of(record, self.walk)
        at_rest = stage in ("ready", "unfinished", "answering")
        return "break" if at_rest and pause_is_break(record, now()) else stage

    @contextmanager
    def _errors_shown(self) -> Iterator[None]:
        """What is refused is said, and the loop goes on; a damaged record ends it."""
        try:
            yield
        except DamagedError:
            raise
        except (ValueError, LogError) as error:
            self.terminal.show(f"error: {error}")

    def _find_open_trial(self) -> None:
        """Notice a long break in an open trial, and whether it may still be applied."""
        record = self.session.record
        if record.current is not None and not record.interrupted and not record.closed:
            self.session.ask()

    def _show(self, stage: Stage) -> None:
        record = self._meant()
        needed = LINES_PER_LARGE_NUMBER * len(record.space.free) + OTHER_LINES
        lines = screen(record, stage, large=self.terminal.has_lines(needed))
        if lines:
            self.terminal.show("")
            self.terminal.heading(lines[0])
            self.terminal.show(*lines[1:])
        self.terminal.show(*hint(stage, record.grades, other_trial(record)))
        self.terminal.discard()

    def _action(self, stage: Stage) -> Action | None:
        """What the operator wants; at the outcomes, the values themselves are read and stored."""
        if stage == "measuring":
            return self._measure()
        if stage == "walking":
            return self._walked()
        while stage == self._stage():
            key = self.terminal.key(LOOK_AGAIN)
            if key is not None:
                return self._meaning(stage, key, self._meant().grades)
        return None

    def _meaning(self, stage: Stage, key: str, grades: int = 2) -> Action:
        """What a key means; the Enter behind a number typed too late must not act on a walk."""
        if key == ENTER and time.monotonic() - self.number_at < ENTER_BEHIND:
            self.number_at = -math.inf
            raise ValueError("Enter behind a number is not taken: press it again if it is meant")
        try:
            return action_of(stage, key, grades)
        except ValueError:
            if key in NUMBER_KEYS:
                self.number_at = time.monotonic()
            raise

    def _walked(self) -> Action:
        """Count the walk until its time is over or a key is pressed."""
        walk = self.walk
        assert walk is not None
        while True:
            self._require_unchanged()
            gone = time.monotonic() - walk.began
            left = self.seconds - gone if self.seconds else 1.0
            if left <= 0:
                self.terminal.status(f"Walked {clock(self.seconds)}.")
                self.terminal.bell()
                return "finish"
            total = f" of {clock(self.seconds)}" if self.seconds else ""
            self.terminal.status(f"Walking {clock(gone)}{total} ")
            key = self.terminal.key(min(left, 1.0))
            if key is not None:
                self.terminal.show("")
                return self._meaning("walking", key)

    def _measure(self) -> Action | None:
        """Ask for each outcome and store them; a typed key of this stage is an action instead."""
        space = self.session.record.space
        values: dict[str, float | None] = {}
        try:
            for name, outcome in space.outcomes.items():
                while name not in values:
                    text = self.terminal.line(outcome_prompt(name, outcome))
                    if text.strip().lower() in KEYS["measuring"] or text == END:
                        self._say_not_stored(values)
                        return action_of("measuring", text if text == END else text.strip())
                    try:
                        values[name] = read_outcome(space, name, text)
                    except ValueError as error:
                        self.terminal.show(f"error: {error}")
        except KeyboardInterrupt:
            self.terminal.show("")
            self._say_not_stored(values)
            raise
        try:
            self._require_unchanged()
            measured = self.session.measure(self._trial(), values)
        except (ValueError, LogError):
            self.terminal.show(f"Not stored: {typed(values)}")
            raise
        self.terminal.show(*(f"warning: {warning}" for warning in measured.warnings))
        self.session.prepare()  # computes the next settings while the person thinks
        return None

    def _say_not_stored(self, values: dict[str, float | None]) -> None:
        """Outcomes are stored together: those typed before another key are not."""
        self.lost = bool(values)
        if values:
            self.terminal.show(f"Not stored, since some were not entered: {typed(values)}")

    def _act(self, action: Action, stage: Stage) -> None:
        if action not in ("help", "advice"):
            self._require_unchanged()
        if action in ANSWERS:
            choice, strength = ANSWERS[action]
            self.session.choose(self._trial(), choice, strength)
            return
        if action == "help":
            record = self._meant()
            self.terminal.show(*help_lines(stage, record.grades, other_trial(record)))
            return
        steps: dict[Action, Callable[[], Any]] = {
            "ask": self._ask,
            "start": self._start,
            "walk": self._walk_again,
            "finish": self._finish,
            "undo": self._undo,
            "veto": self._veto,
            "abort": self._abort,
            "pain": self._pain,
            "place": self._place,
            "break": self._break,
            "resume": self._resume,
            "advice": self._advice,
            "goal": self._goal,
        }
        steps[action]()

    def _meant(self) -> Record:
        """The record on the screen: a key is about it, not about what came since."""
        return self.shown or self.session.record

    def _trial(self) -> Trial:
        trial = self._meant().current
        if trial is None:
            raise ValueError("this trial is over: somebody else continued the session")
        return trial

    def _require_unchanged(self) -> None:
        """Raise if another terminal or program did something since the screen was drawn."""
        meant = self._meant()
        if what_counts(self.session.record) == what_counts(meant):
            return
        if self.walk is not None:
            self.terminal.show("")
            self.walk = None  # how the walk went on is asked anew
        new = [event for event in self.session.events if event.number > meant.number]
        words = ", ".join(event_words(event) for event in new)
        raise ValueError(f"changed elsewhere: {words}. Nothing was done here; look again")

    def _ask(self) -> None:
        with Output().progress("Computing the next settings"):
            self.session.ask()

    def _start(self) -> None:
        require_applicable(self._meant(), self._trial())
        trial = self.session.start(self._trial())
        self.walk = Walk(trial.number, time.monotonic())

    def _walk_again(self) -> None:
        trial = self._trial()
        require_applicable(self._meant(), trial)
        if self._meant().left_open == trial.number:  # the walk of before the break is forgotten
            self.session.start(trial)
        else:
            self.session.note(f"trial {trial.number}: walked again from the beginning")
        self.walk = Walk(trial.number, time.monotonic())

    def _finish(self) -> None:
        walk = self.walk or Walk(self._trial().number, time.monotonic())
        self.walk = replace(walk, trial=self._trial().number, over=True)

    def _undo(self) -> None:
        event = self.session.undo()
        self.terminal.show(f"Undone: {event.kind} of trial {event.body.get('trial')}.")
        if event.kind == "started":
            self.walk = None

    def _veto(self) -> None:
        trial = self._trial()
        why = self._text("Why are these settings refused? ")
        pain = self._yes("Because of pain? (y/n) ")
        self._say_avoided(self.session.veto(trial, why, pain=pain))

    def _abort(self) -> None:
        trial = self._trial()
        why = self._text("Why does this trial end early? ")
        pain = self._yes("Because of pain? (y/n) ")
        self._say_avoided(self.session.abort(trial, why, pain=pain))

    def _pain(self) -> None:
        """Pain that is told when the trial is over."""
        trial = self._hurt()
        if trial is None:
            self.terminal.show("Nothing is recorded.")
            return
        self._say_avoided(self.session.veto(trial, self._text("Where, and how much? "), pain=True))

    def _say_avoided(self, trial: Trial) -> None:
        self.terminal.show(*avoided(self.session.record, trial))

    def _hurt(self) -> Trial | None:
        """The last walk, if the operator says that it hurt; before it any that was undone."""
        record = self._meant()
        walked = [trial for trial in reversed(record.trials) if trial.may_have_been_walked]
        if not walked:
            raise ValueError("there is no walk yet")
        for trial in walked:
            settings = policy_words(record.space, trial.policy)
            if self._yes(f"Did trial {trial.number} ({settings}) cause pain? (y/n) "):
                return trial
            if trial.ending != "undone":
                return None
        return None

    def _place(self) -> None:
        record, begun = self.session.record, now()
        certain = certain_settings(record)
        policy = {}
        for name in record.space.free:
            text = self._text(place_prompt(record, name))
            kept = not text and name in certain
            policy[name] = certain[name] if kept else parse_number(text, name)
        self._require_unchanged()
        if now().is_after_break(begun, longest_break(record.protocol.break_minutes)):
            raise ValueError("place: begun a long time ago, so nothing was recorded; state it anew")
        self.session.place(policy)
        self.terminal.show("The place of the device is recorded.")

    def _break(self) -> None:
        record = self.session.record
        text = self._text("How many minutes? (Enter: not known) ")
        minutes = parse_number(text, "minutes") if text.strip() else None
        if minutes is not None and not minutes >= 0:
            raise ValueError(f"minutes: expected 0 or more, got {text.strip()}")
        if is_short(record, minutes):
            self.session.note(f"short break of {text.strip()} minutes")
            self.terminal.show("The short break is noted; no condition is repeated after it.")
            return
        self.session.interrupt()
        self.walk = None

    def _resume(self) -> None:
        if self._meant().interrupted:
            self.session.resume()
        else:
            self._find_open_trial()

    def _goal(self) -> None:
        """The other one of the two goals."""
        wanted: Goal = "understand" if self._meant().goal == "best" else "best"
        self.session.set_goal(wanted)
        self.terminal.show(f"The goal is now: {wanted}.")

    def _advice(self) -> None:
        with Output().progress("Computing the advice"):
            advice = self.session.recommend()
        advice_tables(Output(), self.session.record, advice)

    def _text(self, prompt: str) -> str:
        """A line of text; raises where the operator ends the input instead."""
        text = self.terminal.line(prompt)
        if text == END:
            raise ValueError("nothing was entered, so nothing was done")
        return text.strip()

    def _yes(self, prompt: str) -> bool:
        while True:
            answer = self._text(prompt).lower()
            if answer[:1] in ("y", "n"):
                return answer.startswith("y")
            self.terminal.show("error: expected y or n")
