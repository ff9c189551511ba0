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
PATIENCE = 40_000  # milliseconds; a busy machine is slow, and a test that passes does not wait
expect.set_options(timeout=PATIENCE)


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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all modules of a worker, since its start takes longer than a test."""
    serving = Serving(tmp_path_factory.mktemp("browser"))
    yield serving
    serving.end()
    assert "Traceback" not in serving.log


class Site:
    """A running server and the people who use it."""

    def __init__(self, browser: Browser, server: Serving) -> None:
        self.browser = browser
        self.server = server
        self.watch = Watch(server.address)
        cookies = server.db.with_name("operator.json")
        if not cookies.exists():
            context = self.context(DESKTOP)
            page = context.new_page()
            page.goto(server.start())
            page.wait_for_url(f"{server.address}/")
            context.storage_state(path=cookies)
            context.close()
        self.entered = self.context(DESKTOP, cookies=cookies)

    def context(
        self, size: tuple[int, int], touch: bool = False, cookies: Path | None = None
    ) -> BrowserContext:
        made = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            has_touch=touch,
            locale="en-GB",
            storage_state=cookies,
        )
        made.set_default_timeout(PATIENCE)
        self.watch.context(made)
        return made

    def operator(self) -> Operator:
        """A new tab of the operator."""
        made = Operator(self.entered.new_page(), self.server.address)
        made.page.goto(self.server.address)
        return made


@pytest.fixture(scope="module")
def site(browser: Browser, server: Serving) -> Iterator[Site]:
    opened = Site(browser, server)
    yield opened
    opened.entered.close()


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
