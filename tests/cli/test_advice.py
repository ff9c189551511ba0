"""Goal, graded answers and advice from the shell and in `session run`."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sfihilo.cli.interactive.dialogue import Dialogue
from sfihilo.cli.interactive.screens import ANSWERS, END, GRADED, action_of, help_lines, hint
from sfihilo.cli.session import begin as beginning
from sfihilo.cli.session.values import parse_comparisons, parse_strength
from sfihilo.experiment import Lab
from sfihilo.experiment.record.answers import all_answers
from tests.cli.calls import SPACE, loaded, run


def trial(effort: float, *answer: str) -> None:
    run("ask")
    run("measure", f"effort={effort}", "comfort=5")
    if answer:
        run("choose", *answer)


@pytest.fixture
def graded(folder: Path) -> Path:
    """A session with seven answers, after its first trial."""
    (folder / "space.toml").write_text(SPACE + 'answers = "seven"\n')
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    trial(4)
    return folder


def test_recommend_before_the_first_comparison_exits_with_2_and_the_report_is_written(
    folder: Path,
) -> None:
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    trial(4)
    assert run("recommend", code=2).startswith("error: nothing learned yet: ")
    assert run("recommend", "--json", code=2).startswith("error: nothing learned yet: ")
    run("report", "-o", "r.html")
    assert "Nothing learned yet" in (folder / "r.html").read_text()


def test_recommend_begins_with_the_verdict_and_compares_named_settings(folder: Path) -> None:
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    trial(4)
    trial(5, "n")
    trial(3, "p")
    text = run("recommend", "--compare", "off:x=0,y=0", "--compare", "soft:y=3")
    advice = loaded("recommend", "--compare", "off:x=0,y=0", "--compare", "soft:y=3")
    assert text.startswith("Set x ")
    assert " ".join(text.split()).startswith(advice["verdict"])
    assert "only 2 comparisons" in advice["verdict"]
    assert advice["compared_with"]["off"] == {"x": 0, "y": 0}
    last = loaded("show")["trials"][-1]["policy"]
    assert advice["compared_with"]["soft"] == {"x": last["x"], "y": 3}
    assert set(advice["preferred"]) == {"best tried", "last tried", "off", "soft"}
    assert advice["last_tried"]["trial"] == 3
    for words in ("best tried (trial", "last tried (trial 3)", "off", "Reward"):
        assert words in text
    assert max(len(line) for line in text.splitlines()) <= 80
    run("report", "-o", "r.html", "--compare", "off:x=0,y=0")
    assert "<td>off</td>" in (folder / "r.html").read_text()


@pytest.mark.parametrize("text", ["off", "off:", ":x=1", "off:x", "off:x=1=2"])
def test_comparison_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_comparisons([text])


def test_comparison_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="off is given twice"):
        parse_comparisons(["off:x=0", "off:x=1"])


def test_strength_of_an_answer_is_stored_shown_and_exported(graded: Path) -> None:
    trial(5, "new", "much")
    trial(4.5, "p", "1")
    assert [t["strength"] for t in loaded("show")["trials"]] == [None, 3, 1]
    shown = run("show")
    assert "new, much" in shown
    assert "previous, slightly" in shown
    assert "Answers offered: seven" in shown
    changed = loaded("amend", "2", "--choice", "n", "--strength", "clearly", "--why", "misheard")
    assert changed["strength"] == 2
    assert loaded("undo")["undone"] == "amended"
    run("export", "-o", "out", "--format", "csv,parquet,bids")
    with (graded / "out" / "P07-1" / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["strength"] for row in rows] == ["3", "1"]
    (sidecar,) = (graded / "out" / "bids").glob("sub-*/ses-*/beh/*_beh.json")
    described = json.loads(sidecar.read_text())
    assert described["strength"]["Levels"] == {"1": "slightly", "2": "clearly", "3": "much"}
    assert described["goal"]["Levels"].keys() == {"understand", "best"}
    (table,) = (graded / "out" / "bids").glob("sub-*/ses-*/beh/*_beh.tsv")
    with table.open() as file:
        told = list(csv.DictReader(file, delimiter="\t"))
    assert [row["strength"] for row in told] == ["n/a", "3", "1"]
    run("report", "-o", "r.html")
    html = (graded / "r.html").read_text()
    assert "this one, much" in html
    assert "seven answers offered" in html


def test_wrong_strength_is_refused_with_the_words_of_the_session(graded: Path) -> None:
    run("ask")
    run("measure", "effort=5", "comfort=5")
    assert "expected slightly or clearly or much, got 'very'" in run("choose", "n", "very", code=2)
    assert "expected None with the choice 'same'" in run("choose", "s", "much", code=2)
    assert "slightly|clearly|much" in run("show")
    assert loaded("choose", "n")["strength"] is None  # an ungraded answer stays valid


def test_strength_without_grades_is_refused(folder: Path) -> None:
    run("new", "space.toml", "-p", "P07", "--seed", "7")
    trial(4)
    run("ask")
    run("measure", "effort=5", "comfort=5")
    assert "answers are not graded" in run("choose", "n", "much", code=2)


@pytest.mark.parametrize(
    ("text", "grades", "strength"),
    [(None, 2, None), ("MUCH", 7, 3), ("c", 7, 2), ("2", 5, 2), ("better", 5, 1), (" much ", 5, 2)],
)
def test_strength_is_read_as_word_letter_or_number(
    text: str | None, grades: int, strength: int | None
) -> None:
    assert parse_strength(text, grades) == strength


@pytest.mark.parametrize("text", ["", "4", "0", "verymuch"])
def test_strength_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="strength: expected slightly or clearly or much"):
        parse_strength(text, 7)


@pytest.mark.parametrize("grades", [5, 7])
def test_every_graded_answer_has_one_key_of_a_rising_scale(grades: int) -> None:
    keys = [str(number) for number in range(1, grades + 1)]
    assert list(GRADED[grades]) == keys
    meant = [ANSWERS[action_of("answering", key, grades)] for key in keys]
    assert {*meant, (None, None)} == {*all_answers(grades)}
    signed = [(strength or 0) * (1 if choice == "new" else -1) for choice, strength in meant]
    assert signed == list(range(-(grades // 2), grades // 2 + 1))
    lines = hint("answering", grades)
    assert lines[0].startswith("[1] the one before much better")
    assert f"[{grades}] this one much better" in "  ".join(lines)
    assert all(len(line) <= 80 for line in lines)
    assert len(help_lines("answering", grades)) == grades + len(help_lines("answering"))


def test_number_keys_mean_nothing_without_grades() -> None:
    with pytest.raises(ValueError, match="1 means nothing here"):
        action_of("answering", "1")


class Keys:
    """A terminal that presses given keys and keeps what was shown."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.shown: list[str] = []

    def key(self, _: float | None = None) -> str:
        return self.keys.pop(0) if self.keys else END

    def line(self, _: str) -> str:
        return self.key()

    def show(self, *lines: str) -> None:
        self.shown += lines

    def heading(self, line: str) -> None:
        self.shown.append(line)

    def status(self, _: str) -> None: ...
    def bell(self) -> None: ...
    def discard(self) -> None: ...
    def has_lines(self, _: int) -> bool:
        return False


