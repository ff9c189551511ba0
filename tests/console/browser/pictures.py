"""Takes the pictures of the console for README and docs: `make console-pictures`.

A session is led through every state by clicking, with outcomes and answers of a simple person, so
that the pictures show what the present pages look like.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.console.browser.people import Operator, Participant
from tests.console.browser.process import Serving

IMAGES = Path(__file__).parents[3] / "docs" / "images"
DESKTOP = ViewportSize(width=1280, height=860)
PHONE = ViewportSize(width=390, height=844)
TRIALS = 11
LARGEST = 150_000  # bytes of one picture
GAP, EDGE = 24, 10


def outcomes(view: Any) -> tuple[float, float, float]:
    """What the simple person measures in the open trial, and how much they like it."""
    policy = {row["name"]: row["value"] for row in view["trial"]["policy"]}
    torque, time = policy["peak_torque"] / 40, (policy["peak_time"] - 35) / 25
    wobble = (view["trial"]["number"] * 37 % 11 - 5) / 40
    effort = 5.2 - 2.2 * torque * (1 - (time - 0.6) ** 2) + wobble
    comfort = 8.5 - 5 * (torque - 0.45) ** 2 - 4 * (time - 0.5) ** 2 - wobble
    return round(effort, 2), round(comfort, 1), comfort - 1.2 * effort


def picture(page: Page, full: bool = False) -> Image.Image:
    """What a page shows, without the focus frame of the test's own clicks."""
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(500)
    return Image.open(io.BytesIO(page.screenshot(full_page=full))).convert("RGB")


def keep(image: Image.Image, name: str) -> None:
    """Write a picture with few colours, small enough for a repository."""
    path = IMAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    coverage = Image.Quantize.MAXCOVERAGE  # keeps colours that are rare, such as those of dots
    image.quantize(200, coverage, dither=Image.Dither.NONE).save(path, optimize=True)
    assert path.stat().st_size < LARGEST, f"{name}: {path.stat().st_size} bytes"


def side_by_side(*images: Image.Image) -> Image.Image:
    """Pictures in a row, each in a thin frame."""
    height = max(image.height for image in images) + 2 * EDGE
    width = sum(image.width for image in images) + GAP * (len(images) - 1) + 2 * EDGE
    row = Image.new("RGB", (width, height), "white")
    left = EDGE
    for image in images:
        row.paste(image, (left, EDGE))
        box = (left - 1, EDGE - 1, left + image.width, EDGE + image.height)
        ImageDraw.Draw(row).rectangle(box, outline="#6c7986", width=2)
        left += image.width + GAP
    return row


