"""Everything that a page does and must not do: other hosts, errors, dialogs, blocked code."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request

# What Chromium says itself when a request fails, which tests bring about on purpose.
NETWORK = ("Failed to load resource", "net::ERR_")


@dataclass
class Watch:
    """What was seen on all pages of a context; `require_clean` raises if anything was."""

    address: str
    offences: list[str] = field(default_factory=list)

    def context(self, context: BrowserContext) -> None:
        context.on("request", self._request)
        context.on("page", self._page)

    def _page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.offences.append(f"error in a page: {error}"))
        page.on("dialog", self._dialog)

    def _request(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme != "data" and f"{place.scheme}://{place.netloc}" != self.address:
            self.offences.append(f"request to another host: {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        expected = message.text.startswith(NETWORK) or any(mark in message.text for mark in NETWORK)
        if message.type in ("error", "warning") and not expected:
            self.offences.append(f"console {message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self.offences.append(f"dialog: {dialog.message}")
        dialog.accept()

    def require_clean(self) -> None:
        assert self.offences == []
