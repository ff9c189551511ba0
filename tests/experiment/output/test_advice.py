"""Advice says what is known: a verdict, probabilities against what was tried, what is avoided."""

import re
from dataclasses import replace

import numpy as np
import pytest

import sfihilo
from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space
from sfihilo.experiment.output import advice as advising
from sfihilo.experiment.output.digits import percent, told_apart
from sfihilo.experiment.output.report import report
from sfihilo.inverse.grading import Grading
from sfihilo.recommendation import BEST_TRIED, LAST_TRIED
from tests.experiment.people import LEAN, Person, finish

SPACE = Space(
    policy={
        "torque": Parameter(0, 60, unit="Nm"),
        "timing": Parameter(0, 1),
        "gain": Parameter(0, 2, fixed=1),
    },
    outcomes={"effort": Outcome(2, 8, unit="W/kg"), "comfort": Outcome(0, 10)},
)


@pytest.fixture
def session(lab: Lab) -> Session:
    """Twelve comparisons."""
    made = lab.create(SPACE, "P1", 1, settings=LEAN)
    Person(SPACE, 5).walk(made, 13)
    return made


def test_advice_names_are_those_of_the_learner() -> None:
    assert (advising.BEST_TRIED, advising.LAST_TRIED) == (BEST_TRIED, LAST_TRIED)


def test_advice_has_the_learner_s_own_numbers_in_physical_units(session: Session) -> None:
    advice, found = session.recommend(), sfihilo.recommend(session.state)
    assert advice.comparisons == found.comparisons == int(session.state.history.compared.sum())
    assert advice.preferred == dict(found.preferred)
    assert advice.policy["torque"] == pytest.approx(60 * found.policy[0])
    assert advice.reward.low == found.reward_low
    assert advice.reward.low < advice.reward.value < advice.reward.high
    assert found.best_tried is not None
    assert advice.best_tried is not None
    assert session.record.trial(advice.best_tried.trial).unit == tuple(found.best_tried)
    assert advice.last_tried is not None
    assert advice.last_tried.trial == 13
    assert advice.grades_used is None


def test_verdict_is_one_sentence_with_probability_and_evidence(session: Session) -> None:
    advice = session.recommend()
    assert advice.best_tried is not None
    number = session.state.history.compared.sum()
    torques = [float(text) for text in re.findall(r"torque ([\d.]+) Nm, ", advice.verdict)]
    assert torques[-1] == pytest.approx(advice.policy["torque"], abs=0.06)
    first = "Keep" if advice.best_is_as_good else "Set"
    assert advice.verdict.startswith(f"{first} torque ")
    assert f"trial {advice.best_tried.trial}" in advice.verdict
    assert advice.verdict.endswith(f"; {number} comparisons, so the interval is wide.")
    assert "gain" not in advice.verdict  # fixed: there is nothing to set
    assert advice.verdict.count(". ") == 0


@pytest.mark.parametrize(
    ("probability", "policy", "said"),
    [
        (0.83, [0.9, 0.9], "Set torque 54 Nm, timing 0.9; 83 % likely preferred to the best "
         "setting tried so far (trial 2); 12 comparisons, so the interval is wide."),
        (0.52, [0.9, 0.9], "Keep torque 30 Nm, timing 0.5, as in trial 2, the best setting tried "
         "so far: torque 54 Nm, timing 0.9 is not expected to be better (52 % likely preferred); "
         "12 comparisons, so the interval is wide."),
        (0.5, [0.5, 0.5], "Set torque 30 Nm, timing 0.5, as in trial 2, the best setting tried so "
         "far; 12 comparisons, so the interval is wide."),
    ],
)  # fmt: skip
def test_verdict_offers_the_best_tried_setting_where_it_is_as_good(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, probability: float, policy: list[float], said: str
) -> None:
    session = lab.create(SPACE, "P1", 1, settings=LEAN)
    finish(session)
    session.measure(session.suggest({"torque": 30, "timing": 0.5}), {"effort": 4, "comfort": 5})
    session.choose(2, "new")
    finish(session, "previous", 0.3)
    plain = sfihilo.recommend(session.state)

    def fixed(*_: object, **__: object) -> sfihilo.Recommendation:
        preferred = {**plain.preferred, BEST_TRIED: probability}
        return replace(
            plain,
            policy=np.array(policy),
            comparisons=12,
            preferred=preferred,
            best_tried=np.array([0.5, 0.5]),
        )

    monkeypatch.setattr(sfihilo, "recommend", fixed)
    advice = session.recommend()
    assert advice.verdict == said
    assert advice.best_is_as_good == (probability < 0.55)
    assert said in report(session)


