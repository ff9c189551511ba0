"""The interactive session without a terminal: stages, keys, screens."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from sfihilo.cli.interactive.screens import (
    ANSWERS,
    END,
    GRADED,
    HELP,
    KEYS,
    WORDS,
    Action,
    Stage,
    Walk,
    action_of,
    clock,
    help_lines,
    hint,
    large_number,
    outcome_prompt,
    read_outcome,
    screen,
    stage_of,
)
from sfihilo.experiment import Lab, Outcome, Record, Session
from tests.experiment.people import EXOSKELETON, LEAN, finish, good

STAGES: tuple[Stage, ...] = get_args(Stage)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Lab(tmp_path / "lab.db").create(EXOSKELETON, "P1", 1, settings=LEAN)


@pytest.mark.parametrize("outcome", [None, {"metabolic_rate": None, "comfort": None}])
def test_screen_after_a_walk_without_any_outcome_asks_nobody(
    session: Session, outcome: dict[str, float | None] | None
) -> None:
    finish(session)
    session.measure(session.ask(), outcome)
    assert screen(session.record, "answering")[-1].startswith("Do not ask which was better")
    session.amend(2, why="form found", outcome=good(session))
    assert screen(session.record, "answering")[-1].startswith("Which was better: this one")


def test_stages_follow_a_trial(session: Session) -> None:
    def stage(walk: Walk | None = None) -> Stage:
        return stage_of(session.record, walk)

    assert stage() == "between"
    finish(session)
    assert stage() == "between"
    trial = session.ask()
    assert stage() == "ready"
    session.start(trial)
    assert stage() == "unfinished"
    assert stage(Walk(1, 0.0)) == "unfinished"
    assert stage(Walk(2, 0.0)) == "walking"
    assert stage(Walk(2, 0.0, over=True)) == "measuring"
    session.measure(trial, good(session))
    assert stage() == "answering"
    session.interrupt()
    assert stage() == "break"
    session.resume()
    session.close()
    assert stage() == "closed"


@pytest.mark.parametrize("stage", STAGES)
def test_every_key_has_words_and_every_stage_can_be_left(stage: Stage) -> None:
    assert action_of(stage, END) == action_of(stage, "q") == "leave"
    assert {"help", "advice"} <= set(KEYS[stage].values())
    assert all(len(line) <= 80 for line in [*hint(stage), *help_lines(stage)])
    assert len(help_lines(stage)) == len(KEYS[stage]) - 1


def test_every_action_is_reached_by_a_key() -> None:
    reached = {action for keys in KEYS.values() for action in keys.values()}
    graded = {action for keys in GRADED.values() for action in keys.values()}
    assert reached == set(WORDS) == set(HELP)
    assert reached | graded == set(get_args(Action))
    assert set(ANSWERS) == graded | {"new", "previous", "same", "cannot"}


@pytest.mark.parametrize(
    ("stage", "key", "action"),
    [
        ("ready", "\r", "start"),
        ("ready", "\n", "start"),
        ("ready", "V", "veto"),
        ("answering", "n", "new"),
        ("answering", "P", "previous"),
        ("answering", "s", "same"),
        ("answering", "c", "cannot"),
    ],
)
def test_keys_mean_actions_in_either_case(stage: Stage, key: str, action: Action) -> None:
    assert action_of(stage, key) == action


@pytest.mark.parametrize(
    ("stage", "key"),
    [("ready", "n"), ("answering", "\n"), ("walking", "v"), ("break", "u"), ("ready", " ")],
)
def test_other_keys_are_refused_with_the_ones_that_work(stage: Stage, key: str) -> None:
    with pytest.raises(ValueError, match=r"means nothing here: expected .*q"):
        action_of(stage, key)


def test_enter_never_answers_the_person_s_question() -> None:
    assert "\n" not in KEYS["answering"]


def test_large_numbers_have_three_rows_of_one_width() -> None:
    for text in ("0", "41.25", "-7", "1234567890"):
        rows = large_number(text)
        assert len(rows) == 3
        assert len({len(row) for row in rows}) == 1
    assert large_number("1e+06") == ["1e+06"]
    assert large_number("27") == [" _   _ ", " _|   |", "|_    |"]


def test_clock_counts_minutes_and_seconds() -> None:
    assert [clock(s) for s in (0, 59.9, 60, 125)] == ["0:00", "0:59", "1:00", "2:05"]


def test_outcomes_are_asked_for_with_unit_and_accepted_range() -> None:
    outcome = Outcome(2, 8, unit="W/kg", hard=(2.5, 7))
    assert outcome_prompt("rate", outcome) == "rate, 2.5 to 7 W/kg (Enter: not measured): "


def test_typed_outcomes_are_read_or_refused() -> None:
    names = {"": None, "none": None, "Missing": None, "4": 4.0, "4,5": 4.5, " 3.25 ": 3.25}
    for text, value in names.items():
        assert read_outcome(EXOSKELETON, "metabolic_rate", text) == value
    for text, message in {"80": "expected 2", "four": "expected a number", "nan": "finite"}.items():
        with pytest.raises(ValueError, match=message):
            read_outcome(EXOSKELETON, "metabolic_rate", text)


def test_settings_are_shown_with_unit_change_and_fixed_ones(session: Session) -> None:
    first = finish(session)
    trial = session.suggest({**first.policy, "peak_time": first.policy["peak_time"] + 1.5})
    for large in (False, True):
        text = "\n".join(screen(session.record, "ready", large))
        assert "% stride   (+1.5 from trial 1)" in text
        assert "Nm   (unchanged)" in text
        assert "fixed: offset 1.5" in text
    assert f"Trial {trial.number}" in text


def test_repeated_condition_after_a_break_is_explained(session: Session) -> None:
    finish(session)
    session.interrupt()
    session.ask()
    assert any("after a break" in line for line in screen(session.record, "ready"))


def test_open_question_names_both_conditions_and_what_was_measured(session: Session) -> None:
    finish(session)
    session.measure(session.ask(), {"metabolic_rate": 4.1, "comfort": None})
    text = "\n".join(screen(session.record, "answering"))
    assert "metabolic_rate 4.1 W/kg, comfort not measured" in text
    assert "this one (trial 2) or the one before, trial 1?" in text


def test_every_stage_has_a_screen(session: Session) -> None:
    finish(session)
    session.start(session.ask())
    record: Record = session.record
    assert "no outcome yet" in "\n".join(screen(record, "unfinished"))
    assert "back" in screen(replace(record, interrupted=True), "break")[0]
    assert "DO NOT APPLY" in screen(record, "break")[1]  # a pause that nobody recorded
    assert "closed" in screen(replace(record, closed=True), "closed")[0]
