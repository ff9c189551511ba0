"""How a console is started: which file, where it listens, what it shows permanently."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Part = Literal["nobody", "operator", "participant"]
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Config:
    """The options of one console.

    `names` are host names under which the machine is reached, besides its addresses. `insecure`
    allows other machines without TLS; pages then show a permanent banner. `devices` are names or
    TOML files of the devices that sessions may use. `by` is the operator in the record. `demo`
    conducts a session by itself, except for the part that `you` play, `speed` times faster than
    real.
    """

    db: Path
    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    certfile: Path | None = None
    keyfile: Path | None = None
    insecure: bool = False
    demo: bool = False
    by: str | None = None
    devices: tuple[str, ...] = ()
    speed: float = 20.0
    you: Part = "nobody"
    heartbeat_limit: float = 10.0  # seconds of silence after which a device puts a session on hold
    body_limit: int = field(default=256 * 1024)  # bytes of a request

    def __post_init__(self) -> None:
        if not isinstance(self.port, int) or not 0 <= self.port <= 65535:
            raise ValueError(f"port: expected 0 to 65535, got {self.port!r}")
        if not 0.1 <= self.speed <= 1000:
            raise ValueError(f"speed: expected 0.1 to 1000, got {self.speed!r}")
        if self.you not in ("nobody", "operator", "participant"):
            raise ValueError(f"you: expected nobody, operator or participant, got {self.you!r}")
        if (self.certfile is None) != (self.keyfile is None):
            raise ValueError("certfile, keyfile: expected both or neither, got one")
        for path in (self.certfile, self.keyfile):
            if path is not None and not path.is_file():
                raise ValueError(f"{path}: expected a PEM file, got none")
        if not is_loopback(self.host) and not self.tls and not self.insecure:
            raise ValueError(
                f"host: expected 127.0.0.1 unless --certfile and --keyfile are given, got "
                f"{self.host!r}; --insecure allows other machines without encryption: anyone in "
                "the network can then read and change what is sent"
            )

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.certfile is not None

    @property
    def scheme(self) -> str:
        """How addresses of this console begin."""
        return "https" if self.tls else "http"

    @property
    def exposed(self) -> bool:
        """Whether other machines reach it without encryption."""
        return not is_loopback(self.host) and not self.tls

    def allows_host(self, host: str) -> bool:
        """Whether a request may name this host (without its port) as the one that it is for.

        A page of another site can make its own name lead to this machine (DNS rebinding), but then
        its name is in the request. An address cannot be led elsewhere, so any is allowed, unless
        the console listens on this machine only.
        """
        name = host.lower().removeprefix("[").removesuffix("]")
        if name in LOOPBACK_NAMES:
            return True
        if is_loopback(self.host):
            return False
        if name in {given.lower() for given in (*self.names, self.host)}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def address(self, path: str = "/") -> str:
        """An address of this console for a person to open."""
        host = self.names[0] if self.names else self.host
        if host in ("0.0.0.0", "::"):
            host = own_address()
        shown = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{shown}:{self.port}{path}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def own_address() -> str:
    """The address of this machine in its network, as far as it can be found without asking one."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
