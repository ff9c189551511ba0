"""A user's own table of choices."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfihilo.study.people.own_table import own_table

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
    data = own_table(written(tmp_path, TABLE, name))
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
    data = own_table(written(tmp_path, TABLE.assign(answer=answers)))
    assert [person.labels.tolist() for person in data.people] == [[1, 0], [-1, 1]]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["007", "7", "007", "7"], ["007", "7"]),
        (["NA", "null", "NA", "null"], ["NA", "null"]),
        (["eva ", "ben", " eva", "ben"], ["eva", "ben"]),
        (["1.50", "1e3", "1.50", "1e3"], ["1.50", "1e3"]),
        (["J\u00fcrgen", "eva", "Ju\u0308rgen", "eva"], ["J\u00fcrgen", "eva"]),
    ],
)
def test_people_are_told_apart_by_the_text_of_their_names(
    tmp_path: Path, names: list[str], found: list[str]
) -> None:
    data = own_table(written(tmp_path, TABLE.assign(person=names)))
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
        (TABLE.assign(answer=[1, 0, "same", 1]), "expected one of these ways .* got 0, 1, same"),
        (TABLE.assign(answer=["a", "new", "b", "a"]), "these ways in all rows: a, b, same; 1, -1"),
        (TABLE.assign(a_speed=["1", "fast", "3", "4"]), "row 2, a_speed: expected a finite"),
        (TABLE.assign(a_speed=["1", "2", "9" * 400, "4"]), "row 3, a_speed: expected a finite"),
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
        own_table(written(tmp_path, table))


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
        own_table(path)


@pytest.mark.parametrize("name", ["mine.parquet", "mine.PARQUET"])
def test_table_that_is_not_parquet_names_its_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LINE + "eva,1,2,a\n")
    with pytest.raises(ValueError, match=f"{name}: expected a table"):
        own_table(tmp_path / name)


def test_mark_of_byte_order_and_empty_last_column_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("person,a_x,b_x,answer,\neva,1,2,a,\n", encoding="utf-8-sig")
    assert len(own_table(path).people[0]) == 1


def test_missing_date_is_not_a_number(tmp_path: Path) -> None:
    dates = pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-04"])
    table = TABLE.assign(a_speed=dates, b_speed=dates[[0, 0, 2, 3]])
    with pytest.raises(ValueError, match=r"row 2, a_speed: .* got an empty cell"):
        own_table(written(tmp_path, table, "mine.parquet"))


def test_own_table_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--data: expected a file"):
        own_table(tmp_path / "none.csv")
