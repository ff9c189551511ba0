"""A real browser and a real server: two contexts, one of the operator, one of the participant."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright  # noqa: E402

from tests.console.browser.people import Operator, Participant  # noqa: E402
from tests.console.browser.process import Serving  # noqa: E402
from tests.console.browser.watch import Watch  # noqa: E402

NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
DESKTOP, PHONE = (1280, 900), (390, 844)
expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed: tools/system_packages chromium installs it")
    with sync_playwright() as play:
        # Containers seldom allow Chromium's own sandbox; only our own pages are opened.
        opened = play.chromium.launch(executable_path=found, args=["--no-sandbox", NO_OTHER_HOST])
        yield opened
        opened.close()


class Site:
    """A running server and the people who use it."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser = browser
        self.server = Serving(folder)
        self.watch = Watch(self.server.address)
        self.entered = self.context(DESKTOP)
        page = self.entered.new_page()
        page.goto(self.server.start())
        page.wait_for_url(f"{self.server.address}/")
        page.close()

    def context(self, size: tuple[int, int], touch: bool = False) -> BrowserContext:
        made = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, has_touch=touch, locale="en-GB"
        )
        self.watch.context(made)
        return made

    def operator(self) -> Operator:
        """A new tab of the operator."""
        made = Operator(self.entered.new_page(), self.server.address)
        made.page.goto(self.server.address)
        return made


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    opened = Site(browser, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.entered.close()
    opened.server.end()
    assert "Traceback" not in opened.server.log


Both = tuple[Operator, Participant]


@pytest.fixture
def begin(site: Site, request: pytest.FixtureRequest) -> Iterator[Callable[..., Both]]:
    """Begins a session with both people on their pages."""
    opened: list[BrowserContext] = []
    tabs: list[Operator] = []

    def both(answers: str = "two", size: tuple[int, int] = PHONE) -> Both:
        operator = site.operator()
        tabs.append(operator)
        operator.begin(f"P{len(request.node.name) % 90 + 10}", answers)
        context = site.context(size, touch=True)
        opened.append(context)
        participant = Participant(context.new_page(), site.server.address)
        participant.join(operator.pairing_code())
        return operator, participant

    site.watch.offences.clear()
    yield both
    for operator in tabs:
        operator.page.close()
    for context in opened:
        context.close()
    site.watch.require_clean()
