"""Results on disk: one Parquet file per unit, renamed into place: existing means done.

    <results>/units/<preset>/<unit>.parquet     raw, one per unit, not committed
    <results>/<preset>/<condition>.parquet      packed, one per condition, small enough to commit
    <results>/<preset>/study.json               what all units share: queries, seed, preset ...
    <results>/<preset>/timings.jsonl            wall times, which are not reproducible
    <results>/units/<preset>/.lock              held by the run that fills it (`folder_lock.py`)

A unit is done if it is complete in either place. The schema of each table contains the version, the
commit, the settings, the seeds and the environment that computed it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sfihilo.study.design.conditions import Unit
from sfihilo.study.run.description import SHARED, shared

_META = b"sfihilo"
COLUMNS = ("preset", "condition", "rule", "user", "query", "metric", "value")


def encode(table: pd.DataFrame, about: Mapping[str, Any]) -> bytes:
    """A Parquet file as bytes; the same table and description give the same bytes."""
    fields: list[tuple[str, pa.DataType]] = [
        ("query", pa.int32()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
    schema = pa.schema(fields, metadata={_META: json.dumps(about, sort_keys=True).encode()})
    arrays = [pa.array(table[name].to_numpy(), type=kind) for name, kind in fields]
    return _parquet(pa.table(arrays, schema=schema))


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # Values have random low digits, which byte streams compress and a dictionary does not.
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=9,
        use_dictionary=[name for name in table.column_names if name != "value"],
        column_encoding={"value": "BYTE_STREAM_SPLIT"},
    )
    return bytes(sink.getvalue())


class DamagedError(ValueError):
    """A file is not complete, although files are renamed into place when complete."""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rpartition("': ")[2].rstrip(".")
        raise DamagedError(
            f"{path} is damaged ({reason}); remove it, or take it from a copy: "
            "`sfihilo study run` then computes what is missing"
        ) from error


def decode(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A stored table and its description."""
    table = _table(path)
    return table.to_pandas(), _about(path, table.schema)


def _table(path: Path) -> pa.Table:
    with _reading(path):
        return pq.read_table(path)


def _own_about(path: Path) -> dict[str, Any]:
    """The description in a file, without reading its table."""
    with _reading(path):
        schema = pq.read_schema(path)
    return _about(path, schema)


def _about(path: Path, schema: pa.Schema) -> dict[str, Any]:
    raw = (schema.metadata or {}).get(_META)
    if raw is None:
        raise ValueError(f"{path}: not a table of a sfihilo study")
    about: dict[str, Any] = json.loads(raw)
    return about


def write_atomically(path: Path, content: bytes) -> None:
    """Writes the whole file under its name, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename must survive a power failure too
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Store:
    """The results of one preset."""

    results: Path
    preset: str

    @property
    def units(self) -> Path:
        return self.results / "units" / self.preset

    @property
    def packed(self) -> Path:
        return self.results / self.preset

    @property
    def study(self) -> Path:
        return self.packed / "study.json"

    @property
    def timings(self) -> Path:
        return self.packed / "timings.jsonl"

    def path(self, unit: Unit) -> Path:
        return self.units / f"{unit.key}.parquet"

    def write(self, unit: Unit, content: bytes) -> None:
        write_atomically(self.path(unit), content)

    def has(self, unit: Unit) -> bool:
        """Whether the unit's own file exists and its end is intact."""
        return _is_whole(self.path(unit))

    def done(self) -> set[str]:
        """Keys of the units that are stored."""
        keys = {path.stem for path in self.units.glob("*.parquet") if _is_whole(path)}
        for path in sorted(self.packed.glob("*.parquet")):
            keys.update(about["key"] for about in _packed_units(path))
        return keys

    def agree(self, unit: Unit) -> None:
        """Refuses to mix units of different budgets, seeds or evaluations in one folder."""
        wanted = json.loads(json.dumps(shared(unit)))
        found = self.common()
        # A folder of an older version may not state everything.
        names = [name for name in wanted if name in found and found[name] != wanted[name]]
        if names:
            raise ValueError(
                f"{self.packed} holds a study with other {', '.join(names)} "
                f"(there: {[found.get(name) for name in names]}, "
                f"asked for: {[wanted[name] for name in names]}); choose another folder with --out"
            )
        self._note_study(wanted)

    def common(self) -> dict[str, Any]:
        """What all units share, from study.json, or else from the units' own descriptions."""
        if self.study.exists():
            with _reading(self.study):
                noted: dict[str, Any] = json.loads(self.study.read_text())
            return noted
        return _common(self._abouts())

    def _note_study(self, common: Mapping[str, Any]) -> None:
        if not self.study.exists():
            text = json.dumps(common, indent=1, sort_keys=True) + "\n"
            write_atomically(self.study, text.encode())

    def note_timing(self, unit: Unit, seconds: float) -> None:
        """Appends the wall time of a unit; times are never part of the reproducible tables."""
        self.timings.parent.mkdir(parents=True, exist_ok=True)
        line = {
            "condition": unit.condition.name,
            "rule": unit.rule,
            "user": unit.user,
            "queries": unit.queries,
            "seconds": round(seconds, 3),
        }
        # A kill may have truncated the last line: begin on a new one.
        cut = self.timings.exists() and not self.timings.read_text().endswith("\n")
        with self.timings.open("a") as file:
            file.write(("\n" if cut else "") + json.dumps(line) + "\n")

    def read_timings(self) -> list[dict[str, Any]]:
        if not self.timings.exists():
            return []
        lines = self.timings.read_text().splitlines()
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue  # a line truncated by a kill; only an estimate is lost
        return found

    def origins(self) -> set[tuple[str, str, str]]:
        """The versions, commits and processors that computed the stored units."""
        return {
            (about["version"], about["commit"], about["environment"]["cpu"])
            for about in self._abouts()
            if "commit" in about
        }

    def _abouts(self) -> list[dict[str, Any]]:
        """The descriptions of all stored units, packed ones first."""
        packed = [about for path in _sorted(self.packed) for about in _packed_units(path)]
        return packed + [_own_about(path) for path in _sorted(self.units)]

    def read(self) -> pd.DataFrame:
        """All results of the preset, packed and raw, as one tidy table with COLUMNS."""
        packed = [_table(path).to_pandas() for path in _sorted(self.packed)]
        raw = [_labelled(*decode(path)) for path in _sorted(self.units)]
        fresh = {(table["condition"][0], table["rule"][0], table["user"][0]) for table in raw}
        tables = [_without(table, fresh) for table in packed] + raw
        if not tables:
            return pd.DataFrame({name: [] for name in COLUMNS})
        table = pd.concat(tables, ignore_index=True)
        table = table.assign(preset=self.preset).astype({"user": int, "query": int})
        order = ["condition", "rule", "user", "query"]
        return table.sort_values(order, kind="stable", ignore_index=True)[list(COLUMNS)]

    def pack(self) -> list[Path]:
        """Packs the raw units into one small table per condition; raw files stay.

        If study.json is missing (units were copied from elsewhere), it is written from the units,
        unless they are of an older version, which states less.
        """
        common = _common([self.common(), *self._abouts()])
        raw = [decode(path) for path in _sorted(self.units)]
        names = sorted({about["condition"]["name"] for _, about in raw})
        written = []
        for name in names:
            fresh = [(table, about) for table, about in raw if about["condition"]["name"] == name]
            path = self.packed / f"{name}.parquet"
            content = _pack(path, fresh)
            if not path.exists() or path.read_bytes() != content:
                write_atomically(path, content)
            written.append(path)
        if common.keys() >= set(SHARED):
            self._note_study(common)
        return written


