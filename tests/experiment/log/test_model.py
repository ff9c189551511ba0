"""The log against a model of it: lists and a dictionary. Retries, conflicts, races, reopenings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sfihilo.experiment.log.errors import KeyConflictError, StaleError
from sfihilo.experiment.log.store import Log
from tests.experiment.torture.children import fast_folder

SESSIONS = st.sampled_from(["a", "b"])
KEYS = st.none() | st.sampled_from(["k1", "k2", "k3"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=5)
BODIES = st.dictionaries(st.text(max_size=3), LEAVES | st.lists(LEAVES, max_size=2), max_size=2)


class LogAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.context = fast_folder()
        self.path = self.context.__enter__() / "study.db"
        self.log = Log.open(self.path)
        self.other = Log.open(self.path)
        self.written: list[tuple[str, str | None, str]] = []

    def teardown(self) -> None:
        self.log.close()
        self.other.close()
        self.context.__exit__(None, None, None)

    def count(self, session: str) -> int:
        return sum(name == session for name, _, _ in self.written)

    @rule(session=SESSIONS, key=KEYS, body=BODIES, ahead=st.sampled_from([None, None, 0, 0, 1, -1]))
    def append(
        self, session: str, key: str | None, body: dict[str, Any], ahead: int | None
    ) -> None:
        text = json.dumps(body, sort_keys=True)
        stored = {name: said for owner, name, said in self.written if owner == session and name}
        current = self.count(session)
        expected = None if ahead is None else current + ahead
        if key is not None and stored.get(key, text) != text:
            with pytest.raises(KeyConflictError):
                self.log.append(session, "note", body, key=key, expected=expected)
            return
        if key not in stored and expected not in (None, current):
            with pytest.raises(StaleError, match=f"has {current} events"):
                self.log.append(session, "note", body, key=key, expected=expected)
            return
        event = self.log.append(session, "note", body, key=key, expected=expected)
        assert json.dumps(event.body, sort_keys=True) == text
        if key not in stored:
            assert event.number == current + 1
            self.written.append((session, key, text))
        assert key is None or self.other.find(session, key) == event

    @rule()
    def swap_writers(self) -> None:
        self.log, self.other = self.other, self.log

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = Log.open(self.path)

    @rule()
    def erase_somebody(self) -> None:
        self.log.set_identity("P07", {"name": "Ada"})
        assert self.other.get_identity("P07") == {"name": "Ada"}
        self.log.erase_identity("P07")

    @invariant()
    def reads_as_the_model(self) -> None:
        said = [
            (event.session, event.key, json.dumps(event.body, sort_keys=True))
            for event in self.other.events()
        ]
        assert said == self.written
        assert self.log.verify().ok


TestLogAgainstModel = LogAgainstModel.TestCase
TestLogAgainstModel.settings = settings(max_examples=15, stateful_step_count=20)
