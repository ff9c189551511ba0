"""Settings: the paper's tables, exact round trips, and what is refused."""

import dataclasses
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfihilo import Settings
from sfihilo.final_policy import SelectionSettings
from sfihilo.forward import ForwardSettings
from sfihilo.forward.recency import RecencySettings
from sfihilo.inverse import AverageSettings, InverseSettings
from sfihilo.querying import PairSettings, QuerySettings
from sfihilo.settings import NoiseSettings
from tests.small import PRESETS, RULE_NAMES


def test_tables_of_the_paper() -> None:
    paper = Settings.paper()
    assert paper.preset == "paper"
    forward, inverse, recency = paper.forward, paper.inverse, paper.recency
    assert forward.length_scales == (0.3, 0.4, 0.5, 0.6, 0.7)
    assert forward.ridges == (1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    assert (forward.validation_fraction, forward.tuning_cap, forward.warm_up) == (0.2, 1024, 16)
    assert (forward.jitter, forward.variance_floor) == (1e-10, 1e-4)
    assert (inverse.features, inverse.feature_count, inverse.orthogonal) == ("rbf", 256, False)
    assert (inverse.length_scale, inverse.weight_std) == (0.65, 1.0)
    assert (inverse.log_sharpness_mean, inverse.log_sharpness_std) == (0.0, 1.0)
    assert (inverse.iterations, inverse.samples, inverse.jitter) == (50, 512, 1e-6)
    assert (recency.trials, recency.startup_trials, recency.weight_floor) == (64, 16, 1e-4)
    assert recency.decay_times == (15.0, 400.0)
    assert recency.bandwidths == (0.02, 0.40)
    assert (paper.noise.measurement, paper.noise.reward) == (0.05, 0.02)


def test_default_preset_has_its_rule_pairs_and_inference() -> None:
    settings = Settings()
    assert (settings.rule_name, settings.forward.tuning_cap) == ("global_pairs", 512)
    assert (settings.pairs.balance, settings.pairs.settled) == (0.15, 0.1)
    inverse = settings.inverse
    assert (inverse.features, inverse.inference) == ("landmarks", "variational")
    assert (inverse.feature_count, inverse.own_noise) == (384, 0.2)


def test_records_from_before_there_was_own_noise() -> None:
    record = Settings().to_dict()
    del record["inverse"]["own_noise"]
    assert Settings.from_dict(record).inverse.own_noise is None


@pytest.mark.parametrize("make", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_round_trip_through_json(make: Any, rule: str) -> None:
    settings = make(
        3,
        5,
        rule=rule,
        recency=RecencySettings(variant="known", decay_time=33.3),
        noise=NoiseSettings(measurement=0.1 + 0.2, reward=1 / 3),
    )
    again = Settings.from_dict(json.loads(json.dumps(settings.to_dict())))
    assert again == settings
    assert hash(again) == hash(settings)
    assert isinstance(again.forward.ridges, tuple)


def test_name_of_a_preset_gives_its_tables() -> None:
    assert Settings(preset="paper") == Settings.paper()
    assert Settings(preset="default") == Settings()
    linear = InverseSettings(features="linear")
    changed = Settings(preset="paper", inverse=linear)
    assert changed == Settings.paper(inverse=linear)
    assert (changed.average, changed.forward) == (None, ForwardSettings())


def test_name_of_a_preset_in_a_users_own_record_gives_its_tables() -> None:
    for name, make in PRESETS.items():
        assert Settings.from_dict({"preset": name, "policy_dim": 3}) == make(3)


def test_stored_default_preset_without_average_loads_without_average() -> None:
    settings = Settings(average=None)
    assert "average" not in settings.to_dict()
    assert Settings.from_dict(settings.to_dict()) == settings


@pytest.mark.parametrize("preset", ["papr", "", None, 3, ["paper"]])
def test_unknown_preset(preset: Any) -> None:
    with pytest.raises(ValueError, match="preset: expected default or paper, got"):
        Settings(preset=preset)
    with pytest.raises(ValueError, match="preset: expected default or paper, got"):
        Settings.from_dict({**Settings().to_dict(), "preset": preset})


def test_name_of_the_paper_alone_does_not_replace_the_tables() -> None:
    with pytest.raises(ValueError, match=r"preset: expected Settings\.paper"):
        dataclasses.replace(Settings(), preset="paper")


def test_stored_settings_of_which_only_the_name_was_replaced_load_as_they_asked() -> None:
    record = {**Settings(3, 2).to_dict(), "preset": "paper", "rule": "boundary_lookahead"}
    loaded = Settings.from_dict(record)
    assert loaded == Settings(3, 2, "boundary_lookahead")
    assert Settings.from_dict(json.loads(json.dumps(Settings.paper().to_dict()))).preset == "paper"


def test_stored_counts_that_were_written_as_numbers_load() -> None:
    record = Settings().to_dict()
    record["query"]["targets"] = 16.0
    assert Settings.from_dict(record) == dataclasses.replace(
        Settings(), query=QuerySettings(targets=16)
    )
    record["query"]["targets"] = 16.5
    with pytest.raises(ValueError, match="targets: expected a whole number"):
        Settings.from_dict(record)


def test_record_with_some_tables_keeps_the_average_of_the_preset() -> None:
    forward = Settings().to_dict()["forward"]
    assert Settings.from_dict({"forward": forward}) == Settings()
    assert Settings.from_dict({"preset": "default", "forward": forward}) == Settings()


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_numbers_of_other_types_become_plain(number: Any) -> None:
    settings = Settings(recall_noise=number, noise=NoiseSettings(reward=number))
    assert type(settings.recall_noise) is float
    assert settings == Settings(recall_noise=0.5, noise=NoiseSettings(reward=0.5))
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_numbers_too_large_for_a_float_are_refused() -> None:
    with pytest.raises(ValueError, match="length_scale: expected a positive number"):
        InverseSettings(length_scale=10**400)


def test_presets_take_changes() -> None:
    inverse = InverseSettings(features="linear")
    for make in PRESETS.values():
        settings = make(2, 3, inverse=inverse)
        assert (settings.policy_dim, settings.outcome_dim) == (2, 3)
        assert settings.inverse == inverse
    assert Settings().preset == "default"


def test_settings_default_warns_and_equals_settings() -> None:
    with pytest.warns(DeprecationWarning, match=r"Settings\.default is now Settings"):
        assert Settings.default(3, 5, rule="random") == Settings(3, 5, rule="random")


@pytest.mark.parametrize("rule", ["globalpairs", "", "no_such_module:rule", "math:no_rule", 3])
def test_unknown_rule_fails_when_settings_are_made(rule: Any) -> None:
    with pytest.raises(ValueError, match=r"rule: expected .*, got"):
        Settings(rule=rule)
    with pytest.raises(ValueError, match=r"rule: expected .*, got"):
        Settings.from_dict({**Settings().to_dict(), "rule": rule})


def test_users_own_rule_is_accepted_by_settings() -> None:
    assert Settings(rule="tests.small:own_rule").rule == "tests.small:own_rule"


def test_settings_are_frozen() -> None:
    settings = Settings()
    for table in (settings, settings.forward, settings.inverse, settings.query, settings.noise):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(table, dataclasses.fields(table)[0].name, 3)


@pytest.mark.parametrize("name", ["policy_dim", "outcome_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "8", None, True])
def test_wrong_sizes(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected a whole number"):
        Settings(**{name: value})


@pytest.mark.parametrize(
    "name",
    ["forward", "recency", "inverse", "average", "query", "pairs", "selection", "noise"],
)
@pytest.mark.parametrize("value", ["x", True, {}, NoiseSettings, 1])
def test_table_of_another_kind(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name}: expected \w+Settings\(\.\.\.\), got"):
        Settings(**{name: value})


def test_only_the_average_may_be_none() -> None:
    assert Settings(average=None).average is None
    with pytest.raises(ValueError, match=r"inverse: expected InverseSettings\(...\), got None"):
        Settings(inverse=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2.0, 5.0, [5], "5", None, True, 3])
def test_wrong_grades(value: Any) -> None:
    with pytest.raises(ValueError, match=r"grades: expected one of \[2, 5, 7\], got"):
        Settings(grades=value)


@pytest.mark.parametrize("value", [2.0, 1.0, [2], "2", None, True, 0, 6])
def test_wrong_recall(value: Any) -> None:
    with pytest.raises(ValueError, match="recall: expected a whole number from 1 to 5, got"):
        Settings(recall=value)


@pytest.mark.parametrize("value", ["x", None, True, [0.1], -1, float("nan"), float("inf")])
def test_wrong_recall_noise(value: Any) -> None:
    with pytest.raises(ValueError, match="recall_noise: expected a number from 0, got"):
        Settings(recall_noise=value)


def test_whole_numbers_of_numpy_become_plain() -> None:
    settings = Settings(
        np.int64(2),  # type: ignore[arg-type]
        recall=np.int32(3),  # type: ignore[arg-type]
        grades=np.int8(5),  # type: ignore[arg-type]
        inverse=InverseSettings(samples=np.int64(7), inference="variational"),  # type: ignore[arg-type]
        pairs=PairSettings(draws=tuple(np.arange(1, 4))),  # type: ignore[arg-type]
    )
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    "kind",
    [
        AverageSettings, ForwardSettings, InverseSettings, NoiseSettings, PairSettings,
        QuerySettings, RecencySettings, SelectionSettings,
    ],
)  # fmt: skip
def test_no_field_takes_a_text_for_numbers(kind: Any) -> None:
    fields = [field for field in dataclasses.fields(kind) if "str" not in str(field.type)]
    assert fields
    for field in fields:
        for wrong in ("x", ("x",), float("nan"), (float("nan"),)):
            with pytest.raises(ValueError, match=rf"{kind.__name__}\.\w+: expected"):
                kind(**{field.name: wrong})


@pytest.mark.parametrize(
    "kind", [ForwardSettings, InverseSettings, PairSettings, QuerySettings, RecencySettings,
             SelectionSettings],
)  # fmt: skip
def test_counts_are_whole_numbers(kind: Any) -> None:
    counts = [field.name for field in dataclasses.fields(kind) if field.type == "int"]
    assert counts
    for name in counts:
        for wrong in (0.5, 2.0, 2.5, True, -1, None):
            with pytest.raises(ValueError, match=rf"\.{name}: expected a whole number from"):
                kind(**{name: wrong})


@pytest.mark.parametrize("draws", [(2, 8), (2, 8, 32.0), (2, 8, 0), 2])
def test_wrong_draws(draws: Any) -> None:
    with pytest.raises(ValueError, match=r"draws: expected 3 whole numbers from 1, got"):
        PairSettings(draws=draws)


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan"), float("inf")])
def test_wrong_noise(value: float) -> None:
    with pytest.raises(ValueError, match=r"NoiseSettings\.\w+: expected a number in \[0, 1\)"):
        NoiseSettings(measurement=value)
    with pytest.raises(ValueError, match=r"NoiseSettings\.\w+: expected a number in \[0, 1\)"):
        NoiseSettings(reward=value)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (AverageSettings, {"linear": (1.0, 0.5)}),
        (AverageSettings, {"linear": (0.5, 1.0, 1.0)}),
        (AverageSettings, {"curved": (2.0, 0.0), "curved_odds": (1.0, 1.0)}),
        (AverageSettings, {"curved": (0.0, 0.0), "curved_odds": (1.0, 1.0)}),
        (AverageSettings, {"curved_odds": (1.0, 1.0)}),
        (ForwardSettings, {"jitter": -1.0}),
        (ForwardSettings, {"variance_floor": 0.0}),
        (ForwardSettings, {"initial_ridge": 0.0}),
        (ForwardSettings, {"initial_length_scale": float("nan")}),
        (ForwardSettings, {"residual": "other"}),
        (ForwardSettings, {"ridges": ()}),
        (ForwardSettings, {"ridges": (0.1, -0.1)}),
        (ForwardSettings, {"length_scales": (0.0,)}),
        (ForwardSettings, {"validation_fraction": 1.5}),
        (InverseSettings, {"features": 3}),
        (InverseSettings, {"samples": 0}),
        (InverseSettings, {"feature_count": 0}),
        (InverseSettings, {"weight_std": 0.0}),
        (InverseSettings, {"length_scale": 0.0}),
        (InverseSettings, {"tie_odds": 0.0}),
        (InverseSettings, {"log_sharpness_std": float("inf")}),
        (QuerySettings, {"targets": 0}),
        (QuerySettings, {"pool_minimum": 0}),
        (QuerySettings, {"target_samples": 0}),
        (QuerySettings, {"candidate_outcomes": -1}),
        (RecencySettings, {"variant": "sometimes"}),
        (RecencySettings, {"variant": "known"}),
        (RecencySettings, {"trials": 0}),
        (RecencySettings, {"decay_times": (400.0, 15.0)}),
        (SelectionSettings, {"pool": 0}),
    ],
)
def test_wrong_tables(kind: Any, wrong: dict[str, Any]) -> None:
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f"{name}.*expected.*got"):
        kind(**wrong)


