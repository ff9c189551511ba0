"""A user's own table of choices between two options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray
from sfihilo.study.people.choice_data import ChoiceData, scaled

_SPELLINGS: tuple[dict[str, float], ...] = (
    {"a": 1.0, "b": -1.0, "same": 0.0},
    {"1": 1.0, "-1": -1.0, "0": 0.0},
    {"previous": 1.0, "new": -1.0, "same": 0.0},
)
_LABELS = {text: label for spelling in _SPELLINGS for text, label in spelling.items()}


def own_table(path: Path) -> ChoiceData:
    """A user's own table, CSV or Parquet, one row per choice.

    Columns: person; a_<name> and b_<name> for each attribute of the two options; and answer, one of
    a, b and same; or 1, -1 and 0; or previous, new and same, where a is the previous trial and b
    the new one. Rows of one person stay in the order of the file.
    """
    if not path.is_file():
        raise ValueError(f"--data: expected a file, got {path}")
    table = _read(path)
    names, others = (
        tuple(column[2:] for column in table.columns if str(column).startswith(f"{side}_"))
        for side in "ab"
    )
    if not names or set(names) != set(others) or not {"person", "answer"} <= set(table.columns):
        raise ValueError(
            f"{path.name}: expected the columns person, answer, and a_<name> and b_<name> for each "
            f"attribute, got {', '.join(map(str, table.columns))}"
        )
    if not len(table):
        raise ValueError(f"{path.name}: expected at least one choice, got none")
    # macOS writes an umlaut as two characters: the same name must be the same person.
    people = table["person"].astype(str).str.normalize("NFC").str.strip()
    nobody = np.flatnonzero(table["person"].isna() | (people == ""))
    if nobody.size:
        raise ValueError(
            f"{path.name}, row {nobody[0] + 1}: expected a person in every row, got an empty cell"
        )
    first, second = (_numbers(path, table[[f"{side}_{name}" for name in names]]) for side in "ab")
    labels = _labels(path, table["answer"])
    return scaled(path.stem, names, people, first, second, labels)


def _read(path: Path) -> pd.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        # A person is a text: 007 is not 7, and NA may be somebody.
        table = pd.read_csv(path, dtype={"person": str}, keep_default_na=False, na_values=[""])
        header = pd.read_csv(path, header=None, nrows=1, dtype=str).loc[0].dropna()
    except ValueError as error:
        raise ValueError(
            f"{path.name}: expected a table, CSV in UTF-8 with commas or Parquet, "
            f"got one that cannot be read: {str(error).strip()}"
        ) from error
    # pandas would give the second one another name, and take the cell too many as a row's name.
    if header.duplicated().any():
        twice = header[header.duplicated()].iloc[0]
        raise ValueError(f"{path.name}: expected every column once, got {twice} twice")
    if len(table) and not isinstance(table.index, pd.RangeIndex):
        raise ValueError(
            f"{path.name}: expected {len(header)} cells in every row, as in the header, got more"
        )
    return table


def _numbers(path: Path, table: pd.DataFrame) -> FloatArray:
    try:
        numbers = table.apply(pd.to_numeric, errors="coerce")
    except OverflowError:  # whole numbers of hundreds of digits
        numbers = table.apply(lambda column: column.map(_number))
    empty = table.isna().to_numpy()  # a date that is missing would be a number
    wrong = empty | ~np.isfinite(numbers.to_numpy(float, na_value=np.nan))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        value = table.iloc[row, column]
        shown = f"{value!r}" if isinstance(value, str) else f"{value}"
        raise ValueError(
            f"{path.name}, row {row + 1}, {table.columns[column]}: expected a finite number, "
            f"got {'an empty cell' if empty[row, column] else shown}"
        )
    return np.asarray(numbers.to_numpy(float))


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return np.nan


def _labels(path: Path, answers: pd.Series) -> FloatArray:
    labels, spellings = [], set()
    for row, answer in enumerate(answers, start=1):
        text = f"{answer:g}" if isinstance(answer, float) else str(answer).strip().lower()
        if text not in _LABELS:
            raise ValueError(
                f"{path.name}, row {row}, answer: expected one of {', '.join(_LABELS)}, "
                f"got {answer!r}"
            )
        labels.append(_LABELS[text])
        spellings.add(text)
    if not any(spellings <= set(spelling) for spelling in _SPELLINGS):
        ways = "; ".join(", ".join(spelling) for spelling in _SPELLINGS)
        raise ValueError(
            f"{path.name}, answer: expected one of these ways in all rows: {ways}; "
            f"got {', '.join(sorted(spellings))}"
        )
    if spellings == {"1", "0"}:
        raise ValueError(
            f"{path.name}, answer: expected -1 where b was chosen, and 0 only for same, "
            "got 1 and 0 alone; if 0 is b, write -1, and if it is same, write a and same"
        )
    return np.array(labels)
