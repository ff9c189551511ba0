"""The reward from a plain table, against the loop told the same comparisons."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfihilo import Response, Settings, begin, reward_from_comparisons, tell
from sfihilo.history import FloatArray, Query
from sfihilo.inverse import AverageSettings, InverseSettings, RewardAverage, RewardPosterior
from sfihilo.state import State


def told(settings: Settings, outcomes: FloatArray, weights: FloatArray) -> State:
    """A session in which consecutive outcomes are compared."""
    state = begin(replace(settings, policy_dim=1, outcome_dim=outcomes.shape[1]), seed=3)
    for round, outcome in enumerate(outcomes):
        anchor = state.history.anchor
        choice = None
        if anchor is not None:
            choice = "previous" if anchor @ weights > outcome @ weights else "new"
        query = Query(round, np.array([0.5]), anchor)
        state = tell(state, query, Response(outcome, choice))  # type: ignore[arg-type]
    return state


@pytest.mark.parametrize(
    ("settings", "kind"),
    [(Settings(), RewardAverage), (replace(Settings(), average=None), RewardPosterior)],
    ids=["average", "before"],
)
def test_table_of_a_session_predicts_as_the_session(settings: Settings, kind: type) -> None:
    outcomes = np.random.default_rng(0).uniform(size=(30, 2))  # beyond the first reselection
    weights = np.array([1.0, -0.5])
    state = told(settings, outcomes, weights)
    first, second = outcomes[:-1], outcomes[1:]
    answers = np.sign((first - second) @ weights)
    reward = reward_from_comparisons(first, second, answers, settings, seed=3)
    assert isinstance(reward, kind)
    some, other = np.random.default_rng(1).uniform(size=(2, 20, 2))
    expected = state.posterior().preference(some, other)
    # The session starts each fit from the one before; both are the same optimum.
    assert reward.preference(some, other) == pytest.approx(expected, abs=0.01)
    assert np.ptp(expected) > 0.2


@pytest.mark.parametrize("average", [Settings().average, None])
def test_same_tells_as_much_as_the_settings_say(average: AverageSettings | None) -> None:
    rng = np.random.default_rng(4)
    first, second = rng.uniform(size=(2, 12, 2))
    answers = np.where(np.arange(12) < 6, 0.0, np.sign(first[:, 0] - second[:, 0]))
    predicted = [
        reward_from_comparisons(
            first,
            second,
            answers,
            replace(
                Settings(), average=average, inverse=replace(Settings().inverse, tie_odds=odds)
            ),
        ).preference(first, second)
        for odds in (0.1, 1.0)
    ]
    assert np.abs(predicted[0] - predicted[1]).max() > 1e-3


def test_words_and_numbers_are_the_same_answers() -> None:
    first, second = np.random.default_rng(0).uniform(size=(2, 3, 2))
    words = reward_from_comparisons(first, second, ["first", "second", "same"])
    numbers = reward_from_comparisons(first, second, np.array([1, -1, 0]))
    assert (words.preference(first, second) == numbers.preference(first, second)).all()


def test_no_comparisons_leave_the_prior() -> None:
    nothing = np.empty((0, 3))
    some = np.random.default_rng(0).uniform(size=(2, 4, 3))
    for settings in (Settings(), Settings.paper()):
        reward = reward_from_comparisons(nothing, nothing, [], settings)
        assert reward.preference(*some) == pytest.approx(np.full(4, 0.5), abs=0.1)


PRESETS = [Settings(), replace(Settings(), average=None), Settings.paper()]


@pytest.mark.parametrize("settings", PRESETS, ids=["average", "before", "paper"])
def test_reward_takes_outcomes_of_any_number_type(settings: Settings) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(size=(2, 6, 2))
    reward = reward_from_comparisons(first, second, [1, -1, 0, 1, 1, -1], settings)
    one, other = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    for kind in (int, bool, list):
        some, others = (
            part.tolist() if kind is list else part.astype(kind) for part in (one, other)
        )
        assert (reward.preference(some, others) == reward.preference(one, other)).all()
        assert (reward.better(some, others) == reward.better(one, other)).all()
        assert (reward.mean_reward(some) == reward.mean_reward(one)).all()
        assert (reward.reward_samples(some) == reward.reward_samples(one)).all()
    single = reward.reward_samples(one.astype(np.float32))
    assert single.dtype == np.float32


OWN_FEATURES = [
    Settings.paper(inverse=InverseSettings(features=name))
    for name in ("linear", "tests.small:own_features")
]


@pytest.mark.parametrize(
    "settings", PRESETS + OWN_FEATURES, ids=["average", "before", "paper", "linear", "own"]
)
@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ([[0.2, np.nan]], "outcomes: expected finite numbers"),
        ([[0.2, np.inf]], "outcomes: expected finite numbers"),
        ([[0.2, None]], "outcomes: expected finite numbers"),
        ([["0.2", "0.3"]], "outcomes: expected finite numbers"),
        ([0.2, 0.3], r"outcomes: expected rows of 2 numbers, got shape \(2,\)"),
        ([[0.2, 0.3, 0.4]], r"outcomes: expected rows of 2 numbers, got shape \(1, 3\)"),
        ([[0.2]], r"outcomes: expected rows of 2 numbers, got shape \(1, 1\)"),
    ],
)
def test_reward_of_no_outcomes_is_refused(
    settings: Settings, outcome: list[object], message: str
) -> None:
    reward = reward_from_comparisons([[0.2, 0.3]], [[0.4, 0.1]], ["first"], settings)
    wrong, right = np.array(outcome), np.array([[0.4, 0.1]])
    for predict in (reward.preference, reward.better):
        for pair in ((wrong, right), (right, wrong)):
            with pytest.raises(ValueError, match=message):
                predict(*pair)
    for predict_one in (reward.mean_reward, reward.reward_samples):
        with pytest.raises(ValueError, match=message):
            predict_one(wrong)


@pytest.mark.parametrize(
    ("first", "second", "answers", "message"),
    [
        ([[0.2]], [[1.2]], ["first"], r"second: expected finite numbers in \[0, 1\]"),
        ([[float("nan")]], [[0.2]], ["first"], "first: expected finite numbers"),
        ([0.2], [0.3], ["first"], "first: expected one row per comparison"),
        ([["x"]], [[0.2]], ["first"], "first: expected rows of numbers"),
        ([[0.2, 0.1]], [[0.2, np.inf]], ["first"], "second: .* got inf in row 0, column 1"),
        (np.ma.masked_less([[0.2]], 0.5), [[0.2]], ["first"], "first: .* got nan in row 0"),
        ([["x"] * 999], [[0.2]], ["first"], "first: expected rows of numbers, got .{,99}$"),
        ([[0.2]], [[0.3]], [True], "answers: expected first, second, same, 1, -1 or 0, got True"),
        ([[0.2]], [[0.3]], np.array([False]), "answers: expected first, second, same"),
        ([[0.2]], [[0.3]], [[1]], "answers: expected first, second, same"),
        ([[0.2]], [[0.3]], np.ones((1, 1)), "answers: expected first, second, same"),
        ([[0.2]], [[0.3]], [float("nan")], "answers: expected first, second, same"),
        ([[0.2]], [[0.3]], 1, "answers: expected one for each comparison, got 1"),
        ([[0.2]], [[0.3]], np.array(1), "answers: expected one for each comparison"),
        ([[0.2]], [[0.3]], None, "answers: expected one for each comparison, got None"),
        ([[0.2]], [[0.3]], ["left"], "answers: expected first, second, same"),
        ([[0.2]], [[0.3]], ["first", "second"], "expected as many rows"),
        ([[0.2]], [[0.3, 0.1]], ["first"], "expected as many rows"),
    ],
)
def test_wrong_tables_are_refused(first: list, second: list, answers: list, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=message):
        reward_from_comparisons(first, second, answers)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": "paper"}, "settings: expected Settings"),
        ({"settings": None}, "settings: expected Settings"),
        ({"seed": 1.5}, "seed: expected a whole number from 0, got 1.5"),
        ({"seed": None}, "seed: expected a whole number from 0, got None"),
        ({"seed": -1}, "seed: expected a whole number from 0, got -1"),
    ],
)
def test_other_settings_and_seeds_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reward_from_comparisons([[0.1]], [[0.2]], ["first"], **changes)
