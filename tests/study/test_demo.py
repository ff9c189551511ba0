"""The demonstration: it runs from start to end, and what it shows is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfihilo.settings import Settings
from sfihilo.study import demo
from sfihilo.study.figures import person
from sfihilo.study.people.users import HeadSettings, SimulatedUser, UserSettings, sample_user
from sfihilo.study.run.evaluation import EvaluationSettings, hold_out

SMALL = UserSettings(
    outcome=HeadSettings(64, 0.35, 0.65), reward=HeadSettings(64, 0.5, 0.8), calibration=200
)


@pytest.fixture(scope="module")
def user() -> SimulatedUser:
    return sample_user(2, 2, 5, settings=SMALL)


@pytest.fixture(scope="module")
def exam(user: SimulatedUser) -> demo.Exam:
    policies = np.random.default_rng(0).uniform(size=(400, 2))
    outcomes = user.outcomes(policies)
    rewards = user.rewards(outcomes)
    held_out = hold_out(user, EvaluationSettings(pairs_per_bin=20, pair_policies=300))
    return demo.Exam(
        held_out=held_out,
        tested=user.outcomes(held_out.policies),
        policies=policies,
        outcomes=outcomes,
        rewards=rewards,
        best_reward=demo.best_possible(user, policies, rewards),
    )


def test_best_possible_is_at_least_as_good_as_a_fine_grid(
    user: SimulatedUser, exam: demo.Exam
) -> None:
    side = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    best = demo.true_reward(user, grid).max()
    assert best - 1e-4 <= exam.best_reward <= best + 0.01


def test_looks_are_taken_up_to_the_last_question() -> None:
    assert demo.look_after(150) == list(range(10, 151, 10))
    assert demo.look_after(4) == [1, 2, 3, 4]


def test_learning_counts_questions_and_looks_at_the_end(
    user: SimulatedUser, exam: demo.Exam
) -> None:
    steps = list(demo.learn(Settings(2, 2, rule="random"), user, exam, 8, 0))
    assert len(steps) == 9  # one trial more than there are comparisons
    state, last = steps[-1]
    assert last is not None
    assert last.questions == 8
    assert 0 <= last.preference_error <= 0.5
    assert last.reward <= exam.best_reward + 1e-6
    slices = demo.reward_slices(state, user, exam, np.array([0.5, 0.5]))
    assert [cut.outcome for cut in slices] == [0, 1]
    for cut in slices:
        # Everything is relative to the centre, which lies on the grid.
        assert np.interp(0.5, cut.grid, cut.truth) == pytest.approx(0, abs=1e-6)
        assert np.interp(0.5, cut.grid, cut.learned) == pytest.approx(0, abs=1e-6)
        assert (cut.low <= cut.high).all()


def test_map_shows_the_two_settings_that_matter() -> None:
    policies = np.random.default_rng(1).uniform(size=(20_000, 3))
    rewards = policies[:, 0] + 2 * policies[:, 2]
    empty = np.empty((0, 0))
    exam = demo.Exam(None, empty, policies, empty, rewards, 3.0)  # type: ignore[arg-type]
    pair, ground = demo.reward_map(exam)
    assert pair == (0, 2)
    assert ground[-1, -1] == pytest.approx(3 - 3 / 16, abs=0.05)
    assert ground[0, -1] == pytest.approx(2 - 1 / 16, abs=0.05)


def test_share_that_rounds_to_all_is_over_99_9_percent() -> None:
    assert demo.share(0.988) == "98.8%"
    assert demo.share(1.0) == "over 99.9%"


def test_running_median() -> None:
    values = np.array([1.0, 9.0, 2.0, 3.0])
    assert person.running_median(values, 3).tolist() == [2.0, 3.0]


def test_too_few_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        demo.run(1, tmp_path)


def test_demo_prints_a_table_and_writes_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "sample_user", lambda *sizes: sample_user(*sizes, settings=SMALL))
    monkeypatch.setattr(demo, "POOL", 500)
    monkeypatch.setattr(demo, "LOOKS", 3)
    path = demo.run(8, tmp_path / "out")
    assert path.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    for words in ("After 8 questions", "wrong guesses", "best possible", "Global Pair Lookahead"):
        assert words in printed
