"""Keyboard, screen reader, gloves: axe-core on each state, sizes of targets, no mouse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser.people import Operator, Participant

Begin = Callable[..., tuple[Operator, Participant]]
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
GLOVE = 64  # smallest side of a target for gloved hands, in CSS pixels


def faults(page: Page) -> list[str]:
    """What axe-core finds serious or critical on a page as it is."""
    page.wait_for_selector("body:not([data-fresh])")
    page.evaluate(AXE)
    found = json.loads(page.evaluate("axe.run().then((found) => JSON.stringify(found.violations))"))
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:120]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_axe_finds_nothing_serious_in_any_state_of_a_session(begin: Begin) -> None:
    operator, participant = begin("five")
    wrong = {"first": faults(operator.page), "wait": faults(participant.page)}
    operator.click("#ask")
    wrong["start"] = faults(operator.page)
    operator.click("#start")
    participant.sees("Pay attention to how it feels")
    wrong["walk"] = faults(operator.page) + faults(participant.page)
    operator.measure(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    wrong["question"] = faults(operator.page) + faults(participant.page)
    participant.press("#answer-new")
    wrong["strength"] = faults(participant.page)
    participant.press("#strength-1")
    expect(operator.page.locator(".verdict")).to_be_visible()
    expect(operator.page.locator("canvas").first).to_be_visible()
    wrong["between"] = faults(operator.page) + faults(participant.page)
    participant.page.click("#stop")
    participant.sees("Stopped")
    expect(operator.page.locator("#banners .stop")).to_be_visible()
    wrong["stopped"] = faults(operator.page) + faults(participant.page)
    assert {state: found for state, found in wrong.items() if found} == {}


def test_axe_finds_nothing_serious_on_the_other_pages(begin: Begin) -> None:
    operator, _ = begin()
    wrong = {}
    for path in ("/", "/new", "/enter"):
        operator.page.goto(f"{operator.address}{path}")
        wrong[path] = faults(operator.page)
    operator.page.goto(f"{operator.address}/#access")
    operator.page.click("#pair-auditor")
    expect(operator.page.locator("#pair-code")).to_be_visible()
    expect(operator.page.locator("#paired .revoke").first).to_be_visible()
    wrong["access"] = faults(operator.page)
    operator.open()
    operator.page.click("#pair")
    expect(operator.page.locator("#pair-code")).to_be_visible()
    wrong["pair"] = faults(operator.page)
    assert {state: found for state, found in wrong.items() if found} == {}


def hidden(page: Page) -> list[str]:
    """Buttons that cannot be tapped in their middle: outside the screen, or under another one."""
    return list(
        page.locator("button").evaluate_all(
            """nodes => nodes.filter(node => {
                const box = node.getBoundingClientRect();
                const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
                return !node.contains(document.elementFromPoint(x, y));
            }).map(node => node.id || node.lang)"""
        )
    )


@pytest.mark.parametrize("answers", ["two", pytest.param("seven", marks=pytest.mark.slow)])
def test_answer_by_keyboard_alone(begin: Begin, answers: str) -> None:
    operator, participant = begin(answers)
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    page = participant.page
    page.wait_for_selector("body:not([data-fresh])")
    assert page.evaluate("document.activeElement.id") == "heading"  # a screen reader reads it now
    for selector in ["#answer-previous", *(["#strength-3"] if answers == "seven" else [])]:
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == selector[1:]:
                break
        expect(page.locator(selector)).to_be_focused()
        page.wait_for_selector("body:not([data-fresh])")
        page.keyboard.press("Enter")
    participant.sees("Thank you")
    expect(page.locator("#said")).to_have_text("Thank you")
    assert operator.view["trials"][-1]["choice"] == "previous"


@pytest.mark.parametrize(
    "size",
    [
        (360, 640),
        pytest.param((844, 390), marks=pytest.mark.slow),
        pytest.param((768, 1024), marks=pytest.mark.slow),
    ],
)
def test_targets_fit_gloves_and_stop_is_on_the_screen(begin: Begin, size: tuple[int, int]) -> None:
    operator, participant = begin("seven", size)
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    boxes = participant.page.locator("button").evaluate_all(
        "nodes => nodes.map(node => [node.id, node.getBoundingClientRect().toJSON()])"
    )
    assert len(boxes) == 8
    small = [name for name, box in boxes if min(box["width"], box["height"]) < GLOVE]
    assert small == []
    assert hidden(participant.page) == []
    participant.press("#answer-new")
    expect(participant.page.locator("#strength-3")).to_be_visible()
    assert hidden(participant.page) == []
    expect(participant.page.locator("#stop")).to_be_in_viewport(ratio=1)
    wide = participant.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide


def test_participant_page_speaks_german_and_shows_no_names_or_numbers(begin: Begin) -> None:
    operator, participant = begin()
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    participant.page.click('button[lang="de"]')
    participant.sees("Was hat sich besser angefühlt?")
    text = participant.page.locator("body").inner_text()
    assert "STOPP" in text
    assert not any(mark.isdigit() for mark in text)
    participant.page.reload()
    participant.sees("Was hat sich besser angefühlt?")
