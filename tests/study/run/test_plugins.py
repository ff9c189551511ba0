"""A user's own rule or reward features, resolved to what workers import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sfihilo.study.run.plugins import Plugin, resolve_rule

RULE = "from sfihilo.querying import random\n\ndef rule(situation):\n    ...\n"


def test_rule_file_with_the_name_of_a_loaded_module_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name.py").write_text(RULE, encoding="utf-8")
    try:
        found = resolve_rule(f"{tmp_path}/one/same_name.py:rule", ["elsewhere"])
        with pytest.raises(ValueError, match="another module is called same_name"):
            resolve_rule(f"{tmp_path}/two/same_name.py:rule", found.search_path)
    finally:
        sys.modules.pop("same_name", None)
    assert found == Plugin("same_name:rule", (str(tmp_path / "one"), "elsewhere"))


def test_resolving_a_rule_leaves_the_search_path_of_python_unchanged(tmp_path: Path) -> None:
    before = sys.path[:]
    (tmp_path / "other_name.py").write_text(RULE, encoding="utf-8")
    try:
        resolve_rule(f"{tmp_path}/other_name.py:rule", [])
    finally:
        sys.modules.pop("other_name", None)
    assert sys.path == before
