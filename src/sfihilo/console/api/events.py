"""Server-sent events: only "changed", with the number of the last event."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Request
from starlette.responses import StreamingResponse

from sfihilo.console.access.guard import grant_of, roles, router
from sfihilo.console.app_state import console_of

events = router("/api", "events")
STREAM: dict[str, Any] = {
    "responses": {"200": {"description": "notices", "content": {"text/event-stream": {}}}}
}


async def event_stream(request: Request, session: str | None) -> StreamingResponse:
    """The stream of one page."""
    console = console_of(request)
    last = 0
    if session is not None:
        record, _ = await asyncio.to_thread(console.sessions.read, session)
        last = record.number
    grant = grant_of(request)
    lines = console.live.stream(
        session, grant.role, last, lambda: console.grants.holds(grant), grant.id
    )
    return StreamingResponse(
        lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


@events.get("/events", openapi_extra={**roles("operator", "auditor"), **STREAM})
async def all_changes(request: Request) -> Any:
    """Notices about all sessions."""
    return await event_stream(request, None)


@events.get(
    "/sessions/{session}/events",
    openapi_extra={**roles("operator", "auditor", "device"), **STREAM},
)
async def changes(request: Request, session: str) -> Any:
    """Notices about one session."""
    return await event_stream(request, session)
