"""Runs the console until Ctrl-C: address and start code on the terminal, no secrets in logs."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sfihilo.console.access.arrival import Punctual
from sfihilo.console.app import create_app
from sfihilo.console.config import Config

SWITCH = 0.001  # seconds that a computing thread may keep the others waiting
LEAVING = 3  # seconds in which open requests may finish


class Server(uvicorn.Server):
    """A server whose streams end when it is told to leave."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[], None]) -> None:
        super().__init__(config)
        self._leave = leave
        self._running: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._running = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, then leave."""
        if self._running is not None:
            with suppress(RuntimeError):  # it has left already
                self._running.call_soon_threadsafe(self._leave)
        super().handle_exit(sig, frame)


def bound(config: Config) -> tuple[socket.socket, Config]:
    """A listening socket, and the configuration with the port that it got (0 asks for any)."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise ValueError(
            f"{config.host}:{config.port}: cannot listen there: {error.strerror}; "
            "is another console running? give another --port"
        ) from error
    return listening, replace(config, port=int(listening.getsockname()[1]))


def server(app: FastAPI, config: Config) -> Server:
    """The server of an application; it writes no access log, since addresses name sessions."""
    options = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Punctual,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=LEAVING,
        ssl_certfile=None if config.certfile is None else str(config.certfile),
        ssl_keyfile=None if config.keyfile is None else str(config.keyfile),
    )
    return Server(options, app.state.console.live.hang_up)


def run(config: Config, say: Callable[[str], None] = print, code_file: Path | None = None) -> None:
    """Serve the lab's file until a signal ends it."""
    sys.setswitchinterval(SWITCH)
    listening, config = bound(config)
    with listening:
        app = create_app(config)
        address = config.address(f"/enter#{app.state.console.start_code}")
        if code_file is not None:
            handle = os.open(code_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(address + "\n")
        say(f"Open this address, once, as the operator:\n\n  {address}\n")
        if config.exposed:
            say("Not encrypted: everybody in this network can read and change what is sent.")
        say(f"The record is {config.db}. Ctrl-C ends the console, not the sessions.")
        server(app, config).run(sockets=[listening])
