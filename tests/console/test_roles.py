"""Every route with every role and with none."""

import re
from typing import Any

import httpx
import pytest

from sfihilo.console.access.auth import ROLES, Role
from sfihilo.console.access.guard import EVERYBODY, ROLES_FIELD, GuardedRoute
from tests.console.running import Running, create

OPEN = {
    ("GET", "/enter"), ("GET", "/"), ("GET", "/new"), ("GET", "/participant"), ("GET", "/docs"),
    ("GET", "/sessions/{session}"), ("GET", "/api/texts/{language}"), ("POST", "/api/enter"),
}  # fmt: skip


def guarded_routes(running: Running) -> list[tuple[str, str, Any]]:
    found = []
    for route in walk(running.app.routes):
        if isinstance(route, GuardedRoute):
            allowed = (route.openapi_extra or {})[ROLES_FIELD]
            found += [(method, route.path, allowed) for method in sorted(route.methods or ())]
    return found


def walk(routes: Any) -> Any:
    """All routes, also those that newer versions keep within their router."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from walk(inner.routes)
        else:
            yield route


def filled(path: str, session: str) -> str:
    values = {"session": session, "language": "en", "grant": "abc"}
    return re.sub(r"{(\w+)}", lambda found: values[found[1]], path)


def status(client: httpx.Client, method: str, path: str) -> int:
    """The status of a response, without waiting for the end of a stream."""
    body: dict[str, Any] | None = None if method == "GET" else {}
    with client.stream(method, path, follow_redirects=False, json=body) as answer:
        return answer.status_code


def test_only_a_few_routes_need_no_role(running: Running) -> None:
    routes = guarded_routes(running)
    assert len(routes) > 45
    assert {route[:2] for route in routes if route[2] == EVERYBODY} == OPEN
    every = [route for route in walk(running.app.routes) if hasattr(route, "endpoint")]
    assert [route.path for route in every if not isinstance(route, GuardedRoute)] == []


def test_nothing_is_open_to_nobody(running: Running, session: str) -> None:
    stranger = running.bare()
    for method, path, allowed in guarded_routes(running):
        found = status(stranger, method, filled(path, session))
        if allowed == EVERYBODY:
            assert found in (200, 303, 422), (method, path)
        else:
            assert found == 401, (method, path)


@pytest.mark.parametrize("role", ROLES)
def test_each_role_does_what_it_may_and_nothing_else(
    running: Running, operator: httpx.Client, role: Role
) -> None:
    session = create(operator, f"W-{role}")
    bound = session if role in ("participant", "device") else None
    fixed = running.client(role, bound)
    for method, path, allowed in guarded_routes(running):
        if allowed == EVERYBODY:
            continue
        client = running.client(role, bound) if path == "/api/leave" else fixed
        found = status(client, method, filled(path, session))
        if role in allowed:
            assert found not in (401, 403), (method, path, found)
            assert found < 500, (method, path, found)
        else:
            assert found == 403, (method, path, found)


@pytest.mark.parametrize("role", ["participant", "device"])
def test_a_client_of_one_session_reaches_no_other(
    running: Running, operator: httpx.Client, role: Role
) -> None:
    own, other = create(operator, "Q1"), create(operator, "Q2")
    client = running.client(role, own)
    for method, path, allowed in guarded_routes(running):
        if "{session}" in path and allowed != EVERYBODY:
            assert status(client, method, filled(path, other)) == 403, (method, path)


def test_a_participant_sees_no_names_and_no_numbers(
    running: Running, operator: httpx.Client
) -> None:
    client = running.client("participant", create(operator, "ZX81"))
    shown = client.get("/api/participant").json()
    assert set(shown) == {
        "state", "last", "trial", "grades", "answers", "requested", "stopped", "insecure",
        "demo",
    }  # fmt: skip
    assert "ZX81" not in client.get("/api/participant").text
    assert "ZX81" not in client.get("/participant").text


def test_one_browser_holds_operator_and_participant(
    running: Running, operator: httpx.Client, session: str
) -> None:
    browser = running.client("operator")
    code, _ = running.console.grants.pair("participant", session)
    assert browser.post("/api/enter", json={"code": code}).json()["next"] == "/participant"
    assert browser.get("/api/participant").status_code == 200
    assert browser.get("/api/sessions").status_code == 200


def test_pages_lead_strangers_to_the_entrance(running: Running, session: str) -> None:
    stranger = running.bare()
    for path in ("/", "/new", "/participant", "/docs", f"/sessions/{session}"):
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
