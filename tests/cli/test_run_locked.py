"""`session run` while another program holds the file: it goes on, and says what is not stored."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfihilo.cli.interactive.dialogue import Dialogue
from sfihilo.experiment import Lab
from sfihilo.experiment.log import schema
from tests.cli.test_long_pauses import SPACE, Keys
from tests.experiment.people import PLAIN


def test_typed_outcomes_are_shown_again_and_the_loop_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "PATIENCE", 0.1)
    with (
        Lab(folder / "sfihilo.db") as lab,
        closing(sqlite3.connect(folder / "sfihilo.db", isolation_level=None)) as other,
    ):
        session = lab.create(SPACE, "P01", 1, settings=PLAIN)
        session.start(session.suggest({"torque": 10.0}))
        lines = iter([("0.25", "BEGIN IMMEDIATE"), ("0.5", "COMMIT")])

        class Typed(Keys):
            """Another program holds the file while the first outcome is typed, and later again."""

            def line(self, prompt: str) -> str:
                text, statement = next(lines)
                other.execute(statement)
                return text

            def show(self, *shown: str) -> None:
                super().show(*shown)
                if "in use by another writer" in "".join(shown) and not self.keys[1:]:
                    other.execute("COMMIT")

        terminal = Typed("\n", lambda: other.execute("BEGIN EXCLUSIVE"), "?", "q")
        Dialogue(session, terminal, 0).run()
        said = " ".join(terminal.shown)
        assert "Not stored: o=0.25" in said
        assert said.count("is in use by another writer") == 2
        assert session.record.trial(1).outcome == {"o": 0.5}
