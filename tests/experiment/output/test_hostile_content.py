"""Reports and exports of hostile or damaged content: nothing is overwritten, nothing escapes."""

import csv
import json
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sfihilo.experiment import Lab, Outcome, Parameter, Session, Space
from sfihilo.experiment.insight import drives
from sfihilo.experiment.log.event import canonical, fingerprint
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.output.export import export, restore
from sfihilo.experiment.output.report import report, write_report
from sfihilo.experiment.output.text import cell, printable, terminal
from tests.experiment.people import EXOSKELETON, LEAN, finish

HOSTILE = [
    "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "\x1b[2J\x1b]0;x\x07", "\udcff\udc80", "$x",
    "", "[m/s]", "\r\n=1",
    # from here on only in the slow run
    "+1+1", "-2+3", "@SUM(A1)", "\t=1", "[red]x[/red]", "a|b", "\x00", "\u202eabc", "$\\frac",
    "a\u2028b", "../../x", "\\", "x" * 500, "\U0001f600",
]  # fmt: skip


@pytest.fixture
def session(lab: Lab) -> Session:
    session = lab.create(EXOSKELETON, "P1", 1, settings=LEAN)
    for step in range(3):
        finish(session, "new", 0.1 * step)
    return session


def test_report_overwrites_nothing_but_a_report(session: Session, folder: Path) -> None:
    (folder / "thesis.html").write_text("<html>my thesis</html>")
    (folder / "space.toml").write_text("[policy.x]")
    (folder / "folder").mkdir()
    for name in ("lab.db", "thesis.html", "space.toml", "folder"):
        path = folder / name
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(ValueError, match="expected a new name"):
            write_report(session, path)
        assert path.is_dir() or path.read_bytes() == before
    assert write_report(session, folder / "report.html") == folder / "report.html"
    assert write_report(session, folder / "report.html").read_text().startswith("<!doctype html>")
    with Log.open(folder / "lab.db") as log:
        assert log.verify().ok


