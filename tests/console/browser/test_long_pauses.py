"""A page of before a long pause, in the browser: no setting until the break is recorded."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.browser.conftest import Site
from tests.console.running import SPACE

# Two seconds count as a break here, so that the test need not wait for a night.
IMPATIENT = f"{SPACE}break_minutes = 0.033\n"


def test_setting_of_before_a_long_pause_is_not_shown_until_the_break_is_recorded(
    site: Site,
) -> None:
    operator = site.operator()
    created = operator.fetch("/api/sessions", {"participant": "P77", "toml": IMPATIENT, "seed": 7})[
        "body"
    ]
    page = operator.page
    page.goto(f"{operator.address}/sessions/{created['session']}")
    operator.click("#ask")
    expect(page.locator("#start")).to_be_visible()
    page.wait_for_timeout(2500)
    page.reload()
    expect(page.locator("#stage")).to_contain_text("DO NOT APPLY")
    expect(page.locator("#start")).to_have_count(0)
    expect(page.locator("#stage .settings-block")).to_have_count(0)
    operator.click("#note-break")
    expect(page.locator("#resume")).to_be_enabled()
    page.close()
