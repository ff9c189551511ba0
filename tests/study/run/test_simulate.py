"""One unit, start to end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfihilo import State, recommend
from sfihilo.study.design.conditions import Condition, learner_settings, simulated_user
from sfihilo.study.people.answering import graded
from sfihilo.study.run.simulate import run_unit, unit_interaction
from tests.study.tiny import TINY, tiny_unit


def test_a_unit_gives_a_tidy_curve_at_the_checkpoints() -> None:
    table = run_unit(tiny_unit("random", queries=27))
    assert list(table.columns) == ["query", "metric", "value"]
    assert not table.duplicated(["query", "metric"]).any()
    assert np.isfinite(table["value"]).all()
    assert sorted(set(table["query"])) == [16, 25, 27]
    curve = table[table["metric"] == "preference_error"]
    assert curve["query"].tolist() == [16, 25, 27]
    assert table[table["metric"] == "final_policy_gap"]["query"].tolist() == [27]
    assert set(table[table["metric"].str.startswith("reliability")]["query"]) == {27}


def test_the_balanced_error_is_the_mean_of_the_bins() -> None:
    table = run_unit(tiny_unit(queries=5)).set_index("metric")["value"]
    bins = [table[f"preference_error_gap{index}"] for index in (1, 2, 3, 4)]
    assert table["preference_error"] == pytest.approx(np.mean(bins))
    counts = [table.get(f"reliability_{index:02d}_count", 0) for index in range(10)]
    assert sum(counts) == 4 * 20


def test_queries_count_comparisons() -> None:
    unit = tiny_unit(queries=3)
    states = list(unit_interaction(unit, simulated_user(unit)))
    assert [count for count, _ in states] == [0, 1, 2, 3]
    for count, state in states:
        assert len(state.history) == count + 1
        assert len(state.history.preference_data().labels) == count


def test_interaction_equals_ask_and_tell_with_respond() -> None:
    from sfihilo import ask, begin, tell
    from sfihilo.study.design.conditions import derived_seed

    unit = tiny_unit("mutual_information", queries=6)
    user = simulated_user(unit)
    state = begin(learner_settings(unit), derived_seed(unit.study_seed, unit.user, "learner"))
    for _ in range(7):
        query = ask(state)
        state = tell(state, query, user.respond(query))
    *_, (_, last) = unit_interaction(unit, user)
    np.testing.assert_array_equal(state.history.policies, last.history.policies)
    assert state.history.choices == last.history.choices


@pytest.mark.parametrize(
    "condition",
    [
        replace(TINY, outcome_dim=3, missing=2),
        replace(TINY, extra=2),
        replace(TINY, judges="true"),
        replace(TINY, noise_scale=0),
        replace(TINY, noise_scale=2),
        replace(TINY, reward="linear"),
        replace(TINY, drift=True),
        replace(TINY, drift=True, recency="known"),
        replace(TINY, drift=True, recency="learned"),
    ],
    ids=lambda condition: condition.recency + str(condition.visible),
)
def test_unit_of_every_kind_of_condition_gives_finite_metrics(condition: Condition) -> None:
    table = run_unit(tiny_unit(condition=condition, queries=17))
    assert np.isfinite(table["value"]).all()
    names = set(table["metric"])
    assert ("decay_time" in names) == (condition.recency != "unweighted")


def test_the_learner_of_missing_outcomes_never_sees_them() -> None:
    unit = tiny_unit(condition=replace(TINY, outcome_dim=3, missing=2), queries=4)
    *_, (_, last) = unit_interaction(unit, simulated_user(unit))
    assert last.history.outcomes.shape == (5, 1)


def test_forward_error_falls_with_more_queries() -> None:
    table = run_unit(tiny_unit("random", queries=75))
    errors = table[table["metric"] == "forward_rmse"].set_index("query")["value"]
    assert errors[75] < errors[16]


def test_unit_without_queries_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one query"):
        run_unit(tiny_unit(queries=0))


def last_state(condition: Condition, queries: int) -> State:
    unit = tiny_unit("global_pairs", condition=condition, queries=queries, preset="default")
    *_, (_, state) = unit_interaction(unit, simulated_user(unit))
    return state


def test_graded_condition_teaches_the_learner_strengths() -> None:
    state = last_state(replace(TINY, answering=graded(5)), 12)
    assert state.settings.grades == 5
    answers = set(zip(state.history.choices[1:], state.history.strengths[1:], strict=True))
    assert {strength for _, strength in answers} <= {None, 1, 2}
    assert {strength for _, strength in answers} >= {1, 2}
    assert all((strength is None) == (choice == "same") for choice, strength in answers)


def test_recall_condition_compares_with_the_experience_of_the_named_round() -> None:
    condition = replace(TINY, noise_scale=0, changes=(("recall", 5),))
    unit = tiny_unit("global_pairs", condition=condition, queries=20, preset="default")
    user = simulated_user(unit)
    *_, (_, state) = unit_interaction(unit, user)
    history = state.history
    assert (np.arange(21) - history.compared_with)[1:].max() > 1
    rewards = user.rewards(history.outcomes)
    for round in range(1, 21):
        better = rewards[round] > rewards[history.compared_with[round]]
        assert history.choices[round] == ("new" if better else "previous")


def test_advice_is_evaluated_where_a_condition_asks_for_it() -> None:
    unit = tiny_unit(condition=replace(TINY, advice_at=(3, 7)), queries=9)
    table = run_unit(unit)
    advice = table[table["metric"] == "advice_reward"]
    assert advice["query"].tolist() == [3, 7]
    user = simulated_user(unit)
    states = dict(unit_interaction(unit, user))
    policy = recommend(states[7]).policy
    expected = user.rewards(user.outcomes(policy[None]))[0]
    assert advice["value"].tolist()[1] == expected


def test_grades_of_the_paper_preset_are_refused() -> None:
    unit = tiny_unit(condition=replace(TINY, answering=graded(7)))
    with pytest.raises(ValueError, match="grades: expected 2 with the paper's inference"):
        learner_settings(unit)
