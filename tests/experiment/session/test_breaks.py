"""Breaks that nobody recorded: walks before and after them are not compared."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo

import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space
from sfihilo.experiment.log import rows
from sfihilo.experiment.session import commit as commit_module
from sfihilo.experiment.session.rounds import used_answers
from tests.experiment.people import PLAIN, memory_folder

SPACE = Space({"x": Parameter(0, 10)}, {"o": Outcome(0, 1)})
OUTCOME = {"o": 0.5}


@pytest.fixture
def session() -> Iterator[Session]:
    """One trial was walked and measured."""
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        made = lab.create(SPACE, "P1", 1, settings=PLAIN)
        made.measure(made.start(made.suggest({"x": 5.0})), OUTCOME)
        yield made


@contextmanager
def two_hours_later() -> Iterator[None]:
    """The clock that breaks are noticed by, and that of the events written meanwhile."""

    class Later:
        fromisoformat = datetime.fromisoformat

        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.now(zone) + timedelta(hours=2)

    with pytest.MonkeyPatch.context() as patch:
        for module in (commit_module, rows):
            patch.setattr(module, "datetime", Later)
        yield


@pytest.mark.parametrize(
    "event",
    [
        lambda session: session.note("good morning"),
        lambda session: session.place({"x": 5.0}),
        lambda session: session.amend(1, why="typo", outcome={"o": 0.6}),
        lambda session: session.set_goal("best"),
    ],
)
def test_break_followed_by_another_event_is_still_noticed(
    session: Session, event: Callable[[Session], object]
) -> None:
    before = session.record.active
    event(session)
    assert session.record.active == before
    assert session.record.wall != before.wall
    with two_hours_later():
        assert not session.suggest({"x": 6.0}).asks_choice


@pytest.mark.parametrize("step", ["start", "measure", "choose"])
def test_break_within_a_trial_drops_its_comparison(session: Session, step: str) -> None:
    trial = session.suggest({"x": 6.0})
    assert trial.asks_choice
    if step == "start":
        with two_hours_later():
            trial = session.start(trial, key="s")
            assert session.start(trial, key="s") == trial  # a retry is not another break
    elif step == "measure":
        session.start(trial)
        with two_hours_later():
            trial = session.measure(trial, OUTCOME)
    else:
        session.measure(session.start(trial), OUTCOME)
        with two_hours_later(), pytest.raises(ValueError, match="there was a break"):
            session.choose(trial, "new")
    kinds = [event.kind for event in session.events]
    assert kinds.count("interrupted") == kinds.count("resumed") == 1
    assert not session.record.trial(2).asks_choice
    assert not used_answers(session.record)


def test_answer_during_a_break_is_refused(session: Session) -> None:
    trial = session.suggest({"x": 6.0})
    session.interrupt("end of the day")
    with pytest.raises(ValueError, match="interrupted: resume it before you answer"):
        session.choose(trial, "new")
    session.resume()
    assert not session.record.trial(2).asks_choice
