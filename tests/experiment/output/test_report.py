"""The report explains the person, and says so when there is nothing to explain."""

import base64
import re
from collections.abc import Iterator
from threading import Event, Thread

import numpy as np
import pytest
from matplotlib.figure import Figure

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space, Trial
from sfihilo.experiment.insight import answer_hits, best_ranges, drives, ranked
from sfihilo.experiment.output import figure
from sfihilo.experiment.output.report import report, write_report
from sfihilo.forward import ForwardBelief
from sfihilo.history import Choice, FloatArray
from sfihilo.settings import Settings
from tests.experiment.people import EXOSKELETON, LEAN, Person, finish, memory_folder

SPACE = Space(
    {"torque": Parameter(0, 60, unit="Nm"), "timing": Parameter(0, 1)},
    {"effort": Outcome(0, 10, unit="W/kg"), "noise": Outcome(0, 1), "speed": Outcome(0, 3)},
)


def felt(trial: Trial) -> dict[str, float]:
    torque, timing = trial.policy["torque"] / 60, trial.policy["timing"]
    wobble = (trial.number * 0.618) % 1
    return {
        "effort": 1 + 8 * (torque - 0.7) ** 2 + 0.05 * wobble,
        "noise": 0.1 + 0.8 * timing,
        "speed": 1 + torque,
    }


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """Somebody who only cares about effort: less is better."""
    settings = Settings(rule="random")
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        made = lab.create(SPACE, "P07", 7, settings=settings)
        walks: dict[int, dict[str, float]] = {}

        def measure(trial: Trial) -> dict[str, float]:
            walks[trial.number] = felt(trial)
            return walks[trial.number]

        def choose(trial: Trial) -> Choice:
            assert trial.compare_with is not None
            better = walks[trial.number]["effort"] < walks[trial.compare_with]["effort"]
            return "new" if better else "previous"

        made.run(apply=lambda _: None, measure=measure, choose=choose, trials=50)
        made.note("<b>strap</b> & buckle")
        yield made


def test_the_outcome_that_drives_the_reward_is_found(session: Session) -> None:
    found = drives(session.state, SPACE)
    first = ranked(found)[0]
    assert first.name == "effort"
    assert first.effect[2] < 0  # the whole interval: less is better
    assert sum(drive.share[0] for drive in found) == pytest.approx(1)
    for drive in found:
        assert drive.share[1] <= drive.share[0] <= drive.share[2]
        middle, low, high = drive.curve
        assert (low <= middle + 1e-9).all()
        assert (middle <= high + 1e-9).all()
        outcome = SPACE.outcomes[drive.name]
        assert outcome.low <= drive.values[0] < drive.values[-1] <= outcome.high


def test_best_range_contains_the_best_value(session: Session) -> None:
    torque = next(best for best in best_ranges(session.state, SPACE) if best.name == "torque")
    assert torque.low <= 42 <= torque.high
    assert abs(torque.value - 42) < 12


def test_report_explains_by_the_belief_that_the_advice_rests_on(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice of the default preset uses the outcomes' processes, not the forward belief."""
    expected = best_ranges(session.state, SPACE)

    def other(belief: ForwardBelief, policies: FloatArray) -> FloatArray:
        raise AssertionError("another belief than that of the advice")

    monkeypatch.setattr(ForwardBelief, "mean", other)
    assert best_ranges(session.state, SPACE) == expected
    assert drives(session.state, SPACE)


def test_the_report_has_everything_and_loads_nothing(session: Session) -> None:
    html = report(session)
    for text in ("less is better", "effort", "W/kg", "torque", "P07", session.events[-1].hash):
        assert text in html
    assert html.count("<tr>") > 50
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert len(images) == 3
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)
    assert not re.search(r'(src|href)=(?!"data:)', html)
    assert "http" not in html
    assert "<b>strap" not in html
    assert "&lt;b&gt;strap&lt;/b&gt; &amp; buckle" in html


def test_an_empty_session_has_a_report_too() -> None:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        assert "nothing to explain" in report(session)
        finish(session)
        assert "nothing to explain" in report(session)
        finish(session, "same", 0.1)
        path = write_report(session, folder / "r.html")
        assert "only 1 comparison, so this may still change much" in path.read_text()


def test_a_closed_session_still_has_a_report() -> None:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        for step in range(3):
            finish(session, "new", 0.1 * step)
        session.close()
        assert "closed" in report(session)
        assert np.isfinite([d.share[0] for d in drives(session.state, EXOSKELETON)]).all()


def test_only_rounds_told_to_the_learner_are_counted() -> None:
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        finish(session)
        finish(session, "new", 0.1)
        third = session.ask()
        session.measure(third, None)
        session.choose(third, "new")  # it cannot be told what was preferred
        assert not finish(session, None, 0.4).asks_choice
        finish(session, "previous", 0.3)
        finish(session, "same", 0.2)
        html = report(session)
        heard = len(session.state.inverse.labels)
        assert heard == 3
        assert f"4 answers, {heard} learned from" in html
        assert f"only {heard} comparisons, so" in html
        numbers, _ = answer_hits(session.record)
        told = session.record.trials[1]
        assert told.model["chance_new"] == pytest.approx(0.5)  # nothing was known: no prediction
        assert numbers.tolist() == [5]


@pytest.mark.parametrize("trials", [0, 2, 3, 5])
def test_trials_are_whole_numbers_on_every_axis(
    trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(figure, "_png", drawn.append)
    with memory_folder() as folder, Lab(folder / "lab.db") as lab:
        session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
        for step in range(trials):
            finish(session, "new", 0.1 * step)
        figure.learning(session.record)
        if trials:
            best = best_ranges(session.state, EXOSKELETON)
            figure.policies(session.record, session.recommend(), best)
    for axis in [axis for made in drawn for axis in made.axes]:
        ticks = axis.xaxis.get_majorticklocs()
        assert (ticks == np.round(ticks)).all()


def test_report_is_of_one_moment_while_another_program_writes_all_the_time(
    lab: Lab,
) -> None:
    session = lab.create(EXOSKELETON, "P07", 7, settings=LEAN)
    Person(EXOSKELETON, 1).walk(session, 4)
    over = Event()

    def write() -> None:
        with Lab(lab.log.path) as other:
            writer = other.open(session.id)
            while not over.is_set():
                writer.note(f"note {writer.record.number}")

    thread = Thread(target=write)
    thread.start()
    try:
        page = report(session)
    finally:
        over.set()
        thread.join()
    (number,) = re.findall(r"From event (\d+) of this session", page)
    told = [event for event in session.events[: int(number)] if event.kind == "note"]
    assert re.findall(r"<td>note (\d+)</td>", page) == [str(event.number - 1) for event in told]
