"""What the benchmarks say of their figures; no test here depends on the clock."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    clock,
    document,
    floor,
    markdown,
    peers_page,
    report,
    rounds,
    scenario,
    speed,
    speed_page,
    study_hours,
    study_took,
)
from benchmarks.peers import study as peers_study
from benchmarks.plain_query import Looked
from sfihilo import Settings
from sfihilo.learner import SHARPNESS_DELAY, is_checkpoint
from sfihilo.querying import Decision


def looked(chosen: int, utilities: list[float]) -> Looked:
    scores = np.zeros(4)
    rows = np.arange(len(utilities))
    return Looked(chosen, scores, scores, rows, rows, np.array(utilities))


def selection(row: int, utilities: list[float]) -> Decision:
    pool = np.arange(8.0).reshape(4, 2) / 8
    rows = np.arange(len(utilities))
    return Decision(pool[row], pool, np.zeros(4), rows, rows, np.array(utilities))


def test_a_different_choice_shows_what_it_gives_away() -> None:
    same = rounds.compare(selection(1, [0.1, 0.4, 0.2]), looked(1, [0.1, 0.4, 0.2]))
    assert same == rounds.Agreement(True, 0.0, 0.0)
    other = rounds.compare(selection(2, [0.1, 0.3, 0.31]), looked(1, [0.1, 0.4, 0.3]))
    assert not other.same
    assert other.loss == pytest.approx(0.25)
    assert other.difference == pytest.approx(0.25)


def test_actions_take_turns() -> None:
    order: list[str] = []
    actions = {name: lambda _, name=name: order.append(name) for name in "ab"}
    seconds = clock.in_turn(actions, 3)
    assert order == ["a", "a", "b", "b"] * 3  # the first of each is not timed
    assert [len(values) for values in seconds.values()] == [3, 3]
    assert clock.medians({"a": [3.0, 1.0, 2.0]}) == {"a": 2.0}


def test_what_costs_much_is_repeated_less() -> None:
    order: list[str] = []
    actions = {name: lambda _, name=name: order.append(name) for name in "ab"}
    seconds = clock.in_turn(actions, 3, fewer={"b": 1})
    assert order == ["a", "a", "b", "b", "a", "a", "a", "a"]
    assert [len(values) for values in seconds.values()] == [3, 1]


def test_medians_that_a_target_stands_on_rest_on_many_repeats() -> None:
    assert speed.REPEATS[250] == speed.REPEATS[1000] == speed.Repeats(15, 15)
    assert min(repeats.ours for repeats in speed.REPEATS.values()) >= 7
    assert speed.REPEATS[4000].at_most(5) == speed.Repeats(5, 2)


def test_a_query_costs_what_its_dearest_kind_costs() -> None:
    rows = [
        {"preset": preset, "t": t, "most_ms": most}
        for preset, t, most in (("paper", 200, 1.0), ("default", 200, 2.0), ("default", 250, 3.0))
    ]
    assert speed.default_queries(rows) == {"default_query_ms_t200": 2.0}


def test_reselecting_rounds_are_timed_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: dict[str, int] = {}

    def note(actions: dict[str, clock.Action], _: int) -> dict[str, list[float]]:
        timed.update({name: action.__self__.state.round for name, action in actions.items()})  # type: ignore[attr-defined]
        return {"usual": [0.1], "kernel": [0.6], "sharpness": [0.5]}

    monkeypatch.setattr(speed, "in_turn", note)
    user = scenario.person(dimension=2)
    told = scenario.tell_all(user, 40, dimension=2)
    row = speed.checkpoint(Settings(2, 2), user, told, 25, 2)
    assert timed == {"usual": 26, "kernel": 25, "sharpness": 35}
    assert is_checkpoint(timed["kernel"])
    assert is_checkpoint(timed["sharpness"] - SHARPNESS_DELAY)
    assert (row["preset"], row["t"], row["usual_ms"], row["most_ms"]) == ("default", 25, 100.0, 600)


def test_parts_are_found_by_file_and_function() -> None:
    def busy(_: int) -> None:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    spent = clock.parts(busy, 2, {"busy": ("test_benchmarks.py", "busy"), "none": ("x.py", "y")})
    assert spent["busy"] >= 0.015
    assert spent["none"] == 0.0


def test_the_floor_grows_with_the_observations() -> None:
    rates = floor.Rates(1e9, 1e9, 1e9, 1e9)
    few = floor.floor_seconds(Settings.paper(), 100, rates)
    many = floor.floor_seconds(Settings.paper(), 1000, rates)
    assert few.keys() == many.keys()
    assert many["pool kernel"] == pytest.approx(10 * few["pool kernel"])
    assert many["leverage of the whole pool"] == pytest.approx(4000 * 1000**2 / 1e9)
    assert many["pool labels"] == few["pool labels"]


PAPER_RULES = ("random", "mutual_information", "boundary_lookahead")
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
    monkeypatch.setattr(report, "LATEST", path)
    return path


def test_a_shorter_run_leaves_no_figures_of_a_longer_one(latest: Path) -> None:
    latest.write_text(json.dumps({"environment": ORIGIN, "checkpoint_tell_ms": {}}))
    report.write_latest("peers", {**ORIGIN, "commit": "1"}, {"optuna_t200": 70.0})
    report.write_latest("speed", ORIGIN, {"speedup_t250": 5.0, "speedup_t1000": 8.0})
    report.write_latest("speed", {**ORIGIN, "commit": "2"}, {"speedup_t250": 6.0}, speed.FORGET)
    written = report.read_latest()
    origins = written.pop("origins")
    assert written == {"optuna_t200": 70.0, "speedup_t250": 6.0}
    assert {group: origin["commit"] for group, origin in origins.items()} == {
        "peers": "1",
        "speed": "2",
    }


def test_older_files_say_the_origins_that_they_know() -> None:
    older = {
        "environment": ORIGIN,
        "peers": {"environment": {**ORIGIN, "commit": "fed9876"}, "rounds": []},
        "optuna_t200": 52.0,
        "study_hours_paper": 15.4,
    }
    assert report.origin_of("speed", older) == ORIGIN
    assert "at commit fed9876" in speed_page.peers_headlines_text(older)
    hours = speed_page.study_hours_text(older)
    assert hours.startswith("When, where and at which commit this was measured was not recorded.")
    assert "| study_hours_paper | 15.4 | at most 4 hours |" in hours
    newer = {**older, "origins": {"study_hours_paper": {**ORIGIN, "load_average_after": 2.0}}}
    assert speed_page.study_hours_text(newer).startswith(
        "Measured 2030-01-02T03:04:05Z at commit abc1234 on one core of Abacus "
        "(Python 3.11, NumPy 2, SciPy 1; load average 0.2 before, 2.0 after)."
    )


def test_an_origin_is_complete() -> None:
    origin = clock.ended(clock.environment("threadpoolctl"))
    assert origin["packages"].keys() == {"threadpoolctl"}
    text = markdown.origin_text(origin)
    for name in ("time", "commit", "processor", "python", "numpy", "scipy"):
        assert str(origin[name]) in text
    assert f"threadpoolctl {origin['packages']['threadpoolctl']}" in text


def test_the_committed_figures_can_be_read() -> None:
    path = clock.ROOT / "benchmarks" / "latest.json"
    figures = json.loads(path.read_text())
    assert "| 250 |" in speed_page.speed_text(figures)
    assert "study_hours_paper" in speed_page.study_hours_text(figures)
    assert "pairwisegp_t200" in speed_page.peers_headlines_text(figures)
    assert "| 200 |" in peers_page.clock_text(figures)


def test_times_longer_is_the_median_ratio_within_a_turn() -> None:
    assert clock.times_longer([4.0, 80.0, 9.0], [2.0, 10.0, 3.0, 99.0]) == 3.0


def test_figures_that_pages_are_made_of_are_not_ignored() -> None:
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


def test_the_speed_page_says_repeats_and_checkpoints() -> None:
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
    text = speed_page.speed_text(figures)
    assert "| 2 of 2 | 1 | 2.0% | 7 / 2 |" in text
    assert "| default | 200 | 50.0 | 70.0 | 90.0 |" in text
    assert "| default_query_ms_t200 | 90 | at most 100 ms |" in text


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


def test_only_people_that_every_method_finished_are_counted(tmp_path: Path) -> None:
    assert peers_page.quality_text(tmp_path) == ""
    for method, users in (("random", (1, 2, 3)), ("default", (1, 2)), ("optuna", (1, 2))):
        for user in users:
            text = json.dumps(record(method, user, 0.08 if method == "default" else 0.12))
            (tmp_path / f"{method}-{user}.json").write_text(text)
    text = peers_page.quality_text(tmp_path)
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
    assert "No person" in peers_page.quality_text(tmp_path)


def pages(folder: Path) -> dict[str, str]:
    for page in ("speed.md", "peers.md"):
        if not (folder / page).exists():
            shutil.copy(clock.ROOT / "docs" / page, folder / page)
    return {page: (folder / page).read_text() for page in ("speed.md", "peers.md")}


def without(text: str, part: str) -> str:
    begin, end = markdown.comments(part)
    return text.split(begin)[0] + text.split(end)[1]


def test_only_parts_whose_figures_are_there_are_written(tmp_path: Path) -> None:
    before = pages(tmp_path)
    document.write_pages({}, tmp_path / "nothing", tmp_path)
    after = pages(tmp_path)
    assert after["peers.md"] == before["peers.md"]
    # That the study's times are missing is said, everything else stays.
    assert "`results/paper/timings.jsonl` is not there" in after["speed.md"]
    assert without(after["speed.md"], "study took") == without(before["speed.md"], "study took")
    document.write_pages({"study_hours_paper": 3.25}, tmp_path / "nothing", tmp_path)
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
    ],
)
def test_pages_have_a_place_for_their_figures(page: str, part: str, tmp_path: Path) -> None:
    pages(tmp_path)
    markdown.replace_part(tmp_path / page, part, "once")
    markdown.replace_part(tmp_path / page, part, "twice")
    begin, end = markdown.comments(part)
    assert (tmp_path / page).read_text().split(begin)[1].split(end)[0].strip() == "twice"
    with pytest.raises(ValueError, match="expected the comments"):
        markdown.replace_part(_written(tmp_path / "bare.md"), part, "x")


def _written(path: Path) -> Path:
    path.write_text("nothing")
    return path


def timing(condition: str, rule: str, user: int, seconds: float, queries: int = 1000) -> str:
    line = {"condition": condition, "rule": rule, "user": user}
    return json.dumps({**line, "queries": queries, "seconds": seconds})


def test_the_study_says_what_it_really_took(tmp_path: Path) -> None:
    path = tmp_path / "paper" / "timings.jsonl"
    assert "is not there" in speed_page.study_took_text(tmp_path)
    path.parent.mkdir()
    path.write_text(timing("base", "random", 0, 5.0, queries=20) + "\n")
    assert "has no times of it" in speed_page.study_took_text(tmp_path)
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
    text = speed_page.study_took_text(tmp_path)
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
    found = study_took.took([json.loads(line) for line in lines[:-1]], study_took.whole_study())
    assert found is not None
    assert found.hours == pytest.approx(hours)


def test_the_sampled_study_is_summed_over_users_and_cores() -> None:
    assert study_hours.hours({"random": [60.0, 60.0], "x": [120.0]}) == pytest.approx(1.0)


def test_the_page_knows_every_method_of_the_peers_study() -> None:
    assert list(peers_study.METHODS) == list(peers_page.METHODS)


def test_our_own_rule_is_also_compared_within_the_default_preset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run: dict[str, Settings] = {}
    monkeypatch.setattr(
        peers_study, "learner_run", lambda method, settings, *_: run.update({method: settings})
    )
    for name in ("default", "boundary_lookahead_default"):
        peers_study.METHODS[name](name, scenario.person(2), peers_study.Options())
    assert run == {
        "default": Settings(),
        "boundary_lookahead_default": Settings(rule="boundary_lookahead"),
    }


# Workers import it again, so that they too have a method that takes no time.
QUICK_STUDY = """
from benchmarks.peers import study
from threadpoolctl import threadpool_info
def quick(method, user, options):
    threads = max(pool["num_threads"] for pool in threadpool_info())
    return study.Record(method, user, notes={"threads": threads})
