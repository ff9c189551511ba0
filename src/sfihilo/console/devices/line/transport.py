"""Lines over UDP and TCP. A line may be lost: whoever sends it repeats it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from typing import Protocol

from sfihilo.console.devices.line.line import LONGEST, LineSplitter

CONNECT_WITHIN = 0.5  # seconds


class Transport(Protocol):
    """Sends and receives lines; any thread may call it."""

    def send(self, raw: bytes) -> None: ...
    def receive(self, seconds: float) -> Iterable[bytes]: ...
    def close(self) -> None: ...


class UdpTransport:
    """One datagram per line, only to and from one address."""

    def __init__(self, host: str, port: int) -> None:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[
            0
        ]
        self._socket = socket.socket(family, kind, protocol)
        self._socket.connect(address)

    def send(self, raw: bytes) -> None:
        try:
            self._socket.send(raw)
        except OSError:
            return  # nobody listens yet: as good as lost

    def receive(self, seconds: float) -> Iterable[bytes]:
        begun = time.monotonic()
        try:
            self._socket.settimeout(seconds)
            return [self._socket.recv(2 * LONGEST)]
        except TimeoutError:
            return []
        except OSError:  # refused at once: do not ask again at once
            time.sleep(max(0.0, min(seconds, 0.05) - (time.monotonic() - begun)))
            return []

    def close(self) -> None:
        self._socket.close()


class TcpTransport:
    """A connection that is made again after it was lost."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._lines = LineSplitter()
        self._closed = False

    def send(self, raw: bytes) -> None:
        with self._lock:
            try:
                if self._socket is None:
                    self._connect()
                if self._socket is not None:
                    self._socket.sendall(raw)
            except OSError:
                self._drop()

    def _connect(self) -> None:
        if self._closed:
            return
        made = socket.create_connection(self._address, CONNECT_WITHIN)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._lines = made, LineSplitter()

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def receive(self, seconds: float) -> Iterable[bytes]:
        connection, lines = self._socket, self._lines
        if connection is None:
            time.sleep(min(seconds, 0.02))
            return []
        try:
            connection.settimeout(seconds)
            data = connection.recv(4 * LONGEST)
        except TimeoutError:
            return []
        except OSError:
            data = b""
        if data:
            return lines.feed(data)
        with self._lock:  # the other end has closed
            if self._socket is connection:
                self._drop()
        return []

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()
