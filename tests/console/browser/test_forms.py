"""The operator's forms: readable numbers, nothing typed is lost, codes for others, languages."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.browser.conftest import Site
from tests.console.browser.people import Operator, Participant

Begin = Callable[..., tuple[Operator, Participant]]

LONG = re.compile(r"[1-9][\d.]{7,}")


def values(page: Page) -> list[str]:
    return [page.input_value(f"#setting-{index}") for index in range(2)]


def test_own_setting_has_readable_numbers_and_keeps_what_was_refused(begin: Begin) -> None:
    operator, _ = begin()
    page = operator.page
    operator.trial(5, 5)
    page.click("#suggest")
    shown = values(page)
    assert all(re.fullmatch(r"\d+(\.\d{1,3})?", text) for text in shown)
    page.fill("#setting-0", "59.5" if float(shown[0]) < 30 else "0.5")
    typed = values(page)
    page.click("#dialog-send")
    refused = page.locator(".banner.refused")
    expect(refused).to_contain_text("It is not safe")
    expect(refused.locator(".detail")).to_contain_text("torque")
    assert LONG.search(refused.inner_text()) is None
    page.click("#change")
    assert values(page) == typed
    page.click("#dialog-cancel")
    page.reload()
    page.click("#suggest")
    assert values(page) == typed
    page.fill("#setting-0", shown[0])
    page.click("#dialog-send")
    expect(page.locator("#start")).to_be_enabled()
    first, second = operator.view["trials"]
    assert second["policy"] == first["policy"]  # what was not changed has all its digits
    page.click("#veto")
    page.fill("#why", "x")
    page.click("#dialog-send")
    page.click("#suggest")
    assert values(page) == shown  # it was stored: nothing is left of the draft


def test_refusals_and_advice_are_german_on_a_german_page(begin: Begin) -> None:
    operator, _ = begin()
    page = operator.page
    operator.trial(5, 5)
    operator.trial(6, 4)
    operator.click("#choose-new")
    page.goto(f"{operator.address}/sessions/{operator.session}?lang=de")
    advice = page.locator("#advice")
    expect(advice.locator(".verdict")).to_contain_text("Vergleiche bisher: 1.")
    expect(advice).not_to_contain_text("comparison")
    numbers = [row.inner_text() for row in advice.locator("dd").all()]
    assert len(numbers) == 2
    verdict = advice.locator(".verdict").inner_text()
    assert "Set torque" not in verdict
    page.click("#suggest")
    page.fill("#setting-0", "59.5" if float(values(page)[0]) < 30 else "0.5")
    page.click("#dialog-send")
    refused = page.locator(".banner.refused")
    expect(refused).to_contain_text("nicht sicher")
    expect(refused.locator(".detail")).to_have_attribute("lang", "en")
    page.goto(f"{operator.address}/?lang=en")


@pytest.mark.parametrize(("role", "may"), [("operator", True), ("auditor", False)])
def test_the_operator_makes_codes_for_others(
    begin: Begin, site: Site, role: str, may: bool
) -> None:
    operator, _ = begin()
    page = operator.page
    page.goto(f"{operator.address}/")
    page.click("#access summary")
    page.fill("#pair-name", f"desk {role}")
    page.click(f"#pair-{role}")
    code = page.locator("#pair-code").inner_text()
    other = site.context((1280, 900)).new_page()
    other.goto(f"{operator.address}/enter")
    other.fill("#code", code)
    other.click("#send")
    other.wait_for_url(f"{operator.address}/")
    expect(other.locator("#access")).to_have_count(1 if may else 0)
    other.goto(f"{operator.address}/sessions/{operator.session}")
    expect(other.locator("#note" if may else "#top-buttons .tag")).to_be_visible()
    row = page.locator("#paired tr", has_text=f"desk {role}")
    expect(row).to_be_visible()
    row.locator(".revoke").click()
    expect(row).to_have_count(0)
    expect(other.locator(".banner.lost").first).to_be_visible()
    other.context.close()


@pytest.mark.parametrize("language", ["en", "de"])
def test_stop_is_on_the_screen_of_a_phone_whatever_else_is_shown(
    begin: Begin, language: str
) -> None:
    operator, _ = begin()
    page = operator.page
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(f"{operator.address}/sessions/{operator.session}?lang={language}")
    operator.trial(5, 5)
    page.click("#suggest")
    page.fill("#setting-0", "59.5" if float(values(page)[0]) < 30 else "0.5")
    page.click("#dialog-send")
    expect(page.locator(".banner.refused")).to_be_visible()
    for scrolled in ("0", "document.body.scrollHeight"):
        page.evaluate(f"scrollTo(0, {scrolled})")
        expect(page.locator("#stop")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.click("#stop")  # nothing lies upon it
    expect(page.locator(".banner.stop")).to_be_visible()
    page.goto(f"{operator.address}/?lang=en")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_program_applies_a_stopped_walk_again_only_by_the_button(begin: Begin) -> None:
    operator, participant = begin()
    page = operator.page
    body = {"role": "device", "session": operator.session}
    code = operator.fetch("/api/pairings", body)["body"]["code"]
    with httpx.Client(base_url=operator.address, trust_env=False) as program:
        entered = program.post("/api/enter", json={"code": code, "bearer": True}).json()
        program.headers["Authorization"] = f"Bearer {entered['token']}"

        def told() -> tuple[bool, bool]:
            path = f"/api/device/{operator.session}/heartbeat"
            wanted = program.post(path, json={}).json()
            return wanted["apply"], wanted["stop"]

        assert told() == (False, False)
        expect(page.locator("#program")).to_contain_text("ready")
        operator.click("#ask")
        operator.click("#start")
        expect(page.locator("#clock")).to_be_visible()
        assert told() == (True, False)
        participant.page.click("#stop")
        expect(page.locator(".banner.stop")).to_contain_text("participant")
        assert told() == (False, True)
        page.click("#undo")
        operator.click("#resume")
        expect(page.locator("#clock")).to_be_visible()
        assert told() == (False, True)
        page.click("#apply")
        expect(page.locator("#program")).to_contain_text("running")
        assert told() == (True, False)
