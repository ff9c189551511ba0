"""Real people's choices between two lotteries, as tables for `sfihilo study real --data`.

    pip install pyreadr
    python -m tools.lottery_choices FOLDER OUT
    sfihilo study real --data OUT/lotteries1.csv --out results-lotteries

FOLDER is the folder `data` of the public repository MaohuaNie/complexity-risky-choice, or a folder
with its files final_df_study1.rds to final_df_study3.rds, which are not kept here. In each of three
studies about 135 people chose 106 to 212 times between two lotteries of two outcomes each. A
lottery is described by the mean, standard deviation and skewness of its outcome, and by whether it
was shown in a complicated way.

The prior of the default preset was chosen with 40 people of each study (lotteries1.csv, ...); the
others are in lotteries1_others.csv, ....
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from sfihilo.history import FloatArray

_DEVELOPED = 40  # people per study
_SEED = 2026


def lottery_choices(table: pd.DataFrame) -> pd.DataFrame:
    """One row per choice: person, the attributes of both lotteries, and the answer."""
    answer = table["true_response"].map({"f": "a", "j": "b"})
    if answer.isna().any():
        other = table["true_response"][answer.isna()].iloc[0]
        raise ValueError(f"true_response: expected f or j, got {other!r}")
    columns = {"person": table["subject"]}
    for place, option in enumerate("ab"):
        outcomes, probabilities = (
            table[[f"{letter}_{option.upper()}{branch}" for branch in (1, 2)]].to_numpy(float)
            for letter in "OP"
        )
        attributes = moments(outcomes, probabilities)
        attributes["complex"] = table["test_part"].str[place].eq("c").astype(float)
        columns |= {f"{option}_{name}": values for name, values in attributes.items()}
    return pd.DataFrame({**columns, "answer": answer})


def moments(outcomes: FloatArray, probabilities: FloatArray) -> dict[str, FloatArray]:
    """Mean, standard deviation and skewness of each row's lottery."""
    mean = np.sum(probabilities * outcomes, axis=1)
    away = outcomes - mean[:, None]
    deviation = np.sqrt(np.sum(probabilities * away**2, axis=1))
    third = np.sum(probabilities * away**3, axis=1)
    skewness = third / np.where(deviation > 0, deviation, 1.0) ** 3
    return {"mean": mean, "deviation": deviation, "skewness": skewness}


def main(folder: Path, out: Path) -> None:
    """Write two tables per study: the people that the prior was chosen with, and the others."""
    import pyreadr

    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(_SEED)
    for study in (1, 2, 3):
        path = folder / f"final_df_study{study}.rds"
        if not path.is_file():
            sys.exit(f"{path}: expected a file, got none")
        choices = lottery_choices(pyreadr.read_r(str(path))[None])
        developed = rng.permutation(pd.unique(choices["person"]))[:_DEVELOPED]
        first = choices["person"].isin(developed)
        for name, rows in (("", choices[first]), ("_others", choices[~first])):
            file = out / f"lotteries{study}{name}.csv"
            rows.to_csv(file, index=False)
            print(f"{file}: {rows['person'].nunique()} people, {len(rows)} choices")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
