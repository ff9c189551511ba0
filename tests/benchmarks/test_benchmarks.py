"""The benchmark programs: what they measure and what they publish, without absolute times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import clock, floor, proposals, scenario, speed, study_time, waiting
from benchmarks.peers import study as peers_study
from benchmarks.reference.lookahead import Lookahead
from sfihilo import Settings
from sfihilo.querying import Decision
from sfihilo.refit import SHARPNESS_DELAY, is_checkpoint


def lookahead(chosen: int, utilities: list[float]) -> Lookahead:
    scores = np.zeros(4)
    rows = np.arange(len(utilities))
    return Lookahead(chosen, scores, scores, rows, rows, np.array(utilities))


def decision(row: int, utilities: list[float]) -> Decision:
    pool = np.arange(8.0).reshape(4, 2) / 8
    rows = np.arange(len(utilities))
    return Decision(pool[row], pool, np.zeros(4), rows, rows, np.array(utilities))


def test_compare_reports_the_share_of_the_score_that_another_choice_loses() -> None:
    same = scenario.compare(decision(1, [0.1, 0.4, 0.2]), lookahead(1, [0.1, 0.4, 0.2]))
    assert same == scenario.Agreement(True, 0.0, 0.0)
    other = scenario.compare(decision(2, [0.1, 0.3, 0.31]), lookahead(1, [0.1, 0.4, 0.3]))
    assert not other.same
    assert other.loss == pytest.approx(0.25)
    assert other.difference == pytest.approx(0.25)


def test_timed_actions_alternate_and_run_twice() -> None:
    order: list[str] = []
    actions = {name: lambda _, name=name: order.append(name) for name in "ab"}
    seconds = clock.in_turn(actions, 3)
    assert order == ["a", "a", "b", "b"] * 3  # the first of each is not timed
    assert [len(values) for values in seconds.values()] == [3, 3]
    assert clock.medians({"a": [3.0, 1.0, 2.0]}) == {"a": 2.0}


def test_actions_with_fewer_repeats_run_less_often() -> None:
    order: list[str] = []
    actions = {name: lambda _, name=name: order.append(name) for name in "ab"}
    seconds = clock.in_turn(actions, 3, fewer={"b": 1})
    assert order == ["a", "a", "b", "b", "a", "a", "a", "a"]
    assert [len(values) for values in seconds.values()] == [3, 1]


def test_medians_with_a_target_have_fifteen_repeats() -> None:
    assert speed.REPEATS[250] == speed.REPEATS[1000] == speed.Repeats(15, 15)
    assert min(repeats.ours for repeats in speed.REPEATS.values()) >= 7
    assert speed.REPEATS[4000].at_most(5) == speed.Repeats(5, 2)


def test_default_query_time_is_that_of_the_slowest_kind_of_round() -> None:
    rows = [
        {"preset": preset, "t": t, "most_ms": most}
        for preset, t, most in (("paper", 200, 1.0), ("default", 200, 2.0), ("default", 250, 3.0))
    ]
    assert speed.default_queries(rows) == {"default_query_ms_t200": 2.0}


def test_checkpoint_rounds_are_timed_at_their_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_time_of_a_function_is_found_and_a_function_that_is_not_called_is_an_error() -> None:
    def busy(_: int) -> None:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    def idle() -> None: ...

    assert clock.parts(busy, 2, {"busy": busy})["busy"] >= 0.015
    with pytest.raises(ValueError, match="idle: expected a function that a repeat calls"):
        clock.parts(busy, 1, {"busy": busy, "idle": idle})


def test_every_part_of_the_profile_is_called_in_a_round() -> None:
    user = scenario.person(dimension=2)
    told = scenario.tell_all(user, 12, dimension=2)
    bench = scenario.Bench.make(Settings.paper(2, 2), user, told, 8, 1)
    spent = clock.parts(bench.learner, 1, speed.PARTS)
    assert spent.keys() == speed.PARTS.keys()


def test_whole_run_reports_its_memory_and_imports_no_study_libraries() -> None:
    script = (
        "import sys; from benchmarks import scenario;"
        "found = scenario.whole_run(1, 'random');"
        "print(found['comparisons'], found['peak_mb'] > 1, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=clock.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1.0", "True", "False"]


def test_prepared_session_asks_the_queries_of_the_bare_loop() -> None:
    found = waiting.waiting_times(scenario.person(), 4)
    assert found["same_queries"] is True
    assert found["prepared_worst_ms"] >= found["prepared_ms"]


def test_whole_proposal_takes_longer_than_its_query() -> None:
    user = scenario.person(dimension=2)
    told = scenario.tell_all(user, 32, dimension=2)
    row = proposals.proposal_times(Settings(2, 2), user, told, 30, 3)
    assert row["proposal_ms"] > row["query_ms"] > 0
    assert row["chance_new_ms"] > 0
    assert (row["t"], row["repeats"]) == (30, 3)


def test_floor_grows_with_the_observations() -> None:
    rates = floor.Rates(1e9, 1e9, 1e9, 1e9)
    few = floor.floor_seconds(Settings.paper(), 100, rates)
    many = floor.floor_seconds(Settings.paper(), 1000, rates)
    assert few.keys() == many.keys()
    assert many["pool kernel"] == pytest.approx(10 * few["pool kernel"])
    assert many["leverage of the whole pool"] == pytest.approx(4000 * 1000**2 / 1e9)
    assert many["pool labels"] == few["pool labels"]


PAPER_RULES = ("random", "mutual_information", "boundary_lookahead")


def test_sampled_study_is_summed_over_users_and_cores() -> None:
    assert study_time.hours({"random": [60.0, 60.0], "x": [120.0]}) == pytest.approx(1.0)


def test_times_longer_is_the_median_ratio_within_a_turn() -> None:
    assert clock.times_longer([4.0, 80.0, 9.0], [2.0, 10.0, 3.0, 99.0]) == 3.0


def test_peers_study_runs_both_rules_in_the_default_preset(
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


def test_peers_study_resumes_in_workers_of_one_thread(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "random-7.json").write_text(json.dumps({"commit": "older"}))
    (tmp_path / "quick_study.py").write_text(QUICK_STUDY)
    (tmp_path / "torch.py").write_text(
        "class Tensor: ...\ndef set_num_threads(count): print('torch threads', count)\n"
    )
    counts = ("--first=7", "--users=2", "--queries=3", "--workers=2", f"--out={out}")
    path = (tmp_path, clock.ROOT, clock.ROOT / "src")
    done = subprocess.run(
        [sys.executable, tmp_path / "quick_study.py", *counts, "--methods", "random", "default"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "OPENBLAS_NUM_THREADS": "2",
        },
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
def test_peers_setup_accepts_only_a_cpu_build_of_torch(
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


def test_stand_in_answers_from_the_second_round_on() -> None:
    told = study_time.stand_in(3, 2, 5)
    assert told.responses[0].choice is None
    assert {response.choice for response in told.responses[1:]} <= {"new", "previous"}
    assert told.query(0).anchor is None
    np.testing.assert_array_equal(told.query(2).anchor, told.responses[1].outcome)


def test_floor_of_a_run_sums_its_rounds_and_grids() -> None:
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
