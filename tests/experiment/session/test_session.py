"""The session and the learner behind it: the same queries as the bare loop, prepared or not."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfihilo
from sfihilo import Query, Response, State, ask, begin, tell
from sfihilo.experiment import Lab, Protocol, Session
from sfihilo.history import Choice, FloatArray
from sfihilo.querying import QuerySettings
from tests.experiment.people import (
    EXOSKELETON,
    LEAN,
    Person,
    finish,
    good,
    unit_space,
)

LOOKAHEAD = replace(
    LEAN, rule="boundary_lookahead", query=QuerySettings(pool_minimum=100, pool_per_dimension=8)
)


def bare_queries(space_seed: int, count: int) -> list[list[float]]:
    """The same person without any session: the four functions only."""
    space = unit_space()
    person = Person(space, space_seed)
    settings = replace(LOOKAHEAD, policy_dim=3, outcome_dim=2)
    state, queries = begin(settings, 11), []
    for _ in range(count):
        query = ask(state)
        queries.append(query.policy.tolist())
        outcome = person.unit_outcome(query.policy)
        choice = None if query.anchor is None else person.prefers(outcome, query.anchor)
        state = tell(state, query, Response(outcome, choice))
    return queries


def test_a_person_gets_the_same_queries_as_the_bare_loop(lab: Lab) -> None:
    person = Person(unit_space(), 3)
    session = lab.create(unit_space(), "P1", 11, settings=LOOKAHEAD)
    person.walk(session, 30)
    assert [list(trial.unit) for trial in session.trials] == bare_queries(3, 30)


class NoisyPerson(Person):
    """Values the first outcome, linearly, and often answers against it."""

    def prefers(self, new: FloatArray, anchor: FloatArray) -> Choice:
        return "new" if 2 * (new - anchor)[0] + self.rng.logistic() > 0 else "previous"


def test_answer_is_predicted_by_the_average_and_not_by_the_posterior_of_the_rule(lab: Lab) -> None:
    space = unit_space(2, 2)
    session = lab.create(space, "P1", 0, settings=LEAN)
    NoisyPerson(space, 0).walk(session, 12)
    trial, state = session.ask(), session.state
    mean = np.clip(state.forward.mean(np.array([trial.unit])), 0, 1)
    anchor = state.history.anchor
    assert anchor is not None
    average, rule = (
        float(posterior.preference(mean, anchor[None])[0])
        for posterior in (state.posterior(), state.rule_posterior())
    )
    assert abs(rule - average) > 0.1
    assert trial.model["chance_new"] == pytest.approx(average)


def test_preparing_changes_no_query_and_saves_the_wait(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bare_queries(4, 12)
    person = Person(unit_space(), 4)
    session = lab.create(unit_space(), "P1", 11, settings=LOOKAHEAD)
    computed: list[object] = []
    for number in range(11):
        trial = session.ask()
        assert list(trial.unit) == expected[number]
        session.measure(trial, person.measure(trial))
        if not trial.asks_choice:
            continue
        session.prepare()
        while not session.prepared:
            threading.Event().wait(0.01)
        session.choose(trial, person.choose(trial))
        with monkeypatch.context() as patch:  # the next query is ready: nothing is computed
            patch.setattr(sfihilo, "tell", lambda *given: computed.append(given))
            patch.setattr(sfihilo, "ask", lambda *given: computed.append(given))
            assert list(session.ask().unit) == expected[number + 1]
    assert computed == []


def test_asking_while_it_is_being_prepared(lab: Lab) -> None:
    expected = bare_queries(5, 6)
    person = Person(unit_space(), 5)
    session = lab.create(unit_space(), "P1", 11, settings=LOOKAHEAD)
    for number in range(6):
        trial = session.ask()
        assert list(trial.unit) == expected[number]
        session.measure(trial, person.measure(trial))
        session.prepare()
        if trial.asks_choice:
            session.choose(trial, person.choose(trial))


def test_a_failure_in_the_background_does_no_harm(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = lab.create(unit_space(), "P1", 11, settings=LOOKAHEAD)
    finish(session)
    trial = session.measure(session.ask(), good(session, 0.1))
    with monkeypatch.context() as patch:
        patch.setattr(sfihilo, "ask", lambda *_: 1 / 0)
        session.prepare()
        while not session.prepared:
            threading.Event().wait(0.01)
        session.choose(trial, "new")
        with pytest.raises(ZeroDivisionError):
            session.ask()
        assert session.record.current is None
    assert session.ask().number == 3


def test_reopening_gives_the_same_next_query_with_and_without_the_cache(folder: Path) -> None:
    person = Person(EXOSKELETON, 3)
    settings = replace(LOOKAHEAD, policy_dim=4, outcome_dim=2)
    with Lab(folder / "a.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 5, settings=settings)
        person.walk(session, 20)
    (folder / "b.db").write_bytes((folder / "a.db").read_bytes())  # a copy without the cache
    assert list((folder / "a.db.snapshots").iterdir())
    (folder / "c.db").write_bytes((folder / "a.db").read_bytes())
    (folder / "c.db.snapshots").mkdir()
    for path in (folder / "a.db.snapshots").iterdir():
        text = path.read_text().replace('\\"seed\\": 5', '\\"seed\\": 6')
        (folder / "c.db.snapshots" / path.name).write_text(text)  # a damaged cache
    queries = []
    for name in ("a.db", "b.db", "c.db"):
        with Lab(folder / name) as lab:
            trial = lab.open("P1-1").ask()
            queries.append((trial.unit, trial.model["fingerprint"]))
    assert queries[0] == queries[1] == queries[2]


def test_what_was_prepared_but_not_answered_is_not_the_snapshot(folder: Path) -> None:
    """A snapshot of an answer that never came would make the next opening slow."""
    person = Person(unit_space(), 3)
    with Lab(folder / "a.db") as lab:
        person.walk(lab.create(unit_space(), "P1", 5, settings=LEAN), 17)
    told: list[int] = []
    with Lab(folder / "a.db") as lab, pytest.MonkeyPatch.context() as patch:
        original = tell

        def counted(state: State, query: Query, response: Response) -> State:
            told.append(state.round)
            return original(state, query, response)

        patch.setattr(sfihilo, "tell", counted)
        assert lab.open("P1-1").state.round == 17
    assert told in ([], [16])  # the last answer came after the last question


def test_replay_uses_recorded_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lab(folder / "a.db") as lab:
        Person(EXOSKELETON, 3).walk(lab.create(EXOSKELETON, "P1", 5, settings=LEAN), 8)
    asked: list[int] = []
    monkeypatch.setattr(sfihilo, "ask", lambda *_: asked.append(1))
    with Lab(folder / "a.db") as lab:
        session = lab.open("P1-1")
        assert session.state.round == 8
    assert asked == []


def test_drift_mode_is_a_session_setting(lab: Lab) -> None:
    drifting = lab.create(EXOSKELETON, "P1", 1, settings=LEAN, protocol=Protocol(drift=True))
    still = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
    assert drifting.state.settings.recency.variant == "learned"
    assert still.state.settings.recency.variant == "unweighted"


def test_a_closed_session_can_only_be_read(session: Session) -> None:
    finish(session)
    finish(session, "new", 0.1)
    session.note("went well")
    session.close("done")
    calls: list[Callable[[], object]] = [
        session.ask,
        session.undo,
        session.interrupt,
        lambda: session.note("x"),
        lambda: session.measure(1, None),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()
    assert session.record.notes[0][2] == "went well"
    assert session.recommend().comparisons == 1


def test_recommendations_are_physical_and_safe(session: Session) -> None:
    Person(EXOSKELETON, 2).walk(session, 12)
    advice = session.recommend(feasible={"peak_torque": (0, 20)})
    assert 0 <= advice.policy["peak_torque"] <= 20
    assert advice.policy["offset"] == 1.5
    assert advice.policy["cadence"] == int(advice.policy["cadence"])
    assert advice.policy["peak_torque"] * advice.policy["gain"] <= 300
    for name, outcome in EXOSKELETON.outcomes.items():
        found = advice.outcomes[name]
        assert outcome.low <= found.low <= found.value <= found.high <= outcome.high
    with pytest.raises(ValueError, match="expected names among"):
        session.recommend(feasible={"torque": (0, 1)})


def test_the_query_told_is_the_query_recorded(session: Session) -> None:
    """What the learner hears of a policy is what was set, grid and all."""
    Person(EXOSKELETON, 2).walk(session, 6)
    state = session.state
    for trial, unit in zip(session.trials, state.history.policies, strict=True):
        assert unit.tolist() == list(trial.unit)
        assert EXOSKELETON.to_policy(unit) == trial.policy
    assert isinstance(ask(state), Query)
