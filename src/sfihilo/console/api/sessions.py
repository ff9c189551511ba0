"""The sessions of a lab: list, create, show, what was learned, report, export."""

from __future__ import annotations

import io
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from sfihilo.console.access.guard import grant_of, roles, router
from sfihilo.console.api import bodies
from sfihilo.console.api.plans import check_plan, create_session
from sfihilo.console.app_state import Console, console_of
from sfihilo.console.refusals import Problem, from_library
from sfihilo.console.shown.insights import advice_view, insight_view
from sfihilo.console.shown.session_json import operator_view
from sfihilo.experiment import LogError
from sfihilo.experiment.output.export import FORMATS

sessions = router("/api/sessions", "sessions")
READERS = roles("operator", "auditor")
OPERATOR = roles("operator")
drawing = Lock()  # reports are drawn one at a time: matplotlib is not made for threads
# The report is a whole page with its own styles and pictures in it; it may do nothing else.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
)


@sessions.get("", openapi_extra=READERS)
def listed(request: Request) -> Any:
    """All sessions, the oldest first."""
    console = console_of(request)
    rows, unreadable = console.listing.rows()
    shown = [{**row, "id": console.ids.of(row["session"])} for row in rows]
    return {"last": console.lab.log.head()[0], "sessions": shown, "unreadable": unreadable}


@sessions.get("/template", openapi_extra=READERS)
def template(request: Request) -> Any:
    """A commented example of a file that describes a session."""
    text = files("sfihilo.experiment").joinpath("space.toml").read_text(encoding="utf-8")
    return {"toml": text}


@sessions.post("/check", openapi_extra=OPERATOR)
def check(request: Request, body: bodies.NewSession) -> Any:
    """Validate a description without creating a session."""
    return check_plan(body)


@sessions.post("", openapi_extra=OPERATOR, status_code=201)
def create(request: Request, body: bodies.NewSession) -> Any:
    """Begin a session; its name is made here."""
    console = console_of(request)
    header = request.headers.get("idempotency-key")
    made = create_session(console.lab, body, body.key or header, grant_of(request).actor)
    console.live.nudge()
    record, events = console.sessions.read(made)
    return {
        "session": made,
        "id": console.ids.of(made),
        "last": record.number,
        "hash": events[-1].hash,
        "status": record.status,
        "trial": None,
    }


@sessions.get("/{session}", openapi_extra=READERS)
def show(request: Request, session: str) -> Any:
    """A session as the operator's page shows it."""
    console = console_of(request)
    unrecorded = console.unrecorded.get(session)
    try:
        record, events = console.sessions.read(session)
    except LogError as error:
        problem = from_library(error)
        more = {} if unrecorded is None else {"stopped": unrecorded}
        raise Problem(problem.status, problem.error, str(problem), **more) from error
    view = operator_view(record, events)
    stopped = unrecorded or view["stopped"]
    around = _around(console, session, grant_of(request).role)
    return {**view, **around, "stopped": stopped}


def _around(console: Console, session: str, role: str) -> dict[str, Any]:
    """What is known of a session besides its record."""
    return {
        "id": console.ids.of(session),
        "device": console.devices.about(session),
        "participant_pages": console.live.connected(session, "participant"),
        "preparing": not console.sessions.get(session).writer.prepared,
        "insecure": console.config.exposed,
        "demo": console.config.demo,
        "read_only": role != "operator",
    }


@sessions.get("/{session}/log", openapi_extra=READERS)
def log(request: Request, session: str, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> Any:
    """The events of a session beyond a number."""
    record, events = console_of(request).sessions.read(session)
    found = [event.to_dict() for event in events if event.number > after]
    return {"events": found, "last": record.number}


@sessions.get("/{session}/insight", openapi_extra=READERS)
def insight(request: Request, session: str) -> Any:
    """What was learned, as arrays for plots."""
    console = console_of(request)
    return insight_view(console.sessions.get(session).writer, console.advised)


@sessions.get("/{session}/advice", openapi_extra=READERS)
def advice(request: Request, session: str) -> Any:
    """The best policy so far and how sure that is."""
    return advice_view(console_of(request).sessions.get(session).writer)


@sessions.post("/{session}/advice", openapi_extra=READERS)
def advice_within(request: Request, session: str, body: bodies.Wanted) -> Any:
    """The best policy within narrower ranges, compared with named policies; stores nothing."""
    opened = console_of(request).sessions.get(session)
    return advice_view(opened.writer, body.feasible, body.compare_with)


@sessions.get("/{session}/report", openapi_extra=READERS)
def report(request: Request, session: str) -> Any:
    """One page that explains the person."""
    opened = console_of(request).sessions.get(session)
    with drawing, tempfile.TemporaryDirectory() as folder:
        text = opened.writer.report(Path(folder) / "report.html").read_bytes()
    headers = {
        "content-security-policy": REPORT_POLICY,
        "content-disposition": f'inline; filename="{session}-report.html"',
    }
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


@sessions.get("/{session}/export", openapi_extra=READERS)
def export(
    request: Request,
    session: str,
    formats: Annotated[str, Query(max_length=100)] = "csv,parquet,bids",
) -> Any:
    """The tables of a session in one zip file; `jsonl` adds the log of the whole file."""
    console = console_of(request)
    console.sessions.get(session)
    wanted = [name for name in formats.split(",") if name]
    if not wanted or set(wanted) - set(FORMATS):
        raise Problem(
            400, "invalid", f"formats: expected some of {', '.join(FORMATS)}, got {formats!r}"
        )
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        written = console.lab.export(folder, [session], wanted)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(written):
                archive.write(path, Path(session) / path.relative_to(folder))
    headers = {"content-disposition": f'attachment; filename="{session}.zip"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=headers)


@sessions.post("/{session}/device", openapi_extra=OPERATOR)
def device(request: Request, session: str, body: bodies.Attached) -> Any:
    """Let the session use a device, or none."""
    console = console_of(request)
    console.devices.attach(session, body.device)
    return console.devices.about(session)


@sessions.post("/{session}/apply", openapi_extra=OPERATOR)
def apply(request: Request, session: str, body: bodies.ToDevice) -> Any:
    """Let the device apply the started trial again: after a restart or a refused measurement."""
    console = console_of(request)
    console.sessions.get(session)
    console.devices.apply(session)
    return console.devices.about(session)
