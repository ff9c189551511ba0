"""`sfihilo serve` as its own process, which tests may kill and start again on the same port."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

COMMAND = "from sfihilo.cli.main import main; main()"  # as the installed script does
PATIENCE = 60  # seconds for the server to start


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """One server process and what is needed to start it again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.db = folder / "study.db"
        self.port = free_port()
        self.options = options
        self._code = folder / "address.txt"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> str:
        """Start it; returns the operator's address with the code of this start."""
        self._code.unlink(missing_ok=True)
        command = (sys.executable, "-c", COMMAND, "serve", "--db", str(self.db))
        where = ("--port", str(self.port), "--code-file", str(self._code), *self.options)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*command, *where], stdout=log, stderr=log)
        patience = time.monotonic() + PATIENCE
        while not (self._code.is_file() and self._answers()):
            assert self._process.poll() is None, self.log
            assert time.monotonic() < patience, self.log
            time.sleep(0.05)
        return self._code.read_text(encoding="utf-8").strip()

    def kill(self) -> None:
        """End it as a power cut would: no clean-up, no farewell."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)

    def end(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
            raise

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False
