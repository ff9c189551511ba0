"""The two people of a session and what they do on their pages, as clicks and typed text."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.console.running import SPACE as SPACE

GUARD = "body:not([data-fresh])"  # buttons that have just appeared take no clicks for a moment


class Operator:
    """The operator's page of one session."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.session = ""

    def fetch(self, path: str, body: object = None) -> Any:
        """A request of the page itself, with its cookie."""
        script = """async ([path, body]) => {
            const headers = {"Content-Type": "application/json"};
            const sent = {method: "POST", headers, body: JSON.stringify(body)};
            const options = body === null ? {} : sent;
            const response = await fetch(path, options);
            return {status: response.status, body: await response.json()};
        }"""
        return self.page.evaluate(script, [path, body])

    def begin(self, participant: str, answers: str = "two") -> None:
        """A new session by the interface, then its page."""
        toml = f'{SPACE}answers = "{answers}"\n'
        made = self.fetch("/api/sessions", {"participant": participant, "toml": toml})
        assert made["status"] == 201, made
        self.session = made["body"]["session"]
        self.open()

    def open(self) -> None:
        self.page.goto(f"{self.address}/sessions/{self.session}")
        expect(self.page.locator("#save-state")).to_contain_text("Saved")

    @property
    def view(self) -> Any:
        return self.fetch(f"/api/sessions/{self.session}")["body"]

    def events(self, kind: str) -> list[Any]:
        """The stored events of one kind."""
        log = self.fetch(f"/api/sessions/{self.session}/log")["body"]["events"]
        return [event for event in log if event["kind"] == kind]

    def click(self, selector: str) -> None:
        """Click a button of the current step once it takes clicks."""
        expect(self.page.locator(selector)).to_be_enabled()
        self.page.wait_for_selector(GUARD)
        self.page.click(selector)

    def walk(self) -> None:
        """The next setting, and the walk begins."""
        self.click("#ask")
        self.click("#start")
        expect(self.page.locator("#clock")).to_be_visible()

    def measure(self, *values: object) -> None:
        for index, value in enumerate(values):
            self.page.fill(f"#outcome-{index}", str(value))
        self.click("#measure")

    def trial(self, *values: object) -> None:
        """One trial as far as the question."""
        self.walk()
        self.measure(*values)
        expect(self.page.locator("#clock")).to_have_count(0)

    def pairing_code(self) -> str:
        self.page.click("#pair")
        code = self.page.locator("#pair-code").inner_text()
        self.page.click("#dialog-cancel")
        return code


class Participant:
    """The participant's page."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address

    def join(self, code: str) -> None:
        self.page.goto(f"{self.address}/enter")
        self.page.fill("#code", code)
        self.page.click("#send")
        self.page.wait_for_url("**/participant")
        expect(self.page.locator("#heading")).to_be_visible()

    def is_asked(self) -> None:
        expect(self.page.locator("#answer-new")).to_be_visible()

    def press(self, selector: str) -> None:
        expect(self.page.locator(selector)).to_be_visible()
        self.page.wait_for_selector(GUARD)
        self.page.click(selector)

    def sees(self, words: str) -> None:
        expect(self.page.locator("#heading")).to_have_text(words)