def test_named_settings_are_compared_and_keep_the_rest_of_the_last_trial(session: Session) -> None:
    advice = session.recommend(compare_with={"off": {"torque": 0}, "now": {"timing": 0.25}})
    last = session.trials[-1].policy
    assert advice.compared_with == {
        "off": {"torque": 0.0, "timing": last["timing"], "gain": 1.0},
        "now": {"torque": last["torque"], "timing": 0.25, "gain": 1.0},
    }
    units = {name: SPACE.to_unit(policy) for name, policy in advice.compared_with.items()}
    found = sfihilo.recommend(session.state, compare_with=units)
    assert advice.preferred == dict(found.preferred)
    assert set(advice.preferred) == {"best tried", "last tried", "off", "now"}
    html = report(session, {"off": {"torque": 0}})
    assert "<td>off</td><td>torque 0 Nm" in html
    assert percent(advice.preferred["off"]) in html


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("best tried", {"torque": 0}, "expected a name other than"),
        ("", {"torque": 0}, "expected a name other than"),
        ("off", {"torqe": 0}, "compare_with 'off': policy: expected names among"),
        ("off", {"torque": -1}, "compare_with 'off': torque: expected 0 to 60 Nm, got -1"),
        ("off", {"torque": float("nan")}, "compare_with 'off': torque: expected a finite number"),
        ("off", {"gain": 2}, "compare_with 'off': gain: fixed at 1"),
        ("off", 3, "compare_with 'off': expected parameter -> value, got 3"),
    ],
)
def test_settings_that_cannot_be_compared_are_refused(
    session: Session, name: str, given: object, said: str
) -> None:
    with pytest.raises(ValueError, match=r"^compare_with") as raised:
        session.recommend(compare_with={name: given})  # type: ignore[dict-item]
    assert said in str(raised.value)
    with pytest.raises(ValueError, match=r"^compare_with"):
        report(session, {name: given})  # type: ignore[dict-item]


def test_advice_before_the_first_comparison_is_refused_and_the_report_says_so(lab: Lab) -> None:
    session = lab.create(SPACE, "P1", 1, settings=LEAN)
    for _ in range(2):
        with pytest.raises(sfihilo.NothingLearnedError, match=r"^nothing learned yet: no"):
            session.recommend()
        assert "Nothing learned yet" in report(session)
        finish(session)
    assert session.trials[-1].status == "complete"
    with pytest.raises(sfihilo.NothingLearnedError):
        lab.create(SPACE, "P2", 1, settings=LEAN).recommend()


def test_advice_counts_comparisons_not_trials(lab: Lab) -> None:
    session = lab.create(SPACE, "P1", 1, settings=LEAN)
    finish(session)
    for step, choice in enumerate(["new", None, None, "previous"]):
        finish(session, choice, 0.1 * step)  # type: ignore[arg-type]
    advice = session.recommend()
    assert (advice.comparisons, len(session.trials)) == (2, 5)
    assert advice.verdict.endswith("; only 2 comparisons, so this may still change much.")


def test_pain_keeps_the_advice_away_until_it_is_lifted(session: Session) -> None:
    wanted = session.recommend().policy
    free = {name: wanted[name] for name in SPACE.free}
    session.veto(session.suggest(free), "hip hurts", pain=True)
    advice = session.recommend()
    assert [(veto.trial, veto.why) for veto in advice.avoided] == [(14, "hip hurts")]
    assert "Nothing near trial 14 is recommended: it caused pain." in advice.remarks
    gap = np.abs(SPACE.to_unit(advice.policy) - SPACE.to_unit(wanted))
    assert (gap >= session.record.protocol.veto_radius - 1e-9).any()
    session.lift(14, "strap was loose")
    assert session.recommend().avoided == ()


def test_vetoed_settings_are_not_recommended_while_the_veto_holds(session: Session) -> None:
    wanted = session.recommend().policy
    session.veto(session.suggest({name: wanted[name] for name in SPACE.free}), "looks wrong")
    advice = session.recommend()
    gap = np.abs(SPACE.to_unit(advice.policy) - SPACE.to_unit(wanted))
    assert (gap >= session.record.protocol.veto_radius - 1e-9).any()
    assert "Nothing near trial 14 is recommended: it was vetoed." in advice.remarks
    narrow = {name: (wanted[name] - 1e-3, wanted[name] + 1e-3) for name in ("timing",)}
    narrow["torque"] = (wanted["torque"] - 0.1, wanted["torque"] + 0.1)
    assert session.recommend(narrow).avoided == ()  # it yields where nothing else is left


