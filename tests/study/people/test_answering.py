"""Simulated people who grade, scatter, grade at random and forget."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sfihilo import Query
from sfihilo.study.people.answering import Answering, Judgement, graded
from sfihilo.study.people.noise import NoiseLevels
from sfihilo.study.people.users import Experience, HeadSettings, UserSettings, sample_user

SMALL = UserSettings(
    outcome=HeadSettings(32, 0.35, 0.65), reward=HeadSettings(32, 0.5, 0.8), calibration=200
)


def strengths(answering: Answering, gap: float, count: int = 400) -> list[int]:
    """Strengths of one person in many rounds; 0 for "same"."""
    return [answering.judgement(gap, 5, round).strength or 0 for round in range(count)]


def test_thresholds_of_seven_grades_are_those_of_the_study() -> None:
    assert graded(7).thresholds == pytest.approx((0.02, 0.08, 0.2))
    assert [graded(grades).grades for grades in (5, 7)] == [5, 7]
    assert Answering().grades == 2


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (0.01, Judgement("same")),
        (0.03, Judgement("new", 1)),
        (-0.1, Judgement("previous", 2)),
        (0.5, Judgement("new", 3)),
        (0.0, Judgement("same")),
    ],
)
def test_ideal_person_grades_by_thresholds(gap: float, expected: Judgement) -> None:
    assert graded(7).judgement(gap, 3, 8) == expected


def test_person_without_thresholds_answers_by_the_sign() -> None:
    assert Answering().judgement(1e-9, 0, 0) == Judgement("new")
    assert Answering().judgement(-1e-9, 0, 0) == Judgement("previous")


def test_scale_is_one_number_per_person_and_lognormal() -> None:
    messy = graded(7, scale_std=0.5)
    assert messy.scale(4) == messy.scale(4)
    logs = np.log([messy.scale(seed) for seed in range(800)])
    assert logs.mean() == pytest.approx(0, abs=0.06)
    assert logs.std() == pytest.approx(0.5, abs=0.04)
    assert graded(7).scale(4) == 1.0


def test_larger_scale_gives_weaker_grades() -> None:
    messy = graded(7, scale_std=0.5)
    seeds = sorted(range(40), key=messy.scale)
    found = [messy.judgement(0.1, seed, 1).strength or 0 for seed in seeds]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 1


def test_scatter_changes_grades_between_rounds_but_not_the_side() -> None:
    messy = graded(7, scatter=0.3)
    found = strengths(messy, 0.08)
    assert 0.4 < np.mean(np.array(found) == 2) < 0.6  # at the edge between two grades
    assert set(strengths(messy, 1.0)) == {3}
    assert {messy.judgement(-0.3, 1, round).choice for round in range(50)} == {"previous"}


def test_random_strengths_do_not_depend_on_the_gap() -> None:
    careless = replace(graded(7), random_strengths=True)
    assert strengths(careless, 0.03) == strengths(careless, 0.6)
    counts = np.bincount(strengths(careless, 0.1, 900))
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 300) < 60).all()


def test_lapses_of_a_person_who_grades_have_random_strengths() -> None:
    user = replace(sample_user(2, 2, 3, settings=SMALL), lapses=1.0, answering=graded(7))
    lived = Experience(np.full(2, 0.5), np.full(2, 0.5))
    found = [user.judge(round, lived, lived) for round in range(300)]
    assert {judgement.choice for judgement in found} == {"new", "previous"}
    assert {judgement.strength for judgement in found} == {1, 2, 3}


def test_forgetful_person_reverses_old_comparisons_as_the_variance_says() -> None:
    noise = NoiseLevels(reward=0.02)
    user = sample_user(2, 2, 3, noise=noise, settings=SMALL)
    forgetful = replace(user, answering=Answering(memory=2.0))
    rng = np.random.default_rng(1)
    points = rng.uniform(size=(1500, 2, 2))
    pairs = [(Experience(one, one), Experience(other, other)) for one, other in points]

    def reversed_share(age: int) -> float:
        answers = [forgetful.judge(t, *pair, age).choice for t, pair in enumerate(pairs)]
        clean = [user.rewards(pair) for pair in points]
        right = ["new" if after > before else "previous" for before, after in clean]
        return float(np.mean([a != b for a, b in zip(answers, right, strict=True)]))

    gaps = np.array([np.diff(user.rewards(pair))[0] for pair in points])

    for age in (1, 5):
        deviation = np.sqrt(2 * 0.02**2 * (1 + 2.0 * (age - 1)))
        expected = norm.cdf(-np.abs(gaps) / deviation).mean()
        assert reversed_share(age) == pytest.approx(expected, abs=0.02)
    assert [forgetful.judge(t, *pair) for t, pair in enumerate(pairs)] == [
        user.judge(t, *pair) for t, pair in enumerate(pairs)
    ]


def test_age_of_an_answer_is_that_of_its_query() -> None:
    user = replace(sample_user(2, 2, 3, settings=SMALL), answering=Answering(memory=1e6))
    old, new = Experience(np.full(2, 0.5), np.full(2, 0.5)), user.experience(9, np.full(2, 0.2))
    fresh = [Query(t, np.full(2, 0.2), old.measured, t - 1) for t in range(9, 60)]
    aged = [replace(query, compared_with=query.round - 4) for query in fresh]
    answers = [[user.answer(query, new, old).choice for query in one] for one in (fresh, aged)]
    assert answers[0] != answers[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thresholds": (0.2, 0.1)}, "thresholds: expected increasing numbers above 0"),
        ({"thresholds": (0.0, 0.1)}, "thresholds: expected increasing numbers above 0"),
        ({"scatter": -0.1}, "scatter: expected a finite number from 0"),
        ({"memory": np.inf}, "memory: expected a finite number from 0"),
    ],
)
def test_wrong_answering_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Answering(**changes)  # type: ignore[arg-type]
