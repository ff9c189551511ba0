"""Stop: it is answered with success whatever else is refused.

The body may be missing or wrong. The only thing that is checked is that the client is paired.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from sfihilo.console.access.guard import ANY_BODY, grant_of, roles, router
from sfihilo.console.access.security import Refused
from sfihilo.console.app_state import console_of

stops = router("", "stop")
REASON_PATIENCE = 0.25  # seconds that a stop waits for the reason, which may never arrive
BODY = {
    ANY_BODY: True,
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {"why": {"type": "string"}}}
            }
        },
    },
}


@stops.post("/api/sessions/{session}/stop", openapi_extra={**roles("operator", "device"), **BODY})
async def stop(request: Request, session: str) -> Any:
    """Stop the device and put the session on hold."""
    grant = grant_of(request)
    why = await reason(request) or f"stopped by the {grant.role}"
    return await console_of(request).stop(session, why, grant.actor)


@stops.post("/api/participant/stop", openapi_extra={**roles("participant"), **BODY})
async def participant_stop(request: Request) -> Any:
    """Stop the device and put the participant's session on hold."""
    grant = grant_of(request)
    session = grant.session or ""
    return await console_of(request).stop(session, "stopped by the participant", grant.actor)


async def reason(request: Request) -> str:
    """The reason in the body, if there is one that arrives at once and whole."""
    try:
        body = await asyncio.wait_for(request.body(), REASON_PATIENCE)
        given = json.loads(body or b"{}")
        text = given.get("why", "") if isinstance(given, dict) else ""
        return text[:500] if isinstance(text, str) else ""
    except (ValueError, RecursionError, TimeoutError, ClientDisconnect, Refused):
        return ""