def test_session_run_takes_grades_goal_and_advice_by_one_key(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lab(graded / "sfihilo.db") as lab:
        session = lab.open("P07-1")
        keys: Any = Keys("r", "g", "\n", "\n", "\n", "5", "5", "7", "r", "q")
        Dialogue(session, keys, 0).run()
        second = session.trials[1]
        assert (second.choice, second.strength, second.goal) == ("new", 3, "best")
        assert session.record.goal == "best"
    assert "The goal is now: best." in keys.shown
    assert any("nothing learned yet" in line for line in keys.shown)
    assert any("Goal: best." in line for line in keys.shown)
    assert "only 1 comparison, so this may still change much" in " ".join(
        capsys.readouterr().out.split()
    )


def test_goal_of_file_option_and_command_is_shown(folder: Path) -> None:
    (folder / "space.toml").write_text(SPACE.replace('rule = "random"', 'goal = "best"'))
    assert "goal best" in run("new", "space.toml", "-p", "P07", "--seed", "7")
    assert loaded("show")["goal"] == "best"
    assert loaded("goal", "understand", "--why", "pilot")["goal"] == "understand"
    assert "Goal: understand." in run("show")
    assert loaded("list")[0]["goal"] == "understand"
    assert "expected understand or best, got 'fast'" in run("goal", "fast", code=2)


def test_goal_option_goes_before_the_rule_of_the_file(folder: Path) -> None:
    run("new", "space.toml", "-p", "P07", "--seed", "7", "--goal", "best")
    assert (loaded("show")["goal"], loaded("show")["rule"]) == ("best", "best")
    assert "goal: expected" in run("new", "space.toml", "-p", "P08", "--goal", "fast", code=2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('answers = "six"', "answers: expected two, five, seven, got 'six'"),
        ("answers = 7", "answers: expected two, five, seven, got 7"),
        ("recall = 6", "recall: expected a whole number from 1 to 5, got 6"),
        ("recall = 2.0", "recall: expected a whole number from 1 to 5, got 2.0"),
        ('recall = "all"', "recall: expected a whole number from 1 to 5, got 'all'"),
        ("recall_noise = -1", "recall_noise: expected a number from 0, got -1"),
        ('goal = "fast"', "goal: expected understand or best, got 'fast'"),
        ('preset = "paper"\nanswers = "seven"', "grades: expected 2 with the paper's inference"),
    ],
)
def test_wrong_goal_or_answers_of_the_file_are_refused(folder: Path, line: str, said: str) -> None:
    (folder / "space.toml").write_text(SPACE.replace('rule = "random"', line))
    assert said in " ".join(run("new", "space.toml", "-p", "P07", code=2).split())
    assert not (folder / "sfihilo.db").exists()


def test_example_names_every_option_of_a_session() -> None:
    root = Path(__file__).parents[2]
    example = (root / "examples" / "space.toml").read_text()
    packaged = (root / "src" / "sfihilo" / "experiment" / "space.toml").read_text()
    assert example == packaged
    _, settings, _ = beginning.read_space(root / "examples" / "space.toml")
    assert (settings.goal, settings.grades, settings.recall) == ("understand", 2, 1)
    for name in ("goal", "answers", "recall", "preset", "drift", "reanchor", "break_minutes"):
        assert f"\n{name} = " in example
