"""The words of the pages: every language has all of them, and the scripts use no others."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from sfihilo.console.shown.texts import languages, texts

CONSOLE = files("sfihilo.console")
SCRIPTS = [
    *CONSOLE.joinpath("static/js").iterdir(),
    *CONSOLE.joinpath("static/js/operator").iterdir(),
]
USED = re.compile(r"""\bt\(\s*["`]([a-z_.]+)["`]""")
CHOSEN = re.compile(r"""\bt\([^()]*\?\s*"([a-z_.]+)"\s*:\s*"([a-z_.]+)"\s*[,)]""")


def flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_english_and_german_are_there() -> None:
    assert {"en", "de"} <= set(languages())


@pytest.mark.parametrize("language", languages())
def test_every_language_has_every_text_with_the_same_names(language: str) -> None:
    english, other = dict(flat(texts("en"))), dict(flat(texts(language)))
    assert set(other) == set(english)
    assert [path for path in english if names_in(english[path]) != names_in(other[path])] == []
    assert [path for path, text in other.items() if not text.strip()] == []


def test_scripts_use_only_texts_that_exist() -> None:
    known = set(dict(flat(texts("en"))))
    used = set()
    for script in SCRIPTS:
        if script.name.endswith(".js"):
            source = script.read_text(encoding="utf-8")
            used |= {path for path in USED.findall(source) if "." in path}
            used |= {path for pair in CHOSEN.findall(source) for path in pair}
    assert len(used) > 60
    assert used - known == set()


def test_templates_and_styles_hold_no_inline_code() -> None:
    for template in CONSOLE.joinpath("templates").iterdir():
        source = template.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", source), template.name
        scripts = re.findall(r"<script([^>]*)>", source)
        assert all("src=" in each or "application/json" in each for each in scripts), template.name


def test_own_pages_name_no_other_host() -> None:
    for script in SCRIPTS:
        if script.name.endswith(".js"):
            found = set(re.findall(r"https?://[^\"'` ]+", script.read_text(encoding="utf-8")))
            assert found <= {"http://www.w3.org/2000/svg"}, script.name
