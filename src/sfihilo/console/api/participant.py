"""The participant's own routes: one session, one question at a time."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from sfihilo.console.access.guard import grant_of, roles, router
from sfihilo.console.api import bodies
from sfihilo.console.api.actions import wish_of
from sfihilo.console.api.events import event_stream
from sfihilo.console.app_state import console_of
from sfihilo.console.shown.session_json import participant_view
from sfihilo.console.shown.wishes import FEEL_AGAIN, open_requests
from sfihilo.experiment import Session, Trial

participant = router("/api/participant", "participant")
PARTICIPANT = roles("participant")
# What the page shows while a stop is not in the record yet, which may not be readable.
STOPPED: dict[str, Any] = {
    "state": "paused", "last": None, "trial": None, "grades": 2, "answers": [],
    "requested": False, "stopped": True,
}  # fmt: skip


def own_session(request: Request) -> str:
    """The session that the participant's token is for."""
    return grant_of(request).session or ""


@participant.get("", openapi_extra=PARTICIPANT)
def view(request: Request) -> Any:
    """What the participant sees now."""
    console = console_of(request)
    session = own_session(request)
    about: dict[str, Any] = {"insecure": console.config.exposed, "demo": console.config.demo}
    if session in console.unrecorded:
        return {**STOPPED, **about}
    record, events = console.sessions.read(session)
    return {**participant_view(record, events), **about}


@participant.post("/choose", openapi_extra=PARTICIPANT)
def choose(request: Request, body: bodies.Answer) -> Any:
    """The participant's answer to the question that is shown."""
    console, session = console_of(request), own_session(request)
    wish = wish_of(request, body, "choose")

    def method(held: Session) -> Trial:
        return held.choose(body.trial, body.choice, body.strength, key=wish.key, actor=wish.actor)

    done = console.sessions.act(session, wish, method)
    console.after(session, "choose", done)
    return {"stored": True, "last": done.record.number, "repeated": done.repeated}


@participant.post("/again", openapi_extra=PARTICIPANT)
def again(request: Request, body: bodies.Action) -> Any:
    """Ask the operator to feel the last setting again; a wish that is open is not repeated."""
    console, session = console_of(request), own_session(request)
    record, events = console.sessions.read(session)
    if open_requests(events):
        return {"stored": True, "last": record.number, "repeated": True}
    wish = wish_of(request, body, "again")
    done = console.sessions.act(
        session, wish, lambda held: held.note(FEEL_AGAIN, key=wish.key, actor=wish.actor)
    )
    return {"stored": True, "last": done.record.number, "repeated": done.repeated}


@participant.get("/events", openapi_extra=PARTICIPANT)
async def changes(request: Request) -> Any:
    """Server-sent notices that something changed."""
    return await event_stream(request, own_session(request))