def _common(abouts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the descriptions have in common; refuses descriptions of two studies."""
    common: dict[str, Any] = {}
    for about in abouts:
        for name in SHARED:
            if name in about and common.setdefault(name, about[name]) != about[name]:
                raise ValueError(
                    f"{about.get('key', 'a unit')} is of another study than the others here: "
                    f"expected {name} {common[name]}, got {about[name]}"
                )
    return common


def read_results(results: Path) -> pd.DataFrame:
    """The results of all presets in a folder, as one tidy table with COLUMNS."""
    folders = [path for path in (results, results / "units") if path.is_dir()]
    presets = {child.name for path in folders for child in path.iterdir() if child.is_dir()}
    tables = [Store(results, preset).read() for preset in sorted(presets)]
    tables = [table for table in tables if len(table)]
    if not tables:
        raise ValueError(f"{results}: no results of a study here")
    return pd.concat(tables, ignore_index=True)


def export(results: Path, out: Path) -> list[Path]:
    """Writes one CSV file per preset and condition."""
    results_table = read_results(results)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for (preset, condition), table in results_table.groupby(["preset", "condition"]):
        path = out / f"{preset}-{condition}.csv"
        table.to_csv(path, index=False)
        written.append(path)
    return written


def _is_whole(path: Path) -> bool:
    """Whether the end of a file, which contains its description, is intact."""
    try:
        _own_about(path)
    except ValueError:
        return False
    return True


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def _labelled(table: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    return table.assign(
        condition=about["condition"]["name"], rule=about["rule"], user=about["user"]
    )


def _without(table: pd.DataFrame, keys: set[tuple[str, str, int]]) -> pd.DataFrame:
    """Rows of the units that are not in ``keys``; a raw file replaces its packed copy."""
    if not keys:
        return table
    names = zip(table["condition"], table["rule"], table["user"], strict=True)
    return table[[name not in keys for name in names]]


def _packed_units(path: Path) -> list[dict[str, Any]]:
    about = _own_about(path)
    common: list[dict[str, Any]] = about["common"]
    return [{**common[unit["common"]], **unit} for unit in about["units"]]


def _pack(path: Path, fresh: list[tuple[pd.DataFrame, dict[str, Any]]]) -> bytes:
    tables = [_labelled(table, about) for table, about in fresh]
    abouts = [about for _, about in fresh]
    if path.exists():
        keys = {about["key"] for about in abouts}
        names = {(about["condition"]["name"], about["rule"], about["user"]) for about in abouts}
        tables.append(_without(_table(path).to_pandas(), names))
        abouts += [about for about in _packed_units(path) if about["key"] not in keys]
    table = pd.concat(tables, ignore_index=True)
    table = table.sort_values(["rule", "user", "query"], kind="stable", ignore_index=True)
    fields: list[tuple[str, pa.DataType]] = [
        ("condition", pa.string()),
        ("rule", pa.string()),
        ("user", pa.int32()),
        ("query", pa.int32()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
    about = json.dumps(_fold(abouts), sort_keys=True).encode()
    schema = pa.schema(fields, metadata={_META: about})
    arrays = [pa.array(table[name].to_numpy(), type=kind) for name, kind in fields]
    return _parquet(pa.table(arrays, schema=schema))


def _fold(abouts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Descriptions of many units, with shared parts stored once."""
    own = ("key", "user", "user_seed", "learner_seed")
    common: list[dict[str, Any]] = []
    units = []
    for about in sorted(abouts, key=lambda about: str(about["key"])):
        rest = {name: value for name, value in about.items() if name not in (*own, "common")}
        if rest not in common:
            common.append(rest)
        units.append({**{name: about[name] for name in own}, "common": common.index(rest)})
    return {"common": common, "units": units}
