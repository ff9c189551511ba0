"""Every action of a session over HTTP: keys, expected events, errors in the library's words."""

import threading
from typing import Any

import httpx
import pytest

from tests.console.running import SPACE, Running, act, create, kinds, measured, view


def post(client: httpx.Client, session: str, action: str, **body: Any) -> httpx.Response:
    return client.post(f"/api/sessions/{session}/{action}", json=body)


def test_a_whole_trial_is_stored_and_shown(operator: httpx.Client, session: str) -> None:
    first = measured(operator, session)
    second = measured(operator, session, effort=3.0)
    act(operator, session, "choose", trial=second, choice="new")
    shown = view(operator, session)
    assert [row["status"] for row in shown["trials"]] == ["complete", "complete"]
    assert (first, second, shown["comparisons"], shown["next"]) == (1, 2, 1, "ask")
    assert shown["trials"][1]["choice"] == "new"
    assert kinds(operator, session) == [
        "opened", "asked", "started", "measured", "asked", "started", "measured", "chosen",
    ]  # fmt: skip


def test_the_open_trial_is_shown_with_units_and_the_change(
    operator: httpx.Client, session: str
) -> None:
    act(operator, session, "suggest", policy={"torque": 32, "timing": 0.5}, why="to see")
    trial = view(operator, session)["trial"]
    torque = trial["policy"][0]
    assert torque["text"] == "32 Nm"
    assert (torque["before_text"], torque["change_text"]) == ("20 Nm", "+12 Nm")
    assert trial["source"] == "operator"
    act(operator, session, "start", trial=1)
    assert view(operator, session)["trial"]["started_at"] is not None


def test_every_action_reaches_the_record(operator: httpx.Client, session: str) -> None:
    measured(operator, session)
    act(
        operator,
        session,
        "amend",
        trial=1,
        why="typed wrongly",
        outcome={"effort": 4, "comfort": 6},
    )
    act(operator, session, "undo", why="no")
    act(operator, session, "redo")
    second = measured(operator, session)
    act(operator, session, "choose", trial=second, choice="same")
    act(operator, session, "withdraw", trial=second, why="loose sensor")
    third = act(operator, session, "repeat", trial=1)["trial"]
    act(operator, session, "veto", trial=third["trial"], why="looks wrong", pain=True)
    act(operator, session, "lift", trial=third["trial"], why="a misunderstanding")
    act(operator, session, "place", policy={"torque": 20, "timing": 0.2}, why="by hand")
    act(operator, session, "interrupt", why="lunch")
    act(operator, session, "resume")
    act(operator, session, "note", text="back again")
    act(operator, session, "goal", goal="best")
    fourth = act(operator, session, "ask")["trial"]["trial"]
    act(operator, session, "start", trial=fourth)
    act(operator, session, "abort", trial=fourth, why="stumbled")
    act(operator, session, "close", why="the end")
    found = kinds(operator, session)
    for kind in (
        "amended", "redone", "vetoed", "lifted", "placed", "interrupted", "resumed", "note", "goal",
        "aborted", "closed",
    ):  # fmt: skip
        assert kind in found
    assert view(operator, session)["next"] == "closed"


def test_graded_answers_are_offered_and_stored(operator: httpx.Client) -> None:
    session = create(operator, "P08", SPACE + 'answers = "seven"\n')
    measured(operator, session)
    number = measured(operator, session)
    words = [answer["word"] for answer in view(operator, session)["answers"]]
    graded = [word for word in ("slightly", "clearly", "much") for _ in range(2)]
    assert words == [*graded, None, None]
    act(operator, session, "choose", trial=number, choice="previous", strength=2)
    row = view(operator, session)["trials"][-1]
    assert (row["choice"], row["strength"], row["answer_word"]) == ("previous", 2, "clearly")


def test_the_same_key_twice_is_one_event(operator: httpx.Client, session: str) -> None:
    first = act(operator, session, "ask", key="a-1", expected=1)
    again = act(operator, session, "ask", key="a-1", expected=1)
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["trial"] == again["trial"]
    for _ in range(3):
        act(operator, session, "start", trial=1, key="s-1", expected=2)
    assert kinds(operator, session) == ["opened", "asked", "started"]


def test_a_key_in_the_header_is_the_same_as_in_the_body(
    operator: httpx.Client, session: str
) -> None:
    for _ in range(2):
        done = operator.post(
            f"/api/sessions/{session}/note",
            json={"text": "once"},
            headers={"idempotency-key": "n-1"},
        )
        assert done.status_code == 200
    act(operator, session, "note", text="once", key="n-1")
    assert kinds(operator, session) == ["opened", "note"]
    both = operator.post(
        f"/api/sessions/{session}/note",
        json={"text": "once", "key": "other"},
        headers={"idempotency-key": "n-1"},
    )
    assert (both.status_code, both.json()["error"]) == (400, "invalid")


def test_a_key_with_another_content_is_refused(operator: httpx.Client, session: str) -> None:
    act(operator, session, "note", text="one", key="n")
    done = post(operator, session, "note", text="two", key="n")
    assert (done.status_code, done.json()["error"]) == (409, "conflict")
    assert kinds(operator, session) == ["opened", "note"]


