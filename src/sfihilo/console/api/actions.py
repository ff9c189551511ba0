"""Every action of a session as a request; see `Session` for what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request

from sfihilo.console.access.guard import grant_of, roles, router
from sfihilo.console.api import bodies
from sfihilo.console.app_state import Console, console_of
from sfihilo.console.open_sessions import Done, Wish
from sfihilo.console.refusals import Problem
from sfihilo.console.shown.wishes import SEEN
from sfihilo.experiment import Session, Trial

actions = router("/api/sessions/{session}", "actions")
OPERATOR = roles("operator")
Method = Callable[[Session, str | None, str], Any]


def wish_of(request: Request, body: bodies.Action, action: str) -> Wish:
    """The action with its key, from the body or the header, and what the client has seen."""
    header = request.headers.get("idempotency-key")
    if header is not None and body.key is not None and header != body.key:
        raise Problem(400, "invalid", "key: expected the same in header and body")
    return Wish(action, grant_of(request).actor, body.key or header, body.expected)


def act(request: Request, session: str, action: str, body: bodies.Action, method: Method) -> Any:
    """Do an action and answer with the trial that it concerns and the last event."""
    console = console_of(request)
    wish = wish_of(request, body, action)
    done = console.sessions.act(session, wish, lambda held: method(held, wish.key, wish.actor))
    console.after(session, action, done)
    return reply(console, session, done)


def reply(console: Console, session: str, done: Done) -> dict[str, Any]:
    """What every action returns."""
    trial = done.result if isinstance(done.result, Trial) else done.record.current
    return {
        "session": session,
        "last": done.record.number,
        "hash": done.last.hash,
        "status": done.record.status,
        "trial": None if trial is None else trial.to_dict(),
        "repeated": done.repeated,
    }


@actions.post("/ask", openapi_extra=OPERATOR)
def ask(request: Request, session: str, body: bodies.Action) -> Any:
    """The trial to do now: the one that is not over, or a new one."""
    return act(request, session, "ask", body, lambda s, key, actor: s.ask(key=key, actor=actor))


@actions.post("/suggest", openapi_extra=OPERATOR)
def suggest(request: Request, session: str, body: bodies.Suggestion) -> Any:
    """A trial with the operator's own policy."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.suggest(body.policy, why=body.why, key=key, actor=actor)

    return act(request, session, "suggest", body, method)


@actions.post("/repeat", openapi_extra=OPERATOR)
def repeat(request: Request, session: str, body: bodies.OfTrial) -> Any:
    """A trial with the policy of an earlier one."""
    return act(
        request, session, "repeat", body, lambda s, key, a: s.repeat(body.trial, key=key, actor=a)
    )


@actions.post("/start", openapi_extra=OPERATOR)
def start(request: Request, session: str, body: bodies.OfTrial) -> Any:
    """The policy is being applied from now on; an attached device applies it."""
    return act(
        request, session, "start", body, lambda s, key, a: s.start(body.trial, key=key, actor=a)
    )


@actions.post("/measure", openapi_extra=OPERATOR)
def measure(request: Request, session: str, body: bodies.Measurement) -> Any:
    """The measured outcome."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.measure(body.trial, body.outcome, key=key, actor=actor)

    return act(request, session, "measure", body, method)


@actions.post("/choose", openapi_extra=OPERATOR)
def choose(request: Request, session: str, body: bodies.Answer) -> Any:
    """The person's answer."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.choose(body.trial, body.choice, body.strength, key=key, actor=actor)

    return act(request, session, "choose", body, method)


@actions.post("/abort", openapi_extra=OPERATOR)
def abort(request: Request, session: str, body: bodies.Ending) -> Any:
    """End a trial early; an attached device is stopped."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.abort(body.trial, body.why, pain=body.pain, key=key, actor=actor)

    return act(request, session, "abort", body, method)


@actions.post("/veto", openapi_extra=OPERATOR)
def veto(request: Request, session: str, body: bodies.Ending) -> Any:
    """Refuse a policy before it is applied, or tell of pain afterwards."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.veto(body.trial, body.why, pain=body.pain, key=key, actor=actor)

    return act(request, session, "veto", body, method)