class Tour:
    """One session from the first page to the stop, with a picture of each state."""

    def __init__(self, browser: Browser, server: Serving) -> None:
        self.server = server
        self.liked: float | None = None
        self.phones: dict[str, Image.Image] = {}
        entered = browser.new_context(viewport=DESKTOP, locale="en-GB")
        self.operator = Operator(entered.new_page(), server.address)
        phone = browser.new_context(viewport=PHONE, has_touch=True, locale="en-GB")
        self.participant = Participant(phone.new_page(), server.address)

    def begin(self, address: str) -> None:
        page = self.operator.page
        page.goto(address)
        page.wait_for_url(f"{self.server.address}/")
        page.goto(f"{self.server.address}/new")
        page.wait_for_selector("#policy input")
        page.fill("#participant", "P07")
        page.select_option("#goal", "best")
        page.select_option("#answers", "five")
        keep(picture(page), "console/new.png")
        page.click("#create")
        page.wait_for_url("**/sessions/*")
        self.operator.session = page.url.rsplit("/", 1)[-1]
        page.click("#pair")
        code = page.locator("#pair-code").inner_text()
        keep(picture(page), "console/pair.png")
        page.click("#dialog-cancel")
        self.participant.page.goto(f"{self.server.address}/enter")
        self.participant.page.fill("#code", code)
        self.phones["enter"] = picture(self.participant.page)
        self.participant.join(code)

    def trial(self, shown: bool = False) -> None:
        operator, participant = self.operator, self.participant
        operator.click("#ask")
        expect(operator.page.locator("#start")).to_be_enabled()
        if shown:
            keep(picture(operator.page), "console/set.png")
        effort, comfort, liked = outcomes(operator.view)
        operator.click("#start")
        expect(operator.page.locator("#clock")).to_be_visible()
        if shown:
            operator.page.fill("#outcome-0", str(effort))
            self.phones["walk"] = picture(participant.page)
            keep(picture(operator.page), "console/walk.png")
        operator.measure(effort, comfort)
        if self.liked is not None:
            self.answer(liked - self.liked, shown)
        self.liked = liked
        expect(operator.page.locator("#ask")).to_be_enabled()

    def answer(self, better: float, shown: bool) -> None:
        participant = self.participant
        participant.is_asked()
        if shown:
            self.phones["question"] = picture(participant.page)
            keep(picture(self.operator.page), "console/answer.png")
        participant.press("#answer-new" if better > 0 else "#answer-previous")
        expect(participant.page.locator("#strength-2")).to_be_visible()
        if shown:
            self.phones["strength"] = picture(participant.page)
        participant.press("#strength-2" if abs(better) > 1 else "#strength-1")
        participant.sees("Thank you")
        if shown:
            self.phones["answered"] = picture(participant.page)

    def learned(self) -> None:
        page = self.operator.page
        expect(page.locator("#plots canvas")).to_have_count(6)
        page.wait_for_timeout(3000)
        whole = picture(page, full=True)
        keep(whole.resize((whole.width * 3 // 4, whole.height * 3 // 4)), "console/learned.png")

    def both(self) -> None:
        """The picture of README: the operator's page and the participant's, in a question."""
        operator, participant = self.operator, self.participant
        operator.click("#ask")
        operator.page.wait_for_timeout(3000)
        setting = picture(operator.page)
        effort, comfort, liked = outcomes(operator.view)
        operator.click("#start")
        operator.measure(effort, comfort)
        participant.is_asked()
        self.liked = liked
        keep(side_by_side(setting, picture(participant.page)), "console.png")
        participant.press("#answer-same")

    def stopped(self) -> None:
        self.operator.walk()
        self.participant.page.click("#stop")
        self.participant.sees("Stopped")
        expect(self.operator.page.locator("#banners .stop")).to_be_visible()
        self.phones["stopped"] = picture(self.participant.page)
        keep(picture(self.operator.page), "console/stop.png")
        self.operator.click("#resume")

    def lost(self) -> None:
        self.operator.walk()
        effort, comfort, _ = outcomes(self.operator.view)
        self.server.kill()
        self.operator.measure(effort, comfort)
        expect(self.operator.page.locator("#banners")).to_contain_text("NOT SAVED YET")
        keep(picture(self.operator.page), "console/lost.png")
        self.participant.page.click("#stop")
        expect(self.participant.page.locator("#stopping")).to_contain_text("not arrived")
        self.phones["lost"] = picture(self.participant.page)

    def phone(self) -> None:
        names = ("enter", "walk", "question", "strength", "answered", "stopped", "lost")
        for name, some in (("phone", names[1:5]), ("phone-stop", names[5:])):
            keep(side_by_side(*(self.phones[each] for each in some)), f"console/{name}.png")
        keep(side_by_side(self.phones["enter"]), "console/enter.png")


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not installed: tools/system_packages chromium installs it")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        server = Serving(Path(folder))
        try:
            tour = Tour(browser, server)
            tour.begin(server.start())
            for number in range(1, TRIALS + 1):
                tour.trial(shown=number == 2)
            tour.learned()
            tour.both()
            tour.stopped()
            tour.lost()
            tour.phone()
        finally:
            server.end()
            browser.close()


if __name__ == "__main__":
    main()
