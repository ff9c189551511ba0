"""Requests that never arrive whole do not hold a connection for ever."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from sfihilo.console.access import arrival
from tests.console.running import Running, act, until

HEAD = "GET /enter HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = "POST /api/enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF_BODY = f"{POST}Content-Length: 50\r\n\r\n"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "ARRIVAL", 1.0)


def connected(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.config.port), timeout=20)


def closed(connection: socket.socket) -> bytes:
    """What arrives until the server closes the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("sent", ["", "GET", HEAD, HALF_BODY, HALF_BODY + '{"c"'])
def test_half_a_request_is_cut_off(
    running: Running, sent: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with connected(running) as connection:
        connection.sendall(sent.encode())
        assert closed(connection) == b""
    time.sleep(0.1)
    assert caplog.records == []


@pytest.mark.usefixtures("hurried")
def test_a_request_that_trickles_is_cut_off(running: Running) -> None:
    with connected(running) as connection:
        connection.sendall(HEAD.encode())
        connection.setblocking(False)
        assert trickled(connection, 15) < 10


def trickled(connection: socket.socket, most: float) -> float:
    """Seconds that a connection takes lines."""
    begun = time.monotonic()
    with suppress(ConnectionError):
        while time.monotonic() < begun + most:
            connection.sendall(b"X-Long: 1\r\n")
            time.sleep(0.1)
    return time.monotonic() - begun


@pytest.mark.usefixtures("hurried")
def test_a_later_request_of_a_connection_has_the_same_limit(running: Running) -> None:
    with connected(running) as connection:
        connection.sendall(f"{HEAD}\r\n".encode())
        connection.recv(65536)
        time.sleep(1.2)  # longer than a request may take: nothing has begun to arrive
        connection.sendall(HEAD.encode())
        begun = time.monotonic()
        closed(connection)
        assert time.monotonic() > begun + 0.5


def events(lines: Iterator[str]) -> Iterator[str]:
    return (line for line in lines if line.startswith("event:"))


@pytest.mark.usefixtures("hurried")
def test_whole_requests_and_streams_are_not_cut_off(
    running: Running, operator: httpx.Client, session: str
) -> None:
    with operator.stream("GET", f"/api/sessions/{session}/events") as stream:
        told = events(stream.iter_lines())
        assert next(told) == "event: changed"
        time.sleep(1.5)
        act(operator, session, "note", text="x")
        assert next(told) == "event: changed"


@pytest.mark.usefixtures("hurried")
def test_many_half_requests_do_not_delay_a_stop(
    running: Running, operator: httpx.Client, session: str
) -> None:
    slow = [connected(running) for _ in range(200)]
    try:
        for each in slow:
            each.sendall(HALF_BODY.encode())
        begun = time.monotonic()
        act(operator, session, "stop")
        assert time.monotonic() < begun + 5
        until(lambda: len(running.server.server_state.connections) < 50, 20)
    finally:
        for each in slow:
            each.close()