def test_report_that_fails_leaves_the_earlier_one(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(session, folder / "report.html")
    before = path.read_bytes()

    def full(*_: object, **__: object) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        write_report(session, path)
    assert path.read_bytes() == before
    assert [other.name for other in folder.iterdir() if "partial" in other.name] == []


@pytest.mark.parametrize("target", ["log.jsonl", "P1-1/trials.csv", "P1-1/README.md"])
def test_export_overwrites_nothing_but_an_export(lab: Lab, session: Session, target: str) -> None:
    folder = lab.log.path.parent / "out"
    export(lab, folder)
    export(lab, folder)  # its own files it may
    path = folder / target
    path.write_text("my notes")
    with pytest.raises(ValueError, match="expected a new name"):
        export(lab, folder)
    assert path.read_text() == "my notes"
    for made in folder.rglob("*.csv"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o600 or made == path


def test_export_reads_the_record_once(
    lab: Lab, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer adds an event whenever the log was read: all files still agree."""
    run = Log._run

    def disturbed(self: Log, work: Any, begin: str | None = "BEGIN") -> Any:
        result = run(self, work, begin)
        if begin == "BEGIN":
            run(self, lambda c: None)
            monkeypatch.setattr(Log, "_run", run)
            session.note("meanwhile")
            monkeypatch.setattr(Log, "_run", disturbed)
        return result

    monkeypatch.setattr(Log, "_run", disturbed)
    folder = lab.log.path.parent / "out"
    export(lab, folder, formats=["csv", "jsonl", "bids"])
    monkeypatch.setattr(Log, "_run", run)
    lines = (folder / "log.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    assert (
        f"{len(lines)} events and ends with hash `{last['hash']}`"
        in (folder / "P1-1" / "README.md").read_text()
    )


def test_report_is_of_one_moment(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfihilo.experiment.output import report as module

    written: list[object] = []

    def disturbed(*given: Any) -> Any:
        if not written:
            written.append(session.note("meanwhile"))
        return drives(*given)

    monkeypatch.setattr(module, "drives", disturbed)
    html = report(session)
    assert written
    assert "meanwhile" not in html
    assert session.events[-2].hash in html  # the last event that it tells of


def foreign(path: Path, changes: list[dict[str, Any]]) -> None:
    """A log that somebody else wrote: the same chain, with changed fields and new hashes."""
    with Log.open(path) as log:
        events = list(log.events())
    lines: list[str] = []
    previous = None
    for event in events:
        for change in changes:
            fields = {**event.to_dict(), **{k: v for k, v in change.items() if k != "opened"}}
            if event.kind == "opened":
                fields["body"] = {**fields["body"], **change.get("opened", {})}
            fields["seq"] = len(lines) + 1
            fields["previous"] = previous or events[0].previous
            fields["hash"] = previous = fingerprint(fields, canonical(fields["body"]))
            lines.append(canonical(fields))
    text = path.with_suffix(".jsonl")
    text.write_text("\n".join(lines) + "\n")
    path.unlink()
    restore(text, path)


def test_session_name_of_a_foreign_log_leads_nowhere(folder: Path) -> None:
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    with Lab(inner / "lab.db") as lab:
        finish(lab.create(EXOSKELETON, "P1", 1, settings=LEAN))
    names = ["../../escaped", str(folder / "absolute"), "..", "bids", "BIDS", "log.jsonl", "a/b"]
    foreign(inner / "lab.db", [{"session": name} for name in names])
    before = {path for path in folder.rglob("*") if inner not in path.parents}
    with Lab(inner / "lab.db") as lab:
        written = export(lab, inner / "out", formats=["csv", "jsonl", "bids"])
    assert {path for path in folder.rglob("*") if inner not in path.parents} == before
    assert len({path for path in written if path.name == "trials.csv"}) == len(names)
    for path in written:
        assert path.resolve().is_relative_to((inner / "out").resolve())


@pytest.mark.parametrize(
    "opened",
    [{"space": {}}, {"participant": ["P"]}, {"protocol": 3}, {"space": None}, {"settings": 7},
     {"protocol": {"other": 1}}, {"space": {**EXOSKELETON.to_dict(), "policy": [{"name": "x"}]}}],
)  # fmt: skip
def test_session_that_cannot_be_read_is_stepped_over_and_named(
    lab: Lab, session: Session, opened: dict[str, Any]
) -> None:
    path = lab.log.path
    lab.close()
    foreign(path, [{"session": "good"}, {"session": "bad", "opened": opened}])
    with Lab(path) as again:
        records, unreadable = again.records()
        assert "good" in records
        written = export(again, path.parent / "out")
        assert (path.parent / "out" / "good" / "trials.csv") in written
        if "bad" in unreadable:
            assert "'bad' cannot be read" in unreadable["bad"]
            with pytest.raises(ValueError, match="'bad' cannot be read"):
                again.record("bad")
            with pytest.raises(ValueError, match="'bad' cannot be read"):
                export(again, path.parent / "more", ["bad"])
        if "settings" not in opened:
            assert "'bad' cannot be read" in (path.parent / "out" / "not-exported.txt").read_text()


@pytest.mark.parametrize(
    "text", [*HOSTILE[:8], *(pytest.param(text, marks=pytest.mark.slow) for text in HOSTILE[8:])]
)
def test_hostile_text_blocks_nothing_and_escapes_nowhere(folder: Path, text: str) -> None:
    """In every text field: create, note, veto, export, report, verify."""
    space = Space(
        {"x": Parameter(0, 1, unit="Nm")}, {"o": Outcome(0, 1, unit="s", soft=(0.4, 0.5))}
    )
    path = folder / "lab.db"
    with Lab(path) as lab:
        session = lab.create(space, "P1", 1, settings=LEAN)
        finish(session, "new")
        session.note(text)
        session.veto(session.ask(), text)
        session.abort(session.ask(), text)
        for step in range(3):
            finish(session, "new", 0.2 * step)
        with pytest.raises(ValueError, match="measurement refused"):
            session.measure(session.ask(), {text: 1, "o": 0.3})
    described = space.to_dict()
    described["policy"][0]["unit"] = described["outcomes"][0]["unit"] = text
    actor = text if text.isprintable() and 0 < len(text) <= 200 else None
    foreign(path, [{"actor": actor, "opened": {"space": described, "participant": text}}])
    with Lab(path) as lab:
        assert lab.verify().ok
        written = export(lab, folder / "out", formats=["csv", "parquet", "jsonl", "bids"])
        page = write_report(lab.open("P1-1"), folder / "report.html").read_text()
    restore(folder / "out" / "log.jsonl", folder / "again.db")
    tags = Tags(page)
    assert "script" not in tags.seen
    for made in written:
        if made.suffix in (".csv", ".tsv"):
            check_table(made, "\t" if made.suffix == ".tsv" else ",")
    for shown in (page, (folder / "out" / "P1-1" / "README.md").read_text()):
        assert not any(character in shown for character in "\x00\x1b\x07\u202e")


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


def check_table(path: Path, delimiter: str) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert len({len(row) for row in rows}) == 1
    for value in (value for row in rows for value in row):
        try:
            float(value)
        except ValueError:
            assert not value.lstrip().startswith(("=", "+", "-", "@")), value


def test_text_for_a_terminal_shows_brackets_and_no_control_characters() -> None:
    from rich.console import Console

    for text in set(HOSTILE) - {"\\"}:  # Rich itself doubles a last backslash
        console = Console(width=600, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        console.print(terminal(text), end="", highlight=False, soft_wrap=True)
        assert console.export_text() == printable(text), text
        console.file.close()
    assert terminal("1 [m/s]").replace("\\", "") == "1 [m/s]"


def test_cell_keeps_ordinary_text() -> None:
    for text in ("P07", "% stride", "1/min", "a, b", "W/kg", "ein Ü"):
        assert cell(text) == text
    assert cell("=1") == "'=1"
    assert cell(" -1") == "' -1"
