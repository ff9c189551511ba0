"""The advice of peers: their models, their loops, and the tables made of their results."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from benchmarks import clock
from benchmarks.peers.advice import __main__ as run
from benchmarks.peers.advice import page
from benchmarks.peers.advice.evolution import EvolutionSeeker
from benchmarks.peers.advice.hyperparameters import PlainFit
from benchmarks.peers.advice.methods import METHODS
from benchmarks.peers.advice.on_settings import line_through
from benchmarks.peers.advice.people import UNTOUCHED, Person, person, unit
from benchmarks.peers.advice.preference_process import (
    Hyperparameters,
    PreferenceProcess,
    climb,
)
from sfihilo.history import FloatArray, IntArray, Query
from sfihilo.study.design.conditions import simulated_user
from sfihilo.study.people.users import sample_user
from sfihilo.study.run.advice_gap import best_reachable

PEERS = clock.ROOT / ".venv-peers" / "bin" / "python"
BOTORCH = """
import json, sys, torch
from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
from botorch.models.pairwise_gp import PairwiseGP
known, pairs, points = (torch.tensor(part) for part in json.load(sys.stdin))
known, points = known.double(), points.double()
model = PairwiseGP(known, pairs)
model.covar_module.outputscale = 5.0
model.covar_module.base_kernel.lengthscale = torch.tensor([[0.4, 0.6, 0.9]])
model.set_train_data(known, pairs)
model.eval()
rule = AnalyticExpectedUtilityOfBestOption(pref_model=model, previous_winner=known[-1:])
with torch.no_grad():
    mean = model.posterior(points).mean[:, 0].tolist()
    print(json.dumps([mean, rule(points[:, None]).tolist()]))
