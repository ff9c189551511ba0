"""The panels of the study as data (paper: figure fig:final_results and the appendix figures).

A panel is a list of rows; a row is a condition with the rules that run in it. To add a condition
to a panel, add a row. Panels share units: a (condition, rule, preset, user) is run once, however
many panels show it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfihilo.settings import Settings
from sfihilo.study.design.conditions import BASE, Condition, Preset, Recency, Unit, file_name
from sfihilo.study.people.answering import Answering, graded

RANDOM, INFORMATION, LOOKAHEAD = "random", "mutual_information", "boundary_lookahead"
RULES = (RANDOM, INFORMATION, LOOKAHEAD)
GLOBAL_PAIRS = "global_pairs"  # the default preset's own, in the place of Boundary Lookahead
BEST = "best"  # the rule of the goal "best"
KNOWN_RULES = (*RULES, GLOBAL_PAIRS)
PRESET_RULES = {"paper": Settings.paper().rule_name, "default": Settings().rule_name}

TEN = Condition("d10", policy_dim=10, outcome_dim=10)


@dataclass(frozen=True)
class Row:
    """One condition of a panel, with the rules that run in it."""

    condition: Condition
    rules: tuple[str, ...]
    x: float
    label: str


def _dimension(dim: int) -> Condition:
    if dim == BASE.outcome_dim:
        return BASE
    return Condition(f"d{dim:02d}", policy_dim=dim, outcome_dim=dim)


def _noise(scale: float) -> Condition:
    return BASE if scale == 1 else replace(BASE, name=f"noise{scale:g}", noise_scale=scale)


def _drift(variant: Recency) -> Condition:
    return replace(BASE, name=f"drift_{variant}", drift=True, recency=variant)


def _missing(count: int) -> Condition:
    return TEN if count == 0 else replace(TEN, name=f"missing{count}", missing=count)


def _extra(count: int) -> Condition:
    return TEN if count == 0 else replace(TEN, name=f"extra{count}", extra=count)


def _choice(name: str, *changes: tuple[str, str | float]) -> Condition:
    return replace(BASE, name=name, changes=changes)


def _lifelike(name: str, **changes: Any) -> Condition:
    return replace(BASE, name=f"lifelike_{name}", early=(10, 20, 40, 60, 100, 200), **changes)


def _advice(policy_dim: int, outcome_dim: int) -> Condition:
    at = (10, 20, 40, 60, 100, 200)
    return Condition(f"advice{policy_dim}x{outcome_dim}", policy_dim, outcome_dim, advice=at)


ADVICE_AT = (20, 40, 60, 100, 150)


def _answers(name: str, answering: Answering, **changes: float) -> Condition:
    return replace(
        BASE,
        name=name,
        answering=answering,
        advice_at=ADVICE_AT,
        changes=tuple(changes.items()),
    )


# Scale and scatter of people who grade less well than the learner expects.
_MESSY = {"scale_std": 0.5, "scatter": 0.3}
# How fast simulated people forget, where they do, and what the learner is told about it.
_FORGETS = 0.5
_GRADES = (
    (_answers("two_answers", Answering()), "two answers"),
    (_answers("five_grades", graded(5)), "five grades"),
    (_answers("seven_grades", graded(7)), "seven grades"),
    (_answers("seven_messy_grades", graded(7, **_MESSY)), "seven grades, messy people"),
    (_answers("recall3", Answering(), recall=3), "two answers, recall 3"),
    (_answers("recall5", Answering(), recall=5), "two answers, recall 5"),
    (
        _answers("recall5_forgetful", Answering(memory=_FORGETS), recall=5, recall_noise=_FORGETS),
        "two answers, recall 5, forgetful people",
    ),
)

_STANDARD = (Row(BASE, RULES, 8, "d = 8"),)
_HIDDEN = (0, 1, 2, 3, 5)

PANELS: dict[str, tuple[Row, ...]] = {
    "A": _STANDARD,
    "B": _STANDARD,
    "C": tuple(Row(_dimension(dim), RULES, dim, str(dim)) for dim in (2, 4, 6, 8, 10, 12)),
    "D": _STANDARD,
    "E": tuple(
        Row(_noise(scale), RULES, scale, "none" if scale == 0 else f"{scale:g}x")
        for scale in (0, 0.5, 1, 2)
    ),
    "F": (
        Row(BASE, (LOOKAHEAD,), 0, "Gaussian process"),
        Row(replace(BASE, name="linear", reward="linear"), (LOOKAHEAD,), 1, "linear"),
    ),
    "G": (
        Row(_drift("unweighted"), (LOOKAHEAD,), 0, "unweighted"),
        Row(_drift("known"), (LOOKAHEAD,), 1, "known decay"),
        Row(_drift("learned"), (LOOKAHEAD,), 2, "learned decay"),
    ),
    "H": tuple(
        Row(_missing(count), (LOOKAHEAD,) if count else (RANDOM, LOOKAHEAD), count, str(count))
        for count in _HIDDEN
    ),
    "I": tuple(
        Row(_extra(count), (LOOKAHEAD,) if count else (RANDOM, LOOKAHEAD), count, str(count))
        for count in _HIDDEN
    ),
    "diagnostics": (),  # pictures of the users themselves: nothing to run
    "extrapolation": _STANDARD,
    "gap": _STANDARD,
}

# What the paper leaves open or does not study; run only when named.
BEYOND: dict[str, tuple[Row, ...]] = {
    "choices": (
        Row(BASE, RULES, 0, "as in the study"),
        Row(
            replace(BASE, name="judges_true", judges="true"),
            RULES,
            1,
            "the person judges the true outcome, not the measured one",
        ),
        Row(
            _choice("leave_one_out", ("forward.residual", "leave_one_out")),
            RULES,
            2,
            "forward residuals left out one by one, not of the training data",
        ),
        Row(
            _choice("other_targets", ("query.own_target", False)),
            (LOOKAHEAD,),
            3,
            "a candidate is not measured at itself (section 3, not the algorithm)",
        ),
        Row(
            _choice("plain_labels", ("noise.reward", 0.0)),
            (INFORMATION,),
            4,
            "Mutual Information by plain label probabilities (eq:mi_baseline, section 3)",
        ),
        Row(
            _choice("new_target_samples", ("query.common_samples", False)),
            (LOOKAHEAD,),
            5,
            "target samples drawn anew for every candidate",
        ),
    ),
    # People who are less like the learner's prior, evaluated from the first answers on.
    "lifelike": tuple(
        Row(condition, (LOOKAHEAD,), place, label)
        for place, (condition, label) in enumerate(
            (
                (_lifelike("standard"), "the study's people"),
                (_lifelike("judgement3", judgement=3.0), "judgement noise 3x"),
                (_lifelike("judgement6", judgement=6.0), "judgement noise 6x"),
                (_lifelike("linear", shape="linear"), "linear reward"),
                (_lifelike("saturating", shape="saturating"), "monotone reward with saturation"),
                (_lifelike("optimum", shape="optimum"), "one optimum inside the range"),
                (_lifelike("lapses", lapses=0.05), "5 % of answers at random"),
                (_lifelike("true_outcome", judges="true"), "judges the true outcome"),
            )
        )
    ),
    # The recommended policy against the best reachable one, for both goals (200 queries).
    "advice": tuple(
        Row(condition, (RANDOM, LOOKAHEAD, BEST), place, label)
        for place, (condition, label) in enumerate(
            (
                (_advice(2, 2), "2 parameters, 2 outcomes"),
                (_advice(4, 4), "4 parameters, 4 outcomes"),
                (_advice(4, 6), "4 parameters, 6 outcomes"),
                (_advice(8, 8), "8 parameters, 8 outcomes"),
                (replace(_advice(4, 4), name="advice4x4_linear", shape="linear"), "linear reward"),
                (
                    replace(_advice(4, 4), name="advice4x4_optimum", shape="optimum"),
                    "one optimum inside the range",
                ),
                (
                    replace(_advice(4, 4), name="advice4x4_judgement3", judgement=3.0),
                    "judgement noise 3x",
                ),
                (
                    replace(_advice(4, 4), name="advice4x4_true_outcome", judges="true"),
                    "judges the true outcome",
                ),
            )
        )
    ),
    # Of the default preset: other answers, and other trials to compare with.
    "grades": tuple(
        Row(condition, (LOOKAHEAD,), place, label)
        for place, (condition, label) in enumerate(_GRADES)
    ),
    # Of the paper preset (`--preset paper`): one part of the default preset on at a time.
    "alone": (
        Row(BASE, (LOOKAHEAD, GLOBAL_PAIRS), 0, "the paper preset, and with the other rule"),
        Row(
            _choice("landmarks", ("inverse.features", "landmarks"), ("inverse.feature_count", 384)),
            (LOOKAHEAD,),
            1,
            "landmarks",
        ),
        Row(
            _choice(
                "variational",
                ("inverse.inference", "variational"),
                ("inverse.log_sharpness_mean", math.log(20)),
                ("inverse.log_sharpness_std", 0.5),
            ),
            (LOOKAHEAD,),
            2,
            "variational inference",
        ),
    ),
    # Of the default preset (`--preset default`): one part of it off at a time.
    "ablation": (
        Row(BASE, RULES, 0, "whole"),
        Row(
            _choice(
                "fourier",
                ("inverse.features", "rbf"),
                ("inverse.feature_count", 512),
                ("inverse.orthogonal", True),
            ),
            (LOOKAHEAD,),
            1,
            "512 orthogonal Fourier features, not landmarks",
        ),
        Row(
            _choice(
                "wide_sharpness",
                ("inverse.log_sharpness_mean", math.log(12)),
                ("inverse.log_sharpness_std", 0.7),
            ),
            (LOOKAHEAD,),
            2,
            "sharpness around 12 with 0.7, not around 20 with 0.5",
        ),
        Row(
            _choice("no_growth", ("pairs.settled", 0)),
            (LOOKAHEAD,),
            3,
            "a fixed exponent of the forward factor",
        ),
        Row(_choice("no_local", ("pairs.local_starts", 0)), (LOOKAHEAD,), 4, "no local search"),
        Row(_choice("no_past", ("pairs.past", 0)), (LOOKAHEAD,), 5, "no executed policies in it"),
        Row(
            _choice("no_forward", ("pairs.balance", 0)),
            (LOOKAHEAD,),
            6,
            "no forward factor at all",
        ),
    ),
}
EVERY_PANEL = {**PANELS, **BEYOND}

TITLES: dict[str, str] = {
    "A": "learning curves of three query rules",
    "B": "by true reward gap",
    "C": "outcome dimensionality",
    "D": "forward RMSE area under the curve",
    "E": "noise level",
    "F": "Gaussian process against linear reward",
    "G": "motor adaptation, three recency variants",
    "H": "missing outcomes",
    "I": "extra outcomes",
    "diagnostics": "appendix: simulated users",
    "extrapolation": "appendix: estimating queries to 10 %",
    "gap": "appendix: final policy reward gap",
    "choices": "beyond: what the paper leaves open",
    "grades": "beyond: graded answers, and which trial is compared with",
    "lifelike": "beyond: people who are more like real ones",
    "advice": "beyond: the recommended setting, for both goals",
    "alone": "beyond: the paper preset, one part of the default on at a time",
    "ablation": "beyond: the default preset, one part off at a time",
}


_PLACES = {
    "C": "d = {}",
    "E": "noise {}",
    "F": "{} reward",
    "G": "drift, {}",
    "H": "{} missing",
    "I": "{} extra",
}


def condition_labels() -> dict[str, str]:
    """The labels of the conditions of the paper's panels, in the order of the panels."""
    labels = {BASE.name: "standard"}
    for panel, text in _PLACES.items():
        for row in PANELS[panel]:
            labels.setdefault(row.condition.name, text.format(row.label))
    return labels


