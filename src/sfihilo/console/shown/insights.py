"""What was learned, as JSON: the advice with its verdict, and arrays for plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfihilo.console.shown.advised import Advised
from sfihilo.experiment import Advice, Record, Session
from sfihilo.experiment.insight import answer_course, best_ranges, drives, outcome_courses
from sfihilo.experiment.output.advice import BEST_TRIED, advise, evidence, preference_rows
from sfihilo.experiment.output.digits import percent, physical_unit, policy_words
from sfihilo.experiment.session.requirements import require_functions
from sfihilo.experiment.session.rounds import used_answers
from sfihilo.recommendation import NothingLearnedError


def advice_view(
    session: Session,
    feasible: Mapping[str, Any] | None = None,
    compare_with: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """The advice so far; `available` is False before anything was learned."""
    record, state = session.learned()
    require_functions(record)
    try:
        found = advise(record, state, feasible, compare_with)
    except NothingLearnedError as error:
        return {"available": False, "last": record.number, "why": str(error)}
    return {"available": True, "last": record.number, **_advice(record, found)}


def _advice(record: Record, found: Advice) -> dict[str, Any]:
    space = record.space
    return {
        **found.to_dict(),
        "said": verdict_parts(record, found),
        "policy": [
            {
                "name": name,
                "unit": knob.unit,
                "value": found.policy[name],
                "text": physical_unit(found.policy[name], knob),
                "fixed": knob.fixed is not None,
            }
            for name, knob in space.policy.items()
        ],
        "outcomes": [
            {
                "name": name,
                "unit": of.unit,
                **vars(found.outcomes[name]),
                "text": physical_unit(found.outcomes[name].value, of),
                "low_text": physical_unit(found.outcomes[name].low, of),
                "high_text": physical_unit(found.outcomes[name].high, of),
            }
            for name, of in space.outcomes.items()
        ],
        "preferred": [
            {"to": name, "words": words, "probability": value, "text": percent(value)}
            for name, words, value in preference_rows(record, found)
        ],
    }


def verdict_parts(record: Record, found: Advice) -> dict[str, Any]:
    """The verdict without the settings, so that a page can say it in its own language."""
    best = found.best_tried
    words = "" if best is None else policy_words(record.space, best.policy)
    if best is None:
        compared = "nothing"
    elif not found.best_is_as_good:
        compared = "better"
    else:
        compared = "same" if words == policy_words(record.space, found.policy) else "as_good"
    return {
        "compared": compared,
        "trial": None if best is None else best.trial,
        "words": words,
        "probability": found.preferred.get(BEST_TRIED),
        "evidence": evidence(found.comparisons).replace(" ", "_"),
        "cautions": [
            *(["extrapolates"] if found.extrapolates else []),
            *([] if found.one_step else ["steps"]),
            *(["grades"] if found.grades_used is False else []),
        ],
        "avoided": [{"trial": veto.trial, "pain": veto.pain} for veto in found.avoided],
    }


def insight_view(session: Session, advised: Advised) -> dict[str, Any]:
    """Arrays for plots; what needs a learned comparison is empty before there is one."""
    record, state = session.learned()
    trials, predicted, given = answer_course(record)
    found: dict[str, Any] = {
        "last": record.number,
        "available": bool(used_answers(record)),
        "answers": {"trial": trials, "predicted": predicted, "given": given},
        "outcomes": [
            {"name": name, "unit": record.space.outcomes[name].unit, **course}
            for name, course in outcome_courses(record).items()
        ],
        "curves": [],
        "best": [],
        "advice": {"trial": [], "reward": [], "low": [], "high": []},
    }
    if not found["available"]:
        return found
    found["curves"] = [
        {
            "name": drive.name,
            "unit": drive.unit,
            "share": list(drive.share),
            "effect": list(drive.effect),
            "values": drive.values.tolist(),
            "mean": drive.curve[0].tolist(),
            "low": drive.curve[1].tolist(),
            "high": drive.curve[2].tolist(),
        }
        for drive in drives(state, record.space)
    ]
    found["best"] = [
        {"unit": record.space.policy[best.name].unit, **vars(best)}
        for best in best_ranges(state, record.space)
    ]
    found["advice"] = advised.series(record, state)
    return found
