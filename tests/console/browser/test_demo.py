"""`sfihilo serve --demo`: a simulated device measures and a simulated person answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.console.browser.conftest import DESKTOP, PATIENCE
from tests.console.browser.people import Operator
from tests.console.browser.process import Serving
from tests.console.browser.watch import Watch


@pytest.mark.slow
def test_operator_of_the_demo_only_asks_and_starts(browser: Browser, tmp_path: Path) -> None:
    server = Serving(tmp_path, "--demo", "--you", "operator", "--speed", "200")
    watch = Watch(server.address)
    context = browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    context.set_default_timeout(PATIENCE)
    watch.context(context)
    page = context.new_page()
    try:
        page.goto(server.start())
        page.click("tbody a")
        operator = Operator(page, server.address)
        operator.session = page.url.rsplit("/", 1)[-1]
        expect(page.locator("#names")).to_contain_text("Demo with a simulated person")
        for number in range(1, 4):
            operator.click("#ask")
            if number == 2:  # given back and chosen again, as on a console with --device
                page.select_option("#device", "")
                expect(page.locator("#start")).to_have_text("It is set: start the walk")
                page.select_option("#device", "simulated")
                expect(page.locator("#start")).to_contain_text("Let the device set it")
            operator.click("#start")
            # The outcomes come from the device, the answer from the person.
            expect(page.locator(f'tr.complete[data-trial="{number}"]')).to_be_visible()
        trials = operator.view["trials"]
        assert all(value is not None for value in trials[0]["outcome"].values())
        assert [trial["answered"] for trial in trials] == [False, True, True]
        watch.require_clean()
    finally:
        context.close()
        server.end()