@actions.post("/lift", openapi_extra=OPERATOR)
def lift(request: Request, session: str, body: bodies.WithReason) -> Any:
    """End a veto because of pain."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.lift(body.trial, body.why, key=key, actor=actor)

    return act(request, session, "lift", body, method)


@actions.post("/amend", openapi_extra=OPERATOR)
def amend(request: Request, session: str, body: bodies.Amendment) -> Any:
    """Correct an outcome or an answer."""
    given = {
        name: getattr(body, name) for name in ("outcome", "choice") if name in body.model_fields_set
    }

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.amend(
            body.trial, why=body.why, strength=body.strength, key=key, actor=actor, **given
        )

    return act(request, session, "amend", body, method)


@actions.post("/withdraw", openapi_extra=OPERATOR)
def withdraw(request: Request, session: str, body: bodies.WithReason) -> Any:
    """Take the data of a trial out."""

    def method(held: Session, key: str | None, actor: str) -> Trial:
        return held.withdraw(body.trial, body.why, key=key, actor=actor)

    return act(request, session, "withdraw", body, method)


@actions.post("/undo", openapi_extra=OPERATOR)
def undo(request: Request, session: str, body: bodies.Why) -> Any:
    """Take the last action back."""
    return act(request, session, "undo", body, lambda s, key, a: s.undo(body.why, key=key, actor=a))


@actions.post("/redo", openapi_extra=OPERATOR)
def redo(request: Request, session: str, body: bodies.Why) -> Any:
    """Restore the action that was undone last."""
    return act(request, session, "redo", body, lambda s, key, a: s.redo(body.why, key=key, actor=a))


@actions.post("/place", openapi_extra=OPERATOR)
def place(request: Request, session: str, body: bodies.Suggestion) -> Any:
    """State where the device is now."""

    def method(held: Session, key: str | None, actor: str) -> Any:
        return held.place(body.policy, why=body.why, key=key, actor=actor)

    return act(request, session, "place", body, method)


@actions.post("/interrupt", openapi_extra=OPERATOR)
def interrupt(request: Request, session: str, body: bodies.Why) -> Any:
    """A break begins."""
    return act(
        request, session, "interrupt", body,
        lambda s, key, a: s.interrupt(body.why, key=key, actor=a),
    )  # fmt: skip


@actions.post("/resume", openapi_extra=OPERATOR)
def resume(request: Request, session: str, body: bodies.Action) -> Any:
    """A break, or a hold after a stop, ends."""
    return act(request, session, "resume", body, lambda s, key, a: s.resume(key=key, actor=a))


@actions.post("/note", openapi_extra=OPERATOR)
def note(request: Request, session: str, body: bodies.Note) -> Any:
    """Write something down."""
    return act(
        request, session, "note", body, lambda s, key, a: s.note(body.text, key=key, actor=a)
    )


@actions.post("/seen", openapi_extra=OPERATOR)
def seen(request: Request, session: str, body: bodies.Action) -> Any:
    """Answer the participant's wish to feel something again."""
    return act(request, session, "note", body, lambda s, key, a: s.note(SEEN, key=key, actor=a))


@actions.post("/goal", openapi_extra=OPERATOR)
def goal(request: Request, session: str, body: bodies.Goal) -> Any:
    """What the queries are for from the next trial on."""

    def method(held: Session, key: str | None, actor: str) -> Any:
        return held.set_goal(body.goal, why=body.why, key=key, actor=actor)

    return act(request, session, "goal", body, method)


@actions.post("/close", openapi_extra=OPERATOR)
def close(request: Request, session: str, body: bodies.Why) -> Any:
    """End the session for good; an attached device is stopped."""
    return act(
        request, session, "close", body, lambda s, key, a: s.close(body.why, key=key, actor=a)
    )
