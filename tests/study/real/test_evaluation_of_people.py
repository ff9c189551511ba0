"""The evaluation of real people: baselines, measures and the command."""

import json
import os
import signal
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

from sfihilo import Settings
from sfihilo.cli.study.app import app
from sfihilo.history import FloatArray
from sfihilo.study.people.choice_data import ChoiceData, PersonChoices
from sfihilo.study.real import predictions, predictors
from sfihilo.study.real.person_measures import by_person, summary
from sfihilo.study.real.predictions import parts, predict_all
from sfihilo.study.run.folder_lock import only_run


def person(count: int, name: str = "eva", seed: int = 0) -> PersonChoices:
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(size=(2, count, 2))
    margins = 6 * (first - second) @ np.array([1.0, -0.5])
    return PersonChoices(
        name, first, second, np.where(rng.logistic(size=count) < margins, 1.0, -1.0)
    )


def test_logit_minimises_the_penalised_likelihood_of_scaled_differences() -> None:
    known, new = person(15), person(4, seed=1)
    known.labels[3] = 0  # "same" is half of each answer
    rows = known.first - known.second
    size = np.sqrt(np.mean(rows**2, axis=0))

    def objective(weights: Any) -> float:
        margins = rows / size @ weights
        share = (1 + known.labels) / 2
        losses = share * np.logaddexp(0, -margins) + (1 - share) * np.logaddexp(0, margins)
        return float(losses.sum() + 2.0 / 2 * weights @ weights)

    weights = minimize(objective, np.zeros(2), tol=1e-12).x
    expected = 1 / (1 + np.exp(-(new.first - new.second) / size @ weights))
    predicted = predictors.logit(known, new.first, new.second, penalty=2.0)
    assert predicted == pytest.approx(expected, abs=1e-3)


def test_single_attribute_takes_the_one_that_explains_most() -> None:
    first = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.9]])
    second = np.array([[0.1, 0.5], [0.6, 0.3], [0.3, 0.2]])
    known = PersonChoices("eva", first, second, np.array([1.0, -1.0, 1.0]))  # follows the first
    predicted = predictors.single(
        known, np.array([[0.9, 0.0], [0.5, 1.0]]), np.array([[0.1, 1], [0.5, 0]])
    )
    assert predicted == pytest.approx([4 / 5, 0.5])


@pytest.mark.parametrize("name", predictors.MODELS)
def test_every_model_predicts_the_swapped_choice_with_the_complement(name: str) -> None:
    known, new = person(12), person(5, seed=1)
    predict = predictors.MODELS[name]
    one, other = predict(known, new.first, new.second), predict(known, new.second, new.first)
    assert one + other == pytest.approx(np.ones(5), abs=1e-6)
    assert set(predictors.WORDS) == set(predictors.MODELS)


def test_people_have_different_draws_of_the_papers_features() -> None:
    known, new = person(12), person(6, seed=1)
    predicted = {
        tuple(predictors.MODELS["paper"](replace(known, person=name), new.first, new.second))
        for name in ("eva", "ben", "kim", "ute", "leo", "ida", "max", "zoe")
    }
    assert 1 < len(predicted) <= 4


def test_digest_of_choices_knows_whose_they_are() -> None:
    one, other = (ChoiceData("mine", ("x", "y"), (person(8, name),)) for name in ("eva", "ben"))
    assert one.digest != other.digest


def test_model_of_one_repeated_answer_is_defined() -> None:
    known = PersonChoices("eva", np.full((5, 2), 0.7), np.full((5, 2), 0.2), np.ones(5))
    for name, predict in {**predictors.MODELS, **predictors.PENALISED}.items():
        value = predict(known, np.array([[0.8, 0.8]]), np.array([[0.1, 0.1]]))
        assert np.isfinite(value).all(), name
        assert name in ("coin", "paper") or value[0] > 0.5


