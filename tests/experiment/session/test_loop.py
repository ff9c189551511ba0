"""`Session.run`: trials with the lab's own functions, also where these or the process fail."""

import multiprocessing
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sfihilo.experiment import (
    Choice,
    Lab,
    Session,
    Trial,
)
from tests.experiment.people import (
    EXOSKELETON,
    Person,
    stepping,
)


def test_run_conducts_trials(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    applied: list[dict[str, float]] = []
    session.run(
        apply=lambda policy: applied.append(dict(policy)),
        measure=person.measure,
        choose=person.choose,
        trials=5,
    )
    assert applied == [dict(trial.policy) for trial in session.trials]
    assert all(trial.status == "complete" for trial in session.trials)


def test_run_survives_a_failing_function_and_goes_on(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    person.walk(session, 2)

    def broken(_: object) -> None:
        raise RuntimeError("cart disconnected")

    with pytest.raises(RuntimeError):
        session.run(apply=lambda _: None, measure=broken, choose=person.choose, trials=3)
    assert session.record.interrupted
    assert session.trials[-1].status == "started"
    person.walk(session, 3)
    assert [trial.status for trial in session.trials] == ["complete"] * 5


def test_run_asks_again_for_a_refused_measurement(session: Session) -> None:
    person = Person(EXOSKELETON, 1)
    tries: list[int] = []

    def flaky(trial: object) -> dict[str, float]:
        tries.append(1)
        return {"metabolic_rate": float("nan"), "comfort": 3.0}

    session.run(apply=lambda _: None, measure=flaky, choose=person.choose, trials=1)
    assert len(tries) == 3
    assert session.trials[0].measured
    assert session.trials[0].outcome is None
    assert session.record.refused == 3


class Bench:
    """A device with the lab's three functions; it knows what was really set."""

    def __init__(self) -> None:
        self.at: dict[str, float] | None = None
        self.person = Person(EXOSKELETON, 1)

    def apply(self, policy: Mapping[str, float]) -> None:
        self.at = dict(policy)

    def measure(self, trial: Trial) -> Mapping[str, float]:
        assert self.at == dict(trial.policy), "measured a policy that was never applied"
        return self.person.measure(trial)

    def run(self, session: Session, trials: int) -> None:
        session.run(
            apply=self.apply, measure=self.measure, choose=lambda trial: "new", trials=trials
        )


def test_policy_is_applied_again_after_apply_failed(session: Session) -> None:
    bench = Bench()
    bench.run(session, 2)

    def broken(_: object) -> None:
        raise OSError("no connection to the device")

    with pytest.raises(OSError, match="no connection"):
        session.run(apply=broken, measure=bench.measure, choose=lambda _: "new", trials=1)
    assert session.trials[-1].started
    bench.run(session, 2)
    assert [trial.status for trial in session.trials] == ["complete"] * 4


def die_before_applying(path: str) -> None:
    with Lab(path) as lab:
        lab.open("P07-1").run(
            apply=lambda _: os._exit(9), measure=lambda _: None, choose=lambda _: None, trials=1
        )


def test_policy_is_applied_by_the_process_that_continues(folder: Path, session: Session) -> None:
    bench = Bench()
    bench.run(session, 1)
    child = multiprocessing.get_context("spawn").Process(
        target=die_before_applying, args=(str(folder / "lab.db"),)
    )
    child.start()
    child.join()
    assert child.exitcode == 9
    assert [trial.started for trial in session.trials] == [True, True]
    bench.run(session, 1)
    assert [trial.status for trial in session.trials] == ["complete", "complete"]


def test_run_without_any_outcome_does_not_ask_the_person(lab: Lab) -> None:
    session = stepping(lab)
    asked: list[int] = []
    outcomes: Iterator[dict[str, float | None] | None] = iter([{"o": 0.5}, None, {"o": 0.4}])

    def choose(trial: Trial) -> Choice:
        asked.append(trial.number)
        return "new"

    session.run(apply=lambda _: None, measure=lambda _: next(outcomes), choose=choose, trials=3)
    assert asked == []  # the third follows one without an outcome: it is not compared
    assert [trial.status for trial in session.trials] == ["complete"] * 3
