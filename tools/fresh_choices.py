"""Real people's choices that nothing was chosen on, as tables for `sfihilo study real --data`.

    pip install pyreadr
    python -m tools.fresh_choices APOLLO REFERENCE_POINT OUT
    sfihilo study real --data OUT/routes.csv --out results-routes

APOLLO is the folder `data` of the R package apollo (public repository cran/apollo): in its file
apollo_swissRouteChoiceData.RData 388 people chose nine times between two rail routes (Axhausen and
others 2008, "Income and distance elasticities of values of travel time savings", Transport Policy
15). REFERENCE_POINT is the folder `data` of the public repository vspinu/reference-point: in its
file dataset.csv 139 people chose 70 times between two prospects of up to four amounts of money
(Baillon, Bleichrodt and Spinu 2020, "Searching for the reference point", Management Science 66).
Neither is kept here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tools.lottery_choices import moments

_ROUTE = {"time": "tt", "cost": "tc", "headway": "hw", "changes": "ch"}
_ANSWERS = {1: "a", 2: "b"}


def route_choices(table: pd.DataFrame) -> pd.DataFrame:
    """One row per choice: person, the attributes of both routes, and the answer."""
    columns = {"person": table["ID"].astype(int)}
    for option, number in (("a", 1), ("b", 2)):
        columns |= {
            f"{option}_{name}": table[f"{short}{number}"].astype(float)
            for name, short in _ROUTE.items()
        }
    return pd.DataFrame({**columns, "answer": _answers(table["choice"])})


def prospect_choices(table: pd.DataFrame) -> pd.DataFrame:
    """One row per choice: person, moments and least amount of both prospects, and the answer."""
    columns = {"person": table["IdSubject"]}
    for option in "ab":
        amounts, probabilities = (
            table[[f"{letter}{place}{option}" for place in (1, 2, 3, 4)]].to_numpy(float)
            for letter in "xp"
        )
        possible = np.nan_to_num(probabilities) > 0
        attributes = moments(
            np.where(possible, amounts, 0.0), np.where(possible, probabilities, 0.0)
        )
        attributes["least"] = np.min(np.where(possible, amounts, np.inf), axis=1)
        columns |= {f"{option}_{name}": values for name, values in attributes.items()}
    return pd.DataFrame({**columns, "answer": _answers(table["Preference"])})


def _answers(numbers: pd.Series) -> pd.Series:
    answers = numbers.map(_ANSWERS)
    if answers.isna().any():
        raise ValueError(f"answer: expected 1 or 2, got {numbers[answers.isna()].iloc[0]!r}")
    return answers


def main(apollo: Path, reference_point: Path, out: Path) -> None:
    """Write one table per data set."""
    import pyreadr

    out.mkdir(parents=True, exist_ok=True)
    name = "apollo_swissRouteChoiceData"
    tables = {
        "routes": route_choices(pyreadr.read_r(str(apollo / f"{name}.RData"))[name]),
        "prospects": prospect_choices(pd.read_csv(reference_point / "dataset.csv")),
    }
    for name, choices in tables.items():
        file = out / f"{name}.csv"
        choices.to_csv(file, index=False)
        print(f"{file}: {choices['person'].nunique()} people, {len(choices)} choices")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
