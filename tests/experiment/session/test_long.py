"""A session of a thousand queries opens quickly and asks what it would have asked."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfihilo.experiment import Lab
from sfihilo.settings import Settings
from tests.experiment.people import LEAN, Person, memory_folder, unit_space


def written(lab: Lab, count: int, settings: Settings) -> str:
    """A session of so many trials, written straight into the log, as a long study leaves it."""
    space = unit_space(8, 8)
    person, rng = Person(space, 1), np.random.default_rng(2)
    session = lab.create(space, "P1", 1, settings=settings).id
    anchor: np.ndarray | None = None
    for number in range(1, count + 1):
        unit = rng.uniform(size=8)
        outcome = person.unit_outcome(unit)
        asked: dict[str, Any] = {
            "trial": number,
            "round": number - 1,
            "policy": {f"p{i}": float(value) for i, value in enumerate(unit)},
            "unit": unit.tolist(),
            "source": "learner",
            "compare_with": None if anchor is None else number - 1,
            "asks_choice": anchor is not None,
            "anchor": None if anchor is None else anchor.tolist(),
            "repeats": None,
            "model": {"fingerprint": "", "outcome": None, "deviation": None, "chance_new": None},
            "why": "",
        }
        values = {f"o{i}": float(value) for i, value in enumerate(outcome)}
        lab.log.append(session, "asked", asked)
        lab.log.append(session, "started", {"trial": number})
        measured: dict[str, Any] = {"trial": number, "outcome": values, "warnings": []}
        lab.log.append(session, "measured", measured)
        if anchor is not None:
            choice = person.prefers(outcome, anchor)
            lab.log.append(session, "chosen", {"trial": number, "choice": choice})
        anchor = outcome
    return session


def reopened(folder: Path, session: str, count: int) -> tuple[float, tuple[float, ...], str]:
    """Seconds from a closed file to a learner that is ready, its next query, its fingerprint."""
    with Lab(folder / "lab.db") as lab:
        begun = time.perf_counter()
        opened = lab.open(session)
        assert opened.state.round == count
        seconds = time.perf_counter() - begun
        trial = opened.ask()
        opened.undo()
        return seconds, trial.unit, trial.model["fingerprint"]


def long_session(count: int, settings: Settings) -> tuple[float, float]:
    with memory_folder() as folder:
        with Lab(folder / "lab.db") as lab:
            session = written(lab, count, settings)
        slow, *replayed = reopened(
            folder, session, count
        )  # no snapshot yet: every lesson is told again
        quick, *restored = reopened(folder, session, count)
        assert replayed == restored
        return slow, quick


def test_a_session_of_some_length_opens_from_its_snapshot() -> None:
    long_session(60, LEAN)


@pytest.mark.slow
def test_a_thousand_queries_open_quickly() -> None:
    settings = replace(Settings(), policy_dim=8, outcome_dim=8)
    slow, quick = long_session(1000, settings)
    print(f"1,000 queries: told again in {slow:.1f} s, opened from the snapshot in {quick:.2f} s")
    assert quick < slow / 3  # a ratio, so that a busy machine stays green