"""


def compared(count: int, seed: int = 0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(count, 3))
    worth = np.sin(4 * points).sum(axis=1) + 0.2 * rng.standard_normal(count)
    pairs = [(i, i - 1) if worth[i] > worth[i - 1] else (i - 1, i) for i in range(1, count)]
    return points, np.array(pairs)


def process(count: int = 12) -> PreferenceProcess:
    hyper = Hyperparameters(np.array([0.4, 0.6, 0.9]), 5.0)
    return PreferenceProcess(*compared(count), hyper)


def test_preference_mode_maximises_the_log_posterior_of_utilities() -> None:
    learned = process()
    prior = learned.kernel(learned.points, learned.points)
    prior[np.diag_indices_from(prior)] += 1e-9
    inverse = np.linalg.inv(prior)

    def log_posterior(utility: FloatArray) -> float:
        gaps = (utility[learned.pairs[:, 0]] - utility[learned.pairs[:, 1]]) / np.sqrt(2)
        return float(log_ndtr(gaps).sum() - 0.5 * utility @ inverse @ utility)

    mode = learned.mean(learned.points)
    rng = np.random.default_rng(1)
    for _ in range(50):
        other = mode + 0.01 * np.linalg.cholesky(prior) @ rng.standard_normal(len(mode))
        assert log_posterior(other) < log_posterior(mode)


def test_expected_utility_of_the_best_option_agrees_with_samples() -> None:
    learned = process()
    prior = learned.kernel(learned.points, learned.points)
    prior[np.diag_indices_from(prior)] += 1e-9
    new, previous = np.array([0.2, 0.7, 0.4]), learned.points[-1]
    both = np.array([new, previous])
    # The posterior of utilities in the dense form of the textbook: (K^-1 + W)^-1.
    contrast = np.zeros((len(learned.pairs), len(learned.points)))
    rows = np.arange(len(learned.pairs))
    contrast[rows, learned.pairs[:, 0]], contrast[rows, learned.pairs[:, 1]] = 1, -1
    contrast /= np.sqrt(2)
    gaps = contrast @ learned.mean(learned.points)
    ratio = stats.norm.pdf(gaps) / ndtr(gaps)
    curvature = contrast.T @ np.diag(ratio * (gaps + ratio)) @ contrast
    cross = learned.kernel(both, learned.points)
    shrunk = np.linalg.inv(prior) @ np.linalg.inv(np.linalg.inv(prior) + curvature)
    kept = np.linalg.inv(prior) - shrunk @ np.linalg.inv(prior)
    covariance = learned.kernel(both, both) - cross @ kept @ cross.T
    draws = np.random.default_rng(2).multivariate_normal(
        learned.mean(both), covariance, size=400_000
    )
    expected = draws.max(axis=1).mean()
    rule = learned.best_of(previous)
    assert rule.values(new[None])[0] == pytest.approx(expected, abs=0.01)
    assert rule.value_and_slope(new)[0] == pytest.approx(rule.values(new[None])[0])


def test_slopes_of_rule_and_mean_agree_with_differences() -> None:
    learned = process(25)
    rule = learned.best_of(learned.points[-1])
    point = np.array([0.3, 0.5, 0.8])
    for value_and_slope in (rule.value_and_slope, learned.mean_and_slope):
        rises = [
            (value_and_slope(point + step)[0] - value_and_slope(point - step)[0]) / 2e-5
            for step in 1e-5 * np.eye(3)
        ]
        np.testing.assert_allclose(value_and_slope(point)[1], rises, atol=1e-6)


def test_climb_finds_the_summit_of_the_mean_in_the_cube() -> None:
    learned = process(25)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 15)] * 3), axis=-1).reshape(-1, 3)
    values = learned.mean(grid)
    summit = climb(learned.mean_and_slope, grid[np.argsort(-values)[:5]])
    assert learned.mean(summit[None])[0] >= values.max()
    assert summit.min() >= 0
    assert summit.max() <= 1


def test_plain_fit_prefers_hyperparameters_of_higher_evidence() -> None:
    points, pairs = compared(40)
    fitted = PlainFit()(points, pairs)
    for lengths, variance in ((0.15, 8.0), (2.0, 0.5)):
        other = PreferenceProcess(points, pairs, Hyperparameters(np.full(3, lengths), variance))
        assert fitted.laplace.evidence > other.laplace.evidence


def test_line_crosses_the_cube_through_its_point() -> None:
    point = np.array([0.2, 0.9, 0.5])
    line = line_through(point, np.random.default_rng(0))
    assert line.min() >= 0
    assert line.max() <= 1
    directions = line - point
    direction = directions[0] / np.linalg.norm(directions[0])
    np.testing.assert_allclose(
        directions - np.outer(directions @ direction, direction), 0, atol=1e-9
    )
    for end in (line[0], line[-1]):
        assert np.isclose(np.minimum(end, 1 - end).min(), 0, atol=1e-9)


@pytest.fixture(scope="module")
def somebody() -> Person:
    return person("2x2", 3, 5001)


def test_people_are_those_of_the_panel(somebody: Person) -> None:
    same = simulated_user(unit("2x2", 3, 5001))
    policies = np.random.default_rng(0).uniform(size=(5, 2))
    np.testing.assert_array_equal(somebody.user.outcomes(policies), same.outcomes(policies))
    assert somebody.user.seed == same.seed
    assert somebody.best == best_reachable(same)[0]
    assert unit("4x6", 1).study_seed == UNTOUCHED
    assert unit("4x6", 1).condition.outcome_dim == 6
    with pytest.raises(ValueError, match="shape: expected one of"):
        unit("3x3", 1)


HERE = [
    name
    for name, method in METHODS.items()
    if method.needs is None or importlib.util.find_spec(method.needs) is not None
]


@pytest.mark.parametrize("name", HERE)
def test_method_asks_and_advises_within_the_cube(name: str, somebody: Person) -> None:
    rows = run.measured(name, somebody, "abc", at=(3, 6))
    again = run.measured(name, somebody, "abc", at=(3, 6))
    assert rows["query"].tolist() == [3, 6]
    assert (rows["gap"] > -1e-6).all()
    assert rows["asked"].between(-0.2, 1.2).all()
    pd.testing.assert_frame_equal(rows, again)


def test_methods_that_need_no_torch_run_here() -> None:
    assert {"eubo_plain", "eubo_outcomes_plain", "line_plain", "cmaes", "random_settings"} <= {
        *HERE
    }


@pytest.mark.slow
def test_methods_of_the_own_environment_run_there() -> None:
    if not PEERS.exists():
        pytest.skip("the peers are not installed: benchmarks/peers/setup")
    names = [name for name in METHODS if name not in HERE]
    code = (
        "from benchmarks.peers.advice import __main__ as run; run.one_thread()\n"
        "from benchmarks.peers.advice.people import person\n"
        "somebody = person('2x2', 3, 5001)\n"
        f"for name in {names!r}:\n"
        "    print(run.measured(name, somebody, 'abc', at=(3, 6)).gap.min())\n"
    )
    done = subprocess.run(
        [PEERS, "-c", code], cwd=clock.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    gaps = [float(word) for word in done.stdout.split()]
    assert len(gaps) == len(names)
    assert min(gaps, default=0.0) > -1e-6


@pytest.mark.slow
def test_posterior_and_rule_agree_with_those_of_botorch() -> None:
    if not PEERS.exists():
        pytest.skip("the peers are not installed: benchmarks/peers/setup")
    learned = process(25)
    points = np.random.default_rng(3).uniform(size=(20, 3))
    rule = learned.best_of(learned.points[-1])
    ours = np.stack([learned.mean(points), rule.values(points)])
    done = subprocess.run(
        [PEERS, "-W", "ignore", "-c", BOTORCH],
        input=json.dumps([a.tolist() for a in (learned.points, learned.pairs, points)]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = np.array(json.loads(done.stdout))
    np.testing.assert_allclose(ours[0], theirs[0], atol=0.02)
    # Theirs leaves the given option's mean out.
    np.testing.assert_allclose(np.ptp(ours[1] - theirs[1]), 0, atol=0.02)


def test_evolution_is_told_the_evaluation_behind_the_answer() -> None:
    user = sample_user(2, 2, 11)
    seeker = EvolutionSeeker(user, 2, seed=0)
    previous = user.experience(0, np.array([0.2, 0.4]))
    told = []
    for round in range(1, 30):
        query = Query(round, np.random.default_rng(round).uniform(size=2), None)
        new = user.experience(round, query.policy)
        response = user.answer(query, new, previous)
        told.append(seeker.felt(query, response) - user.rewards(new.measured[None])[0])
    assert 0.5 * user.noise.reward < np.std(told) < 2 * user.noise.reward


def test_run_continues_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["advice", "--method", "random_settings", "--shape", "2x2", "--users", "1"]
    arguments += ["--study-seed", "5001", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    run.main()
    path = tmp_path / "peers" / "advice-2x2-seed5001.csv"
    first = path.read_text()
    assert len(first.splitlines()) == 1 + len(run.AT)
    assert "2x2 1 random_settings" in capsys.readouterr().out
    run.main()
    assert path.read_text() == first
    assert capsys.readouterr().out == ""


def invented(shape: str = "4x4", users: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (shape, method, user, query, gap + 0.01 * rng.standard_normal(), 0.5 + gap)
        for method, gap in (("best", 0.05), ("cmaes", 0.15), ("line", 0.056))
        for user in range(1, users + 1)
        for query in (20, 60)
    ]
    return pd.DataFrame(rows, columns=list(page.COLUMNS))


def written(rows: pd.DataFrame, results: Path) -> None:
    for folder in ("peers", "advice"):
        (results / folder).mkdir()
    ours = rows["method"] == "best"
    rows[ours].to_csv(results / "advice" / "ours-4x4.csv", index=False)
    rows[~ours].to_csv(results / "peers" / "advice-4x4.csv", index=False)


def test_differences_are_paired_and_corrected_by_holm() -> None:
    rows = invented()
    rows = rows[~((rows["method"] == "line") & (rows["user"] > 9))]
    found = {each.method: each for each in page.differences(rows, "4x4", 60)}
    assert found.keys() == {"cmaes", "line"}
    assert (found["cmaes"].people, found["line"].people) == (12, 9)
    wide = rows[rows["query"] == 60].pivot(index="user", columns="method", values="gap")
    raw = {}
    for method in found:
        both = wide[["best", method]].dropna()
        test = stats.ttest_rel(both["best"], both[method])
        raw[method] = float(test.pvalue)
        away = both["best"] - both[method]
        assert found[method].mean == pytest.approx(away.mean())
        assert found[method].error == pytest.approx(stats.sem(away))
    # Of two, the smaller p-value counts twice.
    assert found["cmaes"].p_value == pytest.approx(2 * raw["cmaes"])
    assert found["line"].p_value == pytest.approx(max(raw["line"], 2 * raw["cmaes"]))
    assert page.differences(rows[rows["method"] != "best"], "4x4", 60) == []


def test_tables_name_methods_people_and_means(tmp_path: Path) -> None:
    rows = invented()
    written(rows, tmp_path)
    # Files of another kind, or of people for development, are not read.
    (tmp_path / "advice" / "confirmation.csv").write_text("condition,rule\na,b\n")
    rows.to_csv(tmp_path / "peers" / "advice-4x4-seed5000.csv", index=False)
    text = page.advice_text(tmp_path)
    lines = text.splitlines()
    assert lines[0].startswith("**4 parameters, 4 outcomes**")
    ours = next(line for line in lines if line.startswith("| SFIHILO, goal `best` | 12 |"))
    gaps = rows[(rows["method"] == "best") & (rows["query"] == 60)]["gap"]
    shown = f"{gaps.mean():.3f} ({stats.sem(gaps):.3f})".replace("0.", ".")
    assert ours.endswith(f"| {shown} | .55 |")
    assert "| CMA-ES, told the noisy reward itself | 12 | −.1" in text
    assert "p < .001" in text
    assert page.advice_text(tmp_path / "nothing") == ""


def test_rows_that_appear_twice_are_refused(tmp_path: Path) -> None:
    rows = invented()
    written(rows, tmp_path)
    rows[rows["method"] == "line"].to_csv(tmp_path / "peers" / "advice-more.csv", index=False)
    with pytest.raises(ValueError, match="expected one per shape, method, user and query"):
        page.read_rows(tmp_path)


def test_unknown_method_counts_as_own_rule() -> None:
    assert page.ordered(["cmaes", "schedule", "best"]) == ["best", "schedule", "cmaes"]
    assert page.label("schedule") == "SFIHILO, `schedule`"
