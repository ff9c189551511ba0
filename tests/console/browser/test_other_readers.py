"""Who only reads, who comes without a pairing, and what an unencrypted console says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.console.browser.conftest import DESKTOP, Site
from tests.console.browser.people import Operator, Participant
from tests.console.browser.process import Serving

Begin = Callable[..., tuple[Operator, Participant]]


@pytest.mark.slow
def test_auditor_sees_the_session_and_can_change_nothing(site: Site, begin: Begin) -> None:
    operator, _ = begin()
    operator.trial(4, 5)
    made = operator.fetch("/api/pairings", {"role": "auditor"})["body"]
    context = site.context(DESKTOP)
    page = context.new_page()
    page.goto(made["url"])
    page.wait_for_url(f"{operator.address}/")
    expect(page.locator("#new")).to_have_count(0)
    page.goto(f"{operator.address}/sessions/{operator.session}")
    expect(page.locator("#top-buttons")).to_have_text("Read only")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#ask")).to_be_disabled()
    expect(page.locator("tbody button")).to_have_count(0)
    context.close()


def test_device_program_joins_with_the_code_that_the_page_shows(site: Site, begin: Begin) -> None:
    operator, _ = begin()
    page = operator.page
    page.click("#pair")
    page.click("#pair-device")
    expect(page.locator("#dialog")).to_contain_text(f"joins session {operator.session}")
    code = page.locator("#pair-code").inner_text()
    program = httpx.Client(base_url=site.server.address, trust_env=False, timeout=120)
    with program:
        entered = program.post("/api/enter", json={"code": code, "bearer": True}).json()
        bearer = {"Authorization": f"Bearer {entered['token']}"}
        asked = program.get(f"/api/device/{operator.session}", headers=bearer)
    assert (entered["role"], asked.status_code) == ("device", 200)


def test_question_names_both_settings_in_case_one_is_to_be_felt_again(begin: Begin) -> None:
    operator, participant = begin()
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    first, second = (trial["words"] for trial in operator.view["trials"])
    expect(operator.page.locator("#stage .summary dd")).to_have_text([second, first])


@pytest.mark.slow
def test_participant_whose_pairing_ends_is_told_and_stop_stays(site: Site, begin: Begin) -> None:
    operator, participant = begin()
    operator.page.click("#pair")
    operator.page.click(".revoke")
    expect(operator.page.locator(".revoke")).to_have_count(0)
    expect(participant.page.locator("#heading")).to_contain_text("no longer connected")
    expect(participant.page.locator("#stop")).to_be_enabled()
    participant.page.click("#stop")
    expect(participant.page.locator("#stopping")).to_contain_text("Call out loud")


@pytest.mark.slow
def test_unencrypted_console_for_other_machines_says_so_on_every_page(
    browser: Browser, tmp_path: Path
) -> None:
    server = Serving(tmp_path, "--host", "0.0.0.0", "--insecure")
    address = server.start().rpartition("/enter")[2]
    page = browser.new_page()
    try:
        page.goto(f"{server.address}/enter{address}")
        page.wait_for_url(f"{server.address}/")
        for path in ("/", "/new", "/enter"):
            page.goto(f"{server.address}{path}")
            expect(page.locator(".insecure")).to_contain_text("Not encrypted")
    finally:
        page.close()
        server.end()
