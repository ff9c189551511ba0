"""Sessions over HTTP: create, list, show, what was learned, report, export, several at once."""

import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfihilo.console.shown.texts import languages, texts
from sfihilo.experiment import Lab
from sfihilo.experiment.session.plan_file import described, tables_of
from tests.console.running import SPACE, Running, act, create, measured, serving, until, view

FORM: dict[str, Any] = {
    "policy": {"torque": {"low": 0, "high": 60, "unit": "Nm", "max_step": 20, "start": 20,
                          "fixed": None},
               "timing": {"low": 0, "high": 1, "unit": ""}},
    "outcomes": {"effort": {"low": 0, "high": 10, "unit": "W/kg", "soft": None},
                 "comfort": {"low": 0, "high": 10}},
    "constraints": [],
    "session": {"rule": "random", "answers": "two", "measurement_noise": None},
}  # fmt: skip


def test_a_form_and_a_file_begin_the_same_session(operator: httpx.Client) -> None:
    made = [
        operator.post("/api/sessions", json={"participant": "F1", "seed": 3, **body})
        for body in ({"form": FORM}, {"toml": SPACE})
    ]
    assert [answer.status_code for answer in made] == [201, 201]
    views = [view(operator, answer.json()["session"]) for answer in made]
    for name in ("space", "seed", "grades", "goal", "break_minutes"):
        assert views[0][name] == views[1][name]


def test_the_same_key_creates_one_session(operator: httpx.Client) -> None:
    body = {"participant": "K1", "toml": SPACE, "key": "new-1"}
    names = {operator.post("/api/sessions", json=body).json()["session"] for _ in range(3)}
    assert len(names) == 1
    other = operator.post("/api/sessions", json={**body, "participant": "K2"})
    assert (other.status_code, other.json()["error"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"participant": "A"}, "toml, form: expected one of them"),
        ({"participant": "A", "toml": SPACE, "form": FORM}, "toml, form"),
        ({"participant": "Anna Smith", "toml": SPACE}, "participant: expected a code"),
        ({"participant": "A", "toml": "["}, "file: expected a TOML file"),
        ({"participant": "A", "toml": "a = " + "[" * 5000}, "file: expected"),
        ({"participant": "A", "toml": "x = 1"}, "file: expected policy, outcomes"),
        ({"participant": "A", "toml": SPACE.replace("start = 20", "")}, "start"),
        ({"participant": "A", "toml": SPACE + 'answers = "nine"'}, "answers: expected two"),
        ({"participant": "A", "toml": SPACE.replace("high = 60", "high = -1")}, "low < high"),
        ({"participant": "A", "form": {"policy": 1}}, "form: expected at least one table"),
        ({"participant": "A", "form": {"policy": {"a": [1]}, "outcomes": {"b": 1}}}, "form"),
        ({"participant": "A", "form": {**FORM, "constraints": ["torque <"]}}, "constraint"),
    ],
)
def test_a_session_that_cannot_be_begun_leaves_nothing(
    running: Running, operator: httpx.Client, body: dict[str, Any], words: str
) -> None:
    before = running.console.lab.sessions()
    for path in ("/api/sessions", "/api/sessions/check"):
        answer = operator.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid")
        assert words in answer.json()["message"]
    assert running.console.lab.sessions() == before


def test_checking_a_plan_creates_nothing(running: Running, operator: httpx.Client) -> None:
    before = running.console.lab.sessions()
    answer = operator.post("/api/sessions/check", json={"participant": "A", "form": FORM})
    assert answer.json()["ok"] is True
    assert running.console.lab.sessions() == before


def test_the_template_is_a_plan(operator: httpx.Client) -> None:
    text = operator.get("/api/sessions/template").json()["toml"]
    answer = operator.post("/api/sessions/check", json={"participant": "A", "toml": text})
    assert answer.json()["ok"] is True
    assert described(tables_of(text, "template"), "template")[0].outcomes


