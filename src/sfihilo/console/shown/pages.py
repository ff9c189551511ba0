"""The pages: HTML from templates; what they show they fetch from the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sfihilo.console.access.auth import Grant
from sfihilo.console.access.guard import open_to_all, presented, router
from sfihilo.console.app_state import console_of
from sfihilo.console.refusals import Problem
from sfihilo.console.shown.texts import languages, preferred, texts
from sfihilo.provenance import version

FOLDER = Path(__file__).parents[1]
LANGUAGE = "sfihilo-language"
YEAR = 365 * 24 * 3600
templates = Environment(
    loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined
)
pages = router("", "pages")


def page(
    request: Request,
    template: str,
    grant: Grant | None,
    session: str | None = None,
    name: str | None = None,
) -> Response:
    """A page in the language of its reader, perhaps of the session with an id and a name."""
    console = console_of(request)
    asked = request.query_params.get("lang")
    language = preferred(
        asked, request.cookies.get(LANGUAGE), request.headers.get("accept-language", "")
    )
    context: dict[str, Any] = {
        "t": texts(language),
        "language": language,
        "languages": languages(),
        "role": None if grant is None else grant.role,
        "session": session,
        "name": name,
        "insecure": console.config.exposed,
        "demo": console.config.demo,
        "version": version("sfihilo"),
    }
    try:
        text = templates.get_template(template).render(context)
    except TemplateNotFound:
        text = f"<!doctype html><title>SFIHILO</title><p>There is no page {template} yet."
    response = HTMLResponse(text)
    if asked == language:
        response.set_cookie(
            LANGUAGE, language, max_age=YEAR, samesite="strict", httponly=True, path="/"
        )
    return response


def _of(request: Request, *allowed: str) -> Grant | None:
    """The grant with one of these roles, if the request carries one."""
    return next((grant for grant in presented(request) if grant.role in allowed), None)


@pages.get("/enter", openapi_extra=open_to_all(), include_in_schema=False)
def enter(request: Request) -> Response:
    """Exchange the code in the address, or type one."""
    return page(request, "enter.html", None)


@pages.get("/", openapi_extra=open_to_all(), include_in_schema=False)
def listed(request: Request) -> Response:
    """The list of sessions."""
    grant = _of(request, "operator", "auditor")
    if grant is None:
        known = _of(request, "participant") is not None
        return RedirectResponse("/participant" if known else "/enter", 303)
    return page(request, "sessions.html", grant)


@pages.get("/new", openapi_extra=open_to_all(), include_in_schema=False)
def new(request: Request) -> Response:
    """Begin a session."""
    grant = _of(request, "operator")
    if grant is None:
        return RedirectResponse("/enter", 303)
    return page(request, "new.html", grant)


@pages.get("/sessions/{session}", openapi_extra=open_to_all(), include_in_schema=False)
def operator(request: Request, session: str) -> Response:
    """The operator's page of one session."""
    grant = _of(request, "operator", "auditor")
    if grant is None:
        return RedirectResponse("/enter", 303)
    console = console_of(request)
    name = console.ids.name(session)
    console.sessions.get(name)
    opaque = console.ids.of(name)
    if session != opaque:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/sessions/{opaque}{query}", 303)
    return page(request, "operator.html", grant, opaque, name)


@pages.get("/participant", openapi_extra=open_to_all(), include_in_schema=False)
def participant(request: Request) -> Response:
    """The participant's page."""
    grant = _of(request, "participant")
    if grant is None:
        return RedirectResponse("/enter", 303)
    return page(request, "participant.html", grant)


@pages.get("/docs", openapi_extra=open_to_all(), include_in_schema=False)
def documentation(request: Request) -> Response:
    """The interactive description of the API; nothing is loaded from elsewhere."""
    grant = _of(request, "operator", "auditor")
    if grant is None:
        return RedirectResponse("/enter", 303)
    return page(request, "docs.html", grant)


@pages.get("/api/texts/{language}", openapi_extra=open_to_all(), tags=["pages"])
def page_texts(language: str) -> Any:
    """The texts of the pages in a language."""
    if language not in languages():
        raise Problem(404, "missing", f"language: expected one of {', '.join(languages())}")
    return texts(language)
