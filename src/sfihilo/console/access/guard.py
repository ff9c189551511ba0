"""The roles of each route: checked before its body is read, and written into the API's description.

Every route of the console is a `Guarded` one and names its roles in `roles(...)`; a route without
them is refused when the console is built.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from sfihilo.console.access.auth import Grant, Role
from sfihilo.console.access.security import SAFE_METHODS
from sfihilo.console.config import Config
from sfihilo.console.refusals import Json, Problem

ROLES_FIELD = "x-roles"
ANY_BODY = "x-any-body"  # a route that works whatever its body is
EVERYBODY = "nobody needs to be known"
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
BEARER = re.compile(r"bearer +([A-Za-z0-9_-]{20,100})", re.IGNORECASE)


def roles(*allowed: Role) -> dict[str, Any]:
    """The `openapi_extra` of a route for these roles."""
    security: list[dict[str, list[str]]] = [{"cookie": []}, {"bearer": []}]
    return {ROLES_FIELD: list(allowed), "security": security}


def open_to_all() -> dict[str, Any]:
    """The `openapi_extra` of a route that needs no role."""
    return {ROLES_FIELD: EVERYBODY, "security": []}


def staff_cookie(config: Config) -> str:
    """The cookie of operators and auditors; ports of one machine share their cookies."""
    return f"{_prefix(config)}sfihilo-{config.port}"


def participant_cookie(config: Config) -> str:
    """The cookie of a participant's page, so that one browser can hold both."""
    return f"{_prefix(config)}sfihilo-participant-{config.port}"


def _prefix(config: Config) -> str:
    return "__Host-" if config.tls else ""


def cookie_of(config: Config, role: Role) -> str:
    """The cookie that holds a token of this role."""
    return participant_cookie(config) if role == "participant" else staff_cookie(config)


def presented(request: Request) -> list[Grant]:
    """The grants whose token the request carries; a bearer token excludes cookies."""
    console = request.app.state.console
    header = request.headers.get("authorization")
    if header is not None:
        found = BEARER.fullmatch(header.strip())
        tokens = [found.group(1)] if found else []
    else:
        names = (staff_cookie(console.config), participant_cookie(console.config))
        tokens = [request.cookies.get(name, "") for name in names]
    grants = [console.grants.holder(token) for token in tokens]
    return [grant for grant in grants if grant is not None]


def authorised(request: Request, grants: list[Grant], allowed: list[Role]) -> Grant:
    """The grant under which a request is done; raises 403 if there is none."""
    session = request.path_params.get("session")
    for grant in grants:
        within = grant.session is None or session is None or grant.session == session
        if grant.role in allowed and within:
            return grant
    raise Problem(403, "forbidden", "role: expected one that may do this")


class GuardedRoute(APIRoute):
    """A route that checks the role first, then reads the body, then does its work."""

    def get_route_handler(self) -> Handler:
        """The handler with the checks before it."""
        handler = super().get_route_handler()
        extra = self.openapi_extra or {}
        if ROLES_FIELD not in extra:
            raise RuntimeError(f"{self.path}: expected its roles, got none")
        allowed = extra[ROLES_FIELD]

        async def guarded(request: Request) -> Response:
            if allowed != EVERYBODY:
                grants = presented(request)
                if not grants:
                    raise Problem(401, "unknown", "token: expected a paired page or device")
                await _name_session(request)
                request.state.grant = authorised(request, grants, allowed)
            if request.method not in SAFE_METHODS and ANY_BODY not in extra:
                await _readable_body(request)
            return await handler(request)

        return guarded


async def _name_session(request: Request) -> None:
    """Put the session's name in the place of its id, before anything else looks at it."""
    given = request.path_params.get("session")
    if given is not None:
        ids = request.app.state.console.ids
        found = ids.known(given) or await asyncio.to_thread(ids.name, given)
        request.scope["path_params"]["session"] = found


async def _readable_body(request: Request) -> None:
    """Read the body within its limit; raises if it is not JSON that can be handled."""
    if not await request.body():
        return
    try:
        await request.json()
    except (ValueError, RecursionError) as error:
        raise Problem(400, "invalid", f"body: expected JSON, got {error}") from None


def router(prefix: str, tag: str) -> APIRouter:
    """A router whose routes are guarded."""
    return APIRouter(
        prefix=prefix, tags=[tag], route_class=GuardedRoute, default_response_class=Json
    )


def grant_of(request: Request) -> Grant:
    """Who does this request; only in routes that name roles."""
    grant: Grant = request.state.grant
    return grant
