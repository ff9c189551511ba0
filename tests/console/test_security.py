"""Host, origin, content, tokens, headers, files: what a hostile page or neighbour would try."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfihilo.console.access.auth import Attempts, Grants, plain_code
from sfihilo.console.config import Config
from tests.console.running import Running, act, create, kinds, owner_only, serving, until


def raw(running: Running, request: bytes) -> bytes:
    """What the server answers to these very bytes."""
    with socket.create_connection(("127.0.0.1", running.config.port), timeout=10) as wire:
        wire.sendall(request)
        answer = b""
        while part := wire.recv(65536):
            answer += part
    return answer


def cookie(client: httpx.Client) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil", "[::2]", ""],
)
def test_a_rebound_name_is_refused(running: Running, operator: httpx.Client, host: str) -> None:
    answer = operator.get("/api/sessions", headers={"host": host})
    assert answer.status_code == 403
    assert "P07" not in answer.text
    assert operator.get("/enter", headers={"host": host}).status_code == 403


def test_two_hosts_or_none_are_refused(running: Running) -> None:
    none = raw(running, b"GET /enter HTTP/1.0\r\n\r\n")
    two = raw(
        running,
        b"GET /enter HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
    )
    assert b" 400 " in none.splitlines()[0]
    assert b" 400 " in two.splitlines()[0]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_names_of_this_machine_are_accepted(running: Running, host: str) -> None:
    port = running.config.port
    assert running.bare().get("/enter", headers={"host": f"{host}:{port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1",
     "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example", ""],
)  # fmt: skip
def test_a_forged_origin_is_refused(
    running: Running, operator: httpx.Client, session: str, origin: str
) -> None:
    headers = {"origin": origin.format(port=running.config.port)}
    answer = operator.post(
        f"/api/sessions/{session}/note", json={"text": "forged"}, headers=headers
    )
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert kinds(operator, session) == ["opened"]


def test_a_cookie_without_an_origin_is_refused(
    running: Running, operator: httpx.Client, session: str
) -> None:
    answer = httpx.post(
        f"{running.address}/api/sessions/{session}/note",
        json={"text": "x"},
        headers={"cookie": cookie(operator)},
        trust_env=False,
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_even_read(operator: httpx.Client, session: str, site: str) -> None:
    answer = operator.get("/api/sessions", headers={"sec-fetch-site": site})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_is_read(operator: httpx.Client, session: str, kind: str) -> None:
    answer = operator.post(
        f"/api/sessions/{session}/note",
        content=b'{"text": "x"}',
        headers={"content-type": kind} if kind else {},
    )
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported")
    assert kinds(operator, session) == ["opened"]


def test_a_body_that_is_too_large_is_refused(operator: httpx.Client, session: str) -> None:
    path = f"/api/sessions/{session}/note"
    large = json.dumps({"text": "x" * 300_000}).encode()
    headers = {"content-type": "application/json"}
    known = operator.post(path, content=large, headers=headers)
    assert (known.status_code, known.json()["error"]) == (413, "too_large")

    def pieces() -> Any:
        for start in range(0, len(large), 10_000):
            yield large[start : start + 10_000]

    try:  # the server may hang up before everything was sent
        unknown = operator.post(path, content=pieces(), headers=headers)
        assert unknown.status_code == 413
    except httpx.TransportError:
        pass
    assert kinds(operator, session) == ["opened"]


def test_a_start_code_is_good_once(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        code = running.console.start_code
        first = running.bare().post("/api/enter", json={"code": code})
        assert first.json()["role"] == "operator"
        header = first.headers["set-cookie"].lower()
        assert "httponly" in header
        assert "samesite=strict" in header
        again = running.bare().post("/api/enter", json={"code": code})
        assert (again.status_code, again.json()["error"]) == (403, "forbidden")
        assert "set-cookie" not in again.headers


def test_each_start_has_its_own_code(tmp_path: Path) -> None:
    codes = []
    for _ in range(2):
        with serving(tmp_path / "study.db") as running:
            codes.append(running.console.start_code)
    assert codes[0] != codes[1]
    with serving(tmp_path / "study.db") as running:
        for code in codes:
            assert running.bare().post("/api/enter", json={"code": code}).status_code == 403


def test_a_pairing_code_is_typed_in_any_way_and_used_once(
    running: Running, operator: httpx.Client, session: str
) -> None:
    made = operator.post("/api/pairings", json={"role": "participant", "session": session})
    assert made.status_code == 201
    code = made.json()["code"]
    assert made.json()["qr"].startswith("data:image/svg+xml")
    assert made.json()["url"].endswith("/enter#" + code.replace("-", ""))
    typed = code.lower().replace("-", " ")
    first = running.bare().post("/api/enter", json={"code": typed})
    assert first.json()["role"] == "participant"
    assert running.console.grants.all()[-1].session == session
    assert running.bare().post("/api/enter", json={"code": code}).status_code == 403


def test_a_pairing_code_expires(tmp_path: Path) -> None:
    now = [1000.0]
    grants = Grants(tmp_path / "grants.json", clock=lambda: now[0])
    code, _ = grants.pair("participant", "P07-1")
    now[0] += 601
    assert grants.exchange(code) is None
    code, _ = grants.pair("participant", "P07-1")
    now[0] += 599
    assert grants.exchange(code) is not None


def test_a_token_expires_and_the_file_holds_none(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "grants.json"
    grants = Grants(path, clock=lambda: now[0])
    code, _ = grants.pair("participant", "P07-1")
    found = grants.exchange(code)
    assert found is not None
    token, grant = found
    assert grants.holder(token) == grant
    assert token not in path.read_text()
    assert owner_only(path)
    assert Grants(path, clock=lambda: now[0]).holder(token) == grant
    assert Grants(path, clock=lambda: now[0]).holder(grant.digest) is None
    now[0] += 24 * 3600 + 1
    assert grants.holder(token) is None


def test_a_damaged_file_of_grants_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"grants.json: expected the console's own file"):
        Grants(path)


def test_codes_cannot_be_guessed(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db") as running:
        stranger = running.bare()
        found = [
            stranger.post("/api/enter", json={"code": f"AAAA-{n:04d}"}).status_code
            for n in range(12)
        ]
        assert found == [403] * 8 + [429] * 4
        late = stranger.post("/api/enter", json={"code": running.console.start_code})
        assert late.status_code == 429  # the right one too: nothing can be learned
        assert 0 < int(late.headers["retry-after"]) <= 60


def test_attempts_are_forgotten_after_a_minute() -> None:
    attempts = Attempts(each=2, overall=3)
    for at in (0.0, 1.0):
        attempts.failed("a", at)
    assert attempts.wait("a", 2.0) == 58.0
    assert attempts.wait("b", 2.0) == 0
    attempts.failed("b", 3.0)
    assert attempts.wait("c", 4.0) == 56.0
    assert attempts.wait("a", 62.0) == 0


def test_a_revoked_page_is_out_at_once(
    running: Running, operator: httpx.Client, session: str
) -> None:
    page = running.client("participant", session)
    paired = operator.get("/api/pairings").json()["paired"]
    own = [each for each in paired if each["session"] == session]
    assert len(own) == 1
    assert operator.delete(f"/api/pairings/{own[0]['id']}").status_code == 204
    assert page.get("/api/participant").status_code == 401
    assert operator.delete(f"/api/pairings/{own[0]['id']}").status_code == 404


def test_leaving_ends_the_token(running: Running) -> None:
    client = running.client("auditor")
    kept = cookie(client)
    assert client.post("/api/leave", json={}).status_code == 200
    answer = running.bare().get("/api/me", headers={"cookie": kept})
    assert answer.status_code == 401


def test_a_program_uses_a_bearer_token_without_cookies(running: Running, session: str) -> None:
    code, _ = running.console.grants.pair("device", session, "bench 1")
    with httpx.Client(base_url=running.address, trust_env=False) as program:
        done = program.post("/api/enter", json={"code": code, "bearer": True})
        assert "set-cookie" not in done.headers
        program.headers["authorization"] = f"Bearer {done.json()['token']}"
        assert program.get("/api/me").json()["name"] == "bench 1"
        assert program.post(f"/api/device/{session}/heartbeat", json={}).status_code == 200
        assert program.get("/api/me", headers={"authorization": "Bearer x"}).status_code == 401


def test_headers_allow_no_inline_script_and_no_frame(
    running: Running, operator: httpx.Client
) -> None:
    for path in ("/", "/enter", "/api/sessions", "/static/js/docs.js", "/nothing"):
        headers = operator.get(path).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_files_outside_of_static_are_not_served(running: Running) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
        answer = raw(
            running, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        assert b" 404 " in answer.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "host: expected 127.0.0.1 unless --certfile"),
        ({"host": "192.168.1.5"}, "host: expected 127.0.0.1"),
        ({"certfile": Path("x")}, "certfile, keyfile: expected both"),
        ({"certfile": Path("x"), "keyfile": Path("y")}, "x: expected a PEM file"),
        ({"port": 70000}, "port: expected 0 to 65535"),
    ],
)
def test_unsafe_starts_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Config(db=tmp_path / "x.db", **options)


def test_an_insecure_console_says_so_everywhere(tmp_path: Path) -> None:
    with serving(tmp_path / "study.db", host="0.0.0.0", insecure=True) as running:
        operator = running.client()
        session = create(operator)
        page = running.client("participant", session)
        assert operator.get(f"/api/sessions/{session}").json()["insecure"] is True
        assert page.get("/api/participant").json()["insecure"] is True
        assert page.get("/api/me").json()["insecure"] is True


@pytest.mark.parametrize(
    ("host", "name", "allowed"),
    [
        ("127.0.0.1", "192.168.1.5", False),
        ("0.0.0.0", "192.168.1.5", True),
        ("0.0.0.0", "lab.example", True),
        ("0.0.0.0", "evil.example", False),
        ("::1", "localhost", True),
    ],
)
def test_hosts_are_those_of_the_machine(host: str, name: str, allowed: bool) -> None:
    config = Config(db=Path("x.db"), host=host, insecure=True, names=("lab.example",))
    assert config.allows_host(name) is allowed


def test_codes_are_compared_without_dashes() -> None:
    assert plain_code("abcd-2345") == "ABCD2345"
    assert plain_code(" kept-AsItIs_longer ") == "kept-AsItIs_longer"


def test_nothing_secret_is_written_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "study.db") as running:
        operator = running.client()
        session = create(operator, "SECRETCODE")
        act(operator, session, "note", text="private words")
        operator.get("/api/sessions/nothing")
        until(lambda: True)
    said = "".join(capfd.readouterr())
    assert "SECRETCODE" not in said
    assert "private" not in said
