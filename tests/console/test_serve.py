"""The command `sfihilo serve` as a process: start, signals, kill, TLS, refusals."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.console.running import act, create, kinds, owner_only, until, view

COMMAND = [sys.executable, "-c", "from sfihilo.cli.main import main; main()", "serve"]


class Served:
    """A running process, its address, and the operator's code."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.address, _, self.code = url.strip().partition("/enter#")

    def client(self, verify: ssl.SSLContext | bool = True) -> httpx.Client:
        client = httpx.Client(
            base_url=self.address, headers={"origin": self.address}, trust_env=False, verify=verify,
            timeout=120,
        )  # fmt: skip
        until(lambda: _answers(client))
        return client


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/enter").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    url = folder / f"url-{time.monotonic_ns()}"
    process = subprocess.Popen(
        [*COMMAND, "--db", str(folder / "study.db"), "--code-file", str(url), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until(lambda: process.poll() is not None or (url.exists() and url.read_text()))
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert owner_only(url)
        yield Served(process, url.read_text())
    finally:
        process.kill()
        process.communicate(timeout=120)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_killed_server_comes_back_with_everything(tmp_path: Path) -> None:
    port = str(free_port())
    with served(tmp_path, "--port", port) as first:
        client = first.client()
        client.post("/api/enter", json={"code": first.code}).raise_for_status()
        session = create(client)
        act(client, session, "ask", key="a-1")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(120)
    with served(tmp_path, "--port", port) as second:
        assert second.code != first.code
        until(lambda: _answers(client))
        act(client, session, "ask", key="a-1")  # the click of before, sent again
        assert kinds(client, session) == ["opened", "asked"]
        assert view(client, session)["next"] == "start"
    client.close()


def test_a_signal_ends_it_quickly_although_a_page_listens(tmp_path: Path) -> None:
    with served(tmp_path, "--port", "0") as running, closing(running.client()) as client:
        client.post("/api/enter", json={"code": running.code}).raise_for_status()
        with client.stream("GET", "/api/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            running.process.send_signal(signal.SIGTERM)
            assert "event: bye" in list(lines)
        running.process.wait(120)


def test_the_printed_address_is_the_only_secret_on_the_terminal(tmp_path: Path) -> None:
    with served(tmp_path, "--port", "0") as running:
        with closing(running.client()) as client:
            client.post("/api/enter", json={"code": running.code}).raise_for_status()
            create(client, "SECRETCODE")
            client.get("/sessions/SECRETCODE-1")
        running.process.send_signal(signal.SIGTERM)
        said, _ = running.process.communicate(timeout=120)
    assert said.count(running.code) == 1
    assert "SECRETCODE" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "host: expected 127.0.0.1 unless"),
        (["--device", "nothing"], "device.use: expected one of"),
        (["--device", "missing.toml"], "missing.toml: cannot be read"),
        (["--you", "king"], "you: expected nobody, operator or participant"),
        (["--certfile", "x.pem"], "certfile, keyfile: expected both"),
    ],
)
def test_a_wrong_start_is_one_line(tmp_path: Path, options: list[str], words: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--db", str(tmp_path / "study.db"), "--port", "0", *options],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_second_console_on_the_same_file_or_port_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, "--port", "0") as running:
        port = running.address.rpartition(":")[2]
        for options, words in (
            (["--db", str(tmp_path / "study.db"), "--port", "0"], "another console serves this"),
            (["--db", str(tmp_path / "other.db"), "--port", port], "cannot listen there"),
        ):
            done = subprocess.run(
                [*COMMAND, *options], capture_output=True, text=True, check=False, timeout=120
            )
            assert (done.returncode, words in done.stderr) == (2, True), done.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_gives_a_secure_cookie(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    options = ["--port", "0", "--host", "0.0.0.0", "--name", "localhost"]
    with served(
        tmp_path, *options, "--certfile", str(certificate), "--keyfile", str(key)
    ) as running:
        assert running.address.startswith("https://localhost:")
        context = ssl.create_default_context(cafile=str(certificate))
        with closing(running.client(context)) as client:
            done = client.post("/api/enter", json={"code": running.code})
            assert done.status_code == 200, done.text
            assert done.json()["insecure"] is False
            header = done.headers["set-cookie"]
            assert header.startswith("__Host-sfihilo-")
            assert "Secure" in header
            assert client.get("/api/sessions").status_code == 200
