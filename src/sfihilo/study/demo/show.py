"""Runs the demonstration with a progress bar, prints its table, draws its picture."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from sfihilo.study.demo import exoskeleton
from sfihilo.study.demo.courses import WAYS, Course, Plan, courses
from sfihilo.study.demo.findings import Band, Summary, headline, percent, summarise
from sfihilo.study.figures import style
from sfihilo.study.figures.demo_picture import NAMES, picture
from sfihilo.study.run.engines import Engine

DEFAULT = Plan()


def run(
    queries: int = DEFAULT.queries, people: int = DEFAULT.people, out: Path = Path("demo")
) -> Path:
    """Learns simulated people in three ways, prints a table, writes `demo.png`; its path."""
    return show(Plan(people=people, queries=queries), out, Engine())


def show(plan: Plan, out: Path, engine: Engine) -> Path:
    """The demonstration of any plan on the processes of the engine."""
    console = Console()
    started = time.perf_counter()
    console.print(
        f"{plan.people} simulated people try a {exoskeleton.NAME}: "
        f"{len(exoskeleton.SETTINGS)} settings, {len(exoskeleton.OUTCOMES)} measured outcomes.\n"
        f"Each is learned in three ways, from {plan.queries} trials, each compared with the one "
        "before.\n"
    )
    summary = summarise(compute(console, plan, engine))
    path = style.write_png(picture(summary), out, "demo", dots=130)
    print_table(console, summary)
    seconds = time.perf_counter() - started
    console.print(f"Picture: {path}   ({seconds:.0f} s)", soft_wrap=True)
    return path


def compute(console: Console, plan: Plan, engine: Engine) -> list[Course]:
    """All courses, with a progress bar that counts them."""
    columns = (
        SpinnerColumn(),  # moves while the people are made, before the first course is counted
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    found: list[Course] = []
    with Progress(*columns, console=console) as progress, engine.start() as executor:
        task = progress.add_task("Learning", total=plan.people * len(WAYS))
        for course in courses(plan, executor):
            found.append(course)
            progress.advance(task)
    return found


def print_table(console: Console, summary: Summary) -> None:
    """The numbers after the last trial, mean and standard error over people, and one advice."""
    console.print(headline(summary).replace("\n", " ") + ".", style="bold", highlight=False)
    table = Table(
        title=f"After {summary.queries} trials: mean of {summary.people} people (standard error)",
        title_justify="left",
        title_style="",
    )
    table.add_column("")
    for way in WAYS:
        table.add_column(NAMES[way], justify="right")
    rows = (
        ("liking of the advice", summary.advice),
        ("mean liking of the trials", summary.liking),
        ("pairs predicted wrong", summary.wrong),
    )
    for text, bands in rows:
        table.add_row(text, *(last(bands[way]) for way in WAYS))
    console.print(table)
    advised = summary.example["best"]
    console.print(
        "Liking: 0 % is a person's worst setting, 100 % the best reachable one. A setting "
        f"picked blindly: {percent(summary.blind)}.\nGoal best advised better than random trials "
        f"for {summary.wins} of {summary.people} people. Its advice for the person in the picture: "
        f"{exoskeleton.describe(advised.advised)} (liking {percent(advised.advice[-1])}).",
        highlight=False,
    )


def last(band: Band) -> str:
    """The mean after all trials, with its standard error."""
    return f"{percent(band.last)} ({percent(band.error[-1], 1)})"
