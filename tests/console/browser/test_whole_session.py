"""A session by clicking: two people on two pages, the real server, the real record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.console.browser.people import Operator, Participant

Begin = Callable[..., tuple[Operator, Participant]]


def run(operator: Operator, participant: Participant, trials: int) -> None:
    answers = ["#answer-new", "#answer-previous", "#answer-same", "#answer-cannot"]
    for number in range(trials):
        operator.walk()
        participant.sees("Pay attention to how it feels")
        operator.measure(4 + number % 3, 5 - number % 2)
        if number:
            participant.is_asked()
            participant.press(answers[number % 4])
            participant.sees("Thank you")
        expect(operator.page.locator("#ask")).to_be_visible()


def test_four_trials_by_clicking_are_all_in_the_record(begin: Begin) -> None:
    operator, participant = begin()
    participant.sees("Please wait")
    run(operator, participant, 4)
    view = operator.view
    assert [trial["status"] for trial in view["trials"]] == ["complete"] * 4
    assert [trial["choice"] for trial in view["trials"]] == [None, "previous", "same", None]
    assert len(operator.events("chosen")) == 3
    assert {event["actor"] for event in operator.events("chosen")} == {"participant"}
    expect(operator.page.locator("#advice dt").first).to_have_text("torque")
    expect(operator.page.locator("#advice .verdict")).to_contain_text("Comparisons so far")
    expect(operator.page.locator("#plots canvas").first).to_be_visible()
    operator.page.click("#finish")
    operator.page.click("#dialog-send")
    participant.sees("Finished")
    with operator.page.expect_download() as downloading:
        operator.page.locator("#stage").get_by_text("Download the data").click()
    assert downloading.value.suggested_filename.endswith(".zip")


@pytest.mark.slow
def test_twelve_trials_with_seven_answers_are_all_in_the_record(begin: Begin) -> None:
    operator, participant = begin("seven")
    for number in range(12):
        operator.trial(3 + number % 4, 8 - number % 5)
        if number:
            participant.press("#answer-new" if number % 2 else "#answer-previous")
            participant.press(f"#strength-{1 + number % 3}")
        expect(operator.page.locator("#ask")).to_be_visible()
    trials = operator.view["trials"]
    assert [trial["status"] for trial in trials] == ["complete"] * 12
    assert [trial["strength"] for trial in trials[1:]] == [1 + n % 3 for n in range(1, 12)]
    expect(operator.page.locator("figure")).to_have_count(7)


@pytest.mark.slow
def test_answers_of_five_grades_are_asked_in_two_steps(begin: Begin) -> None:
    operator, participant = begin("five")
    operator.trial(4, 5)
    operator.trial(5, 6)
    participant.press("#answer-previous")
    expect(participant.page.locator("#strength-3")).to_have_count(0)
    participant.press("#back")
    participant.press("#answer-new")
    participant.press("#strength-2")
    participant.sees("Thank you")
    newest = operator.view["trials"][-1]
    assert (newest["choice"], newest["strength"]) == ("new", 2)


@pytest.mark.slow
def test_next_setting_is_shown_large_with_unit_and_change(begin: Begin) -> None:
    operator, _ = begin()
    operator.trial(4, 5)
    operator.click("#ask")
    torque = operator.page.locator('.setting[data-name="torque"]')
    expect(torque.locator(".unit")).to_contain_text("Nm")
    row = next(row for row in operator.view["trial"]["policy"] if row["name"] == "torque")
    expect(torque.locator(".change")).to_contain_text(row["before_text"])
    height = torque.locator(".number").evaluate("node => node.getBoundingClientRect().height")
    assert height > 45


def test_session_from_the_form_and_from_toml_with_its_faults_shown(begin: Begin) -> None:
    operator, _ = begin()
    page = operator.page
    page.goto(f"{operator.address}/new")
    page.fill("#participant", "P81")
    page.locator("#policy input").nth(3).fill("-5")
    page.click("#check")
    expect(page.locator("#said")).to_contain_text("peak_torque")
    page.locator("#policy input").nth(3).fill("40")
    page.click("#create")
    page.wait_for_url("**/sessions/*")
    expect(page.locator("#names")).to_contain_text("P81")
    page.goto(f"{operator.address}/new")
    page.fill("#participant", "P82")
    page.check("#way-toml")
    page.set_input_files(
        "#file", {"name": "a.toml", "mimeType": "text/plain", "buffer": b"[polcy]"}
    )
    page.click("#create")
    expect(page.locator("#said")).to_contain_text("polcy")
    page.click("#example")
    page.wait_for_function("() => document.querySelector('#toml').value.length > 300")
    page.click("#create")
    page.wait_for_url("**/sessions/*")
    expect(page.locator("#names")).to_contain_text("P82")
