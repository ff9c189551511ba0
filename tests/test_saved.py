"""Saving a state as text, and going on with it in another process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sfihilo import Settings, State, ask, load, recommend, save
from sfihilo.forward.recency import RecencySettings
from sfihilo.inverse import InverseSettings
from tests.small import patchy, play, played, small

ROOT = Path(__file__).parents[1]
LEARNED = RecencySettings(variant="learned", trials=20)


def quick(make: Callable[..., Settings] = Settings.paper, **changes: Any) -> Settings:
    return small(make(3, 2, **changes))


@cache
def some_state() -> State:
    return played(quick(), 6)


SAVED = {
    "nothing told": (quick(), 0),
    "one round": (quick(), 1),
    "no hyperparameters yet": (quick(rule="mutual_information"), 10),
    "after a checkpoint": (quick(), 20),
    "just at a checkpoint": (quick(), 17),
    "after two": (quick(rule="mutual_information"), 29),
    "drift": (quick(recency=LEARNED), 21),
    "default": (quick(Settings), 19),
    "own rule and features": (
        quick(rule="tests.small:own_rule", inverse=InverseSettings(features="linear")),
        8,
    ),
    "random": (quick(rule="random"), 3),
}

CONTINUE = """
import json, sys
from sfihilo import ask, load, recommend, save
from tests.small import patchy, play
for name, text in json.load(sys.stdin).items():
    state = load(text)
    same = save(state) == text
    queries = []
    for _ in range(3):
        queries.append(ask(state).policy.tobytes().hex())
        state = play(state, 1, patchy)
    best = recommend(state).policy.tobytes().hex()
    print(json.dumps([name, same, queries, save(state), best]))
"""


@cache
def continued_elsewhere() -> dict[str, list[Any]]:
    """Every saved state, loaded and continued in one other process."""
    texts = {name: save(saved_state(name)) for name in SAVED}
    found = subprocess.run(
        [sys.executable, "-c", CONTINUE],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        check=False,
    )
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    return {name: row for name, *row in rows}


@cache
def saved_state(name: str) -> State:
    settings, rounds = SAVED[name]
    return played(settings, rounds, person=patchy)


@pytest.mark.parametrize("name", SAVED)
def test_loaded_in_another_process_it_asks_the_same(name: str) -> None:
    state = saved_state(name)
    same, queries, text, best = continued_elsewhere()[name]
    assert same
    for query in queries:
        assert ask(state).policy.tobytes().hex() == query
        state = play(state, 1, patchy)
    assert save(state) == text
    assert recommend(state).policy.tobytes().hex() == best


def test_saved_text_is_small() -> None:
    """History and features' mode, not the factor."""
    assert len(save(played(quick(rule="random"), 30))) < 20_000


@pytest.mark.parametrize(
    "change",
    [
        lambda record: {**record, "format": 2},
        lambda record: {key: value for key, value in record.items() if key != "mode"},
        lambda record: {**record, "choices": ["maybe"] * len(record["choices"])},
        lambda record: {**record, "settings": {**record["settings"], "speed": 1}},
        lambda record: {**record, "mode": record["mode"][:-1]},
        lambda record: {**record, "outcomes": record["outcomes"][:-1]},
        lambda record: {**record, "policies": record["policies"][:-1]},
        lambda record: {**record, "factored": 99},
        lambda record: [],
        lambda record: None,
    ],
)
def test_spoilt_texts_are_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    text = json.dumps(change(json.loads(save(some_state()))))
    with pytest.raises(ValueError, match="expected"):
        load(text)


def with_first(record: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    """The record with the first number of a part replaced."""
    first, *rest = record[name]
    first = [value, *first[1:]] if isinstance(first, list) else value
    return {**record, name: [first, *rest]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", None, True, [], {}, 10**400])
@pytest.mark.parametrize("name", ["policies", "mode", "curvature", "hyper"])
def test_number_that_is_none_is_refused(name: str, value: object) -> None:
    record = with_first(json.loads(save(some_state())), name, value)
    with pytest.raises(ValueError, match=r"expected"):
        load(json.dumps(record))


@pytest.mark.parametrize("value", [None, 3, "text", {}, [None], [[]], [["a"]], True, -1, 1e308])
@pytest.mark.parametrize("name", ["settings", "seed", "policies", "outcomes", "anchors", "choices",
                                  "hyper", "decay", "factored", "mode", "curvature"])  # fmt: skip
def test_part_of_a_wrong_type_is_refused(name: str, value: object) -> None:
    record = json.loads(save(some_state()))
    if (name, value) in [("seed", 3), ("decay", None), ("factored", 3)]:
        return
    with pytest.raises(ValueError, match="expected"):
        load(json.dumps({**record, name: value}))


@pytest.mark.parametrize("part", ["forward", "inverse", "query", "policy_dim", "outcome_dim"])
@pytest.mark.parametrize("value", [None, 3.5, "text", [], -1])
def test_settings_of_a_wrong_type_are_refused(part: str, value: object) -> None:
    record = json.loads(save(some_state()))
    with pytest.raises(ValueError):
        load(json.dumps({**record, "settings": {**record["settings"], part: value}}))


@pytest.mark.parametrize("given", [None, 7, b"{}", "[" * 100_000])
def test_load_of_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        load(given)


def test_text_that_is_no_json() -> None:
    with pytest.raises(ValueError):
        load(save(some_state())[:-20])
