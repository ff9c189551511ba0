"""The web application of the console."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from starlette.middleware import Middleware
from starlette.staticfiles import StaticFiles

from sfihilo.console import refusals
from sfihilo.console.access.guard import roles, router, staff_cookie
from sfihilo.console.access.security import Security
from sfihilo.console.api.actions import actions
from sfihilo.console.api.devices import devices
from sfihilo.console.api.events import events
from sfihilo.console.api.pairings import pairings
from sfihilo.console.api.participant import participant
from sfihilo.console.api.sessions import sessions
from sfihilo.console.api.stop import stops
from sfihilo.console.app_state import Console
from sfihilo.console.config import Config
from sfihilo.console.refusals import Json
from sfihilo.console.shown.pages import pages
from sfihilo.provenance import version

THREADS = 80  # requests that work at the same time; 20 sessions with four clients each
STATIC = Path(__file__).parent / "static"
description = router("", "description")


@description.get(
    "/openapi.json", openapi_extra=roles("operator", "auditor"), include_in_schema=False
)
def openapi(request: Request) -> Any:
    """The description of the API."""
    app: FastAPI = request.app
    return app.openapi()


def create_app(config: Config) -> FastAPI:
    """The console on a lab's file; the file is closed at the end of the application's life."""
    console = Console(config)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        await console.live.begin()
        await anyio.to_thread.run_sync(console.begin)
        try:
            yield
        finally:
            await console.live.end()
            await anyio.to_thread.run_sync(console.close)

    app = FastAPI(
        title="SFIHILO console",
        version=version("sfihilo"),
        description="Sessions with people over HTTP. JSON only; see docs/console.md.",
        openapi_url=None,  # our own route, which needs a role
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Json,
        lifespan=life,
        middleware=[Middleware(Security, config=config)],
    )
    app.state.console = console
    refusals.attach(app)
    for routes in (
        stops, participant, pairings, events, sessions, actions, devices, pages, description,
    ):  # fmt: skip
        app.include_router(routes)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _describe_security(app, config)
    return app


def _describe_security(app: FastAPI, config: Config) -> None:
    """Name the two ways to present a token in the API's description."""
    made = app.openapi

    def described() -> dict[str, Any]:
        schema = made()
        schema.setdefault("components", {})["securitySchemes"] = {
            "cookie": {"type": "apiKey", "in": "cookie", "name": staff_cookie(config)},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        return schema

    app.openapi = described  # type: ignore[method-assign]
