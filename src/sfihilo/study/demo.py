"""The demonstration: one simulated person is learned by two ways of asking, side by side.

It drives the same four functions (begin, ask, tell, recommend) as the study and a real session,
with the default settings, and measures both ways on the same test questions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from scipy.optimize import Bounds, differential_evolution

from sfihilo.history import FloatArray, generator
from sfihilo.learner import State, ask, begin, recommend, tell
from sfihilo.settings import Settings
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

RULES = (Settings().rule_name, "random")
PERSON_SEED = 7
LOOKS = 15
POOL = 20_000
SLICES = 4


@dataclass(frozen=True, eq=False)
class Exam:
    """What only a simulated person can be asked for free: the truth that learning is held against.

    The test pairs are the study's: a quarter each of very close, close, clear and obvious ones.
    """

    held_out: HeldOut
    tested: FloatArray
    policies: FloatArray
    outcomes: FloatArray
    rewards: FloatArray
    best_reward: float


def true_reward(user: SimulatedUser, policies: FloatArray) -> FloatArray:
    """How much the person truly likes each policy, without any noise."""
    return user.rewards(user.outcomes(policies))


def best_possible(user: SimulatedUser, policies: FloatArray, rewards: FloatArray) -> float:
    """The most that the person can like any policy, by evolution from the best of a pool."""
    # Vectorised, it is called with one column a policy, which its types do not know.
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
    """Test questions over the whole space, the same for every way of asking."""
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
    """What one look at the learner found after `questions` answers."""

    questions: int
    forward_error: float
    preference_error: float
    reward: float


def examine(state: State, user: SimulatedUser, exam: Exam) -> Look:
    """Examine the learner: predictions, guesses about preferences, and its recommendation."""
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
    """Ask `queries` questions; after each one the state, and now and then a look at it."""
    due = set(look_after(queries))
    state = begin(settings, seed)
    for asked in range(queries + 1):  # the first trial has nothing to be compared with
        query = ask(state)
        state = tell(state, query, user.respond(query))
        yield state, examine(state, user, exam) if asked in due else None


def look_after(queries: int) -> list[int]:
    """About `LOOKS` evenly spaced counts, the last one being `queries`."""
    return sorted({max(1, round(queries * part / LOOKS)) for part in range(1, LOOKS + 1)})


def reward_slices(
    state: State, user: SimulatedUser, exam: Exam, centre: FloatArray
) -> tuple[Slice, ...]:
    """The outcomes along which the true reward changes most, with what was learned about them.

    Answers say only which of two outcomes is better, so everything is relative to `centre`; and the
    learned reward's free unit is set by one straight-line fit, the same for all slices.
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
    for one in range(exam.policies.shape[1]):
        for two in range(one + 1, exam.policies.shape[1]):
            flat = bins[:, one] * cells + bins[:, two]
            counts = np.bincount(flat, minlength=cells**2)
            sums = np.bincount(flat, weights=exam.rewards, minlength=cells**2)
            ground = sums / np.maximum(counts, 1)
            if best is None or ground.std() > best[0]:
                best = float(ground.std()), (one, two), ground.reshape(cells, cells)
    if best is None:
        raise ValueError("a map needs at least two settings")
    return best[1], best[2]


def journey(rule: str, state: State, looks: Sequence[Look], user: SimulatedUser) -> Journey:
    """One way of asking, as the picture wants it."""
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
    """The last look at each way of asking, in words."""
    asked = int(journeys[0].questions[-1])
    table = Table(title=f"After {asked} questions", title_justify="left")
    table.add_column("")
    for one in journeys:
        table.add_column(style.rule_name(one.rule), justify="right")
    rows = (
        ("error of predicted outcomes, of full range", "forward_error"),
        ("wrong guesses about preferences", "preference_error"),
    )
    for text, name in rows:
        table.add_row(text, *(f"{getattr(one, name)[-1]:.1%}" for one in journeys))
    table.add_row(
        f"reward of its advice (best possible: {exam.best_reward:.2f})",
        *(f"{one.reward[-1]:.2f}" for one in journeys),
    )
    table.add_row(
        "its advice beats this share of all settings",
        *(share(float(np.mean(exam.rewards < one.reward[-1]))) for one in journeys),
    )
    console.print(table)


def share(value: float) -> str:
    """A share in percent that never claims to be all of an infinite space."""
    return f"{value:.1%}" if value < 0.9995 else "over 99.9%"


def run(queries: int = 150, out: Path = Path("demo")) -> Path:
    """Learn one simulated person by two rules; print a table, write `demo.png`, return its path."""
    if queries < 2:
        raise ValueError(f"expected at least 2 queries, got {queries}")
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
    """Both ways of asking in turn, with one progress bar each."""
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