def test_summary_pairs_people_and_counts_those_worse_than_a_coin() -> None:
    predictions = pd.DataFrame(
        {
            "set": "mine",
            "people": "all",
            "answers": 5,
            "orders": 1,
            "model": ["logit"] * 3 + ["default"] * 3,
            "person": ["eva", "eva", "ben"] * 2,
            "predicted": [0.8, 0.5, 0.3, 0.9, 0.6, 0.2],
            "label": [1.0, -1.0, 1.0] * 2,
        }
    )
    people = by_person(predictions).set_index(["model", "person"])
    assert people.loc[("logit", "eva"), "log_loss"] == pytest.approx(-np.log([0.8, 0.5]).mean())
    assert people.loc[("logit", "eva"), "accuracy"] == 0.75
    row = summary(predictions).set_index("model").loc["default"]
    gaps = [-np.log([0.9, 0.4]).mean() + np.log([0.8, 0.5]).mean(), np.log(0.3) - np.log(0.2)]
    assert row["log_loss_gap"] == pytest.approx(np.mean(gaps))
    assert row["log_loss_gap_error"] == pytest.approx(np.std(gaps, ddof=1) / np.sqrt(2))
    assert row["worse_than_coin"] == 0.5  # ben, who is so for logit too
    assert row["worse_while_logit_is_not"] == 0
    assert row["persons"] == 2


def test_parts_hold_only_people_with_enough_choices() -> None:
    data = ChoiceData("mine", ("x", "y"), (person(7), person(30, "ben"), person(9, "ida")))
    found = {part.answers: [p.person for p in part.persons] for part in parts(data, "all", 1)}
    assert found == {
        5: ["eva", "ben", "ida"],
        8: ["ben"],
        10: ["ben"],
        18: ["ben"],
        20: ["ben"],
    }


def recorded(name: str, count: int, seed: int) -> tuple[list[PersonChoices], pd.DataFrame]:
    """What a model was given to learn from, and all predictions, of one person in three orders."""
    given: list[PersonChoices] = []

    def model(known: PersonChoices, first: FloatArray, second: FloatArray) -> FloatArray:
        given.append(known)
        return np.full(len(first), 0.5)

    data = ChoiceData("mine", ("x", "y"), (person(count, name, seed),))
    tables = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "PREDICTED", {"recorder": model})
        for order in range(3):
            tables.append(predictions._predict(data.people[0], 5, order))
    return given, pd.concat(tables)


def test_no_choice_that_was_learned_from_is_predicted() -> None:
    everything = person(12, "eva", 4)
    given, table = recorded("eva", 12, 4)
    for order, known in enumerate(given):
        seen = [np.flatnonzero((everything.first == row).all(axis=1))[0] for row in known.first]
        left = np.setdiff1d(np.arange(12), seen)
        assert len(set(seen)) == 5
        assert known.labels.tolist() == everything.labels[seen].tolist()
        held_out = table[table["order"] == order]["label"]
        assert sorted(held_out) == sorted(everything.labels[left])
        assert len(held_out) == 7


def test_everybody_has_other_orders_also_of_the_same_questions() -> None:
    """Or the luck of one draw of questions would be that of all people."""
    first = [
        tuple(map(tuple, known.first)) for name in "abcde" for known in recorded(name, 12, 4)[0]
    ]
    assert len(set(first)) == 15
    again = [tuple(map(tuple, known.first)) for known in recorded("a", 12, 4)[0]]
    assert again == first[:3]


def test_stored_predictions_are_not_used_for_other_models_or_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of(seed: int = 0, orders: int = 1) -> str:
        people = tuple(person(9, f"p{index}", seed) for index in range(3))
        return parts(ChoiceData("mine", ("x", "y"), people), "development", orders)[0].name

    names = {of(), of(seed=1), of(orders=2)}
    assert of() in names
    monkeypatch.setitem(predictors.PREDICTED, "logit", partial(predictors.logit, penalty=100.0))
    names.add(of())
    monkeypatch.setitem(predictors.PREDICTED, "paper", partial(predictors.learned, Settings()))
    names.add(of())
    assert len(names) == 5


def own_table(folder: Path, count: int = 9, seed: int = 0) -> Path:
    tables = []
    for index in range(2):
        one = person(count, seed=seed + index)
        columns = {
            f"{side}_{name}": values[:, place]
            for side, values in (("a", one.first), ("b", one.second))
            for place, name in enumerate(("x", "y"))
        }
        tables.append(pd.DataFrame({"person": index, **columns, "answer": one.labels.astype(int)}))
    path = folder / "mine.csv"
    pd.concat(tables).to_csv(path, index=False)
    return path