study.sample_user = lambda policy_dim, outcome_dim, seed: seed
study.METHODS["random"] = study.METHODS["default"] = quick
if __name__ == "__main__":
    study.main()
"""


def test_peers_results_go_on_in_workers_of_one_thread(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "random-7.json").write_text(json.dumps({"commit": "older"}))
    (tmp_path / "quick_study.py").write_text(QUICK_STUDY)
    (tmp_path / "torch.py").write_text(
        "class Tensor: ...\ndef set_num_threads(count): print('torch threads', count)\n"
    )
    counts = ("--first=7", "--users=2", "--queries=3", "--workers=2", f"--out={out}")
    done = subprocess.run(
        [sys.executable, tmp_path / "quick_study.py", *counts, "--methods", "random", "default"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{clock.ROOT}", "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "remove them to have them again: random-7.json" in done.stdout
    assert "torch threads 1" in done.stdout
    assert json.loads((out / "random-7.json").read_text()) == {"commit": "older"}
    names = {"random-7.json", "default-7.json", "random-8.json", "default-8.json"}
    assert {path.name for path in out.iterdir()} == names
    found = json.loads((out / "default-8.json").read_text())
    assert (found["method"], found["user"], found["notes"]) == ("default", 8, {"threads": 1})
    assert found["commit"] == clock.commit()
    assert found["options"]["queries"] == 3


@pytest.mark.parametrize(("cuda", "accepted"), [("None", True), ("'12.4'", False)])
def test_peers_are_set_up_only_with_a_torch_for_processors(
    cuda: str, accepted: bool, tmp_path: Path
) -> None:
    environment = tmp_path / ".venv-peers"
    for folder in ("benchmarks/peers", "tools", ".venv-peers/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "torch.py").write_text(f"class version: cuda = {cuda}\n")
    script = tmp_path / "benchmarks" / "peers" / "setup"
    shutil.copy(clock.ROOT / "benchmarks" / "peers" / "setup", script)
    # Nothing is installed here: only what is asked of Python itself is answered.
    python = f'#!/bin/sh\n[ "$1" = -m ] || PYTHONPATH={tmp_path} exec {sys.executable} "$@"\n'
    for path, text in (
        (tmp_path / "tools" / "setup", "#!/bin/sh\n"),
        (environment / "bin" / "python", python),
    ):
        path.write_text(text)
        path.chmod(0o755)
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert (environment / ".installed").exists() == accepted
    assert (done.returncode == 0) == accepted
    assert ("install a CPU build of torch first" in done.stderr) != accepted


def test_the_stand_in_answers_like_a_person() -> None:
    told = study_hours.stand_in(3, 2, 5)
    assert told.responses[0].choice is None
    assert {response.choice for response in told.responses[1:]} <= {"new", "previous"}
    assert told.query(0).anchor is None
    np.testing.assert_array_equal(told.query(2).anchor, told.responses[1].outcome)


def test_the_floor_of_a_run_is_that_of_its_rounds_and_grids() -> None:
    rates = floor.Rates(1e9, 1e9, 1e9, 1e9)
    parts = floor.floor_seconds(Settings.paper(), 1, rates)
    least = sum(value for name, value in parts.items() if name != "leverage of the whole pool")
    assert floor.run_floor(Settings.paper(), 1, rates) == pytest.approx(least)
    by_rule = [floor.run_floor(Settings.paper(rule=rule), 30, rates) for rule in PAPER_RULES]
    assert by_rule == sorted(by_rule)
    # Between 15 and 16 comparisons there is a round more and a grid: 35 factors of 12.8^3 / 3.
    random = Settings.paper(rule="random")
    more = floor.run_floor(random, 16, rates) - floor.run_floor(random, 15, rates)
    assert more == pytest.approx((4 * 16**2 + 4 * 16 * 256 + 35 * 12.8**3 / 3) / 1e9)
