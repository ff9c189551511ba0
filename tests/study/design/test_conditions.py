"""The panels are the paper's, and every unit is run once."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace

import pytest

from sfihilo import Settings
from sfihilo.study.design import conditions as cs
from sfihilo.study.design import panels
from sfihilo.study.people.answering import Answering, graded
from tests.study.tiny import TINY, tiny_unit


def rows(panel: str) -> list[cs.Condition]:
    return [row.condition for row in panels.PANELS[panel]]


def test_panels_have_the_papers_conditions() -> None:
    assert [c.outcome_dim for c in rows("C")] == [2, 4, 6, 8, 10, 12]
    assert all(c.policy_dim == c.outcome_dim for c in rows("C"))
    assert [c.noise_scale for c in rows("E")] == [0, 0.5, 1, 2]
    assert [c.reward for c in rows("F")] == ["rbf", "linear"]
    assert [c.recency for c in rows("G")] == ["unweighted", "known", "learned"]
    assert all(c.drift for c in rows("G"))
    assert [(c.missing, c.visible) for c in rows("H")] == [(0, 10), (1, 9), (2, 8), (3, 7), (5, 5)]
    assert [(c.extra, c.visible) for c in rows("I")] == [
        (0, 10),
        (1, 11),
        (2, 12),
        (3, 13),
        (5, 15),
    ]
    assert all(c.outcome_dim == 10 for panel in "HI" for c in rows(panel))
    for panel in "ABD":
        assert panels.PANELS[panel][0].rules == panels.RULES
    assert set(panels.TITLES) == set(panels.EVERY_PANEL)


def test_panels_share_their_units() -> None:
    units = panels.units_of(panels.panel_rows([]), range(30), "paper")
    keys = [unit.key for unit in units]
    assert len(set(keys)) == len(keys) == 39 * 30
    only_a = panels.units_of(panels.panel_rows(["A"]), range(30), "paper")
    assert {unit.key for unit in only_a} < set(keys)
    together = panels.units_of(panels.panel_rows(["A", "B", "D", "gap"]), range(30), "paper")
    assert together == only_a


def test_condition_names_are_unique() -> None:
    named: dict[str, cs.Condition] = {}
    for rows_ in panels.PANELS.values():
        for row in rows_:
            assert named.setdefault(row.condition.name, row.condition) == row.condition


def test_units_are_ordered_by_user() -> None:
    units = panels.units_of(panels.panel_rows(["A", "F"]), range(3), "paper")
    assert [unit.user for unit in units] == [0] * 4 + [1] * 4 + [2] * 4


def test_unknown_panel_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"panel: expected one of A, B.*, got 'Z'"):
        panels.panel_rows(["A", "Z"])


def test_seeds_depend_on_user_and_purpose_only() -> None:
    seeds = {
        cs.derived_seed(2026, user, purpose)
        for user in range(50)
        for purpose in ("user", "learner")
    }
    assert len(seeds) == 100
    first = cs.simulated_user(tiny_unit("random"))
    second = cs.simulated_user(tiny_unit("boundary_lookahead", preset="default"))
    assert first.seed == second.seed == cs.derived_seed(2026, 0, "user")


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_learner_settings_contain_what_a_lab_knows(preset: cs.Preset) -> None:
    condition = replace(TINY, noise_scale=2, missing=1, reward="linear")
    settings = cs.learner_settings(tiny_unit("random", condition=condition, preset=preset))
    assert settings.preset == preset
    assert settings.rule_name == "random"
    assert (settings.policy_dim, settings.outcome_dim) == (2, 1)
    assert (settings.noise.measurement, settings.noise.reward) == (0.10, 0.04)
    assert settings.inverse.features == "linear"


def test_without_changes_the_learner_has_the_presets_settings() -> None:
    unit = cs.Unit(cs.BASE, panels.LOOKAHEAD, "paper", 0)
    assert cs.learner_settings(unit) == Settings.paper()


def test_known_decay_uses_the_time_constant_of_the_user() -> None:
    condition = replace(TINY, drift=True, recency="known")
    settings = cs.learner_settings(tiny_unit(condition=condition))
    assert settings.recency.variant == "known"
    assert settings.recency.decay_time == pytest.approx(66.76, abs=0.01)
    person = cs.simulated_user(tiny_unit(condition=condition))
    assert person.time_constant == settings.recency.decay_time


def test_own_rules_and_reward_models_get_their_own_keys() -> None:
    ruled = panels.with_rules(panels.panel_rows(["A", "F"]), ["mine:rule"])
    assert [(row.condition.name, row.rules) for row in ruled] == [
        ("base", ("mine:rule",)),
        ("linear", ("mine:rule",)),
    ]
    rewarded = panels.with_reward(panels.panel_rows(["A", "F"]), "mine:bumps")
    assert [row.condition.name for row in rewarded] == ["base-mine.bumps"]
    unit = panels.units_of(ruled, [0], "paper")[0]
    assert unit.key == "base--mine.rule--u000"


def test_a_preset_asks_by_its_own_rule() -> None:
    rows = panels.panel_rows(["A", "F"])
    assert panels.for_preset(rows, "paper") == rows
    own = Settings().rule_name
    assert [row.rules for row in panels.for_preset(rows, "default")] == [
        ("random", "mutual_information", own),
        (own,),
    ]


def test_a_condition_is_plain_data() -> None:
    """So that a unit is stored with everything that made it."""
    changed = panels._choice("other", ("forward.residual", "leave_one_out"), ("pairs.balance", 0.5))
    seven = panels._answers("seven", graded(7, scatter=0.3), recall=3)
    for condition in (TINY, changed, seven):
        record = json.loads(json.dumps(asdict(condition)))
        assert set(record) == {field.name for field in fields(cs.Condition)}
        record["changes"] = tuple(tuple(change) for change in record["changes"])
        for name in ("early", "advice", "advice_at"):
            record[name] = tuple(record[name])
        answering = record.pop("answering")
        answering["thresholds"] = tuple(answering["thresholds"])
        record["answering"] = Answering(**answering)
        assert cs.Condition(**record) == condition


def test_open_choices_run_only_when_named() -> None:
    assert not set(panels.BEYOND) & set(panels.PANELS)
    for name in panels.BEYOND:
        for unit in panels.units_of(panels.panel_rows([name]), [0], "default"):
            cs.learner_settings(unit)  # every change is a setting that there is
    named = {row.condition.name for row in panels.panel_rows(["choices"])}
    every = {row.condition.name for row in panels.panel_rows([])}
    assert named - every == {
        "judges_true",
        "leave_one_out",
        "other_targets",
        "plain_labels",
        "new_target_samples",
    }


def test_a_condition_changes_settings_by_their_names() -> None:
    changes = (("forward.residual", "leave_one_out"), ("inverse.iterations", 500))
    unit = replace(tiny_unit(), condition=replace(TINY, changes=changes))
    plain, changed = cs.learner_settings(tiny_unit()), cs.learner_settings(unit)
    assert changed.forward == replace(plain.forward, residual="leave_one_out")
    assert changed.inverse == replace(plain.inverse, iterations=500)
    assert changed.query == plain.query
    with pytest.raises(TypeError):
        cs.learner_settings(replace(unit, condition=replace(TINY, changes=(("forward.x", 1),))))