def test_the_list_has_every_session_and_says_which_cannot_be_read(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with Lab(db) as lab:
        lab.log.append("broken", "opened", {"format": 99})
    with serving(db) as running:
        operator = running.client()
        session = create(operator, "P01")
        listed = operator.get("/api/sessions").json()
        assert [row["session"] for row in listed["sessions"]] == [session]
        assert "cannot be read" in listed["unreadable"]["broken"]
        assert operator.get("/api/sessions/broken").status_code == 400
        assert operator.get("/api/sessions/nothing").status_code == 404


def test_list_of_sessions_says_when_each_was_last_active(operator: httpx.Client) -> None:
    session = create(operator, "T1")
    (row,) = (
        row for row in operator.get("/api/sessions").json()["sessions"] if row["session"] == session
    )
    assert datetime.fromisoformat(row["opened"]) <= datetime.fromisoformat(row["active"])


def test_places_of_the_device_are_said_in_the_order_of_the_space(operator: httpx.Client) -> None:
    session = create(operator, "T2")
    act(operator, session, "place", policy={"timing": 0.5, "torque": 30})
    assert [place["words"] for place in view(operator, session)["places"]] == [
        "torque 30 Nm, timing 0.5"
    ]


@pytest.fixture(scope="module")
def learned(operator: httpx.Client) -> str:
    """A session of eight trials, the first answers known."""
    session = create(operator, "L1")
    for number in range(1, 9):
        measured(operator, session, effort=float(number % 5))
        if number > 1:
            act(
                operator,
                session,
                "choose",
                trial=number,
                choice="new" if number % 2 else "previous",
            )
    return session


def test_insight_has_arrays_for_every_plot(operator: httpx.Client, learned: str) -> None:
    found = operator.get(f"/api/sessions/{learned}/insight").json()
    assert found["available"] is True
    assert found["answers"]["trial"] == list(range(2, 9))
    assert set(found["answers"]["given"]) == {0.0, 1.0}
    assert [outcome["name"] for outcome in found["outcomes"]] == ["effort", "comfort"]
    assert found["outcomes"][0]["value"] == [float(number % 5) for number in range(1, 9)]
    for curve in found["curves"]:
        assert len(curve["values"]) == len(curve["mean"]) == len(curve["low"])
        assert all(low <= high for low, high in zip(curve["low"], curve["high"], strict=True))
    assert [best["name"] for best in found["best"]] == ["torque", "timing"]

    def advised() -> Any:
        return operator.get(f"/api/sessions/{learned}/insight").json()["advice"]

    until(lambda: advised()["trial"] == list(range(2, 9)))
    series = advised()
    assert all(low <= high for low, high in zip(series["low"], series["high"], strict=True))


def test_insight_before_anything_was_learned_is_empty(operator: httpx.Client, session: str) -> None:
    found = operator.get(f"/api/sessions/{session}/insight").json()
    assert (found["available"], found["curves"]) == (False, [])
    advice = operator.get(f"/api/sessions/{session}/advice").json()
    assert advice["available"] is False
    assert "nothing learned yet" in advice["why"]


def test_advice_has_its_verdict_and_takes_ranges(
    running: Running, operator: httpx.Client, learned: str
) -> None:
    path = f"/api/sessions/{learned}/advice"
    found = operator.get(path).json()
    own = running.console.sessions.get(learned).writer.recommend()
    assert found["verdict"] == own.verdict
    assert [row["value"] for row in found["policy"]] == list(own.policy.values())
    wanted = {"feasible": {"torque": [0, 10]}, "compare_with": {"off": {"torque": 0}}}
    narrow = operator.post(path, json=wanted).json()
    assert narrow["policy"][0]["value"] <= 10
    assert "off" in [row["to"] for row in narrow["preferred"]]
    wrong = operator.post(path, json={"feasible": {"speed": [0, 1]}})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid")


def test_report_is_one_page_that_may_do_nothing(operator: httpx.Client, learned: str) -> None:
    answer = operator.get(f"/api/sessions/{learned}/report")
    assert answer.headers["content-type"].startswith("text/html")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "script" not in answer.headers["content-security-policy"]
    assert learned in answer.text


def test_export_is_a_zip_of_the_tables(operator: httpx.Client, learned: str) -> None:
    answer = operator.get(f"/api/sessions/{learned}/export", params={"formats": "csv,bids"})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
    assert f"{learned}/{learned}/trials.csv" in names
    assert all(name.startswith(f"{learned}/") for name in names)
    wrong = operator.get(f"/api/sessions/{learned}/export", params={"formats": "exe"})
    assert wrong.status_code == 400


def test_hostile_texts_come_back_as_they_are(operator: httpx.Client, session: str) -> None:
    texts_given = ["<script>alert(1)</script>", "\u202e\x00", "'; DROP TABLE events;--", "{{7*7}}"]
    for text in texts_given:
        act(operator, session, "note", text=text)
    assert [note["text"] for note in view(operator, session)["notes"]] == texts_given


def test_many_sessions_go_on_at_the_same_time(running: Running, operator: httpx.Client) -> None:
    names = [create(operator, f"M{number}") for number in range(6)]

    def conduct(name: str) -> None:
        client = running.client()
        measured(client, name)
        number = measured(client, name)
        act(client, name, "choose", trial=number, choice="new")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(conduct, names))
    for name in names:
        assert [row["status"] for row in view(operator, name)["trials"]] == ["complete"] * 2
    assert running.console.lab.verify().ok


def test_every_language_has_every_text() -> None:
    def names(table: dict[str, Any], before: str = "") -> set[str]:
        found = set()
        for name, value in table.items():
            found |= (
                names(value, f"{before}{name}.") if isinstance(value, dict) else {before + name}
            )
        return found

    assert languages()[0] == "en"
    for language in languages():
        assert names(texts(language)) == names(texts("en"))
