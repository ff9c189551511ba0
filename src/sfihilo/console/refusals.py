"""Every error as JSON `{error, message}`; bad input never becomes a server error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from sfihilo.console.access.security import Refused
from sfihilo.experiment import (
    BadMeasurementError,
    BusyError,
    DiskFailureError,
    KeyConflictError,
    LogError,
    StaleError,
    UnsafePolicyError,
)

PARTICIPANT = "/api/participant"  # how the routes of a participant's page begin
WORDS = {401: "unknown", 403: "forbidden", 404: "missing", 405: "method", 429: "slow_down"}


class Json(JSONResponse):
    """JSON in ASCII: also half a character in somebody's note can be sent."""

    def render(self, content: Any) -> bytes:
        """The bytes of the response; a number that JSON does not have becomes null."""
        return json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode("ascii")


def plain(value: Any) -> Any:
    """The value in JSON types."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Problem(Exception):  # noqa: N818 - it becomes a response
    """An answer that is not what was asked for: HTTP status, kind of error, reason."""

    def __init__(self, status: int, error: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.error, self.more = status, error, more


def missing(what: str) -> Problem:
    """Something that does not exist, or not for this client."""
    return Problem(404, "missing", f"{what}: expected an existing one, got none")


def from_library(error: Exception) -> Problem:
    """The answer to an error of the library."""
    message = str(error)
    if isinstance(error, Problem):
        return error
    if isinstance(error, StaleError):
        return Problem(409, "stale", message, last=error.current)
    if isinstance(error, KeyConflictError):
        return Problem(409, "conflict", message)
    if isinstance(error, BadMeasurementError):
        return Problem(400, "bad_measurement", message)
    if isinstance(error, UnsafePolicyError):
        return Problem(409, "unsafe", message)
    if isinstance(error, BusyError):
        return Problem(503, "busy", message)
    if isinstance(error, DiskFailureError):
        return Problem(503, "not_saved", message)
    if isinstance(error, LogError):
        return Problem(503, "record", message)
    return Problem(400, "invalid", message)


def respond(problem: Problem) -> Json:
    """The response of a problem."""
    headers = {"retry-after": "1"} if problem.status == 503 else {}
    if "retry_after" in problem.more:
        headers = {"retry-after": str(math.ceil(problem.more["retry_after"]))}
    content = {"error": problem.error, "message": str(problem), **problem.more}
    return Json(content, problem.status, headers)


def respond_to(request: Request, problem: Problem) -> Json:
    """The response of a problem; a participant learns nothing of names, history and files."""
    if request.url.path.startswith(PARTICIPANT):
        kept = {name: problem.more[name] for name in ("last",) if name in problem.more}
        message = f"{problem.error}: expected what the page shows now; look again"
        problem = Problem(problem.status, problem.error, message, **kept)
    return respond(problem)


def attach(app: FastAPI) -> None:
    """Handle every error of the console."""

    @app.exception_handler(Problem)
    async def on_problem(request: Request, error: Problem) -> Json:
        return respond_to(request, error)

    @app.exception_handler(OSError)
    async def on_file_error(request: Request, error: OSError) -> Json:
        return respond_to(request, Problem(503, "not_saved", f"file: {error.strerror}"))

    @app.exception_handler(Refused)
    async def on_refused(request: Request, error: Refused) -> Json:
        return respond(Problem(error.status, error.error, str(error)))

    @app.exception_handler(ClientDisconnect)
    async def on_disconnect(request: Request, error: ClientDisconnect) -> Json:
        return respond(Problem(400, "invalid", "body: expected all of it"))  # nobody reads it

    @app.exception_handler(LogError)
    @app.exception_handler(ValueError)
    async def on_library_error(request: Request, error: Exception) -> Json:
        return respond_to(request, from_library(error))

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Json:
        return respond(Problem(422, "invalid", "; ".join(map(described, error.errors()[:5]))))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Json:
        kind = WORDS.get(error.status_code, "invalid")
        answer = respond(Problem(error.status_code, kind, str(error.detail)))
        answer.headers.update(error.headers or {})
        return answer


def described(fault: Mapping[str, Any]) -> str:
    """One fault of a request as "name: expected X, got Y"."""
    where = [str(part) for part in fault.get("loc", ()) if part not in ("body", "query", "path")]
    got = repr(fault.get("input"))
    shown = got if len(got) <= 60 else f"{got[:57]}..."
    wanted = str(fault.get("msg", "")).removeprefix("Input should be ")
    return f"{'.'.join(where)[:100] or 'body'}: expected {wanted}, got {shown}"
