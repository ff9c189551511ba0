"""Codes of participants: not in addresses, not in what a participant's page gets, not in logs."""

import logging
import re
from pathlib import Path

import httpx
import pytest

from sfihilo.console.ids import Ids
from sfihilo.experiment import Lab
from tests.console.running import Running, act, create, measured, serving, view

CODE = "SECRET42"


@pytest.fixture
def own(operator: httpx.Client) -> str:
    """A session of a participant whose code must not appear."""
    return create(operator, CODE)


def test_a_participant_sees_no_name_and_no_code(
    running: Running, operator: httpx.Client, own: str
) -> None:
    code, _ = running.console.grants.pair("participant", own, CODE)
    page = running.bare()
    seen = [page.post("/api/enter", json={"code": code}).text]
    measured(operator, own)
    number = measured(operator, own)
    seen += [
        page.get(path).text for path in ("/api/me", "/api/participant", "/participant", "/enter")
    ]
    seen += [page.get(path).text for path in ("/", "/api/sessions", f"/api/sessions/{number}")]
    seen.append(page.post("/api/participant/again", json={}).text)
    for trial in (number, number, 99):
        body = {"trial": trial, "choice": "new"}
        seen.append(page.post("/api/participant/choose", json=body).text)
    seen.append(page.post("/api/participant/stop").text)
    with page.stream("GET", "/api/participant/events") as stream:
        lines = stream.iter_lines()
        seen += [next(lines) for _ in range(4)]
    assert CODE not in "\n".join(seen)


def test_addresses_of_the_operator_have_no_code(operator: httpx.Client, own: str) -> None:
    [row] = [
        row for row in operator.get("/api/sessions").json()["sessions"] if row["session"] == own
    ]
    opaque = row["id"]
    assert re.fullmatch("[0-9a-f]{16}", opaque)
    moved = operator.get(f"/sessions/{own}")
    assert (moved.status_code, moved.headers["location"]) == (303, f"/sessions/{opaque}")
    page = operator.get(f"/sessions/{opaque}")
    assert f'data-session="{opaque}"' in page.text
    assert view(operator, opaque) | {"now": 0} == view(operator, own) | {"now": 0}
    act(operator, opaque, "note", text="x")
    assert view(operator, own)["notes"][0]["text"] == "x"
    act(operator, opaque, "stop")
    assert view(operator, own)["status"] == "interrupted"
    assert operator.get("/sessions/0123456789abcdef").status_code == 404


def test_an_id_opens_no_other_session(running: Running, operator: httpx.Client, own: str) -> None:
    opaque = running.console.ids.of(own)
    other = create(operator)
    made = operator.post("/api/pairings", json={"role": "device", "session": opaque}).json()
    assert made["session"] == own
    device = running.bare()
    device.post("/api/enter", json={"code": made["code"]})
    for name, status in ((own, 200), (opaque, 200), (other, 403)):
        assert device.get(f"/api/device/{name}").status_code == status
    assert device.get(f"/api/device/{running.console.ids.of(other)}").status_code == 403
    assert running.bare().get(f"/api/sessions/{opaque}").status_code == 401


def test_an_id_stays_after_a_restart_and_for_sessions_of_other_processes(tmp_path: Path) -> None:
    db = tmp_path / "study.db"
    with serving(db) as running:
        first = create(running.client(), CODE)
        kept = running.console.ids.of(first)
    with serving(db) as running:
        assert view(running.client(), kept)["session"] == first
        with Lab(db) as lab:
            space = lab.record(first).space
            second = lab.create(space, CODE, seed=1).id
            known = Ids(lab).of(second)
        assert view(running.client(), known)["session"] == second


def test_logs_have_no_code_and_no_secret(
    running: Running, operator: httpx.Client, own: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logged = {each: logging.getLogger(each).level for each in ("uvicorn.error", "asyncio")}
    opaque = running.console.ids.of(own)
    token = "; ".join(f"{each.name}={each.value}" for each in operator.cookies.jar)
    measured(operator, opaque)
    for path in (f"/api/sessions/{own}/ask", f"/sessions/{own}/%00", "/api/sessions/%ff"):
        operator.post(path, json={"trial": "x"})
        operator.get(path)
    operator.post(f"/api/sessions/{own}/measure", json={"trial": 1, "outcome": {"effort": 1e308}})
    operator.post(f"/api/sessions/{own}/stop", json={})
    text = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith("http")
    )
    assert CODE not in text
    assert token.partition("=")[2] not in text
    assert logged["uvicorn.error"] >= logging.WARNING
