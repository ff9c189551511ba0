"""Text that tries to be code, in every field that takes text: it is shown, never executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from playwright.sync_api import expect

from tests.console.browser.people import Operator, Participant

Begin = Callable[..., tuple[Operator, Participant]]

MARKS = "window.hostile = 1; alert(1)"
SHAPES = (
    "<script>{}</script>",
    "<img src=x onerror='{}'>",
    "<svg/onload='{}'>",
    '"><script>{}</script>',
    '\'><iframe srcdoc="<script>parent.{}</script>">',
    "</title><script>{}</script>",
    "</script><script>{}</script>",
    "javascript:{}",
    "<a href='javascript:{}'>go</a>",
    "<details open ontoggle='{}'>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror='{}'>",
    "{{{{constructor.constructor('{}')()}}}}",
    "${{{}}}",
    "<body onload='{}'>",
    "<input autofocus onfocus='{}'>",
    "<template><script>{}</script></template>",
    "<object data='data:text/html,<script>{}</script>'>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<style>@import 'javascript:{}'</style>",
    "--><script>{}</script><!--",
)
COATS = (
    "{}",
    "\u202e{}",
    "P07 {}",
    "{}\u0000"[:2] + "\n",
    "  {}  ",
    "{}\u2028",
    "é{}",
    "={}",
    "{}\\",
    "%3C{}",
)


def hostile() -> Iterator[str]:
    """200 strings: each shape in each coat."""
    for shape, coat in product(SHAPES, COATS):
        yield coat.format(shape.format(MARKS))


def require_harmless(*people: Operator | Participant) -> None:
    for person in people:
        assert person.page.evaluate("window.hostile") is None
        assert person.page.locator("script:not([src]):not([type])").count() == 0
        assert person.page.locator("iframe, object, [onerror], [onload]").count() == 0


def try_text(operator: Operator, text: str) -> None:
    """One string through the fields of the operator's page."""
    page = operator.page
    page.click("#note")
    page.fill("#text", text)
    page.click("#dialog-send")
    expect(page.locator("#dialog")).to_be_hidden()
    operator.click("#ask")
    page.click("#abort")
    page.fill("#why", text)
    page.click("#dialog-send")
    expect(page.locator("#ask")).to_be_enabled()


def test_hostile_text_in_reasons_and_notes_is_only_shown(begin: Begin) -> None:
    operator, participant = begin()
    for text in list(hostile())[:2]:
        try_text(operator, text)
        expect(operator.page.locator(".notes li").first).to_contain_text("alert(1)")
    operator.walk()
    operator.page.fill("#outcome-0", SHAPES[0].format(MARKS))
    operator.page.fill("#outcome-1", SHAPES[1].format(MARKS))
    operator.click("#measure")
    expect(operator.page.locator("#outcome-0-fault")).to_contain_text("alert(1)")
    require_harmless(operator, participant)


SLOW = ("name", "unit", "constraints", "toml")


@pytest.mark.parametrize(
    "field", ["participant", *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)]
)
def test_hostile_text_in_a_new_session_is_only_shown(begin: Begin, field: str) -> None:
    operator, _ = begin()
    page = operator.page
    for text in list(hostile())[:60:20]:
        page.goto(f"{operator.address}/new")
        page.fill("#participant", "P07")
        places = {"name": 0, "unit": 1}
        if field in places:
            page.locator("#policy input").nth(places[field]).fill(text)
        elif field == "toml":
            page.check("#way-toml")
            page.fill("#toml", text)
        else:
            page.fill(f"#{field}", text)
        page.click("#create")
        page.wait_for_function(
            "() => location.pathname !== '/new' || document.querySelector('#said').textContent"
        )
        if "/sessions/" in page.url:
            expect(page.locator("#save-state")).to_contain_text("Saved")
        require_harmless(operator)
    page.goto(operator.address)
    expect(page.locator("#list table")).to_be_visible()
    require_harmless(operator)


@pytest.mark.slow
def test_200_hostile_strings_through_every_text_field_are_only_shown(begin: Begin) -> None:
    operator, participant = begin()
    strings = list(hostile())
    assert len(set(strings)) == 200
    for number, text in enumerate(strings):
        body = {"participant": text, "form": form(text)}
        operator.fetch("/api/sessions", body)
        path = f"/api/sessions/{operator.session}"
        operator.fetch(f"{path}/note", {"text": text})
        operator.fetch(f"{path}/goal", {"goal": text, "why": text})
        asked = operator.fetch(f"{path}/ask", {})["body"]
        trial = asked["trial"]["trial"]
        ended = operator.fetch(f"{path}/veto", {"trial": trial, "why": text, "pain": False})
        assert ended["status"] == 200, ended
        if number % 20 == 19:
            operator.open()
            expect(operator.page.locator(".notes li").first).to_contain_text("alert(1)")
            require_harmless(operator, participant)
    operator.page.goto(operator.address)
    expect(operator.page.locator("#list table")).to_be_visible()
    require_harmless(operator)
    for session in operator.fetch("/api/sessions")["body"]["sessions"][:40]:
        operator.page.goto(f"{operator.address}/sessions/{session['session']}")
        expect(operator.page.locator("#save-state")).to_contain_text("Saved")
        require_harmless(operator)


def form(text: str) -> dict[str, object]:
    return {
        "policy": {"torque": {"low": 0, "high": 60, "unit": text}},
        "outcomes": {"comfort": {"low": 0, "high": 10, "unit": text}},
    }
