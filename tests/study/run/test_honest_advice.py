"""`tools.honest_advice` continues a file only with the preset that began it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from sfihilo.study.run.description import preset_digest
from tools import honest_advice

STORED = Path(__file__).parents[3] / "results" / "honest"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The people that are computed, each in no time."""
    people: list[int] = []

    def rows(shape: str, person: int) -> Iterator[dict[str, object]]:
        people.append(person)
        yield {"shape": shape, "person": person, "preset_digest": preset_digest("default")}

    monkeypatch.setattr(honest_advice, "rows", rows)
    return people


def test_run_goes_on_where_it_stopped(tmp_path: Path, asked: list[int]) -> None:
    out = tmp_path / "out.csv"
    honest_advice.run(out, "2x2", 2)
    honest_advice.run(out, "2x2", 4)
    assert asked == [0, 1, 2, 3]
    assert pd.read_csv(out)["person"].tolist() == asked


@pytest.mark.parametrize("digest", ["7ddea919cb9d", "92237e705863", None])
def test_file_of_another_preset_is_refused_and_stays(
    tmp_path: Path, asked: list[int], digest: str | None
) -> None:
    out = tmp_path / "out.csv"
    old = pd.DataFrame({"shape": ["2x2"], "person": [0]})
    (old if digest is None else old.assign(preset_digest=digest)).to_csv(out, index=False)
    before = out.read_bytes()
    words = f"expected rows of today's default preset .*, got {digest or 'none'}; choose another"
    with pytest.raises(ValueError, match=words):
        honest_advice.run(out, "2x2", 3)
    assert asked == []
    assert out.read_bytes() == before


def test_rows_name_their_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(honest_advice, "AT", (2,))
    monkeypatch.setattr(honest_advice, "looked_at", lambda *_: {"truth": 1.0})
    made = list(honest_advice.rows("2x2", 0))
    assert [row["goal"] for row in made] == ["best", "understand"]
    assert {row["preset_digest"] for row in made} == {preset_digest("default")}


@pytest.mark.parametrize("shape", ["2x2", "4x4", "8x8"])
def test_stored_rows_are_of_one_version(shape: str) -> None:
    table = pd.read_csv(STORED / f"{shape}.csv", dtype={"preset_digest": str})
    assert table["preset_digest"].nunique() == 1
    assert table["preset_digest"].notna().all()


@pytest.mark.parametrize("shape", ["4", "x4", "4x0", "four"])
def test_shape_that_is_none_is_refused_before_anything_runs(
    tmp_path: Path,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shape: str,
) -> None:
    out = tmp_path / "out.csv"
    monkeypatch.setattr("sys.argv", ["honest_advice", "run", str(out), "--shape", shape])
    with pytest.raises(SystemExit) as end:
        honest_advice.main()
    assert end.value.code == 2
    assert "expected parameters x outcomes" in capsys.readouterr().err
    assert not asked
    assert not out.exists()