def test_amplitudes_that_do_not_rise_are_named() -> None:
    with pytest.raises(ValueError, match=r"AverageSettings\.linear: expected rising positive .*2"):
        AverageSettings(linear=(2.0, 1.0))
    record = Settings().to_dict()
    record["average"]["curved"] = [6.0, 0.0, 2.0, 12.0, 24.0, 48.0]
    with pytest.raises(ValueError, match=r"\.curved: expected rising numbers from 0, got \(6"):
        Settings.from_dict(record)


def test_unknown_entries() -> None:
    record = Settings().to_dict()
    with pytest.raises(ValueError, match=r"settings: expected some of .* got also \['speed'\]"):
        Settings.from_dict({**record, "speed": 1})
    record["inverse"]["speed"] = 1
    with pytest.raises(ValueError, match=r"inverse: expected some of .* got also \['speed'\]"):
        Settings.from_dict(record)


def test_missing_entries_are_the_defaults() -> None:
    assert Settings.from_dict({"policy_dim": 3}) == Settings(policy_dim=3)
    assert Settings.from_dict({"inverse": {"samples": 7}}).inverse == InverseSettings(samples=7)


def test_goal_chooses_the_rule_unless_one_is_named() -> None:
    assert Settings(goal="best").rule_name == "best"
    assert Settings.paper(goal="best").rule_name == "best"
    assert Settings(goal="best", rule="thompson").rule_name == "thompson"
    assert Settings.paper().rule_name == "boundary_lookahead"
    assert dataclasses.replace(Settings(), goal="best").rule_name == "best"
    assert dataclasses.replace(Settings(goal="best"), goal="understand") == Settings()
    assert Settings(rule="global_pairs") == Settings()
    with pytest.raises(ValueError, match="goal: expected understand or best, got 'win'"):
        Settings(goal="win")  # type: ignore[arg-type]


def test_records_name_the_rule_and_only_another_goal() -> None:
    assert "goal" not in Settings().to_dict()
    assert Settings().to_dict()["rule"] == "global_pairs"
    assert Settings.paper().to_dict()["rule"] == "boundary_lookahead"
    record = Settings(goal="best").to_dict()
    assert (record["goal"], record["rule"]) == ("best", "best")
    for settings in (Settings(goal="best"), Settings(goal="best", rule="eubo"), Settings.paper()):
        assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_field_of_a_table_that_came_later_is_stored_only_where_it_differs() -> None:
    record = Settings.paper().to_dict()
    assert "common_samples" not in record["query"]
    assert Settings.from_dict(record) == Settings.paper()
    other = Settings.paper(query=QuerySettings(common_samples=False))
    assert other.to_dict()["query"]["common_samples"] is False
    assert Settings.from_dict(other.to_dict()) == other
