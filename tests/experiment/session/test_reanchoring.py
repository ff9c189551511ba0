"""After a break the anchor is walked again before anything is compared."""

from datetime import UTC, datetime

import pytest

from sfihilo.experiment import Lab, Protocol, Session
from sfihilo.experiment.session import commit as commit_module
from sfihilo.experiment.session.rounds import rounds_of
from tests.experiment.people import (
    EXOSKELETON,
    LEAN,
    finish,
    good,
)


def test_after_a_break_the_anchor_is_walked_again(session: Session) -> None:
    finish(session)
    before = finish(session, "new", 0.1)
    session.interrupt("lunch")
    assert session.record.status == "interrupted"
    anchor = session.ask()  # asking resumes
    assert [event.kind for event in session.events[-3:]] == ["interrupted", "resumed", "asked"]
    assert (anchor.source, anchor.policy, anchor.asks_choice) == ("anchor", before.policy, False)
    assert session.measure(anchor, good(session, 0.15)).status == "complete"
    with pytest.raises(ValueError, match="no answer is expected"):
        session.choose(anchor, "new")
    assert rounds_of(session.record)[-1].choice is None
    after = session.ask()
    assert (after.source, after.asks_choice, after.compare_with) == ("learner", True, anchor.number)


def test_a_break_that_nobody_recorded_is_noticed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(session)

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Tomorrow":
            return cls.fromtimestamp(datetime.now(UTC).timestamp() + 86400, UTC)

    monkeypatch.setattr(commit_module, "datetime", Tomorrow)
    assert session.ask().source == "anchor"
    assert session.events[-3].body["why"] == "nothing for 1440 min"


def test_a_walk_that_a_break_cut_becomes_the_anchor(session: Session) -> None:
    finish(session)
    cut = session.start(session.ask())
    session.interrupt()
    session.resume()
    now = session.ask()
    assert (now.number, now.asks_choice) == (cut.number, False)
    assert session.measure(now, good(session, 0.1)).status == "complete"
    assert session.ask().compare_with == cut.number


def test_an_answer_that_a_break_cut_stays_missing(session: Session) -> None:
    finish(session)
    trial = session.measure(session.ask(), good(session, 0.1))
    session.interrupt()
    session.resume()
    assert session.trials[-1].status == "complete"
    assert not session.trials[-1].answered
    assert session.ask().source == "anchor"
    assert session.trials[-1].policy == trial.policy


def test_a_failed_anchor_is_walked_once_more(session: Session) -> None:
    finish(session)
    session.interrupt()
    anchor = session.ask()
    session.measure(anchor, None)
    assert session.ask().source == "anchor"


def test_reanchoring_can_be_switched_off(lab: Lab) -> None:
    session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN, protocol=Protocol(reanchor=False))
    finish(session)
    session.interrupt()
    trial = session.ask()
    assert (trial.source, trial.asks_choice) == ("learner", True)


def test_interrupting_twice_is_refused(session: Session) -> None:
    session.interrupt()
    with pytest.raises(ValueError, match="interrupted already"):
        session.interrupt()
    session.resume()
    with pytest.raises(ValueError, match="not interrupted"):
        session.resume()
