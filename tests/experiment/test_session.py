"""A session over time: undo, breaks, corrections, retries, and the learner behind it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import sfihilo
from sfihilo import Query, Response, State, ask, begin, tell
from sfihilo.experiment import Lab, OvertakenError, Protocol, Session, Trial
from sfihilo.experiment.log.errors import KeyConflictError
from sfihilo.experiment.session import commit as commit_module
from sfihilo.experiment.session.requirements import Draft
from sfihilo.experiment.session.rounds import rounds_of
from sfihilo.history import Choice
from sfihilo.querying import QuerySettings
from tests.experiment.people import (
    EXOSKELETON,
    LEAN,
    Person,
    finish,
    good,
    memory_folder,
    unit_space,
)

LOOKAHEAD = replace(
    LEAN, rule="boundary_lookahead", query=QuerySettings(pool_minimum=100, pool_per_dimension=8)
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def lab(folder: Path) -> Iterator[Lab]:
    with Lab(folder / "lab.db") as opened:
        yield opened


@pytest.fixture
def session(lab: Lab) -> Session:
    return lab.create(EXOSKELETON, "P07", 7, settings=LEAN)


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


def test_undo_and_redo_walk_back_and_forth(session: Session) -> None:
    finish(session)
    trial = session.start(session.ask())
    session.measure(trial, good(session, 0.3))
    session.choose(trial, "new")
    before = rounds_of(session.record)
    undone = [session.undo("oops").kind for _ in range(4)]
    assert undone == ["chosen", "measured", "started", "asked"]
    assert session.trials[1].status == "undone"
    assert len(rounds_of(session.record)) == 1
    redone = [session.redo().kind for _ in range(4)]
    assert redone == undone[::-1]
    assert rounds_of(session.record) == before
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_an_undone_query_comes_again(lab: Lab) -> None:
    session = lab.create(unit_space(), "P1", 7, settings=LEAN)
    finish(session)
    first = session.ask()
    session.undo()
    again = session.ask()
    assert (again.number, again.round, again.unit) == (first.number + 1, first.round, first.unit)
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_undone_query_cannot_be_redone_after_another(session: Session) -> None:
    finish(session)
    session.ask()
    session.undo()
    session.ask()
    with pytest.raises(ValueError, match="nothing to redo"):
        session.redo()


def test_undone_query_may_have_been_applied_so_the_next_is_one_step_from_it(
    session: Session,
) -> None:
    before = finish(session)
    shown = session.ask()
    session.undo()
    after = session.ask()
    for place in (before, shown):
        assert abs(after.policy["peak_torque"] - place.policy["peak_torque"]) <= 15 + 1e-6


def test_undoing_into_the_trial_before_opens_it_again(session: Session) -> None:
    finish(session)
    finish(session, "new", 0.1)
    session.ask()
    session.undo()
    session.undo()
    assert session.trials[1].status == "measured"
    assert session.ask().number == 2  # not a new one: the second waits for its answer
    session.prepare()
    session.choose(2, "previous")
    assert session.ask().number == 4
    assert [lesson.choice for lesson in rounds_of(session.record)] == [None, "previous"]


def test_undo_ends_at_the_beginning(session: Session) -> None:
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()


def test_undo_never_forgets_where_the_device_may_be(session: Session) -> None:
    first = finish(session)
    second = session.start(session.ask())
    session.undo("pressed by mistake")
    session.undo()
    positions = session.record.positions
    assert dict(first.policy) in positions
    assert dict(second.policy) in positions
    third = session.ask()
    for policy in positions:
        assert abs(third.policy["peak_torque"] - policy["peak_torque"]) <= 15 + 1e-6


def test_an_aborted_policy_may_have_reached_the_device(session: Session) -> None:
    first = finish(session)
    second = session.ask()
    session.abort(second, "fell out of the harness, nobody pressed start")
    assert session.record.positions == (dict(first.policy), dict(second.policy))
    third = session.ask()
    for policy in (first.policy, second.policy):
        assert abs(third.policy["peak_torque"] - policy["peak_torque"]) <= 15 + 1e-6
    session.veto(third, "never applied")
    assert len(session.record.positions) == 2
    last = session.start(session.ask())
    assert dict(last.policy) in session.record.positions  # but the device may have refused it
    session.measure(last, good(session, 0.1))
    assert list(session.record.positions) == [dict(last.policy)]


def test_undo_gives_the_learner_back(session: Session) -> None:
    finish(session)
    finish(session, "new", 0.1)
    before = session.ask()
    session.undo()
    session.undo("wrong button")
    session.choose(2, "previous")
    changed = session.ask()
    assert changed.model["fingerprint"] != before.model["fingerprint"]
    session.undo()
    session.undo()
    session.choose(2, "new")
    assert session.ask().model["fingerprint"] == before.model["fingerprint"]


def test_an_amendment_is_what_the_learner_hears(session: Session) -> None:
    for step in range(4):
        finish(session, "new", 0.1 * step)
    wanted = {"metabolic_rate": 3.3, "comfort": 9.0}
    trial = session.amend(2, why="typo", outcome=wanted, choice="previous", actor="pi")
    assert (trial.outcome, trial.choice) == (wanted, "previous")
    state = session.state
    assert state.history.choices[1] == "previous"
    np.testing.assert_array_equal(
        state.history.outcomes[1], np.array(EXOSKELETON.unit_values(wanted))
    )
    np.testing.assert_array_equal(state.history.anchors[2], state.history.outcomes[1])
    assert [e.kind for e in session.events if e.body.get("trial") == 2].count("measured") == 1
    session.undo()
    assert session.trials[1].choice == "new"


def test_amending_to_missing_takes_the_next_comparison_along(session: Session) -> None:
    for step in range(4):
        finish(session, "new", 0.1 * step)
    session.amend(2, why="loose mask", outcome=None)
    told = rounds_of(session.record)
    assert told[1].outcome is None
    assert told[2].choice is None  # it was compared with an outcome that is gone
    assert told[3].choice == "new"
    assert session.state.round == 4


def test_partly_measured_outcome_reaches_the_learner_with_its_answer(session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    trial = session.ask()
    session.measure(trial, good(session, 0.2) | {"comfort": None})
    session.choose(trial, "previous")
    history = session.state.history
    assert np.isnan(history.outcomes[3]).tolist() == [False, True]
    assert len(session.state.inverse.labels) == 3
    assert session.record.anchor_trial == session.trials[3]
    following = session.ask()
    assert following.compare_with == 4
    assert following.asks_choice


def test_outcome_that_was_never_measured_leaves_nothing_to_compare_with(session: Session) -> None:
    for step in range(4):
        trial = session.ask()
        assert not trial.asks_choice
        session.measure(trial, good(session, 0.1 * step) | {"comfort": None})
    state = session.state
    assert state.forward.measurements.tolist() == [4, 0]
    assert state.history.anchor is None
    assert session.record.anchor_trial is None
    session.measure(session.ask(), good(session))
    assert session.ask().asks_choice


def test_a_late_outcome_comes_as_an_amendment(session: Session) -> None:
    finish(session)
    trial = session.measure(session.ask(), None)
    session.choose(trial, "new")
    session.amend(trial, why="analysed later", outcome=good(session, 0.2))
    assert rounds_of(session.record)[1].outcome is not None
    assert rounds_of(session.record)[1].choice == "new"


def test_withdrawing_takes_the_data_out(session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    session.withdraw(2, "sensor off")
    told = rounds_of(session.record)
    assert (told[1].outcome, told[1].choice) == (None, None)
    assert session.state.round == 3
    with pytest.raises(ValueError, match="withdrawn already"):
        session.withdraw(2, "again")
    with pytest.raises(ValueError, match="nothing to amend"):
        session.amend(2, why="x", choice="new")


def test_an_empty_amendment_is_refused(session: Session) -> None:
    finish(session)
    with pytest.raises(ValueError, match="neither"):
        session.amend(1, why="x")


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


def test_the_same_key_does_nothing_twice(session: Session) -> None:
    first = session.ask(key="a1")
    session.measure(first, good(session), key="m1")
    second = session.ask(key="a2")
    values = good(session, 0.1)
    results = [
        (
            session.ask(key="a1").number,
            session.ask(key="a2").number,
            session.start(second, key="s2").number,
            session.measure(second, values, key="m2").number,
            session.choose(second, "same", key="c2").number,
            session.undo("x", key="u2").number,
            session.redo("x", key="r2").number,
        )
        for _ in range(3)
    ]
    assert results[0] == results[1] == results[2]
    kinds = [event.kind for event in session.events]
    assert kinds == [
        "opened", "asked", "measured", "asked", "started", "measured", "chosen", "withdrawn",
        "redone",
    ]  # fmt: skip


def test_the_same_key_with_another_content_is_refused(session: Session) -> None:
    finish(session)
    trial = session.ask()
    session.measure(trial, good(session), key="k")
    count = len(session.events)
    calls: list[Callable[[], object]] = [
        lambda: session.measure(trial, good(session, 0.1), key="k"),
        lambda: session.choose(trial, "new", key="k"),
        lambda: session.ask(key="k"),
        lambda: session.suggest(trial.policy, key="k"),
        lambda: session.repeat(1, key="k"),
    ]
    for call in calls:
        with pytest.raises(KeyConflictError):
            call()
    assert len(session.events) == count


def test_a_stale_writer_is_told_the_current_state(session: Session, lab: Lab) -> None:
    finish(session)
    trial = session.measure(session.ask(), good(session, 0.1))
    stale = lab.open(session.id)
    session.choose(trial, "new")
    with pytest.raises(
        OvertakenError, match="trial 2 is complete"
    ) as told:  # decided on an old record
        stale._log.append(Draft("chosen", {"trial": 2, "choice": "previous"}), None, None)
    assert told.value.record.trials[-1].choice == "new"
    assert session.trials[-1].choice == "new"


def both_answer(writers: list[Session], trial: Trial) -> list[str]:
    """Two people answer the same trial at the same moment; whose answers were taken."""
    gate = threading.Barrier(2)
    wins: list[str] = []

    def answer(who: Session, choice: Choice) -> None:
        gate.wait()
        try:
            who.choose(trial, choice)
        except (OvertakenError, ValueError):
            return
        wins.append(choice)

    choices: tuple[Choice, Choice] = ("new", "previous")
    threads = [
        threading.Thread(target=answer, args=pair) for pair in zip(writers, choices, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wins


def race(rounds: int) -> None:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        finish(session)
        with Lab(folder / "lab.db") as second, Lab(folder / "lab.db") as third:
            writers = [second.open(session.id), third.open(session.id)]
            for number in range(rounds):
                trial = session.measure(session.ask(), good(session, 0.07 * number))
                wins = both_answer(writers, trial)
                assert len(wins) == 1
                assert session.trials[-1].choice == wins[0]
        assert lab.verify().ok


def test_two_writers_race_and_one_wins() -> None:
    race(15)


@pytest.mark.slow
def test_two_writers_race_five_hundred_times() -> None:
    race(500)


def test_threads_may_share_a_session(session: Session) -> None:
    finish(session)
    seen: list[tuple[int, tuple[float, ...]]] = []
    threads = [
        threading.Thread(target=lambda: seen.append((session.ask().number, session.ask().unit)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1
    assert len(session.trials) == 2


def test_run_conducts_trials(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    applied: list[dict[str, float]] = []
    session.run(
        apply=lambda policy: applied.append(dict(policy)),
        measure=person.measure,
        choose=person.choose,
        trials=5,
    )
    assert applied == [dict(trial.policy) for trial in session.trials]
    assert all(trial.status == "complete" for trial in session.trials)


def test_run_survives_a_failing_function_and_goes_on(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    person.walk(session, 2)

    def broken(_: object) -> None:
        raise RuntimeError("cart disconnected")

    with pytest.raises(RuntimeError):
        session.run(apply=lambda _: None, measure=broken, choose=person.choose, trials=3)
    assert session.record.interrupted
    assert session.trials[-1].status == "started"
    person.walk(session, 3)
    assert [trial.status for trial in session.trials] == ["complete"] * 5


def test_run_asks_again_for_a_refused_measurement(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    tries: list[int] = []

    def flaky(trial: object) -> dict[str, float]:
        tries.append(1)
        return {"metabolic_rate": float("nan"), "comfort": 3.0}

    session.run(apply=lambda _: None, measure=flaky, choose=person.choose, trials=1)
    assert len(tries) == 3
    assert session.trials[0].measured
    assert session.trials[0].outcome is None
    assert session.record.refused == 3


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
