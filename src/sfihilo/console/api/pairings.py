"""Who is paired: codes are exchanged for tokens, the operator makes codes and revokes tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import segno
from fastapi import Request, Response

from sfihilo.console.access.auth import LIFETIMES, ROLES, Grant, label
from sfihilo.console.access.guard import cookie_of, grant_of, open_to_all, roles, router
from sfihilo.console.api import bodies
from sfihilo.console.app_state import Console, console_of
from sfihilo.console.refusals import Json, Problem, missing

pairings = router("/api", "pairing")
OPERATOR = roles("operator")


@pairings.post("/enter", openapi_extra=open_to_all())
def enter(request: Request, body: bodies.Code) -> Any:
    """Exchange a code, once, for a cookie (or for a bearer token, for programs)."""
    console = console_of(request)
    address = "" if request.client is None else request.client.host
    wait = console.attempts.wait(address)
    if wait > 0:
        raise Problem(429, "slow_down", "code: too many wrong ones, wait", retry_after=wait)
    found = console.grants.exchange(body.code)
    if found is None:
        console.attempts.failed(address)
        raise Problem(403, "forbidden", "code: expected one that is valid and was not used")
    token, grant = found
    about = {**_about(console, grant), "next": _first_page(grant)}
    if body.bearer:
        return {**about, "token": token}
    response = Json(about)
    response.set_cookie(
        cookie_of(console.config, grant.role),
        token,
        max_age=int(LIFETIMES[grant.role]),
        path="/",
        secure=console.config.tls,
        httponly=True,
        samesite="strict",
    )
    return response


def _first_page(grant: Grant) -> str:
    return "/participant" if grant.role == "participant" else "/"


def _about(console: Console, grant: Grant) -> dict[str, Any]:
    person = grant.role == "participant"  # who sees no names and no codes
    return {
        "role": grant.role,
        "session": None if person else grant.session,
        "name": "" if person else grant.name,
        "insecure": console.config.exposed,
        "demo": console.config.demo,
    }


@pairings.post("/leave", openapi_extra=roles(*ROLES))
def leave(request: Request, body: bodies.Nothing) -> Any:
    """End the token of this request."""
    console, grant = console_of(request), grant_of(request)
    console.grants.revoke(grant.id)
    response = Json({})
    response.delete_cookie(
        cookie_of(console.config, grant.role),
        path="/",
        secure=console.config.tls,
        httponly=True,
        samesite="strict",
    )
    return response


@pairings.get("/me", openapi_extra=roles(*ROLES))
def me(request: Request) -> Any:
    """Who this client is."""
    return _about(console_of(request), grant_of(request))


@pairings.post("/pairings", openapi_extra=OPERATOR, status_code=201)
def pair(request: Request, body: bodies.Pairing) -> Any:
    """A short code with its QR picture, for one use within ten minutes."""
    console = console_of(request)
    if body.role == "participant" and body.session is None:
        raise Problem(400, "invalid", "session: expected one for a participant, got none")
    if body.role in ("operator", "auditor") and body.session is not None:
        raise Problem(400, "invalid", f"session: expected none for an {body.role}, who sees all")
    session = None if body.session is None else console.ids.name(body.session)
    if session is not None:
        console.sessions.get(session)
    code, expires = console.grants.pair(body.role, session, label(body.name))
    url = console.config.address(f"/enter#{code}")
    return {
        "code": f"{code[:4]}-{code[4:]}",
        "url": url,
        "qr": segno.make(url, error="m").svg_data_uri(scale=6, border=4),
        "expires": datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds"),
        "role": body.role,
        "session": session,
    }


@pairings.get("/pairings", openapi_extra=OPERATOR)
def paired(request: Request) -> Any:
    """The pages and devices that are paired now."""
    console, own = console_of(request), grant_of(request)
    return {
        "paired": [
            {
                "id": grant.id,
                "role": grant.role,
                "session": grant.session,
                "name": grant.name,
                "since": datetime.fromtimestamp(grant.since, UTC).isoformat(timespec="seconds"),
                "own": grant.id == own.id,
            }
            for grant in console.grants.all()
        ]
    }


@pairings.delete("/pairings/{grant}", openapi_extra=OPERATOR, status_code=204)
def revoke(request: Request, grant: str) -> Response:
    """End the pairing of a page or device."""
    if not console_of(request).grants.revoke(grant):
        raise missing("pairing")
    return Response(status_code=204)
