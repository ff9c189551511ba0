"""One person learned in one way: what is evaluated, and that it repeats."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from sfihilo.learner import begin
from sfihilo.study.demo.courses import WAYS, Course, Person, Plan, courses, learn, learner, prepare
from sfihilo.study.design.conditions import derived_seed
from sfihilo.study.run.advice_gap import LearnerSeeker, advice_curve, clean_reward
from tests.study.tiny import EVALUATION, PEOPLE

PLAN = Plan(people=2, queries=6, users=PEOPLE, evaluation=EVALUATION)


@pytest.fixture(scope="module")
def person() -> Person:
    return prepare(PLAN, 0)


@pytest.fixture(scope="module")
def course(person: Person) -> Course:
    return learn(PLAN, person, "random")


def test_looks_end_with_the_last_comparison() -> None:
    assert Plan().looks == (5, 10, 15, 20, 30, 40, 50, 60)
    assert replace(PLAN, queries=3).looks == (1, 2, 3)


@pytest.mark.parametrize(("name", "value"), [("people", 1), ("queries", 1)])
def test_too_small_plan_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected at least 2, got 1"):
        replace(PLAN, **{name: value})  # type: ignore[arg-type]


def test_ways_differ_in_goal_and_rule_only() -> None:
    best, understand, random = (learner(way) for way in WAYS)
    assert (best.goal, understand.goal, random.rule) == ("best", "understand", "random")
    assert replace(best, goal="understand") == understand
    assert replace(random, rule=None) == understand


def test_advice_equals_that_of_the_study(person: Person, course: Course) -> None:
    state = begin(learner("random"), derived_seed(PLAN.seed, 0, "demo learner"))
    curve = advice_curve(person.user, LearnerSeeker(state), PLAN.looks)
    gaps = curve[curve.metric == "advice_gap"].value.to_numpy()
    asked = curve[curve.metric == "asked_reward"].value.to_numpy()
    np.testing.assert_allclose(person.best * (1 - course.advice), gaps, atol=1e-9)
    assert course.liking.mean() == pytest.approx(asked[-1] / person.best)


def test_course_counts_comparisons_and_ends_with_the_advice(person: Person, course: Course) -> None:
    assert course.queries.tolist() == list(PLAN.looks)
    assert len(course.liking) == PLAN.queries  # the first trial is compared with nothing
    assert ((course.wrong >= 0) & (course.wrong <= 1)).all()
    final = clean_reward(person.user, course.advised)[0] / person.best
    assert course.advice[-1] == pytest.approx(final)
    assert (course.advice <= 1 + 1e-6).all()


def test_courses_do_not_depend_on_who_computes_them(course: Course) -> None:
    with ThreadPoolExecutor(1) as executor:
        found = list(courses(PLAN, executor))
    assert sorted((c.person, c.way) for c in found) == sorted(
        (number, way) for number in range(2) for way in WAYS
    )
    again = next(c for c in found if (c.person, c.way) == (0, "random"))
    np.testing.assert_array_equal(again.advice, course.advice)
    np.testing.assert_array_equal(again.liking, course.liking)
