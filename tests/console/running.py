"""A real server on a free port, and clients of each role, for tests of the console."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from sfihilo.console.access.auth import Role
from sfihilo.console.app import create_app
from sfihilo.console.app_state import Console
from sfihilo.console.config import Config
from sfihilo.console.serve import Server, bound, server

SPACE = """
[policy.torque]
low = 0
high = 60
unit = "Nm"
max_step = 20
start = 20

[policy.timing]
low = 0
high = 1

[outcomes.effort]
low = 0
high = 10
unit = "W/kg"

[outcomes.comfort]
low = 0
high = 10

[session]
rule = "random"
"""


class Running:
    """A console that serves in a thread of this process."""

    def __init__(self, config: Config) -> None:
        self.listening, self.config = bound(config)
        self.app = create_app(self.config)
        self.console: Console = self.app.state.console
        self.server: Server = server(self.app, self.config)
        self.thread = threading.Thread(target=self.server.run, args=([self.listening],))
        self.clients: list[httpx.Client] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.config.port}"

    @property
    def origin(self) -> dict[str, str]:
        return {"origin": self.address}

    def begin(self) -> None:
        self.thread.start()
        patience = time.monotonic() + 120
        while not self.server.started:
            assert self.thread.is_alive()
            assert time.monotonic() < patience
            time.sleep(0.01)

    def end(self) -> None:
        for client in self.clients:
            client.close()
        self.server.handle_exit(15, None)
        self.thread.join(120)
        assert not self.thread.is_alive()
        self.listening.close()

    def bare(self, **headers: str) -> httpx.Client:
        """A client that is not paired; it sends the Origin of the console's pages."""
        client = httpx.Client(
            base_url=self.address, headers={**self.origin, **headers}, timeout=120, trust_env=False
        )
        self.clients.append(client)
        return client

    def client(self, role: Role = "operator", session: str | None = None) -> httpx.Client:
        """A client with the cookie of this role."""
        client = self.bare()
        code, _ = self.console.grants.pair(role, session)
        done = client.post("/api/enter", json={"code": code})
        assert done.status_code == 200, done.text
        return client


@contextmanager
def serving(db: Path, **options: Any) -> Iterator[Running]:
    """A console on a lab's file, on a free port unless one is given."""
    running = Running(replace(Config(db=db, port=0), **options))
    running.begin()
    try:
        yield running
    finally:
        running.end()


def create(client: httpx.Client, participant: str = "P07", toml: str = SPACE) -> str:
    """A new session; returns its name."""
    body = {"participant": participant, "toml": toml, "seed": 7}
    done = client.post("/api/sessions", json=body)
    assert done.status_code == 201, done.text
    return str(done.json()["session"])


def act(client: httpx.Client, session: str, action: str, **body: Any) -> dict[str, Any]:
    """An action that must succeed."""
    done = client.post(f"/api/sessions/{session}/{action}", json=body)
    assert done.status_code == 200, f"{action}: {done.status_code} {done.text}"
    found: dict[str, Any] = done.json()
    return found


def view(client: httpx.Client, session: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/sessions/{session}").raise_for_status().json()
    return found


def kinds(client: httpx.Client, session: str) -> list[str]:
    """The kinds of all events of a session."""
    log = client.get(f"/api/sessions/{session}/log").raise_for_status().json()
    return [event["kind"] for event in log["events"]]


def measured(client: httpx.Client, session: str, effort: float = 5.0) -> int:
    """A trial that was asked, started and measured; its number."""
    number = int(act(client, session, "ask")["trial"]["trial"])
    act(client, session, "start", trial=number)
    act(client, session, "measure", trial=number, outcome={"effort": effort, "comfort": 5.0})
    return number


def until(condition: Any, seconds: float = 120.0) -> None:
    """Wait until a condition holds."""
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience, "it did not happen in time"
        time.sleep(0.02)


def owner_only(path: Path) -> bool:
    return os.stat(path).st_mode & 0o077 == 0
