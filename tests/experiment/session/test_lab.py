"""Many sessions in one file, participants, and what is personal."""

from pathlib import Path

import pytest

from sfihilo.experiment import (
    Choice,
    Interval,
    Lab,
    Outcome,
    Parameter,
    Plan,
    Protocol,
    Session,
    Space,
)
from sfihilo.experiment.log.errors import DamagedError, ReadOnlyError
from sfihilo.experiment.log.event import JSON
from tests.experiment.people import EXOSKELETON, LEAN, LINE, PLAIN, Person, finish, unit_space


def test_the_first_lines_of_the_documentation(folder: Path) -> None:
    space = Space(
        policy={
            "peak_torque": Parameter(0, 60, unit="Nm", max_step=15, start=0),
            "peak_time": Parameter(35, 60, unit="% stride"),
        },
        outcomes={
            "metabolic_rate": Outcome(2, 8, unit="W/kg", lower_is_better=None),
            "comfort": Outcome(0, 10),
        },
    )
    with Lab(folder / "study.db") as lab:
        session = lab.create(space, participant="P07", seed=7)
        for rate in (4.1, 3.9):
            trial = session.ask()
            session.measure(trial, {"metabolic_rate": rate, "comfort": 6})
            if trial.asks_choice:
                session.choose(trial, "new")
        advice = session.recommend(feasible={"peak_torque": (0, 40)})
    assert 0 <= advice.policy["peak_torque"] <= 40
    with Lab(folder / "study.db") as lab:
        assert lab.open(session.id).trials[-1].choice == "new"


def test_sessions_get_names_of_their_own(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        names = [lab.create(EXOSKELETON, code, 1, settings=LEAN).id for code in ("P1", "P1", "P2")]
        assert names == ["P1-1", "P1-2", "P2-1"]
        assert lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="pilot").id == "pilot"
        with pytest.raises(ValueError, match="'pilot' is taken"):
            lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="pilot")
        assert lab.sessions() == [*names, "pilot"]
        with pytest.raises(ValueError, match="expected one of"):
            lab.open("nothing")
        with pytest.raises(ValueError, match="session: expected"):
            lab.create(EXOSKELETON, "P1", 1, settings=LEAN, session="a/b")


