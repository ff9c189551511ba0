"""Targets on real sockets, and wires that lose, double, reorder, change and cut what they carry."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from sfihilo.console.devices.line.line import LineSplitter
from sfihilo.console.devices.line.target import Target

LOOPBACK = "127.0.0.1"


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@dataclass
class Machine:
    """What a target does: keeps every executed command."""

    done: list[object] = field(default_factory=list)
    outcome: Mapping[str, float | None] | None = None

    def target(self) -> Target:
        def apply(policy: Mapping[str, float]) -> None:
            if policy.get("torque", 0.0) > 60:
                raise ValueError("torque")
            self.done.append(dict(policy))

        def measure() -> Mapping[str, float | None] | None:
            self.done.append("measure")
            return self.outcome

        return Target(apply, measure, lambda: self.done.append("stop"))


@contextmanager
def udp_target(target: Target) -> Iterator[int]:
    """A target on a UDP port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((LOOPBACK, 0))
        server.settimeout(0.05)

        def step() -> None:
            raw, sender = server.recvfrom(4096)
            if (reply := target.reply(raw)) is not None:
                server.sendto(reply, sender)

        with looping(step):
            yield int(server.getsockname()[1])


@contextmanager
def tcp_target(target: Target) -> Iterator[int]:
    """A target on a TCP port; one connection at a time."""
    with socket.create_server((LOOPBACK, 0)) as server:
        server.settimeout(0.05)
        ended = threading.Event()

        def step() -> None:
            connection, _ = server.accept()
            lines = LineSplitter()
            with connection:
                connection.settimeout(0.05)
                while not ended.is_set():
                    try:
                        data = connection.recv(4096)
                    except TimeoutError:
                        continue
                    if not data:
                        return
                    for raw in lines.feed(data):
                        if (reply := target.reply(raw)) is not None:
                            connection.sendall(reply)

        with looping(step):
            yield int(server.getsockname()[1])
            ended.set()


@contextmanager
def bad_udp_wire(port: int, seed: int, probability: float) -> Iterator[int]:
    """Between a device and its target: each datagram may be lost, doubled, changed or delayed."""
    rng = np.random.default_rng(seed)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
    ):
        near.bind((LOOPBACK, 0))
        near.settimeout(0.01)
        far.connect((LOOPBACK, port))
        far.settimeout(0.01)
        client: list[tuple[str, int]] = []
        late: list[tuple[float, Callable[[], object]]] = []

        def carry(raw: bytes, send: Callable[[bytes], object]) -> None:
            faults = rng.random(4) < probability
            if faults[0]:
                return
            if faults[1]:
                place = int(rng.integers(len(raw)))
                raw = (
                    raw[:place]
                    + bytes([raw[place] ^ (1 << int(rng.integers(8)))])
                    + raw[place + 1 :]
                )
            if faults[2]:  # much later, so that others overtake it
                late.append((time.monotonic() + rng.uniform(0.01, 0.15), lambda: send(raw)))
            else:
                send(raw)
            if faults[3]:
                late.append((time.monotonic() + rng.uniform(0, 0.15), lambda: send(raw)))

        def step() -> None:
            try:
                raw, sender = near.recvfrom(4096)
                client[:] = [sender]
                carry(raw, far.send)
            except TimeoutError:
                pass
            try:
                raw = far.recv(4096)
                carry(raw, lambda data: near.sendto(data, client[0]))
            except TimeoutError:
                pass
            due = [entry for entry in late if entry[0] <= time.monotonic()]
            for entry in due:
                late.remove(entry)
                entry[1]()

        with looping(step):
            yield int(near.getsockname()[1])


@contextmanager
def bad_tcp_wire(port: int, seed: int, probability: float) -> Iterator[int]:
    """Cuts the connection now and then, changes bytes, and delivers lines in pieces."""
    rng = np.random.default_rng(seed)
    with socket.create_server((LOOPBACK, 0)) as server:
        server.settimeout(0.05)
        ended = threading.Event()

        def carried(source: socket.socket, sink: socket.socket) -> bool:
            try:
                data = source.recv(4096)
            except TimeoutError:
                return True
            if not data or rng.random() < probability:
                return False  # the connection is cut, and what it carried is lost
            if rng.random() < probability:
                place = int(rng.integers(len(data)))
                data = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
            cut = int(rng.integers(len(data) + 1))
            sink.sendall(data[:cut])
            time.sleep(0.001)
            sink.sendall(data[cut:])
            return True

        def step() -> None:
            near, _ = server.accept()
            with near, socket.create_connection((LOOPBACK, port)) as far:
                near.settimeout(0.005)
                far.settimeout(0.005)
                while not ended.is_set() and carried(near, far) and carried(far, near):
                    pass

        with looping(step):
            yield int(server.getsockname()[1])
            ended.set()


@contextmanager
def looping(step: Callable[[], None]) -> Iterator[None]:
    """A thread that repeats a step; errors of sockets are what happens on a bad wire."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            try:
                step()
            except OSError:
                continue

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)
