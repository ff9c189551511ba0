"""The demonstration: two query rules learn the same simulated person.

It runs the same interaction as the study, with the default settings, and evaluates both rules on
the same held-out questions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from scipy.optimize import Bounds, differential_evolution

from sfihilo.history import FloatArray, generator
from sfihilo.learner import recommend
from sfihilo.settings import Settings
from sfihilo.state import State
from sfihilo.study.figures import style
from sfihilo.study.figures.person import Journey, Person, Slice, picture
from sfihilo.study.people.users import SimulatedUser, sample_user
from sfihilo.study.run.evaluation import (
    EvaluationSettings,
    HeldOut,
    correct_probability,
    forward_rmse,
    hold_out,
    preference_errors,
)
from sfihilo.study.run.simulate import interaction

RULES = (Settings().rule_name, "random")
PERSON_SEED = 7
LOOKS = 15
POOL = 20_000
SLICES = 4


@dataclass(frozen=True, eq=False)
class Exam:
    """The truth about a simulated person, against which the learner is evaluated.

    The test pairs are the study's: a quarter each of the four reward-gap bins.
    """

    held_out: HeldOut
    tested: FloatArray
    policies: FloatArray
    outcomes: FloatArray
    rewards: FloatArray
    best_reward: float


def true_reward(user: SimulatedUser, policies: FloatArray) -> FloatArray:
    """The clean reward of each policy."""
    return user.rewards(user.outcomes(policies))


def best_possible(user: SimulatedUser, policies: FloatArray, rewards: FloatArray) -> float:
    """The largest clean reward of any policy, by differential evolution from the best of a pool."""
    # Vectorised, it is called with one column per policy, which its types do not express.
    objective: Any = lambda columns: -true_reward(user, columns.T)  # noqa: E731
    found = differential_evolution(
        objective,
        bounds=Bounds(np.zeros(policies.shape[1]), np.ones(policies.shape[1])),
        init=policies[np.argsort(rewards)[-64:]],
        seed=generator(user.seed, 0, "demo best possible"),
        maxiter=150,
        vectorized=True,
        updating="deferred",
        polish=False,
    )
    return float(-found.fun)


def prepare(user: SimulatedUser, policy_dim: int) -> Exam:
    """The test set over the whole space, the same for every rule."""
    policies = generator(user.seed, 0, "demo exam").uniform(size=(POOL, policy_dim))
    outcomes = user.outcomes(policies)
    rewards = user.rewards(outcomes)
    held_out = hold_out(user, EvaluationSettings())
    return Exam(
        held_out=held_out,
        tested=user.outcomes(held_out.policies),
        policies=policies,
        outcomes=outcomes,
        rewards=rewards,
        best_reward=best_possible(user, policies, rewards),
    )


@dataclass(frozen=True, eq=False)
class Look:
    """The learner's errors and recommendation after `questions` answers."""

    questions: int
    forward_error: float
    preference_error: float
    reward: float


def examine(state: State, user: SimulatedUser, exam: Exam) -> Look:
    """Evaluates the learner: outcome predictions, predicted preferences, recommendation."""
    correct = correct_probability(state.posterior(), user, exam.held_out)
    advised = recommend(state).policy
    return Look(
        questions=state.round - 1,
        forward_error=forward_rmse(state.forward, user, exam.held_out, exam.tested),
        preference_error=float(preference_errors(correct, exam.held_out.bins).mean()),
        reward=float(true_reward(user, advised[None, :])[0]),
    )


def learn(
    settings: Settings, user: SimulatedUser, exam: Exam, queries: int, seed: int
) -> Iterator[tuple[State, Look | None]]:
    """Yields the state after each question, with its examination at about `LOOKS` of them."""
    due = set(look_after(queries))
    for asked, state in interaction(settings, seed, user, queries):
        yield state, examine(state, user, exam) if asked in due else None


def look_after(queries: int) -> list[int]:
    """About `LOOKS` evenly spaced counts, the last one being `queries`."""
    return sorted({max(1, round(queries * part / LOOKS)) for part in range(1, LOOKS + 1)})


def reward_slices(
    state: State, user: SimulatedUser, exam: Exam, centre: FloatArray
) -> tuple[Slice, ...]:
    """True and learned reward along the outcomes on which the true reward depends most.

    Answers only compare outcomes, so rewards are relative to `centre`; the free unit of the learned
    reward is set by one linear fit, the same for all slices.
    """
    posterior = state.posterior()
    unit = np.polyfit(posterior.mean_reward(exam.outcomes), exam.rewards, 1)[0]
    grid = np.linspace(0, 1, 81)
    usual = np.quantile(exam.outcomes, [0.05, 0.95], axis=0)
    middle = centre[None, :]
    slices = []
    for outcome in range(exam.outcomes.shape[1]):
        line = np.repeat(middle, len(grid), axis=0)
        line[:, outcome] = grid
        draws = unit * (posterior.reward_samples(line) - posterior.reward_samples(middle))
        low, high = np.quantile(draws, [0.05, 0.95], axis=1)
        slices.append(
            Slice(
                outcome=outcome,
                grid=grid,
                truth=user.rewards(line) - user.rewards(middle),
                learned=unit * (posterior.mean_reward(line) - posterior.mean_reward(middle)),
                low=low,
                high=high,
                common=(float(usual[0, outcome]), float(usual[1, outcome])),
                here=float(centre[outcome]),
            )
        )
    chosen = sorted(slices, key=lambda cut: -float(np.ptp(cut.truth)))[:SLICES]
    return tuple(sorted(chosen, key=lambda cut: cut.outcome))


