"""Graded answers: intervals, information, scale, people who cannot grade, saving."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sfihilo import Response, Settings, State, ask, begin, load, recommend, save, tell
from sfihilo.history import Choice, Query, known_choice
from sfihilo.inverse.grading import (
    CUTS,
    Grading,
    answer_bounds,
    answer_sensitivity,
    grades_grow,
)
from sfihilo.inverse.likelihood import ungraded_bounds
from sfihilo.querying.pairs import label_sensitivity

SEVEN = Settings(policy_dim=2, outcome_dim=2, grades=7)


def test_bounds_of_seven_grades_follow_label_and_strength() -> None:
    labels = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 1.0])
    strengths = np.array([1, 2, 3, 3, 0, 0])
    expected = [
        (1.2, 4.8),
        (-12.0, -4.8),
        (12.0, np.inf),
        (-np.inf, -12.0),
        (-1.2, 1.2),
        (0.0, np.inf),
    ]
    assert answer_bounds(labels, strengths, 7).tolist() == [list(pair) for pair in expected]


def test_two_answers_keep_the_ungraded_bounds() -> None:
    labels = np.array([1.0, -1.0, 0.0])
    bounds = answer_bounds(labels, np.zeros(3, dtype=int), 2)
    assert (bounds == ungraded_bounds(labels)).all()


@pytest.mark.parametrize("grades", [5, 7])
@pytest.mark.parametrize("mean", [-20.0, -3.0, 0.0, 0.7, 8.0])
def test_sensitivity_is_the_root_of_the_fisher_information(grades: int, mean: float) -> None:
    cuts, variance, step = np.array(CUTS[grades]), 5.0, 1e-4
    edges = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])

    def masses(margin: float) -> np.ndarray:
        return np.diff(norm.cdf((edges - margin) / np.sqrt(variance)))

    slope = (masses(mean + step) - masses(mean - step)) / (2 * step)
    fisher = np.sum(slope**2 / np.maximum(masses(mean), 1e-12))
    found = answer_sensitivity(np.array([mean]), np.array([variance]), cuts)[0]
    assert found**2 == pytest.approx(fisher, rel=1e-3, abs=1e-9)


def test_one_cut_at_zero_is_the_binary_sensitivity() -> None:
    means, variances = np.linspace(-5, 5, 21), np.full(21, 3.0)
    near_zero = answer_sensitivity(means, variances, np.array([1e-9]))
    assert near_zero == pytest.approx(label_sensitivity(means, variances), rel=1e-4)


def test_seven_grades_tell_more_than_two_at_every_margin() -> None:
    means, variances = np.linspace(-15, 15, 61), np.full(61, 4.0)
    seven = answer_sensitivity(means, variances, np.array(CUTS[7]))
    assert (seven > label_sensitivity(means, variances)).all()


def test_sensitivity_of_extreme_margins_is_finite() -> None:
    means = np.array([-1e6, 0.0, 1e6])
    for variance in (1e-6, 1.0, 1e8):
        found = answer_sensitivity(means, np.full(3, variance), np.array(CUTS[7]))
        assert np.isfinite(found).all()


def felt(gap: float, grades: int, scale: float = 1.0) -> tuple[Choice, int | None]:
    """How a person who feels this margin, in logits, grades it."""
    strength = int(np.searchsorted(scale * np.array(CUTS[grades]), abs(gap)))
    if strength == 0:
        return "same", None
    return ("new" if gap > 0 else "previous"), strength


def played(
    settings: Settings, rounds: int, scale: float = 1.0, shuffled: bool = False, seed: int = 0
) -> State:
    """A person with a linear reward of ten logits, who grades."""
    state, rng = begin(settings, seed), np.random.default_rng(seed)
    most = len(CUTS[settings.grades])
    for _ in range(rounds):
        query = ask(state)
        outcome = 0.1 + 0.8 * query.policy
        choice: Choice | None = None
        strength = None
        if query.anchor is not None:
            gap = 20 * float((outcome - query.anchor) @ [1.0, -0.5]) + rng.logistic()
            choice, strength = felt(gap, settings.grades, scale)
            if shuffled and strength is not None:
                strength = int(rng.integers(1, most + 1))
        state = tell(state, query, Response(outcome, choice, strength))
    return state


def test_graded_session_saves_and_loads_to_the_last_bit() -> None:
    state = played(SEVEN, 14)
    again = load(save(state))
    assert save(again) == save(state)
    assert again.inverse.grading == state.inverse.grading
    assert (ask(again).policy == ask(state).policy).all()
    assert recommend(again).preferred == recommend(state).preferred


def test_graded_answers_give_another_reward_than_their_signs() -> None:
    graded = played(SEVEN, 12)
    signs = replace(graded.inverse, grading=Grading(used=False))
    assert not np.array_equal(graded.inverse.answers.bounds, signs.answers.bounds)


def test_ungraded_answers_on_a_graded_scale_give_the_state_of_two_answers() -> None:
    """To the last bit, up to the first update of the scale, which two answers do not have."""
    rng = np.random.default_rng(0)
    two, seven = begin(replace(SEVEN, grades=2), 0), begin(SEVEN, 0)
    for choice in (None, "new", "previous", "previous", "new"):
        policy, outcome = rng.random(two.settings.policy_dim), rng.random(two.settings.outcome_dim)
        two, seven = (
            tell(
                state,
                Query(state.round, policy, state.history.anchor),
                Response(outcome, known_choice(choice)),
            )
            for state in (two, seven)
        )
    assert two.history.compared.sum() == 4
    assert (two.inverse.centre == seven.inverse.centre).all()
    assert (two.inverse.curvature == seven.inverse.curvature).all()


@pytest.mark.parametrize("scale", [0.4, 2.5])
def test_scale_moves_towards_the_person(scale: float) -> None:
    state = played(SEVEN, 41, scale=scale)
    assert state.inverse.grading.used
    assert (state.inverse.grading.scale > 1) == (scale > 1)


def test_grades_at_random_are_not_used() -> None:
    used = [played(SEVEN, 41, shuffled=True, seed=seed).inverse.grading.used for seed in range(5)]
    assert sum(used) <= 1


def test_true_grades_are_used() -> None:
    used = [played(SEVEN, 41, seed=seed).inverse.grading.used for seed in range(5)]
    assert sum(used) >= 4


def test_few_or_equal_grades_cannot_be_judged() -> None:
    assert grades_grow(np.array([1.2, 4.8]), np.array([3.0, -2.0]))
    assert grades_grow(np.full(30, 1.2), np.linspace(-1, 1, 30))
    assert not grades_grow(np.tile([1.2, 4.8], 15), -np.tile([1.0, 2.0], 15))


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (Response(np.array([0.5, 0.5]), "new", 4), "strength: expected 1 to 3 or None, got 4"),
        (
            Response(np.array([0.5, 0.5]), "same", 1),
            "strength: expected None with the choice 'same', got 1",
        ),
        (
            Response(np.array([0.5, 0.5]), "new", True),
            "strength: expected a whole number or None, got True",
        ),
    ],
)
def test_wrong_strength_is_refused(response: Response, message: str) -> None:
    state = begin(SEVEN, 0)
    with pytest.raises(ValueError, match=message):
        tell(state, ask(state), response)


def test_strength_without_grades_is_refused() -> None:
    state = begin(Settings(policy_dim=2, outcome_dim=2), 0)
    with pytest.raises(ValueError, match="expected None where answers are not graded, got 1"):
        tell(state, ask(state), Response(np.array([0.5, 0.5]), "new", 1))


def test_grades_are_checked_and_left_out_of_stored_settings_by_default() -> None:
    with pytest.raises(ValueError, match=r"grades: expected one of \[2, 5, 7\], got 3"):
        Settings(grades=3)
    with pytest.raises(ValueError, match="grades: expected 2 with the paper's inference, got 7"):
        Settings.paper(grades=7)
    assert "grades" not in Settings().to_dict()
    assert Settings.from_dict(SEVEN.to_dict()) == SEVEN


def test_ungraded_answers_in_a_graded_session_are_learned_from() -> None:
    state = begin(SEVEN, 0)
    answers: list[tuple[Choice | None, int | None]] = [
        (None, None), ("new", None), ("previous", 2), ("same", None)
    ]  # fmt: skip
    for choice, strength in answers:
        query = ask(state)
        state = tell(state, query, Response(0.9 * query.policy, choice, strength))
    assert state.inverse.bounds.tolist() == [[-np.inf, 0.0], [4.8, 12.0], [-1.2, 1.2]]
