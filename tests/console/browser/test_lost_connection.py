"""A killed server, a lost network: pages recover, and no click is lost or stored twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.console.browser.conftest import Site
from tests.console.browser.people import Operator, Participant

Begin = Callable[..., tuple[Operator, Participant]]


def test_server_killed_in_a_walk_comes_back_and_both_pages_go_on(site: Site, begin: Begin) -> None:
    operator, participant = begin()
    operator.trial(4, 5)
    operator.walk()
    operator.page.fill("#outcome-0", "4.5")
    site.server.kill()
    expect(operator.page.locator("#banners .lost")).to_contain_text("No connection")
    expect(operator.page.locator("#save-state")).to_contain_text("NOT SAVED")
    expect(participant.page.locator("#link")).to_contain_text("No connection")
    operator.measure(4.5, 6)  # nobody is there to take it
    expect(operator.page.locator("#banners")).to_contain_text("NOT SAVED YET: outcomes")
    site.server.start()
    participant.is_asked()  # both came back without a reload, and the click arrived
    expect(participant.page.locator("#link")).to_have_text("")
    expect(operator.page.locator("#banners")).to_have_text("")
    expect(operator.page.locator("#save-state")).to_contain_text("Saved")
    assert [event["body"]["outcome"]["effort"] for event in operator.events("measured")] == [4, 4.5]


def test_answer_without_network_is_kept_and_stored_once(begin: Begin) -> None:
    operator, participant = begin()
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.is_asked()
    participant.page.context.set_offline(True)
    participant.press("#answer-previous")
    expect(participant.page.locator("#heading")).to_contain_text("not saved yet")
    participant.page.context.set_offline(False)
    participant.sees("Thank you")
    assert [event["body"]["choice"] for event in operator.events("chosen")] == ["previous"]


def test_stop_without_network_says_so_until_it_arrives(begin: Begin) -> None:
    operator, participant = begin()
    operator.walk()
    participant.page.context.set_offline(True)
    participant.page.click("#stop")
    expect(participant.page.locator("#stopping")).to_contain_text("has not arrived yet")
    participant.page.click("#stop")
    participant.page.context.set_offline(False)
    participant.sees("Stopped")
    expect(operator.page.locator("#banners .stop")).to_contain_text("by the participant")
    expect(operator.page.locator("#stage-heading")).to_have_text("On hold")
    assert operator.view["trials"][0]["status"] == "aborted"
    assert len(operator.events("interrupted")) == 1
    operator.click("#resume")
    expect(operator.page.locator("#banners")).to_have_text("")
    participant.sees("Please wait")


@pytest.mark.slow
def test_operator_click_without_network_is_refused_visibly_if_overtaken(
    site: Site, begin: Begin
) -> None:
    operator, _ = begin()
    other = site.operator()
    other.session = operator.session
    other.open()
    operator.click("#ask")
    expect(other.page.locator("#start")).to_be_enabled()
    # Only the first tab loses its network.
    operator.page.route("**/start", lambda route: route.abort())
    operator.click("#start")
    expect(operator.page.locator("#banners")).to_contain_text("NOT SAVED YET: start")
    other.page.click("#veto")
    other.page.fill("#why", "rubs")
    other.page.click("#dialog-send")
    expect(other.page.locator("#ask")).to_be_visible()
    operator.page.unroute("**/start")
    expect(operator.page.locator("#banners .refused")).to_contain_text("refusal of trial 1")
    assert operator.events("started") == []
    other.page.close()


def test_click_outlives_a_reload_while_the_server_is_down(site: Site, begin: Begin) -> None:
    operator, _ = begin()
    operator.page.route("**/ask", lambda route: route.abort())
    operator.click("#ask")
    expect(operator.page.locator("#banners")).to_contain_text("NOT SAVED YET: next setting")
    operator.page.unroute("**/ask")
    operator.page.reload()
    expect(operator.page.locator("#start")).to_be_visible()
    assert len(operator.events("asked")) == 1