def test_a_stale_event_is_refused_with_what_changed(operator: httpx.Client, session: str) -> None:
    seen = view(operator, session)
    act(operator, session, "note", text="another tab was here")
    for expected in (seen["last"], seen["hash"]):
        done = post(operator, session, "ask", expected=expected)
        assert (done.status_code, done.json()["error"]) == (409, "stale")
        answer = done.json()
        assert answer["last"] == 2
        assert [change["kind"] for change in answer["changes"]] == ["note"]
    assert kinds(operator, session) == ["opened", "note"]
    act(operator, session, "ask", expected=view(operator, session)["hash"])


def test_an_event_of_the_future_is_refused(operator: httpx.Client, session: str) -> None:
    done = post(operator, session, "note", text="x", expected=99)
    assert (done.status_code, done.json()["error"]) == (409, "stale")


def test_two_clients_race_and_one_is_refused(running: Running, session: str) -> None:
    clients = [running.client(), running.client()]
    last = view(clients[0], session)["last"]
    answers: list[httpx.Response] = []
    gate = threading.Barrier(2)

    def click(client: httpx.Client) -> None:
        gate.wait()
        answers.append(post(client, session, "note", text=f"from {id(client)}", expected=last))

    threads = [threading.Thread(target=click, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert kinds(clients[0], session) == ["opened", "note"]


REFUSED: list[tuple[str, dict[str, Any], int, str, str]] = [
    (
        "measure", {"trial": 1, "outcome": {"effort": 99, "comfort": 1}}, 400, "bad_measurement",
        "effort",
    ),
    ("measure", {"trial": 1, "outcome": {"effort": 1}}, 400, "bad_measurement", "comfort"),
    ("measure", {"trial": 2, "outcome": None}, 409, "refused", "trial: expected 1 to 1"),
    ("measure", {"trial": "1", "outcome": None}, 422, "invalid", "trial: expected a valid int"),
    ("measure", {"trial": True, "outcome": None}, 422, "invalid", "trial"),
    ("measure", {"trial": 1}, 422, "invalid", "outcome"),
    ("measure", {"trial": 1, "outcome": None, "more": 1}, 422, "invalid", "more"),
    ("choose", {"trial": 1, "choice": "new"}, 409, "refused", "no answer is expected"),
    ("choose", {"trial": 1, "choice": "left"}, 422, "invalid", "choice"),
    ("suggest", {"policy": {"torque": 1, "timing": 1}}, 409, "refused", "trial 1 is asked"),
    ("veto", {"trial": 1}, 422, "invalid", "why"),
    ("lift", {"trial": 1, "why": ""}, 409, "refused", "no veto because of pain"),
    ("redo", {}, 409, "refused", "nothing to redo"),
    ("resume", {}, 409, "refused", "not interrupted"),
    ("note", {"text": "x" * 2001}, 422, "invalid", "text"),
    ("goal", {"goal": "happiness"}, 422, "invalid", "goal"),
    ("place", {"policy": {"torque": 99, "timing": 0}}, 409, "refused", "expected 0 to 60"),
    ("ask", {"key": ""}, 422, "invalid", "key"),
    ("ask", {"expected": "abc"}, 422, "invalid", "expected"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "body", "status", "error", "words"), REFUSED)
def test_bad_input_is_refused_in_words(
    operator: httpx.Client, action: str, body: dict[str, Any], status: int, error: str, words: str
) -> None:
    session = create(operator, "P09")
    act(operator, session, "ask")
    done = post(operator, session, action, **body)
    assert (done.status_code, done.json()["error"]) == (status, error)
    assert words in done.json()["message"]
    recorded = ["refused"] if error == "bad_measurement" else []
    assert kinds(operator, session) == ["opened", "asked", *recorded]


def test_an_unsafe_suggestion_is_refused(operator: httpx.Client, session: str) -> None:
    done = post(operator, session, "suggest", policy={"torque": 60, "timing": 0.5})
    assert (done.status_code, done.json()["error"]) == (409, "unsafe")
    assert "at most 20 Nm from 20" in done.json()["message"]


@pytest.mark.parametrize(
    "body", ["{", "[1]", '"x"', "nul", "[" * 20000, '{"text": "\\ud800"}', '{"text": NaN}', "\xff"]
)
def test_a_body_that_is_no_use_is_refused(operator: httpx.Client, session: str, body: str) -> None:
    done = operator.post(
        f"/api/sessions/{session}/note",
        content=body.encode("latin-1"),
        headers={"content-type": "application/json"},
    )
    assert done.status_code in (400, 422)
    assert set(done.json()) == {"error", "message"}
    assert kinds(operator, session) == ["opened"]


def test_a_session_on_hold_goes_on_only_when_it_is_resumed(
    operator: httpx.Client, session: str
) -> None:
    act(operator, session, "interrupt", why="a break")
    done = post(operator, session, "ask")
    assert (done.status_code, done.json()["error"]) == (409, "on_hold")
    act(operator, session, "resume")
    act(operator, session, "ask")
