"""Results on disk: whole or not there, the same bytes every time, packed without loss."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import threadpoolctl

from sfihilo import provenance
from sfihilo.settings import Settings
from sfihilo.study.design.conditions import Unit
from sfihilo.study.run import description
from sfihilo.study.run import result_files as st
from tests.study.tiny import EVALUATION, PEOPLE, PROVENANCE, tiny_unit, tiny_units

TABLE = pd.DataFrame(
    {"query": [16, 16, 25], "metric": ["a", "b", "a"], "value": [0.1, 1 / 3, 1e-300]}
)


def fill(store: st.Store, units: list[Unit]) -> None:
    for unit in units:
        table = TABLE.assign(value=TABLE["value"] + unit.user)
        store.write(unit, st.encode(table, description.describe(unit, PROVENANCE)))


@pytest.fixture
def store(tmp_path: Path) -> st.Store:
    return st.Store(tmp_path / "results", "paper")


def test_a_table_reads_back_exactly_with_what_made_it(store: st.Store) -> None:
    unit = tiny_unit("random", user=3)
    store.write(unit, st.encode(TABLE, description.describe(unit, PROVENANCE)))
    table, about = st.decode(store.path(unit))
    pd.testing.assert_frame_equal(table, TABLE, check_dtype=False)
    assert about["key"] == unit.key
    assert about["settings"]["rule"] == "random"
    assert about["commit"] == "test"
    assert isinstance(about["user_seed"], int)


def test_description_of_a_unit_contains_evaluation_and_user_settings(store: st.Store) -> None:
    fill(store, [tiny_unit()])
    _, about = st.decode(store.path(tiny_unit()))
    assert about["lean"] is True
    assert about["evaluation"]["pairs_per_bin"] == EVALUATION.pairs_per_bin
    assert about["users"]["calibration"] == PEOPLE.calibration
    assert set(about["evaluation"]) == set(asdict(EVALUATION))


def test_environment_of_a_unit_names_the_packages_that_its_last_digits_depend_on() -> None:
    packages = {"numpy", "scipy", "optuna", "pandas", "pyarrow"}
    about = description.describe(tiny_unit(), PROVENANCE)
    assert set(about["environment"]) == {"python", *packages, "blas", "system", "cpu"}


def test_environment_of_a_unit_does_not_depend_on_a_blas_that_is_loaded_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = description.describe(tiny_unit(), PROVENANCE)
    other = {"user_api": "blas", "internal_api": "mkl", "version": "2030"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [other])
    assert provenance.blas() == "mkl 2030"
    assert description.describe(tiny_unit(), PROVENANCE) == before


def test_the_same_content_gives_the_same_bytes() -> None:
    about = description.describe(tiny_unit(), PROVENANCE)
    assert st.encode(TABLE, about) == st.encode(TABLE.copy(), dict(reversed(about.items())))


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        st.write_atomically(tmp_path / "x.parquet", b"half")
    assert list(tmp_path.iterdir()) == []


def test_a_partial_file_is_not_done(store: st.Store) -> None:
    store.units.mkdir(parents=True)
    (store.units / ".tiny--random--u000.parquet.partial").write_bytes(b"half")
    assert store.done() == set()


def test_a_damaged_unit_is_not_done_and_is_named(store: st.Store) -> None:
    units = tiny_units()
    fill(store, units)
    damaged = store.path(units[0])
    for content in (damaged.read_bytes()[:-100], b"", b"something else"):
        damaged.write_bytes(content)
        assert store.done() == {unit.key for unit in units[1:]}
        assert not store.has(units[0])
        for look in (store.read, store.pack):
            with pytest.raises(st.DamagedError, match=damaged.name):
                look()


def test_a_damaged_pack_is_named(store: st.Store) -> None:
    fill(store, tiny_units())
    (packed, *_) = store.pack()
    packed.write_bytes(packed.read_bytes()[:200])
    for look in (store.read, store.pack, store.done):
        with pytest.raises(st.DamagedError, match=packed.name):
            look()


def test_a_damaged_study_json_is_named(store: st.Store) -> None:
    store.agree(tiny_unit())
    store.study.write_text(store.study.read_text()[:20])
    with pytest.raises(st.DamagedError, match=r"study\.json"):
        store.agree(tiny_unit())


def test_packed_units_are_done_in_a_clean_clone(store: st.Store) -> None:
    units = tiny_units(3)
    fill(store, units)
    before = store.read()
    store.pack()
    for path in store.units.iterdir():
        path.unlink()
    assert store.done() == {unit.key for unit in units}
    pd.testing.assert_frame_equal(store.read(), before)


def test_packing_again_adds_and_replaces(store: st.Store) -> None:
    fill(store, tiny_units(2))
    (path,) = store.pack()
    once = path.read_bytes()
    assert store.pack() == [path]
    assert path.read_bytes() == once
    for raw in store.units.iterdir():
        raw.unlink()
    changed = tiny_unit("random", user=1)
    table = TABLE.assign(value=[7.0, 8.0, 9.0])
    store.write(changed, st.encode(table, description.describe(changed, PROVENANCE)))
    fill(store, [tiny_unit("random", user=5)])
    store.pack()
    read = store.read()
    assert set(read["user"]) == {0, 1, 5}
    own = read[(read["user"] == 1) & (read["rule"] == "random")]
    assert own["value"].tolist() == [7.0, 8.0, 9.0]
    assert len(read) == 5 * len(TABLE)
    assert len(store.done()) == 5


def test_packing_keeps_every_description(store: st.Store) -> None:
    fill(store, tiny_units(2))
    abouts = [st.decode(path)[1] for path in sorted(store.units.iterdir())]
    original = {about["key"]: about for about in abouts}
    (path,) = store.pack()
    for about in st._packed_units(path):
        about.pop("common")
        assert about == original[about["key"]]


def test_a_full_pack_is_small(store: st.Store) -> None:
    """1,200 units of 350 rows must stay below 10 MB: below 8 kB each with descriptions."""
    queries = [q for q in range(25, 1001, 40) for _ in range(14)]
    names = [f"metric_{i}" for _ in range(25) for i in range(14)]
    for unit in tiny_units(20):
        values = pd.Series(range(350)).mul(0.7310585).add(unit.user).pow(0.5)
        table = pd.DataFrame({"query": queries[:350], "metric": names[:350], "value": values})
        store.write(unit, st.encode(table, description.describe(unit, PROVENANCE)))
    (path,) = store.pack()
    assert path.stat().st_size < 40 * 8000


def test_a_folder_holds_one_kind_of_study(store: st.Store) -> None:
    store.agree(tiny_unit(queries=12))
    store.agree(tiny_unit("boundary_lookahead", user=4, queries=12))
    with pytest.raises(ValueError, match=r"other queries .*12.*20.*--out"):
        store.agree(tiny_unit(queries=20))


def test_units_of_a_changed_preset_are_not_mixed(
    store: st.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, tiny_units(1))
    paper = Settings.paper()

    def changed(**changes: Any) -> None:
        settings = replace(paper, **changes)
        monkeypatch.setattr(description, "preset_settings", lambda _: settings)

    changed(pairs=replace(paper.pairs, balance=0.9))  # none of its rules looks at that
    store.agree(tiny_unit())
    changed(forward=replace(paper.forward, warm_up=20))
    with pytest.raises(ValueError, match=r"other preset_digest .*--out"):
        store.agree(tiny_unit())


def without(store: st.Store, *names: str) -> None:
    """Make the raw units those of a version that did not say so much yet."""
    for path in store.units.glob("*.parquet"):
        table, about = st.decode(path)
        rest = {name: value for name, value in about.items() if name not in names}
        path.write_bytes(st.encode(table, rest))


def test_pack_without_study_json_writes_it_from_the_units(store: st.Store) -> None:
    store.agree(tiny_unit())
    noted = store.study.read_bytes()
    fill(store, tiny_units(2))
    store.study.unlink()
    store.pack()
    assert store.study.read_bytes() == noted


def test_units_of_an_older_version_are_read_and_packed_but_cannot_give_their_study(
    store: st.Store,
) -> None:
    fill(store, tiny_units(1))
    without(store, "evaluation", "users", "lean", "preset_digest", "environment", "commit")
    before = store.read()
    store.pack()
    assert not store.study.exists()
    assert store.common() == {"queries": 12, "study_seed": 2026}
    assert store.origins() == set()
    fill(store, [tiny_unit(user=7)])  # of today's version, beside them
    store.pack()
    after = store.read()
    pd.testing.assert_frame_equal(after[after["user"] == 0].reset_index(drop=True), before)
    assert json.loads(store.study.read_text())["lean"] is True


def test_agree_without_study_json_uses_the_descriptions_of_units(store: st.Store) -> None:
    fill(store, tiny_units(1))
    with pytest.raises(ValueError, match=r"other queries .*12.*20.*--out"):
        store.agree(tiny_unit(queries=20))
    assert not store.study.exists()
    store.agree(tiny_unit())
    assert store.study.exists()


def test_units_of_two_studies_are_not_packed(store: st.Store) -> None:
    fill(store, [tiny_unit(), tiny_unit(user=1, queries=20)])
    with pytest.raises(ValueError, match=r"u001 is of another study .* queries 12, got 20"):
        store.pack()
    assert not store.packed.exists()


def test_units_of_another_study_than_the_folder_says_are_not_packed(store: st.Store) -> None:
    store.agree(tiny_unit(queries=20))
    fill(store, [tiny_unit()])
    with pytest.raises(ValueError, match=r"u000 is of another study .* queries 20, got 12"):
        store.pack()
    assert [path.name for path in store.packed.iterdir()] == ["study.json"]


def test_timings_after_a_truncated_line_are_read(store: st.Store) -> None:
    store.note_timing(tiny_unit(), 1.5)
    with store.timings.open("a") as file:
        file.write('{"condition": "ti')
    assert store.read_timings() == [
        {"condition": "tiny", "rule": "random", "user": 0, "queries": 12, "seconds": 1.5}
    ]
    store.note_timing(tiny_unit(user=1), 2.5)
    assert [timing["seconds"] for timing in store.read_timings()] == [1.5, 2.5]


def test_results_of_all_presets_and_export(tmp_path: Path) -> None:
    results = tmp_path / "results"
    fill(st.Store(results, "paper"), tiny_units(2))
    fill(st.Store(results, "default"), [tiny_unit(preset="default")])
    st.Store(results, "paper").pack()
    (results / "figures").mkdir()
    table = st.read_results(results)
    assert tuple(table.columns) == st.COLUMNS
    assert table.groupby("preset").size().to_dict() == {"default": 3, "paper": 12}
    written = st.export(results, tmp_path / "csv")
    assert [path.name for path in written] == ["default-tiny.csv", "paper-tiny.csv"]
    pd.testing.assert_frame_equal(
        pd.read_csv(written[1]),
        table[table["preset"] == "paper"].reset_index(drop=True),
        check_dtype=False,
    )


def test_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results"):
        st.read_results(tmp_path)
    with pytest.raises(ValueError, match="no results"):
        st.export(tmp_path, tmp_path / "csv")
    assert not (tmp_path / "csv").exists()


def test_foreign_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    TABLE.to_parquet(path)
    with pytest.raises(ValueError, match="not a table of a sfihilo study"):
        st.decode(path)


def test_study_json_is_readable(store: st.Store) -> None:
    store.agree(tiny_unit())
    record = json.loads((store.packed / "study.json").read_text())
    assert record["queries"] == 12
    assert record["study_seed"] == 2026
