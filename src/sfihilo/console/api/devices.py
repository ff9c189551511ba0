"""The routes of a device that speaks HTTP: what to apply, signs of life, outcomes."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from sfihilo.console.access.guard import roles, router
from sfihilo.console.api import bodies
from sfihilo.console.api.actions import wish_of
from sfihilo.console.app_state import Console, console_of
from sfihilo.console.devices.remote import told
from sfihilo.experiment import Session, Trial

devices = router("/api/device/{session}", "device")
DEVICE = roles("device")
# What a device is told while a stop is not in the record yet, which may not be readable.
REST = {"status": "interrupted", "last": None, "trial": None, "apply": False, "stop": True}


def wanted(console: Console, session: str, *, beats: bool = False) -> dict[str, Any]:
    """What the device is to do now."""
    if session in console.unrecorded:  # a stop reaches the device also without the record
        console.devices.still_there(session)
        return {**REST, "session": session}
    remote = console.devices.heard(session, beats=beats)
    record, events = console.sessions.read(session)
    apply, rest = told(record, events, remote)
    current = record.current
    return {
        "session": session,
        "status": record.status,
        "last": record.number,
        "trial": None
        if current is None
        else {
            "number": current.number,
            "status": current.status,
            "policy": dict(current.policy),
        },
        "apply": apply,
        "stop": rest,
    }


@devices.get("", openapi_extra=DEVICE)
def view(request: Request, session: str) -> Any:
    """What to apply; `stop` says that the device must be at rest."""
    return wanted(console_of(request), session)


@devices.post("/heartbeat", openapi_extra=DEVICE)
def heartbeat(request: Request, session: str, body: bodies.Nothing) -> Any:
    """A sign of life; once one came, silence puts the session on hold."""
    return wanted(console_of(request), session, beats=True)


@devices.post("/applied", openapi_extra=DEVICE)
def applied(request: Request, session: str, body: bodies.OfTrial) -> Any:
    """The policy of a trial is being applied; starts it unless the operator did."""
    console = console_of(request)
    console.devices.heard(session)
    wish = wish_of(request, body, "start")

    def method(held: Session) -> Trial:
        trial = held.record.trial(body.trial)
        if trial.started:
            return trial
        return held.start(body.trial, key=wish.key, actor=wish.actor)

    console.sessions.act(session, wish, method)
    return wanted(console, session)


@devices.post("/outcome", openapi_extra=DEVICE)
def outcome(request: Request, session: str, body: bodies.Measurement) -> Any:
    """The measured outcome of a trial."""
    console = console_of(request)
    wish = wish_of(request, body, "measure")

    def method(held: Session) -> Trial:
        return held.measure(body.trial, body.outcome, key=wish.key, actor=wish.actor)

    done = console.sessions.act(session, wish, method)
    return {**wanted(console, session), "repeated": done.repeated}
