"""Measures of predictions: per person, and over people with paired differences to logit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sfihilo.study.analysis.answer_loss import COIN, calibration_slope, log_losses
from sfihilo.study.run.evaluation import calibration_error, reliability

AGAINST = "logit"
_CELL = ["set", "people", "answers", "orders"]
_BINS = 5  # of confidence in [0.5, 1]: few choices per bin would look like errors


def by_person(predictions: pd.DataFrame) -> pd.DataFrame:
    """One row per cell, model and person: choices predicted, log loss and accuracy."""
    predicted = predictions["predicted"].to_numpy()
    first = predictions["label"].to_numpy() > 0
    right = np.where(predicted == 0.5, 0.5, (predicted > 0.5) == first)
    table = predictions.assign(log_loss=log_losses(predicted, first.astype(float)), accuracy=right)
    groups = table.groupby([*_CELL, "model", "person"], sort=False)
    means = groups[["log_loss", "accuracy"]].mean()
    return means.assign(choices=groups.size()).reset_index()


def summary(predictions: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and model."""
    people = by_person(predictions)
    lines = []
    for cell, rows in predictions.groupby(_CELL, sort=False):
        here = people[(people[_CELL] == list(cell)).all(axis=1)]
        against = here[here["model"] == AGAINST].set_index("person")
        for model, own in rows.groupby("model", sort=False):
            mine = here[here["model"] == model].set_index("person")
            lines.append(
                dict(zip(_CELL, cell, strict=True))
                | {"model": model}
                | _measures(mine, against)
                | _calibration(own)
            )
    return pd.DataFrame(lines)


def _measures(mine: pd.DataFrame, against: pd.DataFrame) -> dict[str, float]:
    """Means over people with standard errors; `_gap` is the paired difference to logit."""
    measures: dict[str, float] = {"persons": len(mine)}
    for name in ("log_loss", "accuracy"):
        gap = mine[name] - against[name]
        measures |= {
            name: mine[name].mean(),
            f"{name}_error": mine[name].sem(),
            f"{name}_gap": gap.mean(),
            f"{name}_gap_error": gap.sem(),
        }
    worse, logit_worse = (table["log_loss"] > COIN + 1e-9 for table in (mine, against))
    return measures | {
        "worse_than_coin": worse.mean(),
        "worse_while_logit_is_not": (worse & ~logit_worse).mean(),
    }


def _calibration(own: pd.DataFrame) -> dict[str, float]:
    predicted = own["predicted"].to_numpy()
    truth = (own["label"].to_numpy() > 0).astype(float)
    return {
        "ece": calibration_error(reliability(predicted, _BINS, truth)),
        "slope": calibration_slope(predicted, truth),
    }