def test_report_is_written_where_pain_leaves_nothing_to_recommend(lab: Lab) -> None:
    space = Space({"x": Parameter(0, 1)}, {"y": Outcome(0, 1)})
    session = lab.create(space, "P1", 1, settings=LEAN)
    for step in range(3):
        finish(session, "new", 0.1 * step)
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        session.veto(session.suggest({"x": x}), "hurts", pain=True)
    with pytest.raises(ValueError, match="no policy can be recommended"):
        session.recommend()
    html = report(session)
    assert "No policy can be recommended" in html
    assert html.count("until it is lifted") == 5


def test_strengths_that_are_not_used_are_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    graded = replace(LEAN, grades=7, inverse=replace(LEAN.inverse, inference="variational"))
    session = lab.create(SPACE, "P1", 1, settings=graded)
    finish(session)
    finish(session, "new", 0.3)
    assert session.recommend().grades_used is True
    state = session.state
    unused = replace(state, inverse=replace(state.inverse, grading=Grading(used=False)))
    advice = advising.advise(session.record, unused)
    assert advice.grades_used is False
    assert advice.remarks[-1].startswith("The strengths of this person's answers do not grow")
    monkeypatch.setattr(type(session._proposer), "state", lambda *_: unused)
    assert "do not grow with the predicted difference" in report(session)


def test_person_who_cannot_grade_is_told_from_the_answers_alone(lab: Lab) -> None:
    graded = replace(LEAN, grades=7, inverse=replace(LEAN.inverse, inference="variational"))
    session = lab.create(SPACE, "P1", 1, settings=graded)
    rng = np.random.default_rng(1)
    before = 0.5
    for _ in range(32):
        trial = session.ask()
        value = float(rng.random())
        trial = session.measure(trial, {"effort": 2 + 6 * value, "comfort": 10 * value})
        if trial.asks_choice:  # the direction is right, the strength the wrong way round
            strength = 1 if abs(value - before) > 0.4 else 3 if abs(value - before) < 0.2 else 2
            session.choose(trial, "new" if value > before else "previous", strength)
        before = value
    advice = session.recommend()
    assert advice.grades_used is False
    assert advice.to_dict()["grades_used"] is False
    assert "do not grow with the predicted difference" in report(session)


def test_extrapolating_and_distant_advice_is_said_in_words(session: Session) -> None:
    advice = replace(session.recommend(), extrapolates=True, one_step=False)
    assert [text.split(":")[0] for text in advice.remarks] == [
        "Careful", "It is more than one allowed step away",
    ]  # fmt: skip
    assert advice.to_dict()["remarks"] == advice.remarks


@pytest.mark.parametrize(
    ("probability", "said"),
    [(0.0, "below 1 %"), (0.006, "1 %"), (0.8349, "83 %"), (0.99, "99 %"), (1.0, "above 99 %")],
)
def test_percentages_never_claim_certainty(probability: float, said: str) -> None:
    assert percent(probability) == said


def test_reasons_of_vetoes_and_pain_stand_in_report_and_tables(session: Session) -> None:
    session.veto(session.ask(), "too <high>")
    session.abort(session.start(session.ask()), "knee hurts", pain=True)
    session.veto(session.suggest({"torque": 1, "timing": 0}), "hip hurts", pain=True)
    session.lift(16, "strap was loose")
    html = report(session)
    for text in ("too &lt;high&gt;", "knee hurts", "hip hurts", "until it is lifted",
                 "lifted: strap was loose", "for 10 rounds", "goal: understand"):  # fmt: skip
        assert text in html, text
    rows = session.trials_table().rows[-3:]
    assert [row["reason"] for row in rows] == ["too <high>", "knee hurts", "hip hurts"]
    assert [row["pain"] for row in rows] == [None, "holds", "lifted"]
    assert [row["lifted_reason"] for row in rows] == [None, None, "strap was loose"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((124.2, 30.11, 189.7), ["124", "30", "190"]),
        ((0.4249, 0.1, 0.71), ["0.42", "0.10", "0.71"]),
        ((1e-3, -2e-3, 4e-3), ["0.0010", "-0.0020", "0.0040"]),
        ((0.5, 0.5, 0.5), ["0.500000"] * 3),
    ],
)
def test_reward_has_two_digits_of_its_interval(values: tuple[float, ...], said: list[str]) -> None:
    assert told_apart(values) == said