def test_command_evaluates_an_own_table_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    call = ["real", "--data", str(own_table(tmp_path)), "--out", str(tmp_path / "out")]
    call += ["--workers", "1", "--orders", "1"]
    first = CliRunner().invoke(app, [*call, "--json"])
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)
    assert {row["model"] for row in rows} == set(predictors.PREDICTED)
    assert {(row["answers"], row["persons"]) for row in rows} == {(5, 2)}
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("units/*.parquet")}
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 0, again.output
    assert "conditional logit" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in files} == files
    written = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert len(written) == len(rows)
    assert (tmp_path / "out" / "real_people.png").stat().st_size > 10_000


def evaluated(table: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    """The summary rows that the command prints for a table."""
    call = ["real", "--data", str(table), "--out", str(out), "--workers", "1", "--json", *options]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_another_table_of_the_same_name_is_not_answered_with_the_first_ones(tmp_path: Path) -> None:
    rows = []
    for seed, folder in ((0, "one"), (7, "two")):
        (tmp_path / folder).mkdir()
        table = own_table(tmp_path / folder, seed=seed)
        rows.append(evaluated(table, tmp_path / "out"))
        assert rows[-1] == evaluated(table, tmp_path / folder)
    assert rows[0] != rows[1]


def test_person_with_nothing_but_same_left_to_predict_is_left_out(tmp_path: Path) -> None:
    path = own_table(tmp_path)
    table = pd.read_csv(path)
    table["answer"] = table["answer"].where(table["person"] == 1, 0)
    table.to_csv(path, index=False)
    rows = evaluated(path, tmp_path / "out")
    assert {row["persons"] for row in rows} == {1}
    assert all(np.isfinite(row["log_loss"]) for row in rows)
    table.assign(answer="same").to_csv(path, index=False)
    call = ["real", "--data", str(path), "--out", str(tmp_path / "none"), "--workers", "1"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert "answers: expected some other than same to predict, got none" in result.stderr
    assert not list((tmp_path / "none").glob("**/*.parquet"))


def test_interrupted_run_ends_without_a_traceback_of_its_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(name: str, done: int, count: int) -> None:
        if done == 1:  # while the next one is waited for
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    data = ChoiceData("mine", ("x", "y"), tuple(person(7, f"p{index}") for index in range(60)))
    # A shell starts background jobs with this signal ignored, and so perhaps these tests.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            predict_all(parts(data, "all", 1), tmp_path, 1, interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caplog.records == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["2024.csv", "007.csv", "NA.csv", "None.csv"])
def test_table_may_have_any_name(tmp_path: Path, name: str) -> None:
    table = own_table(tmp_path).rename(tmp_path / name)
    evaluated(table, tmp_path / "out")
    rows = evaluated(table, tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "summary.csv", dtype=str, keep_default_na=False)
    assert written["set"].tolist() == [table.stem] * len(rows)


@pytest.mark.parametrize("name", ["summary.csv", "people.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"x", b"x\n1,2\n", b"\x1f\x8b\x08\x00"])
def test_damaged_results_are_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    call = ["real", "--data", str(own_table(tmp_path)), "--out", str(tmp_path), "--workers", "1"]
    (tmp_path / name).write_bytes(content)
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert f"{name}: expected a table of an earlier run" in result.stderr
    assert (tmp_path / name).read_bytes() == content
    assert not (tmp_path / "real_people.png").exists()
    assert (tmp_path / "summary.csv").exists() == (name == "summary.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sets", "gaits"], "expected some of train, electricity, money"),
        (["--data", "none.csv"], "expected a file"),
        (["--data", "own.csv", "--page", "page.md"], "--page: expected none together with --data"),
        (["--data", "own.csv", "--people", "development"], "--people: expected none together with"),
        (["--sets", "money,money"], "--sets: expected every set once, got money,money"),
    ],
)
def test_command_that_cannot_run_says_why(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["real", *options])
    assert result.exit_code == 2
    assert message in result.stderr


def test_folder_that_cannot_be_filled_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*args: object) -> None:
        raise AssertionError

    monkeypatch.setattr("sfihilo.study.real.predictions.predict_all", computed)
    call = ["real", "--data", str(own_table(tmp_path)), "--out", str(tmp_path / "out")]
    with only_run(tmp_path / "out" / "units"):
        result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert "is filling" in result.stderr
    result = CliRunner().invoke(app, [*call[:-1], str(tmp_path / "mine.csv")])
    assert result.exit_code == 2
    assert "mine.csv" in result.stderr


def test_people_with_too_few_choices_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["real", "--data", str(own_table(tmp_path, 4)), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 2
    assert "at least 7 choices" in result.stderr
