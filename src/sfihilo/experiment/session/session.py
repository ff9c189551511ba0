"""A session with a person: ask, measure, choose, for hours or over days.

Every method reads the newest record, decides, writes one event, and only then returns; what it
returned is on the disk. With a `key`, repeating a call does nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfihilo.experiment.log.event import Event
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.output.advice import Advice
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Source, Trial
from sfihilo.experiment.session import decide, loop
from sfihilo.experiment.session.commit import SessionLog
from sfihilo.experiment.session.decide import UNCHANGED as UNCHANGED
from sfihilo.experiment.session.naming import named
from sfihilo.experiment.session.proposals import Proposer
from sfihilo.experiment.session.reading import Reading
from sfihilo.experiment.session.requirements import Draft, require_to_do, trial_number
from sfihilo.experiment.session.snapshots import Snapshots
from sfihilo.history import Choice

if TYPE_CHECKING:
    from sfihilo import State
    from sfihilo.experiment.output.tables import Table
    from sfihilo.settings import Goal

Key = str | None  # identifies a request: repeating it does nothing twice
Actor = str | None  # who did it


class Session:
    """One person's session in a lab's file; make it with `Lab.create` or `Lab.open`.

    A trial goes ask -> start -> measure -> choose; outcome and answer may come in either order.
    Every call is on the disk when it returns. Threads may share a session: a lock is held from
    reading the record until the event is written.

    Example:
        >>> import tempfile
        >>> from sfihilo.experiment import Lab, Outcome, Parameter, Space
        >>> space = Space(
        ...     policy={"torque": Parameter(0, 60, unit="Nm", max_step=15, start=0)},
        ...     outcomes={"comfort": Outcome(0, 10)},
        ... )
        >>> with tempfile.TemporaryDirectory() as folder, Lab(f"{folder}/study.db") as lab:
        ...     session = lab.create(space, participant="P07", seed=1)
        ...     for comfort in (6, 7):
        ...         trial = session.ask()
        ...         trial = session.measure(trial, {"comfort": comfort})
        ...         if trial.asks_choice:
        ...             trial = session.choose(trial, "new")
        ...     print(trial.status, session.recommend().policy["torque"] <= 60)
        complete True
    """

    def __init__(
        self,
        log: Log,
        session: str,
        snapshots: Snapshots,
        actor: Actor = None,
        functions: Iterable[Callable[..., bool]] = (),
    ) -> None:
        self.id = session
        self._log = SessionLog(log, session, actor, functions)
        self._lock = self._log.lock
        self._proposer = Proposer(session, snapshots)
        self._named = partial(named, state_of=self._proposer.state)

    def __repr__(self) -> str:
        record = self._log.record
        trials = counted(len(record.trials), "trial")
        return f"<Session {self.id}: participant {record.participant}, {record.status}, {trials}>"

    @property
    def record(self) -> Record:
        """The session as its log tells it now."""
        with self._lock:
            return self._log.refresh()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, the undone ones too."""
        return self.record.trials

    @property
    def events(self) -> tuple[Event, ...]:
        """The whole log of this session."""
        return self.reading()[1]

    @property
    def state(self) -> State:
        """The learner as it is now."""
        return self.learned()[1]

    def reading(self) -> tuple[Record, tuple[Event, ...]]:
        """The record and the events that it is made of, read at one moment."""
        with self._lock:
            return self._log.refresh(), tuple(self._log.events)

    def learned(self) -> tuple[Record, State]:
        """The record and the learner as it is after it, read at one moment."""
        with self._lock:
            record = self._log.refresh()
            return record, self._proposer.state(record)

    def read(self) -> Reading:
        """The session at one moment: its record, its events and the learner after them."""
        with self._lock:
            record, state = self.learned()
            return Reading(record, tuple(self._log.events), state)

    def expecting(
        self, last: int | str | None = None, key: Key = None
    ) -> AbstractContextManager[Record]:
        """Hold the session; what is done in the block is written only after this last event.

        `last` is the number or the hash of the last event that the caller has seen. OvertakenError
        is raised if there is a later one, unless `key` identifies an event: a retry is answered.
        The block gets the record, for a retry that of its time.
        """
        return self._log.expecting(last, key)

    def ask(self, *, key: Key = None, actor: Actor = None) -> Trial:
        """The trial to do now: the one that is not over, or a new one, stored before shown.

        Ends a break; the last condition is then walked again first. Raises UnsafePolicyError if the
        open trial can no longer be reached in one step from everywhere the device may be.
        """
        with self._lock:
            stored = self._log.stored(key, decide.is_asked)
            if stored is not None:
                return self._log.made_before(stored, actor)
            record = self._log.after_break(actor)
            current = record.current
            if current is not None:
                require_to_do(record, current)
                return current
            source: Source = "anchor"
            made = self._proposer.anchor_again(record)
            if made is None:
                source, made = "learner", self._proposer.propose(record)
            decision = partial(decide.proposed, made=made, source=source)
            return self._log.trial_of(self._log.write(decision, key, actor))

    def suggest(
        self, policy: Mapping[str, float], *, why: str = "", key: Key = None, actor: Actor = None
    ) -> Trial:
        """A trial with the operator's own policy; the learner learns from it as from any other."""

        def same(stored: Event) -> bool:
            wanted = self._log.record.space.complete(policy)
            given = stored.body.get("policy"), stored.body.get("why")
            return stored.kind == "suggested" and given == (wanted, why)

        def decision(record: Record) -> Draft:
            wanted = decide.suggestion(record, policy)
            made = self._proposer.suggested(record, wanted)
            return decide.proposed(record, made, "operator", why=why)

        return self._log.new_trial(decision, same, key, actor)

    def repeat(self, trial: Trial | int, *, key: Key = None, actor: Actor = None) -> Trial:
        """A trial with the policy of an earlier one, to see how consistent the person is."""
        number = trial_number(trial, self.id)

        def decision(record: Record) -> Draft:
            earlier = record.trial(number)
            made = self._proposer.repeated(record, earlier)
            return decide.proposed(record, made, "repeat", repeats=earlier.number)

        return self._log.new_trial(decision, lambda e: e.body.get("repeats") == number, key, actor)

    def start(self, trial: Trial | int, *, key: Key = None, actor: Actor = None) -> Trial:
        """Note that the policy is being applied: from now on the device may be there."""
        decision = partial(decide.started, number=trial_number(trial, self.id))
        return self._log.start_trial(decision, key, actor)

    def measure(
        self,
        trial: Trial | int,
        outcome: Mapping[str, float | None] | None,
        *,
        key: Key = None,
        actor: Actor = None,
    ) -> Trial:
        """The measured outcome in physical units; None where it could not be measured.

        What is not plausible is recorded as refused and raises BadMeasurementError. The trial's
        `warnings` say when its comparison cannot be used. Where the person recalls several trials,
        `compare_with` of the returned trial is the one to compare with now.
        """
        decision = partial(decide.measured, number=trial_number(trial, self.id), outcome=outcome)
        return self._log.continue_trial(decision, key, actor, self._named)

    def choose(
        self,
        trial: Trial | int,
        choice: Choice | None,
        strength: int | None = None,
        *,
        key: Key = None,
        actor: Actor = None,
    ) -> Trial:
        """The person's answer: "new", "previous", "same", or None for "cannot say".

        "previous" is the trial `compare_with`: the walk felt last, or the one named by `measure`.
        Only where it was asked for (`asks_choice`); if `trial` names another one than the record
        does by now (undo in another process), the answer is refused. In a session with graded
        answers `strength` says how much better: 1 (slightly), 2 (clearly) or 3 (much) of seven
        answers, 1 (better) or 2 (much better) of five.
        """
        decision = partial(
            decide.chosen,
            number=trial_number(trial, self.id),
            choice=choice,
            strength=strength,
            about=trial.compare_with if isinstance(trial, Trial) else None,
        )
        return self._log.continue_trial(decision, key, actor)

    def abort(
        self,
        trial: Trial | int,
        why: str,
        *,
        pain: bool = False,
        key: Key = None,
        actor: Actor = None,
    ) -> Trial:
        """End a trial early; what was not measured or answered stays missing.

        With `pain`, its neighbourhood is avoided until `lift`.
        """
        decision = partial(decide.aborted, number=trial_number(trial, self.id), why=why, pain=pain)
        return self._log.change_trial(decision, key, actor)

    def veto(
        self,
        trial: Trial | int,
        why: str,
        *,
        pain: bool = False,
        key: Key = None,
        actor: Actor = None,
    ) -> Trial:
        """Refuse a policy before it is applied; its neighbourhood is avoided for a while.

        With `pain` it is avoided, in `ask`, `suggest`, `repeat` and `recommend`, until `lift`; pain
        may also be told of a trial that is over, which keeps its data.
        """
        decision = partial(decide.vetoed, number=trial_number(trial, self.id), why=why, pain=pain)
        return self._log.change_trial(decision, key, actor)

    def lift(self, trial: Trial | int, why: str, *, key: Key = None, actor: Actor = None) -> Trial:
        """End a veto because of pain: policies near this trial may be proposed again."""
        decision = partial(decide.lifted, number=trial_number(trial, self.id), why=why)
        return self._log.change_trial(decision, key, actor)

    def amend(
        self,
        trial: Trial | int,
        *,
        why: str,
        outcome: Any = UNCHANGED,
        choice: Any = UNCHANGED,
        strength: int | None = None,
        key: Key = None,
        actor: Actor = None,
    ) -> Trial:
        """Correct an outcome or an answer; the record keeps both, the learner uses the new one.

        A corrected answer has the strength that is given with it, or none.
        """
        decision = partial(
            decide.amended,
            number=trial_number(trial, self.id),
            why=why,
            outcome=outcome,
            choice=choice,
            strength=strength,
        )
        return self._log.change_trial(decision, key, actor, self._named)

    def withdraw(
        self, trial: Trial | int, why: str, *, key: Key = None, actor: Actor = None
    ) -> Trial:
        """Take the data of a trial out (a loose sensor); the trial itself stays in the record."""
        decision = partial(decide.withdrawn, number=trial_number(trial, self.id), why=why)
        return self._log.change_trial(decision, key, actor)

    def undo(self, why: str = "", *, key: Key = None, actor: Actor = None) -> Event:
        """Take the last action back; returns the event that no longer counts.

        Undo changes the record, not the device: everywhere it may have been, it may still be. What
        caused pain is avoided until `lift`, also if the event that said so is undone.
        """
        return self._log.correct("withdrawn", why, key, actor)

    def redo(self, why: str = "", *, key: Key = None, actor: Actor = None) -> Event:
        """Restore the action that was undone last; returns the event that counts again."""
        return self._log.correct("redone", why, key, actor)

    def place(
        self, policy: Mapping[str, float], *, why: str = "", key: Key = None, actor: Actor = None
    ) -> Record:
        """State where the device is now, after it was set by hand or when the record is unsure.

        This removes all other places where the device may be.
        """
        return self._log.change_session(partial(decide.placed, policy=policy, why=why), key, actor)

    def interrupt(self, why: str = "", *, key: Key = None, actor: Actor = None) -> Record:
        """The person stops, for minutes or days."""
        return self._log.change_session(partial(decide.interrupted, why=why), key, actor)

    def resume(self, *, key: Key = None, actor: Actor = None) -> Record:
        """The person is back; with `reanchor`, the last condition is walked again first."""
        return self._log.change_session(decide.resumed, key, actor)

    def note(self, text: str, *, key: Key = None, actor: Actor = None) -> Record:
        """Write something down."""
        return self._log.change_session(partial(decide.noted, text=text), key, actor)

    def set_goal(
        self, goal: Goal, *, why: str = "", key: Key = None, actor: Actor = None
    ) -> Record:
        """What the queries are for from the next trial on: "understand" or "best".

        Nothing that was learned is lost. A rule named in the settings gives way to the goal's own.
        """
        return self._log.change_session(partial(decide.goal_set, goal=goal, why=why), key, actor)

    def close(self, why: str = "", *, key: Key = None, actor: Actor = None) -> Record:
        """End the session for good: it can be read, not continued."""
        return self._log.change_session(partial(decide.closed, why=why), key, actor)

    def recommend(
        self,
        feasible: Mapping[str, Any] | None = None,
        compare_with: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Advice:
        """The best policy so far, in physical units, and how sure that is.

        Args:
            feasible: ranges by name, narrower than the space: `{"torque": (0, 40)}`.
            compare_with: named policies, such as `{"off": {"torque": 0}}`. `preferred` then has the
                probability that this person prefers the advice to each of them. What a policy does
                not name is as in the last trial.

        Raises:
            NothingLearnedError: no comparison was learned from yet.
        """
        return self.read().recommend(feasible, compare_with)

    def prepare(self) -> None:
        """Compute the next query per possible answer in the background, once it is measured."""
        with self._lock:
            records = self._log.refresh().after_each_answer()
            if records:
                self._proposer.prepare(records)

    @property
    def prepared(self) -> bool:
        """Whether nothing is being prepared any more."""
        return self._proposer.prepared()

    def run(
        self, *, apply: loop.Apply, measure: loop.Measure, choose: loop.Choose, trials: int
    ) -> Record:
        """Do `trials` trials with the lab's own functions; see `session.loop`."""
        return loop.run(self, apply, measure, choose, trials)

    def report(
        self, path: str | Path, compare_with: Mapping[str, Mapping[str, float]] | None = None
    ) -> Path:
        """Write one HTML page about the person: what to set, why, how sure, every trial."""
        from sfihilo.experiment.output.report import write_report

        return write_report(self, Path(path), compare_with)

    def trials_table(self) -> Table:
        """One row per trial: what was set, when, who proposed it, how it ended."""
        from sfihilo.experiment.output.tables import trials_table

        return trials_table(*self.reading())

    def leave(self) -> None:
        """Stop what runs in the background; the session itself stays as it is."""
        self._proposer.close()
