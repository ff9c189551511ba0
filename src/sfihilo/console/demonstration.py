"""The demo: a simulated exoskeleton, the person in it, and an operator who goes on alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING

from sfihilo.console.config import Part
from sfihilo.console.devices.simulated import SimulatedDevice, SimulatedPerson, demo_toml
from sfihilo.console.open_sessions import Wish
from sfihilo.console.refusals import Problem
from sfihilo.experiment import LogError, Plan, Record, Session, Trial
from sfihilo.experiment.session.plan_file import described, tables_of

if TYPE_CHECKING:
    from sfihilo.console.app_state import Console

Method = Callable[[Session, str], Trial]
DEVICE = "simulated"
PARTICIPANT = "DEMO"
LOOK = 0.2  # seconds between looks at the session
THINKING = 40.0  # seconds of real time in which a person answers or an operator goes on


class Demo:
    """Conducts the demo's session, except for the part that a human plays."""

    def __init__(self, console: Console, you: Part = "nobody", seed: int = 1) -> None:
        self._console, self._you = console, you
        self._person = SimulatedPerson(seed)
        self._ended = Signal()
        self._thread = Thread(target=self._go_on, name="sfihilo-demo", daemon=True)
        self._since: tuple[int, float] = (0, 0.0)
        speed = console.config.speed
        console.devices.offer(
            DEVICE, lambda: SimulatedDevice(speed=speed, person=self._person), shared=True
        )
        self.session = self._begun()

    def begin(self) -> None:
        """Attach the simulated device and begin."""
        self._console.devices.attach(self.session, DEVICE)
        self._thread.start()

    def close(self) -> None:
        """End the demo; its session stays."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _begun(self) -> str:
        """The demo's session in the file, made if there is none that is open."""
        records, _ = self._console.lab.records()
        for name, record in records.items():
            if record.participant == PARTICIPANT and not record.closed:
                return name
        plan = Plan(*described(tables_of(demo_toml(), "demo.toml"), "demo.toml"), seed=1)
        return self._console.lab.create(plan, PARTICIPANT, actor="operator demo").id

    def _go_on(self) -> None:
        while not self._ended.wait(LOOK):
            with suppress(Problem, ValueError, LogError):  # a human was faster, or stopped
                self._step()

    def _step(self) -> None:
        """Do the next thing that a simulated operator or person would do."""
        record, _ = self._console.sessions.read(self.session)
        if record.closed or record.interrupted or self._too_soon(record):
            return
        current, operates = record.current, self._you != "operator"
        if current is None and operates:
            self._act("ask", record, "operator demo", lambda s, a: s.ask(actor=a))
        elif current is None:
            return
        elif not current.started and not current.measured and operates:
            number = current.number
            self._act("start", record, "operator demo", lambda s, a: s.start(number, actor=a))
        elif self._you != "participant" and current.measured and not current.answered:
            self._answer(record, current)

    def _answer(self, record: Record, trial: Trial) -> None:
        choice, strength = self._person.answer(record)

        def method(session: Session, actor: str) -> Trial:
            return session.choose(trial.number, choice, strength, actor=actor)

        self._act("choose", record, "participant demo", method)

    def _too_soon(self, record: Record) -> bool:
        """Whether a person would still be thinking: something has just changed."""
        if self._since[0] != record.number:
            self._since = record.number, time.monotonic()
        return time.monotonic() - self._since[1] < THINKING / self._console.config.speed

    def _act(self, action: str, record: Record, actor: str, method: Method) -> None:
        wish = Wish(action, actor, expected=record.number)
        done = self._console.sessions.act(self.session, wish, lambda held: method(held, actor))
        self._console.after(self.session, action, done)
