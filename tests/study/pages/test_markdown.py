"""The sentence about results of an earlier default preset."""

import json
from pathlib import Path

from sfihilo.study.pages.markdown import earlier_preset
from sfihilo.study.run.description import preset_digest
from sfihilo.study.run.result_files import Store
from tests.study.invented import note_digest


def test_only_folders_of_another_digest_are_named(tmp_path: Path) -> None:
    today, first, second = (tmp_path / name for name in ("today", "first", "second"))
    for folder, digest in ((today, preset_digest("default")), (first, "1"), (second, "2")):
        folder.mkdir()
        note_digest(folder, digest)
    assert list(earlier_preset([today, tmp_path / "missing"])) == []
    text = "".join(earlier_preset([first, today, second]))
    assert (
        f"in `{first.as_posix()}` and `{second.as_posix()}` were computed with an earlier" in text
    )
    assert today.as_posix() not in text


def test_results_without_a_digest_are_of_an_earlier_preset(tmp_path: Path) -> None:
    path = Store(tmp_path, "default").study
    path.parent.mkdir()
    path.write_text(json.dumps({"queries": 60}), encoding="utf-8")
    assert "earlier version" in "".join(earlier_preset([tmp_path]))
