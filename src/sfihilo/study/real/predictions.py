"""Predictions of held-out choices: each person alone, in fixed random orders.

For each person, number of answers n and order, a model sees the first n choices of the order and
predicts the others. Everybody has other orders: where all people answered the same questions, a
shared one would make the luck of its first n questions look like a property of the models.
Predictions of one (set, people, n) are one file, renamed into place when whole; the same command
goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from sfihilo.history import IntArray
from sfihilo.study.people.choice_data import ChoiceData, PersonChoices
from sfihilo.study.real.predictors import PREDICTED, description
from sfihilo.study.run.engines import Engine
from sfihilo.study.run.result_files import write_atomically

People = Literal["development", "confirmation", "all"]
ANSWERS = (5, 8, 10, 18, 20, 40, 80, 140)
ORDERS = 3
_LEAST_LEFT = 2  # choices to predict
LEAST_CHOICES = ANSWERS[0] + _LEAST_LEFT
_SEED = 19
_VERSION = 2  # of the code of models and orders: raise it when they change


@dataclass(frozen=True)
class Part:
    """What one file holds: predictions for some people of a set after a number of answers."""

    data: ChoiceData
    people: People
    answers: int
    orders: int

    @property
    def name(self) -> str:
        """Its file's; it changes with the choices, the orders and every model's settings.

        So no old predictions are read, nor those of another table of the same name.
        """
        made_of = f"{_VERSION} {_SEED} {self.data.digest} {description()}"
        digest = hashlib.sha256(made_of.encode()).hexdigest()[:12]
        return f"{self.data.name}-{self.people}-{self.answers:03d}-{self.orders}-{digest}"

    @property
    def persons(self) -> list[PersonChoices]:
        """Those who made enough choices."""
        chosen: dict[People, tuple[PersonChoices, ...]] = {
            "development": self.data.development,
            "confirmation": self.data.confirmation,
            "all": self.data.people,
        }
        least = self.answers + _LEAST_LEFT
        return [person for person in chosen[self.people] if len(person) >= least]


def parts(data: ChoiceData, people: People, orders: int) -> list[Part]:
    """The parts of a data set in which anybody made enough choices."""
    every = (Part(data, people, answers, orders) for answers in ANSWERS)
    return [part for part in every if part.persons]


def predict_all(
    todo: Sequence[Part], folder: Path, workers: int | None, note: Callable[[str, int, int], None]
) -> pd.DataFrame:
    """Predictions of all parts, computed where they are not in the folder yet."""
    tables = []
    with Engine(workers=workers).start() as executor:
        for part in todo:
            path = folder / f"{part.name}.parquet"
            work = [
                (person, part.answers, order)
                for person in part.persons
                for order in range(part.orders)
                if len(_split(person, part.answers, order)[1])
            ]
            if not work:
                continue
            if not path.exists():
                rows = []
                # Not by map: it would cancel, when interrupted, what the executor ends itself.
                tasks = [executor.submit(_predict, *task) for task in work]
                for done, task in enumerate(tasks, start=1):
                    rows.append(task.result())
                    note(part.name, done, len(work))
                write_atomically(path, pd.concat(rows).to_parquet(index=False))
            table = pd.read_parquet(path)
            labels = {"set": part.data.name, "people": part.people, "answers": part.answers}
            labels["orders"] = part.orders
            tables.append(table.assign(**labels))
    if not tables:
        raise ValueError("answers: expected some other than same to predict, got none")
    return pd.concat(tables, ignore_index=True)


def _split(person: PersonChoices, answers: int, order: int) -> tuple[IntArray, IntArray]:
    """Rows that a model sees, and rows to predict: what "same" should be predicted is undefined."""
    # By name, not by place: the order of the people in a table is of no importance.
    seed = [_SEED, order, zlib.crc32(person.person.encode())]
    rows = np.random.default_rng(seed).permutation(len(person))
    seen, new = rows[:answers], rows[answers:]
    return seen, new[person.labels[new] != 0]


def _predict(person: PersonChoices, answers: int, order: int) -> pd.DataFrame:
    """Columns model, person, order, predicted, label: one row per model and held-out choice."""
    return pd.concat(_predictions(person, answers, order))


def _predictions(person: PersonChoices, answers: int, order: int) -> Iterator[pd.DataFrame]:
    seen, new = _split(person, answers, order)
    known = PersonChoices(
        person.person, person.first[seen], person.second[seen], person.labels[seen]
    )
    for name, model in PREDICTED.items():
        predicted = model(known, person.first[new], person.second[new])
        yield pd.DataFrame(
            {
                "model": name,
                "person": person.person,
                "order": order,
                "predicted": predicted,
                "label": person.labels[new],
            }
        )
