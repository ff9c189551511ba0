"""Requests made from the API's own description: no server error, nothing without a role."""

from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from tests.console.running import Running, act, create, measured, serving

STREAMS = ("/api/events", "/api/sessions/{session}/events", "/api/participant/events")
ENDS = ("/api/leave",)  # the token of the client that tries everything


def tried(running: Running, requests: int) -> Counter[int]:
    """Send this many generated requests as every role; returns how often each status came."""
    operator = running.client()
    session = create(operator)
    measured(operator, session)
    schema = schemathesis.openapi.from_dict(running.app.openapi())
    clients = {
        "operator": operator,
        "participant": running.client("participant", session),
        "device": running.client("device", session),
        "nobody": running.bare(),
    }
    found: list[Any] = [each.ok() for each in schema.get_all_operations()]  # type: ignore[union-attr]
    operations = [each for each in found if each.path not in (*STREAMS, *ENDS)]
    each = max(1, requests // len(operations))
    statuses: Counter[int] = Counter()
    for operation in operations:
        _try_operation(operation, each, clients, session, statuses)
    act(operator, session, "resume") if _on_hold(operator, session) else None
    assert running.console.lab.verify().ok
    return statuses


def _on_hold(client: httpx.Client, session: str) -> bool:
    return bool(client.get(f"/api/sessions/{session}").json()["status"] == "interrupted")


def _try_operation(
    operation: Any,
    each: int,
    clients: dict[str, httpx.Client],
    session: str,
    statuses: Counter[int],
) -> None:
    allowed = operation.definition.raw["x-roles"]
    turn = Counter[str]()

    @given(case=operation.as_strategy())
    @settings(
        max_examples=each, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    def send(case: Any) -> None:
        turn["all"] += 1
        if "session" in (case.path_parameters or {}) and turn["all"] % 4:
            case.path_parameters["session"] = session  # most of them for a session that exists
        role = list(clients)[turn["all"] % 5 % len(clients)] if turn["all"] % 2 else "operator"
        if "participant" in allowed and len(allowed) == 1:
            role = "nobody" if turn["all"] % 5 == 0 else "participant"
        elif "device" in allowed and len(allowed) == 1:
            role = "nobody" if turn["all"] % 5 == 0 else "device"
        client = clients[role]
        answer = send_case(case, client)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, answer.text
        if role == "nobody" and isinstance(allowed, list):
            assert answer.status_code in (400, 401, 404, 405, 413, 415), answer.text
        if answer.status_code >= 400:
            assert {"error", "message"} <= set(answer.json())

    send()


def send_case(case: Any, client: httpx.Client) -> httpx.Response:
    """One generated request, with the cookies and the origin of a client."""
    options = case.as_transport_kwargs(base_url=str(client.base_url).rstrip("/"))
    headers = {
        name: value
        for name, value in (options.pop("headers", None) or {}).items()
        if name.lower() not in ("cookie", "origin", "host", "authorization", "user-agent")
    }
    options.pop("cookies", None)
    options.pop("auth", None)
    if "data" in options:
        options["content"] = options.pop("data")
    return client.request(
        options.pop("method"),
        options.pop("url"),
        headers=headers,
        follow_redirects=False,
        **options,
    )


def test_generated_requests_find_no_server_error(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        statuses = tried(running, 150)
    assert statuses[200] + statuses[201] > 5
    assert statuses[401] > 5


@pytest.mark.slow
def test_five_thousand_generated_requests_find_no_server_error(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        statuses = tried(running, 6000)
    assert statuses.total() >= 5000
    print(dict(statuses))


def test_the_description_names_the_roles_of_every_operation(running: Running) -> None:
    for path, operations in running.app.openapi()["paths"].items():
        for method, operation in operations.items():
            assert operation["x-roles"], (method, path)
            assert operation["summary"], (method, path)
