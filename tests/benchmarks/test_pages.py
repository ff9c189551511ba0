"""The figures of the benchmarks: their file, their tables, and the pages made of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import clock, publish, speed, study_time, tables
from benchmarks.peers import study as peers_study

ORIGIN = {
    "time": "2030-01-02T03:04:05Z",
    "commit": "abc1234",
    "processor": "Abacus",
    "python": "3.11",
    "numpy": "2",
    "scipy": "1",
    "load_average": 0.25,
}


@pytest.fixture
def latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "latest.json"
    monkeypatch.setattr(tables, "LATEST", path)
    return path


def test_figures_of_a_longer_run_are_removed_by_a_shorter_one(latest: Path) -> None:
    latest.write_text(json.dumps({"environment": ORIGIN, "checkpoint_tell_ms": {}}))
    tables.write_latest("peers", {**ORIGIN, "commit": "1"}, {"optuna_t200": 70.0})
    tables.write_latest("speed", ORIGIN, {"speedup_t250": 5.0, "speedup_t1000": 8.0})
    tables.write_latest("speed", {**ORIGIN, "commit": "2"}, {"speedup_t250": 6.0}, speed.FORGET)
    written = tables.read_latest()
    origins = written.pop("origins")
    assert written == {"optuna_t200": 70.0, "speedup_t250": 6.0}
    assert {group: origin["commit"] for group, origin in origins.items()} == {
        "peers": "1",
        "speed": "2",
    }


def test_origins_of_older_files_are_read() -> None:
    older = {
        "environment": ORIGIN,
        "peers": {"environment": {**ORIGIN, "commit": "fed9876"}, "rounds": []},
        "optuna_t200": 52.0,
        "study_hours_paper": 15.4,
    }
    assert tables.origin_of("speed", older) == ORIGIN
    assert "at commit fed9876" in tables.peers_headlines_text(older)
    hours = tables.study_hours_text(older)
    assert hours.startswith("When, where and at which commit this was measured was not recorded.")
    assert "| study_hours_paper | 15.4 | at most 4 hours |" in hours
    newer = {**older, "origins": {"study_hours_paper": {**ORIGIN, "load_average_after": 2.0}}}
    assert tables.study_hours_text(newer).startswith(
        "Measured 2030-01-02T03:04:05Z at commit abc1234 on one core of Abacus "
        "(Python 3.11, NumPy 2, SciPy 1; load average 0.2 before, 2.0 after)."
    )


def test_origin_text_names_versions_machine_and_commit() -> None:
    origin = clock.ended(clock.environment("threadpoolctl"))
    assert origin["packages"].keys() == {"threadpoolctl"}
    text = tables.origin_text(origin)
    for name in ("time", "commit", "processor", "python", "numpy", "scipy"):
        assert str(origin[name]) in text
    assert f"threadpoolctl {origin['packages']['threadpoolctl']}" in text


def test_committed_figures_make_every_table() -> None:
    path = clock.ROOT / "benchmarks" / "latest.json"
    figures = json.loads(path.read_text())
    assert "| 250 |" in tables.speed_text(figures)
    assert "study_hours_paper" in tables.study_hours_text(figures)
    assert "pairwisegp_t200" in tables.peers_headlines_text(figures)
    assert "| 200 |" in tables.peer_times_text(figures)


def test_files_behind_the_pages_are_not_ignored_by_git() -> None:
    names = ["benchmarks/latest.json", "results/paper/timings.jsonl"]
    command = ["git", "check-ignore", "--no-index", *names]
    done = subprocess.run(command, cwd=clock.ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        pytest.skip("not a clone")
    assert done.stdout == ""


def row(t: int) -> dict[str, Any]:
    times = ("tell", "round", "default", "plain", "tuned")
    return {
        "t": t,
        "repeats": 7,
        "plain_repeats": 2,
        **{f"{name}_ms": 10.0 for name in times},
        "speedup": 5.0,
        "speedup_tuned": 4.0,
        "same_policy": 2,
        "same_policy_as_timed": 1,
        "worst_loss_as_timed": 0.02,
        "of": 2,
    }


def test_speed_text_lists_repeats_and_checkpoints() -> None:
    figures = {
        "rounds": [row(4000)],
        "profile": [],
        "checkpoints": [
            {
                "preset": "default",
                "t": 200,
                "repeats": 7,
                "usual_ms": 50.0,
                "kernel_ms": 70.0,
                "sharpness_ms": 90.0,
                "most_ms": 90.0,
            }
        ],
        "default_query_ms_t200": 90.0,
        "waiting": {"prepared_ms": 1.0, "prepared_worst_ms": 2.0, "unprepared_ms": 3.0},
    }
    text = tables.speed_text(figures)
    assert "| 2 of 2 | 1 | 2.0% | 7 / 2 |" in text
    assert "| default | 200 | 50.0 | 70.0 | 90.0 |" in text
    assert "| default_query_ms_t200 | 90 | at most 100 ms |" in text


def test_proposals_text_lists_query_prediction_and_both() -> None:
    assert tables.proposals_text({}) == ""
    row = {"t": 60, "repeats": 15, "query_ms": 20.0, "chance_new_ms": 30.0, "proposal_ms": 51.4}
    text = tables.proposals_text({"proposals": [row], "origins": {"proposals": ORIGIN}})
    assert "at commit abc1234" in text
    assert "medians of 15" in text
    assert "| 60 | 20 | 30 | 51 |" in text


def record(method: str, user: int, error: float) -> dict[str, Any]:
    curve = [
        {"queries": queries, "error": error + change, "rmse": 0.1}
        for queries, change in ((50, 0.1), (100, 0.05), (200, 0.0))
    ]
    return {
        "method": method,
        "user": user,
        "curve": [] if method == "optuna" else curve,
        "final_gap": 0.2,
        "seconds_a_query": 0.5,
        "notes": {"mean_gap_of_best_trials": 0.3},
        "options": {"queries": 200},
        "commit": f"c{user}",
    }


def test_peer_results_count_only_people_finished_by_every_method(tmp_path: Path) -> None:
    assert tables.peer_results_text(tmp_path) == ""
    for method, users in (("random", (1, 2, 3)), ("default", (1, 2)), ("optuna", (1, 2))):
        for user in users:
            text = json.dumps(record(method, user, 0.08 if method == "default" else 0.12))
            (tmp_path / f"{method}-{user}.json").write_text(text)
    text = tables.peer_results_text(tmp_path)
    assert text.startswith("2 people, 200 queries")
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    assert "17.0 ± 0.0 | 12.0 ± 0.0 | > 200" in lines["Random (paper settings)"]
    assert "13.0 ± 0.0 | 8.0 ± 0.0 | 160" in lines["SFIHILO default"]
    assert "0.200 ± 0.000 (its set: 0.300 ± 0.000)" in lines["Optuna PreferentialGPSampler"]
    for name in ("Random (paper settings)", "Optuna PreferentialGPSampler"):
        assert lines[name].endswith("| c1, c2 |")  # the third person's is not in the table
    assert lines["Boundary Lookahead (default settings)"].count("not run") == 1
    assert len({line.count("|") for line in lines.values() if line.startswith("|")}) == 1
    (tmp_path / "mutual_information-3.json").write_text(
        json.dumps(record("mutual_information", 3, 0.1))
    )
    assert "No person" in tables.peer_results_text(tmp_path)


def pages(folder: Path) -> dict[str, str]:
    for page in ("speed.md", "peers.md"):
        if not (folder / page).exists():
            shutil.copy(clock.ROOT / "docs" / page, folder / page)
    return {page: (folder / page).read_text() for page in ("speed.md", "peers.md")}


def without(text: str, part: str) -> str:
    begin, end = publish.comments(part)
    return text.split(begin)[0] + text.split(end)[1]


def test_page_parts_without_figures_stay_as_they_are(tmp_path: Path) -> None:
    before = pages(tmp_path)
    publish.write_pages({}, tmp_path / "nothing", tmp_path)
    after = pages(tmp_path)
    assert after["peers.md"] == before["peers.md"]
    # That the study's times are missing is said, everything else stays.
    assert "`results/paper/timings.jsonl` is not there" in after["speed.md"]
    assert without(after["speed.md"], "study took") == without(before["speed.md"], "study took")
    publish.write_pages({"study_hours_paper": 3.25}, tmp_path / "nothing", tmp_path)
    changed = pages(tmp_path)["speed.md"]
    assert "| study_hours_paper | 3.25 |" in changed
    assert without(changed, "study hours") == without(after["speed.md"], "study hours")


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("speed.md", "speed"),
        ("speed.md", "study hours"),
        ("speed.md", "study took"),
        ("speed.md", "peers"),
        ("peers.md", "times"),
        ("peers.md", "results"),
        ("peers.md", "advice"),
    ],
)
def test_generated_part_of_a_page_is_replaced(page: str, part: str, tmp_path: Path) -> None:
    pages(tmp_path)
    publish.replace_part(tmp_path / page, part, "once")
    publish.replace_part(tmp_path / page, part, "twice")
    begin, end = publish.comments(part)
    assert (tmp_path / page).read_text().split(begin)[1].split(end)[0].strip() == "twice"
    with pytest.raises(ValueError, match="expected the comments"):
        publish.replace_part(_written(tmp_path / "bare.md"), part, "x")


def _written(path: Path) -> Path:
    path.write_text("nothing")
    return path


def timing(condition: str, rule: str, user: int, seconds: float, queries: int = 1000) -> str:
    line = {"condition": condition, "rule": rule, "user": user}
    return json.dumps({**line, "queries": queries, "seconds": seconds})


def test_study_time_is_extrapolated_from_the_timed_units(tmp_path: Path) -> None:
    path = tmp_path / "paper" / "timings.jsonl"
    assert "is not there" in study_time.study_took_text(tmp_path)
    path.parent.mkdir()
    path.write_text(timing("base", "random", 0, 5.0, queries=20) + "\n")
    assert "has no times of it" in study_time.study_took_text(tmp_path)
    lines = [
        timing("base", "random", 0, 99.0),  # run again below: the later time counts
        timing("base", "random", 0, 10.0),
        timing("base", "random", 1, 20.0),
        timing("base", "mutual_information", 0, 36.0),
        timing("base", "boundary_lookahead", 0, 72.0),
        timing("base", "random", 30, 7.0),  # a user too many
        timing("elsewhere", "random", 0, 7.0),
        timing("base", "random", 2, 7.0, queries=20),
        '{"condition": "ba',  # cut short by a kill
    ]
    path.write_text("\n".join(lines))
    text = study_time.study_took_text(tmp_path)
    assert text.startswith(
        "`results/paper/timings.jsonl` has the seconds of 4 of the study's 1,170 units, measured "
        "with two workers running side by side:"
    )
    assert "| random | 2 | 15.0 |" in text
    assert "| boundary_lookahead | 1 | 72.0 |" in text
    # 39 runs a user: 9 random, 9 by mutual information, 21 by lookahead.
    hours = (9 * 15 + 9 * 36 + 21 * 72) * 30 / 2 / 3600
    assert f"takes {hours:.1f} hours with two workers (target: at most 4 hours)" in text
    assert "1,080 of them" in text
    found = study_time.took([json.loads(line) for line in lines[:-1]], study_time.whole_study())
    assert found is not None
    assert found.hours == pytest.approx(hours)


def test_page_lists_every_method_of_the_peers_study() -> None:
    assert list(peers_study.METHODS) == list(tables.METHODS)
