"""What every request must satisfy before any route sees it, and the headers of every response.

Host: only names of this machine (against DNS rebinding). Origin: requests that change something
come from the console's own pages or from a program that is no browser. Content: JSON only, limited
size.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any

from sfihilo.console.config import Config

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

DRAIN_SECONDS, DRAIN_LIMITS = 1.0, 4  # what is read of a refused body, in body limits
MOST_DIGITS = 12  # of a content length
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Refused(Exception):  # noqa: N818 - it becomes a response
    """A request that is refused before it is routed."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status, self.error = status, error


class Security:
    """The ASGI application that stands before the console."""

    def __init__(self, app: Application, config: Config) -> None:
        self._app = app
        self._config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        sending = _with_headers(send)
        try:
            if scope["type"] != "http":
                raise Refused(403, "forbidden", f"{scope['type']}: expected http")
            headers = _headers(scope)
            host = self._host(headers)
            self._origin(scope, headers, host)
            self._content(scope, headers)
            await self._app(scope, _limited(receive, self._config.body_limit), sending)
        except Refused as refused:
            await _drain(receive, DRAIN_LIMITS * self._config.body_limit)
            await _refuse(sending, refused)

    def _host(self, headers: list[tuple[str, str]]) -> str:
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1:
            raise Refused(400, "invalid", f"host: expected one Host header, got {len(hosts)}")
        host = hosts[0]
        name, port = host, ""
        if not host.endswith("]"):
            name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        if (port and not port.isdecimal()) or not self._config.allows_host(name):
            raise Refused(403, "forbidden", "host: expected a name of this machine")
        return host

    def _origin(self, scope: Scope, headers: list[tuple[str, str]], host: str) -> None:
        found = dict(headers)
        own = f"{self._config.scheme}://{host}".lower()
        site = found.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") and str(scope["path"]).startswith("/api/"):
            raise Refused(403, "forbidden", "origin: expected the console's own page")
        if scope["method"] in SAFE_METHODS:
            return
        origin = found.get("origin")
        if origin is None:  # a program, not a browser: it must not rely on a browser's cookie
            if "cookie" in found:
                raise Refused(403, "forbidden", "origin: expected an Origin header with a cookie")
        elif origin.lower() != own:
            raise Refused(403, "forbidden", "origin: expected the console's own page")

    def _content(self, scope: Scope, headers: list[tuple[str, str]]) -> None:
        if str(scope["path"]).endswith("/stop"):  # nothing but the origin may refuse a stop
            return
        found = dict(headers)
        length = found.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            raise Refused(400, "invalid", "content-length: expected a number")
        if len(length) > MOST_DIGITS or int(length) > self._config.body_limit:
            raise too_large(self._config.body_limit)
        if scope["method"] in SAFE_METHODS:
            return
        body = int(length) > 0 or "transfer-encoding" in found
        kind = found.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise Refused(415, "unsupported", "content-type: expected application/json")


def too_large(limit: int) -> Refused:
    """The refusal of a body that is too large."""
    return Refused(413, "too_large", f"body: expected at most {limit} bytes")


def _headers(scope: Scope) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in scope["headers"]
    ]


def _limited(receive: Receive, limit: int) -> Receive:
    """The receiver that raises once more than `limit` bytes arrived."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit)
        return message

    return limited


def _with_headers(send: Send) -> Send:
    """The sender that adds the headers of every response, unless the route set them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            names = {name.lower() for name, _ in given}
            added = ((name.encode(), value.encode()) for name, value in HEADERS.items())
            message["headers"] = given + [pair for pair in added if pair[0] not in names]
        await send(message)

    return sending


async def _drain(receive: Receive, limit: int) -> None:
    """Read what is left of a body, up to a limit.

    Closing a connection with unread bytes resets it, and the response may be lost on the way.
    """
    received = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while received <= limit:
                message = await receive()
                received += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


async def _refuse(send: Send, refused: Refused) -> None:
    body = json.dumps({"error": refused.error, "message": str(refused)}).encode()
    headers: Iterable[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # the rest of the body is not read
    ]
    start = {"type": "http.response.start", "status": refused.status, "headers": list(headers)}
    await send(start)
    await send({"type": "http.response.body", "body": body})