@pytest.mark.parametrize("code", ["", "Jane Doe", "jane@lab.org", "x" * 33, "é", None, 7])
def test_participants_are_codes(folder: Path, code: object) -> None:
    with Lab(folder / "lab.db") as lab, pytest.raises(ValueError, match="expected a code"):
        lab.create(EXOSKELETON, code, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_bad_seed_makes_no_session(folder: Path, seed: object) -> None:
    with Lab(folder / "lab.db") as lab:
        with pytest.raises(ValueError, match="seed"):
            lab.create(EXOSKELETON, "P1", seed, settings=LEAN)  # type: ignore[arg-type]
        assert lab.sessions() == []


def test_first_event_records_actor_seed_and_versions(folder: Path) -> None:
    with Lab(folder / "lab.db", actor="operator") as lab:
        session = lab.create(EXOSKELETON, "P1", 9, settings=LEAN)
        event = session.events[0]
    assert (event.kind, event.actor, event.body["seed"]) == ("opened", "operator", 9)
    assert {"sfihilo", "numpy", "scipy", "python"} <= set(event.body["versions"])
    assert event.body["settings"]["policy_dim"] == 4
    assert Space.from_dict(event.body["space"]) == EXOSKELETON


def test_identities_can_be_erased_without_touching_the_record(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        finish(lab.create(EXOSKELETON, "P1", 9, settings=LEAN))
        head = lab.log.head()
        lab.identify("P1", {"name": "Zaphod Beeblebrox", "phone": "555-0142"})
        assert lab.identity("P1") == {"name": "Zaphod Beeblebrox", "phone": "555-0142"}
        assert lab.erase_identity("P1")
        assert lab.identity("P1") is None
        assert lab.log.head() == head
        assert lab.verify().ok
    assert b"Zaphod" not in (folder / "lab.db").read_bytes()


def test_a_constraint_in_code_is_needed_again(folder: Path) -> None:
    def low_only(policy: dict[str, float]) -> bool:
        return policy["x"] < 0.5

    def anything(policy: dict[str, float]) -> bool:
        return True

    space = Space({"x": Parameter(0, 1)}, {"o": Outcome(0, 1)}, (low_only,))
    with Lab(folder / "lab.db") as lab:
        session = lab.create(space, "P1", 1, settings=LEAN)
        for _ in range(10):
            assert finish(session).policy["x"] < 0.5
    with Lab(folder / "lab.db") as lab:
        assert len(lab.open("P1-1").trials) == 10  # reading needs no code
        with pytest.raises(ValueError, match=r"low_only.*functions="):
            lab.open("P1-1").ask()
        with pytest.raises(ValueError, match="low_only"):
            lab.open("P1-1").recommend()
        with pytest.raises(ValueError, match=r"functions: expected .*low_only.*got .*anything"):
            lab.open("P1-1", functions=[anything])
        assert lab.open("P1-1", functions=[low_only]).ask().policy["x"] < 0.5


def test_reading_only(folder: Path) -> None:
    with Lab(folder / "lab.db") as lab:
        finish(lab.create(EXOSKELETON, "P1", 9, settings=LEAN))
    with Lab(folder / "lab.db", read_only=True) as lab:
        session = lab.open("P1-1")
        assert session.trials[0].status == "complete"
        with pytest.raises(ReadOnlyError):
            session.ask()


def test_sessions_that_interleave_equal_sessions_alone(folder: Path) -> None:
    count, trials = 16, 3
    space = unit_space()
    with Lab(folder / "together.db") as lab:
        sessions = [lab.create(space, f"P{n}", n, settings=LEAN) for n in range(count)]
        people = [Person(space, n) for n in range(count)]
        for _ in range(trials):
            for session, person in zip(sessions, people, strict=True):
                person.walk(session, 1)
        together = [[t.to_dict() for t in session.trials] for session in sessions]
        assert lab.verify().ok
    for number in range(count):
        with Lab(folder / f"{number}.db") as lab:
            session = lab.create(space, f"P{number}", number, settings=LEAN)
            Person(space, number).walk(session, trials)
            assert [t.to_dict() for t in session.trials] == together[number]


@pytest.mark.parametrize(
    ("knob", "rule"),
    [(Parameter(0, 10), "a > 20"), (Parameter(0, 10, start=0, max_step=1), "a > 5")],
)
def test_a_space_that_allows_nothing_makes_no_session(
    folder: Path, knob: Parameter, rule: str
) -> None:
    space = Space({"a": knob}, {"o": Outcome(0, 1)}, (rule,))
    with Lab(folder / "lab.db") as lab:
        with pytest.raises(ValueError, match="expected at least one policy"):
            lab.create(space, "P1", 1, settings=LEAN)
        assert lab.sessions() == []


def test_lab_and_session_show_themselves_in_one_line(folder: Path, session: Session) -> None:
    finish(session)
    assert repr(session) == "<Session P07-1: participant P07, open, 1 trial>"
    with Lab(folder / "lab.db") as lab:
        assert repr(lab) == f"<Lab {folder / 'lab.db'}: 1 session>"
    assert "closed" in repr(lab)
    assert repr(session.record).startswith("<Record P07-1: participant P07, open, 1 trials, event")
    assert repr(session.trials_table()).startswith("<Table trials: 1 row of session, participant, ")


def test_seed_is_drawn_and_recorded(lab: Lab) -> None:
    drawn = [lab.create(LINE, f"P{n}", settings=PLAIN).record.seed for n in range(3)]
    assert len(set(drawn)) == 3
    first = lab.create(LINE, "P9", settings=PLAIN, key="k")
    again = lab.create(LINE, "P9", settings=PLAIN, key="k")
    assert (again.id, again.record.seed) == (first.id, first.record.seed)


def test_plan_begins_the_same_session_as_its_parts(lab: Lab) -> None:
    protocol = Protocol(reanchor=False)
    plan = Plan(LINE, PLAIN, protocol, seed=4)
    bodies = [
        dict(session.events[0].body)
        for session in (
            lab.create(plan, "P1"),
            lab.create(LINE, "P1", 4, settings=PLAIN, protocol=protocol),
        )
    ]
    assert bodies[0] == bodies[1]
    with pytest.raises(ValueError, match="within the Plan"):
        lab.create(plan, "P1", 5)


def test_report_export_and_table_are_methods(folder: Path, lab: Lab, session: Session) -> None:
    for step in range(3):
        finish(session, "new", 0.1 * step)
    assert session.report(folder / "report.html").read_text().startswith("<!")
    assert (folder / "out" / "P07-1" / "trials.csv") in lab.export(folder / "out", formats=["csv"])
    assert [row["trial"] for row in session.trials_table().rows] == [1, 2, 3]


def test_names_are_exported() -> None:
    answer: Choice = "new"
    assert answer == "new"
    assert Interval(1.0, 0.0, 2.0).high == 2.0


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("started", {"trial": 9}),
        ("started", {"trial": 0}),
        ("started", {"trial": "1"}),
        ("measured", {"trial": 1}),
        ("chosen", {}),
        ("placed", {"why": ""}),
        ("withdrawn", {"event": 99, "kind": "asked", "why": ""}),
        ("asked", {"trial": 1}),
    ],
)
def test_session_of_a_foreign_writer_opens_with_an_error_that_names_it(
    lab: Lab, session: Session, kind: str, body: dict[str, JSON]
) -> None:
    """The chain is intact, but the content is not that of a session."""
    session.ask()
    lab.log.append(session.id, kind, body)
    for read in (lambda: lab.open(session.id), lambda: session.record):
        with pytest.raises(ValueError, match=r"P07-1|trial"):
            read()


def test_trial_made_twice_under_one_number_cannot_be_read(lab: Lab, session: Session) -> None:
    session.ask()
    lab.log.append(session.id, "asked", session.events[-1].body)
    with pytest.raises(ValueError, match="expected trial 2 to be made, got 1"):
        lab.open(session.id)


def test_file_that_lost_its_sessions_is_not_begun_anew(folder: Path) -> None:
    path = folder / "lab.db"
    with Lab(path) as lab:
        session = lab.create(LINE, "P1", 1, settings=PLAIN)
        for _ in range(2):
            finish(session)
            assert session.state.round
    assert (folder / "lab.db.snapshots").is_dir()
    path.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"is empty, but lab\.db\.snapshots shows"):
        Lab(path)
    assert path.read_bytes() == b""


def test_empty_file_that_held_nothing_becomes_a_log(folder: Path) -> None:
    """A power cut may end the creation of a file before its first page is written."""
    (folder / "lab.db").write_bytes(b"")
    with Lab(folder / "lab.db") as lab:
        assert lab.sessions() == []
