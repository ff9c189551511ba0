"""The goal of a session: set between trials, replayed, and without effect on what is learned."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfihilo
from sfihilo.experiment import Lab, Plan, Session
from tests.experiment.people import LEAN, Person, unit_space

SPACE = unit_space(2, 2)
UNDERSTAND = replace(LEAN, rule=None)


def begun(
    lab: Lab,
    settings: sfihilo.Settings = UNDERSTAND,
    trials: int = 4,
    person: Person | None = None,
) -> Session:
    session = lab.create(SPACE, "P1", 1, settings=settings)
    (person or Person(SPACE, 3)).walk(session, trials)
    return session


def test_goal_of_the_settings_is_that_of_the_session_and_its_trials(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab, replace(UNDERSTAND, goal="best"), 2)
        assert session.record.goal == "best"
        assert session.record.goal_set is None
        assert [trial.goal for trial in session.trials] == ["best", "best"]
        assert session.state.settings.rule_name == "best"


def test_goal_set_between_trials_changes_the_next_query_only(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab)
        before = session.state
        record = session.set_goal("best", why="enough is understood")
        assert (record.goal, session.events[-1].kind) == ("best", "goal")
        assert session.events[-1].body == {"goal": "best", "why": "enough is understood"}
        after = session.state
        assert after.settings.rule_name == "best"
        assert np.array_equal(after.inverse.centre, before.inverse.centre)
        trial = session.ask()
        assert trial.unit == tuple(sfihilo.ask(sfihilo.with_goal(before, "best")).policy.tolist())
        assert trial.unit != tuple(sfihilo.ask(before).policy.tolist())
        assert [trial.goal for trial in session.trials] == ["understand"] * 4 + ["best"]


def test_goal_set_while_a_trial_is_open_keeps_that_trial(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab)
        trial = session.ask()
        session.set_goal("best")
        assert session.ask() == trial
        assert trial.goal == "understand"


def test_states_told_under_either_goal_have_learned_the_same(folder: Path) -> None:
    """The learner told directly, with the goal changed in between, against the session's state."""
    with Lab(folder / "lab.db") as lab:
        person = Person(SPACE, 3)
        session = begun(lab, trials=3, person=person)
        session.set_goal("best")
        person.walk(session, 3)
        state = sfihilo.begin(replace(UNDERSTAND, policy_dim=2, outcome_dim=2), 1)
        for trial in session.trials:
            if trial.number == 4:
                state = sfihilo.with_goal(state, "best")
            query = sfihilo.Query(state.round, np.array(trial.unit), state.history.anchor)
            outcome = SPACE.unit_values(trial.whole_outcome or {})
            state = sfihilo.tell(state, query, sfihilo.Response(np.array(outcome), trial.choice))
        assert sfihilo.save(session.state) == sfihilo.save(state)


def test_named_rule_gives_way_to_a_goal_that_is_set(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab, LEAN, 2)
        assert session.state.settings.rule_name == "random"
        session.set_goal("understand")
        assert session.state.settings.rule_name == "global_pairs"


@pytest.mark.parametrize("cached", [True, False])
def test_session_reopened_after_a_goal_was_set_asks_the_same(folder: Path, cached: bool) -> None:
    with Lab(folder / "lab.db") as lab:
        person = Person(SPACE, 3)
        session = begun(lab, person=person)
        session.set_goal("best")
        person.walk(session, 6)
        asked, text = session.ask(), sfihilo.save(session.state)
        session.undo()  # the query is asked again below, not only read
    snapshots = list((folder / "lab.db.snapshots").iterdir())
    assert len(snapshots) == 1
    if not cached:
        snapshots[0].unlink()
    with Lab(folder / "lab.db") as lab:
        again = lab.open("P1-1")
        record = again.record
        found = again._proposer._states._snapshots.read(  # is the file believed?
            record,
            *again._proposer._states.course(record)[1:],
        )
        assert (found is not None) == cached
        assert sfihilo.save(again.state) == text
        asked_again = again.ask()
        assert (asked_again.policy, asked_again.model) == (asked.policy, asked.model)


def test_goal_set_back_and_forth_gives_the_query_of_the_first(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab)
        query = sfihilo.ask(session.state).policy
        session.set_goal("best")
        session.set_goal("understand")
        assert session.ask().unit == tuple(query.tolist())


def test_prepared_query_of_the_former_goal_is_not_used(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab, trials=3)
        trial = session.ask()
        session.measure(trial, {"o0": 0.3, "o1": 0.6})
        session.prepare()
        session.choose(trial, "new")
        session.set_goal("best")
        asked = session.ask()
        assert asked.unit == tuple(sfihilo.ask(session.state).policy.tolist())


@pytest.mark.parametrize("goal", ["fast", None, 1])
def test_unknown_goal_is_refused_and_nothing_stored(folder: Path, goal: object) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab, trials=1)
        before = len(session.events)
        with pytest.raises(ValueError, match="goal: expected understand or best, got"):
            session.set_goal(goal)  # type: ignore[arg-type]
        assert len(session.events) == before


def test_repeated_key_of_a_goal_writes_one_event_and_undo_passes_it_by(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        session = begun(lab, trials=2)
        session.set_goal("best", key="k")
        session.set_goal("best", key="k")
        assert [event.kind for event in session.events].count("goal") == 1
        assert session.undo().kind == "chosen"
        assert session.record.goal == "best"
        session.choose(2, "new")


def test_goal_is_given_when_a_session_is_created(lab: Lab) -> None:
    assert lab.create(SPACE, "P1", 1, goal="best").record.goal == "best"
    assert lab.create(Plan(SPACE, seed=1, goal="best"), "P1").record.goal == "best"
    assert lab.create(SPACE, "P1", 1).record.goal == "understand"
    with pytest.raises(ValueError, match="goal: expected"):
        lab.create(SPACE, "P1", 1, goal="fast")  # type: ignore[arg-type]