def panel_rows(panels: Sequence[str]) -> list[Row]:
    """The rows of the named panels (all of the paper's if none), each (condition, rule) once."""
    unknown = [name for name in panels if name not in EVERY_PANEL]
    if unknown:
        raise ValueError(f"panel: expected one of {', '.join(EVERY_PANEL)}, got {unknown[0]!r}")
    seen: set[tuple[Condition, str]] = set()
    rows = []
    for name in panels or PANELS:
        for row in EVERY_PANEL[name]:
            rules = tuple(rule for rule in row.rules if (row.condition, rule) not in seen)
            seen.update((row.condition, rule) for rule in rules)
            if rules:
                rows.append(replace(row, rules=rules))
    return rows


def preset_rule(preset: str) -> str:
    """The query rule of a preset's settings; that of the paper for a name that is no preset."""
    return PRESET_RULES.get(preset, PRESET_RULES["paper"])


def for_preset(rows: Sequence[Row], preset: str) -> list[Row]:
    """The same rows with the preset's own rule instead of Boundary Lookahead."""
    own = {LOOKAHEAD: preset_rule(preset)}
    return [replace(row, rules=tuple(own.get(rule, rule) for rule in row.rules)) for row in rows]


def with_rules(rows: Sequence[Row], rules: Sequence[str]) -> list[Row]:
    """The same conditions under other rules (a user's own), each condition once."""
    conditions = dict.fromkeys(row.condition for row in rows)
    labels = {row.condition: row for row in reversed(rows)}
    return [replace(labels[condition], rules=tuple(rules)) for condition in conditions]


def with_reward(rows: Sequence[Row], reward: str) -> list[Row]:
    """The same rows under another reward model (a user's own "module:function")."""
    return [
        replace(
            row,
            condition=replace(
                row.condition, name=f"{row.condition.name}-{file_name(reward)}", reward=reward
            ),
        )
        for row in rows
        if row.condition.reward == "rbf"
    ]


def units_of(
    rows: Sequence[Row], users: Sequence[int], preset: Preset, template: Unit | None = None
) -> list[Unit]:
    """All units of the rows, ordered by user: a study stopped early has whole users.

    ``template`` holds what all units share: queries, study seed, evaluation and user settings.
    """
    template = template or Unit(BASE, RANDOM, preset, 0)
    return [
        replace(template, condition=row.condition, rule=rule, preset=preset, user=user)
        for user in users
        for row in rows
        for rule in row.rules
    ]