def reward_map(exam: Exam, cells: int = 8) -> tuple[tuple[int, int], FloatArray]:
    """The two settings that matter most, and the mean reward over a grid of them."""
    bins = np.minimum((exam.policies * cells).astype(int), cells - 1)
    best: tuple[float, tuple[int, int], FloatArray] | None = None
    for first, second in combinations(range(exam.policies.shape[1]), 2):
        flat = bins[:, first] * cells + bins[:, second]
        counts = np.bincount(flat, minlength=cells**2)
        sums = np.bincount(flat, weights=exam.rewards, minlength=cells**2)
        ground = sums / np.maximum(counts, 1)
        if best is None or ground.std() > best[0]:
            best = float(ground.std()), (first, second), ground.reshape(cells, cells)
    if best is None:
        raise ValueError("policies: expected at least two settings for a map, got one")
    return best[1], best[2]


def journey(rule: str, state: State, looks: Sequence[Look], user: SimulatedUser) -> Journey:
    """The course of one rule, as the picture shows it."""
    policies = np.asarray(state.history.policies)
    felt = true_reward(user, policies)
    return Journey(
        rule=rule,
        questions=np.array([found.questions for found in looks], dtype=float),
        forward_error=np.array([found.forward_error for found in looks]),
        preference_error=np.array([found.preference_error for found in looks]),
        reward=np.array([found.reward for found in looks]),
        policies=policies,
        gaps=np.abs(np.diff(felt)),
    )


def print_table(console: Console, journeys: Sequence[Journey], exam: Exam) -> None:
    """The last examination of each rule."""
    asked = int(journeys[0].questions[-1])
    table = Table(title=f"After {asked} questions", title_justify="left")
    table.add_column("")
    for course in journeys:
        table.add_column(style.rule_name(course.rule), justify="right")
    rows = (
        ("error of predicted outcomes, of full range", "forward_error"),
        ("wrong guesses about preferences", "preference_error"),
    )
    for text, name in rows:
        table.add_row(text, *(f"{getattr(course, name)[-1]:.1%}" for course in journeys))
    table.add_row(
        f"reward of its advice (best possible: {exam.best_reward:.2f})",
        *(f"{course.reward[-1]:.2f}" for course in journeys),
    )
    table.add_row(
        "its advice beats this share of all settings",
        *(share(float(np.mean(exam.rewards < course.reward[-1]))) for course in journeys),
    )
    console.print(table)


def share(value: float) -> str:
    """A share in percent; one that rounds to 100 % is "over 99.9%"."""
    return f"{value:.1%}" if value < 0.9995 else "over 99.9%"


def run(queries: int = 150, out: Path = Path("demo")) -> Path:
    """Learns one person by two rules, prints a table, writes `demo.png`; returns its path."""
    if queries < 2:
        raise ValueError(f"queries: expected at least 2, got {queries}")
    console = Console()
    started = time.perf_counter()
    settings = Settings()
    console.print("Meeting a simulated person: eight device settings, eight measured outcomes.")
    user = sample_user(settings.policy_dim, settings.outcome_dim, PERSON_SEED)
    exam = prepare(user, settings.policy_dim)
    ends = converse(console, settings, user, exam, queries)
    journeys = [journey(rule, state, looks, user) for rule, (state, looks) in ends.items()]
    advised = recommend(ends[RULES[0]][0])
    pair, ground = reward_map(exam)
    person = Person(
        best_reward=exam.best_reward,
        typical_reward=float(exam.rewards.mean()),
        settings=pair,
        ground=ground,
        slices=reward_slices(ends[RULES[0]][0], user, exam, np.asarray(advised.outcome)),
    )
    print_table(console, journeys, exam)
    path = style.write_png(picture(person, journeys), out, "demo", dots=160)
    seconds = time.perf_counter() - started
    console.print(f"Picture: {path}   ({seconds:.0f} s)", soft_wrap=True)
    return path


def converse(
    console: Console, settings: Settings, user: SimulatedUser, exam: Exam, queries: int
) -> dict[str, tuple[State, list[Look]]]:
    """Runs both rules in turn, with one progress bar each."""
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    ends: dict[str, tuple[State, list[Look]]] = {}
    with Progress(*columns, console=console) as progress:
        tasks = {
            rule: progress.add_task(style.rule_name(rule), total=queries, note="") for rule in RULES
        }
        for rule, task in tasks.items():
            looks: list[Look] = []
            for state, found in learn(replace(settings, rule=rule), user, exam, queries, 0):
                progress.update(task, completed=state.round - 1)
                if found:
                    looks.append(found)
                    progress.update(task, note=f"{found.preference_error:.0%} wrong guesses")
            ends[rule] = (state, looks)
    return ends
