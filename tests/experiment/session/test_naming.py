"""Which trial a new one is compared with where the person recalls several: named, stored, kept."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfihilo
from sfihilo.experiment import Lab, Session, Trial
from sfihilo.experiment.insight import answer_hits
from sfihilo.experiment.record.fold import fold
from sfihilo.experiment.session.rounds import rounds_of, used_answers
from sfihilo.history import Query, Response
from tests.experiment.people import EXOSKELETON, LEAN, PLAIN, Person, unit_space

RECALL = replace(PLAIN, recall=3)
SPACE = unit_space(2, 2)


def begun(lab: Lab, seed: int = 1, recall: int = 3) -> tuple[Session, Person]:
    settings = replace(PLAIN, recall=recall)
    return lab.create(SPACE, "P1", seed, settings=settings), Person(SPACE, seed)


def measured(session: Session, person: Person) -> Trial:
    trial = session.ask()
    return session.measure(trial, person.measure(trial))


def named_older(session: Session, person: Person) -> Trial:
    """A measured trial, waiting for its answer, that is compared with an older one."""
    for _ in range(20):
        trial = measured(session, person)
        if trial.ago is not None and trial.ago > 1:
            return trial
        if trial.asks_choice:
            session.choose(trial, person.choose(trial))
    raise AssertionError("no older trial was named in twenty trials")


def compared_trials(session: Session) -> dict[int, int]:
    """For each trial whose answer is used, the trial that the learner compares it with."""
    told = [trial for trial in session.trials if trial.ended and trial.ending != "undone"]
    history = session.state.history
    return {
        told[row].number: told[history.compared_with[row]].number
        for row in np.flatnonzero(history.compared)
    }


def test_named_trials_and_state_are_those_of_the_plain_loop(lab: Lab) -> None:
    session, person = begun(lab)
    person.walk(session, 12)
    state = sfihilo.begin(replace(RECALL, policy_dim=2, outcome_dim=2), 1)
    for trial in session.trials:
        assert trial.outcome is not None
        outcome = np.array(list(trial.outcome.values()), dtype=float)
        newest = state.history.recent(1)
        query = Query(
            state.round,
            np.array(trial.unit),
            state.history.anchor,
            int(newest[0]) if newest.size else None,
        )
        query = sfihilo.question(state, query, outcome)
        named = None if query.compared_with is None else query.compared_with + 1
        assert trial.compare_with == named
        assert trial.ago == (None if named is None else trial.number - named)
        state = sfihilo.tell(state, query, Response(outcome, trial.choice))
    assert sfihilo.save(session.state) == sfihilo.save(state)
    assert {trial.ago for trial in session.trials} == {None, 1, 2, 3}


def test_trial_says_at_asking_that_it_is_named_later_and_after_measuring_which(lab: Lab) -> None:
    session, person = begun(lab)
    measured(session, person)
    trial = session.ask()
    assert (trial.asks_choice, trial.compare_with, trial.awaits_name) == (True, None, True)
    assert "ago" not in trial.to_dict()
    trial = session.measure(trial, person.measure(trial))
    assert (trial.compare_with, trial.ago, trial.awaits_name) == (1, 1, False)
    assert session.events[-1].body["compare_with"] == 1
    assert trial.to_dict()["ago"] == 1


def test_named_trial_is_the_same_when_reopened_and_in_a_repeated_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab(folder / "one.db") as lab:
        session, person = begun(lab)
        named_older(session, person)
        session.choose(session.trials[-1], "previous")
        trial = session.ask()
        outcome = person.measure(trial)
        first = session.measure(trial, outcome, key="m")
        saved = session.record
        monkeypatch.setattr(sfihilo, "question", None)  # a repeated call computes nothing
        assert session.measure(trial, outcome, key="m") == first
        with pytest.raises(ValueError, match="has another content"):
            session.measure(trial, dict.fromkeys(outcome, 0.5), key="m")
    with Lab(folder / "one.db") as lab:
        again = lab.open("P1-1")
        assert again.record == saved
        assert again.ask() == first
        assert again.choose(again.ask(), "new").compare_with == first.compare_with
        assert fold(again.events) == again.record


def test_answer_before_the_trial_is_named_is_refused(lab: Lab) -> None:
    session, person = begun(lab)
    measured(session, person)
    trial = session.ask()
    expected = "trial 2: measure it first; the trial to compare"
    with pytest.raises(ValueError, match=expected):
        session.choose(trial, "new")
    with pytest.raises(ValueError, match=expected):
        session.amend(trial, why="typing", choice="new")
    with pytest.raises(ValueError, match=expected):
        session.amend(trial, why="typing", choice="new", outcome=person.measure(trial))
    amended = session.amend(trial, why="late", outcome=person.measure(trial))
    assert amended.compare_with == 1
    assert session.choose(trial, "new").status == "complete"


def test_recall_of_one_stores_and_computes_nothing_more(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, person = begun(lab, recall=1)
    monkeypatch.setattr(sfihilo, "question", None)
    person.walk(session, 3)
    kept = [event.body for event in session.events if event.kind == "measured"]
    assert [set(body) for body in kept] == [{"trial", "outcome", "warnings"}] * 3
    assert [trial.compare_with for trial in session.trials] == [None, 1, 2]
    assert [trial.ago for trial in session.trials] == [None] * 3
    assert {told.compared_with for told in rounds_of(session.record)} == {None}


def test_after_a_break_only_what_was_felt_since_is_named(lab: Lab) -> None:
    session, person = begun(lab, recall=5)
    person.walk(session, 6)
    session.interrupt("lunch")
    person.walk(session, 1)  # the anchor again, not compared
    again = session.trials[-1]
    assert (again.source, again.asks_choice) == ("anchor", False)
    person.walk(session, 8)
    later = session.trials[again.number :]
    assert all(trial.compare_with >= again.number for trial in later if trial.compare_with)
    assert max(trial.ago or 0 for trial in later) > 1
    assert later[0].compare_with == again.number


def test_break_before_the_answer_ends_the_comparison(lab: Lab) -> None:
    session, person = begun(lab)
    named_older(session, person)
    session.interrupt("lunch")
    session.resume()
    trial = session.trials[-1]
    assert (trial.asks_choice, trial.status) == (False, "complete")
    with pytest.raises(ValueError, match="no answer is expected"):
        session.choose(trial, "new")


def test_amended_outcome_of_the_named_trial_is_what_the_answer_counts_against(lab: Lab) -> None:
    session, person = begun(lab)
    trial = named_older(session, person)
    session.choose(trial, "new")
    named = trial.compare_with
    assert named is not None
    session.amend(named, why="sensor", outcome={"o0": 0.125, "o1": 0.875})
    assert session.trials[trial.number - 1].compare_with == named
    assert compared_trials(session)[trial.number] == named
    assert session.state.history.anchors[trial.round].tolist() == [0.125, 0.875]


def test_answer_about_a_withdrawn_trial_does_not_count_and_others_do(lab: Lab) -> None:
    session, person = begun(lab)
    trial = named_older(session, person)
    session.choose(trial, "new")
    before = used_answers(session.record)
    assert trial.compare_with is not None
    session.withdraw(trial.compare_with, "loose strap")
    after = used_answers(session.record)
    assert trial.number in before - after
    assert compared_trials(session).keys() == after
    session.undo()
    assert used_answers(session.record) == before


def test_undone_measurement_names_anew_and_redo_restores_the_name(lab: Lab) -> None:
    session, person = begun(lab)
    trial = named_older(session, person)
    session.undo()
    assert session.ask().awaits_name
    session.redo()
    assert session.ask().compare_with == trial.compare_with
    session.choose(trial, "previous")
    session.undo()
    # Known for good: it was walked and answered.
    assert session.ask() == replace(trial, walk_undone=True, answer_undone=True)


def test_walk_that_may_have_happened_hides_what_was_before_it(lab: Lab) -> None:
    session, person = begun(lab, recall=5)
    person.walk(session, 4)
    session.ask()
    session.undo()  # trial 5 may have been walked
    for _ in range(5):
        trial = measured(session, person)
        if trial.asks_choice:
            session.choose(trial, "new")
    later = session.trials[5:]
    assert not later[0].asks_choice
    assert all(trial.compare_with > 5 for trial in later[1:] if trial.compare_with)


def test_vetoed_trial_is_no_walk_and_a_lost_outcome_is_one(lab: Lab) -> None:
    session, person = begun(lab, recall=2)
    person.walk(session, 3)
    session.veto(session.ask(), "too strong")
    trial = measured(session, person)
    assert trial.compare_with in (2, 3)
    assert trial.ago == (1 if trial.compare_with == 3 else 2)
    session.choose(trial, None)
    session.measure(session.ask(), None)
    session.choose(6, None)
    unasked = measured(session, person)
    assert not unasked.asks_choice
    assert measured(session, person).compare_with == 7  # 6 was the other of the last two walks


def test_lost_and_partial_outcomes_keep_pairs_true(lab: Lab) -> None:
    session, person = begun(lab, recall=4)
    asked: dict[int, int] = {}
    for number in range(1, 16):
        trial = session.ask()
        outcome: Mapping[str, float | None] | None = person.measure(trial)
        if number in (2, 5, 6, 11):
            outcome = {**(outcome or {}), "o1": None}
        if number == 9:
            outcome = None
        trial = session.measure(trial, outcome)
        if trial.asks_choice:
            assert trial.compare_with is not None
            asked[trial.number] = trial.compare_with
            session.choose(trial, "new")
    learned = compared_trials(session)
    assert learned.keys() == used_answers(session.record)
    assert learned == {number: asked[number] for number in learned}
    assert len(learned) >= 10


def test_no_trial_left_to_compare_with_asks_for_no_answer(lab: Lab) -> None:
    session, person = begun(lab)
    measured(session, person)
    trial = session.ask()
    session.withdraw(1, "loose strap")
    trial = session.measure(trial, person.measure(trial))
    assert (trial.asks_choice, trial.status) == (False, "complete")
    assert "no trial that the person recalls" in trial.warnings[-1]
    assert measured(session, person).compare_with == 2


def test_prediction_of_an_answer_is_about_the_named_pair(lab: Lab) -> None:
    session, person = begun(lab)
    trial = named_older(session, person)
    assert trial.compare_with is not None
    state = session.state
    mean = np.clip(state.forward.mean(np.array([trial.unit])), 0, 1)
    named = session.trials[trial.compare_with - 1]
    assert named.outcome is not None
    anchor = np.array([list(named.outcome.values())], dtype=float)
    expected = state.posterior().preference(mean, anchor)[0]
    assert trial.model["chance_new"] == pytest.approx(float(expected))
    assert trial.model["fingerprint"] == session.ask().model["fingerprint"]
    session.choose(trial, "new")
    numbers, right = answer_hits(session.record)
    assert right[list(numbers).index(trial.number)] == (expected > 0.5)


def test_prepared_query_after_a_named_comparison_is_the_computed_one(folder: Path) -> None:
    policies = []
    for name, ahead in (("a", True), ("b", False)):
        with Lab(folder / f"{name}.db") as lab:
            settings = replace(LEAN, recall=3, rule=None)
            session = lab.create(EXOSKELETON, "P1", 3, settings=settings)
            person = Person(EXOSKELETON, 3)
            for _ in range(6):
                trial = measured(session, person)
                if ahead:
                    session.prepare()
                if trial.asks_choice:
                    session.choose(trial, person.choose(trial))
            policies.append([dict(trial.policy) for trial in session.trials])
    assert policies[0] == policies[1]


def test_log_of_a_longer_memory_without_names_replays_as_before(lab: Lab) -> None:
    plain, person = begun(lab, recall=1)
    person.walk(plain, 5)
    settings = replace(RECALL, policy_dim=2, outcome_dim=2).to_dict()
    for event in plain.events:
        body = {**event.body, "settings": settings} if event.kind == "opened" else event.body
        lab.log.append("old", event.kind, body)
    old = lab.open("old")
    assert [trial.compare_with for trial in old.trials] == [None, 1, 2, 3, 4]
    assert compared_trials(old) == compared_trials(plain) == {2: 1, 3: 2, 4: 3, 5: 4}
    assert np.array_equal(old.state.inverse.centre, plain.state.inverse.centre)
    person.walk(old, 4)
    assert all(trial.ago for trial in old.trials[5:])


def test_name_of_a_later_trial_in_a_foreign_log_is_refused(lab: Lab) -> None:
    session, person = begun(lab)
    person.walk(session, 3)
    for event in session.events:
        named = event.kind == "measured" and "compare_with" in event.body
        lab.log.append("odd", event.kind, {**event.body, **({"compare_with": 9} if named else {})})
    with pytest.raises(ValueError, match="compare_with: expected a trial before 2, got 9"):
        lab.open("odd")


@pytest.mark.parametrize("seed", range(6))
def test_learned_pairs_are_those_asked_about_under_random_corrections(lab: Lab, seed: int) -> None:
    session, person = begun(lab, seed, recall=2 + seed % 4)
    rng = np.random.default_rng(seed)
    asked: dict[int, int] = {}
    for step in range(60):
        act = rng.choice(["on", "on", "on", "on", "undo", "redo", "withdraw", "amend", "break",
                          "veto", "abort", "repeat"])  # fmt: skip
        try:
            _do(session, person, str(act), rng, asked)
        except ValueError:
            continue
        learned = compared_trials(session)
        assert learned.keys() == used_answers(session.record), step
        assert learned == {number: asked[number] for number in learned}, step
    assert max(trial.ago or 0 for trial in session.trials) > 1
    assert sfihilo.save(lab.open(session.id).state) == sfihilo.save(session.state)


def _do(
    session: Session, person: Person, act: str, rng: np.random.Generator, asked: dict[int, int]
) -> None:
    record = session.record
    any_trial = int(rng.integers(1, len(record.trials) + 1)) if record.trials else 1
    if act == "undo":
        session.undo()
    elif act == "redo":
        session.redo()
    elif act == "withdraw":
        session.withdraw(any_trial, "why")
    elif act == "amend":
        session.amend(any_trial, why="why", outcome={"o0": float(rng.random()), "o1": 0.5})
    elif act == "break":
        session.interrupt()
    elif act == "veto":
        session.veto(session.ask(), "why")
    elif act == "abort":
        session.abort(session.ask(), "why")
    else:
        trial = session.repeat(any_trial) if act == "repeat" else session.ask()
        if not trial.measured:
            lost = rng.random() < 0.1
            trial = session.measure(trial, None if lost else person.measure(trial))
        if trial.asks_choice and not trial.answered and rng.random() < 0.9:
            assert trial.compare_with is not None
            session.choose(trial, "new" if rng.random() < 0.5 else "previous")
            asked[trial.number] = trial.compare_with
