"""What the console plots over the trials of a session."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfihilo import State
from sfihilo.experiment import Lab, Session
from sfihilo.experiment.insight import (
    advised_now,
    advised_policies,
    answer_course,
    best_ranges,
    drives,
    learned_rewards,
    outcome_courses,
)
from tests.experiment.people import EXOSKELETON, LEAN, Person


def conducted(lab: Lab, trials: int) -> tuple[Session, dict[int, np.ndarray]]:
    """A session, and what was advised after each trial when it was the last one."""
    session = lab.create(EXOSKELETON, "P07", seed=3, settings=LEAN)
    person = Person(EXOSKELETON, 5)
    advised = {}
    for _ in range(trials):
        trial = session.ask()
        trial = session.measure(trial, person.measure(trial))
        if trial.asks_choice:
            session.choose(trial, person.choose(trial))
            advised[trial.number] = advised_now(*session.learned())
    return session, advised


def test_advice_told_again_equals_the_advice_of_its_time(tmp_path: Path) -> None:
    with Lab(tmp_path / "study.db") as lab:
        session, advised = conducted(lab, 7)
        again = advised_policies(session.record, [1, 3, 7])
        assert sorted(again) == [3, 7]  # after the first trial nothing was learned
        for trial, unit in again.items():
            np.testing.assert_array_equal(unit, advised[trial])


def test_the_advice_of_now_has_a_higher_learned_reward_than_a_random_policy(
    tmp_path: Path,
) -> None:
    with Lab(tmp_path / "study.db") as lab:
        session, advised = conducted(lab, 12)
        record, state = session.learned()
        units = np.array([advised[12], *np.random.default_rng(1).random((50, 4))])
        mean, low, high = learned_rewards(state, record.space, units)
        assert (low <= mean).all()
        assert (mean <= high).all()
        assert mean[0] > np.median(mean[1:])


def test_what_is_told_about_the_reward_is_the_average_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab(tmp_path / "study.db") as lab:
        session, _ = conducted(lab, 6)
        record, state = session.learned()

    def refuse(_: State) -> None:
        raise AssertionError("the posterior of the rule was asked")

    monkeypatch.setattr(State, "_posterior", property(refuse))
    assert len(drives(state, record.space)) == 2
    assert len(best_ranges(state, record.space)) == 4
    assert learned_rewards(state, record.space, np.full((1, 4), 0.5)).shape == (3, 1)


def test_courses_have_one_place_per_trial(tmp_path: Path) -> None:
    with Lab(tmp_path / "study.db") as lab:
        session, _ = conducted(lab, 6)
        session.withdraw(4, "loose sensor")
        trials, predicted, given = answer_course(session.record)
        assert trials == [2, 3, 5, 6]
        assert len(predicted) == len(given) == 4
        courses = outcome_courses(session.record)
        assert list(courses) == list(EXOSKELETON.outcomes)
        for name, course in courses.items():
            assert course["trial"] == [1, 2, 3, 5, 6]
            assert course["predicted"][0] is None  # nothing was known before the first trial
            assert course["value"][1] == (session.trials[1].outcome or {})[name]
            assert course["low"][1] < course["predicted"][1] < course["high"][1]  # type: ignore[operator]


def test_bands_end_where_the_outcome_ends(tmp_path: Path) -> None:
    with Lab(tmp_path / "study.db") as lab:
        session, _ = conducted(lab, 3)
        record, trial = session.record, session.trials[1]
        for name, outcome in EXOSKELETON.outcomes.items():
            low, high = outcome.accepted
            unsure = {
                "outcome": {**trial.model["outcome"], name: high},
                "deviation": {**trial.model["deviation"], name: 2 * (high - low)},
            }
            told = replace(trial, model={**trial.model, **unsure})
            course = outcome_courses(record.with_trial(told))[name]
            assert (course["low"][1], course["predicted"][1], course["high"][1]) == (
                low,
                high,
                high,
            )
