"""Diagnostics of the simulated users (figure `fig:truth_behavior`); needs no results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from sfihilo.history import FloatArray
from sfihilo.study.design.conditions import BASE, Unit, simulated_user
from sfihilo.study.design.panels import RANDOM
from sfihilo.study.figures import style
from sfihilo.study.people.users import SimulatedUser, UserSettings

SHOWN = 4
GRID = np.linspace(0, 1, 101)


def sweep(dim: int, along: int, centre: float = 0.5) -> FloatArray:
    """Points on a line through the centre of the cube, along one coordinate."""
    points = np.full((len(GRID), dim), centre)
    points[:, along] = GRID
    return points


def truth_behavior(settings: UserSettings = UserSettings(), dim: int = 8) -> Figure:
    """Policy to outcome, outcome to reward, and motor adaptation, for the study's first users."""
    units = [Unit(BASE, RANDOM, "paper", number, users=settings) for number in range(SHOWN)]
    people = [simulated_user(unit) for unit in units]
    with style.styled():
        figure = style.new_figure(style.FULL_WIDTH, 4.6)
        above, middle, below = style.stacked(figure, (1, 1, 1))
        draw_sweeps(above, people, dim)
        draw_rewards(middle, people, dim)
        draw_adaptation(below, settings, dim)
    return figure


def draw_sweeps(figure: SubFigure, people: Sequence[SimulatedUser], dim: int) -> None:
    """A: all outcomes of each person along one policy coordinate."""
    row = figure.subplots(1, len(people), sharey=True)
    for number, (axes, person) in enumerate(zip(row, people, strict=True)):
        outcomes = person.outcomes(sweep(dim, 0))
        for place in range(outcomes.shape[1]):
            colour = colormaps["viridis"](place / max(1, outcomes.shape[1] - 1))
            axes.plot(GRID, outcomes[:, place], color=colour, linewidth=0.9)
        finish(axes, f"User {number + 1}", "policy coordinate 1")
    row[0].set_ylabel("outcomes")
    style.panel_letter(row[0], "A")


def draw_rewards(figure: SubFigure, people: Sequence[SimulatedUser], dim: int) -> None:
    """B: the reward of each person along each outcome coordinate."""
    row = figure.subplots(1, len(people), sharey=True)
    for number, (axes, person) in enumerate(zip(row, people, strict=True)):
        for place in range(dim):
            colour = colormaps["viridis"](place / max(1, dim - 1))
            axes.plot(GRID, person.rewards(sweep(dim, place)), color=colour, linewidth=0.9)
        finish(axes, f"User {number + 1}", "one outcome, others at 0.5")
    row[0].set_ylabel("reward")
    style.panel_letter(row[0], "B")


def draw_adaptation(figure: SubFigure, settings: UserSettings, dim: int) -> None:
    """C: outcomes of one adapting person over queries, and the share of the transition."""
    drifting = Unit(
        type(BASE)("drift_unweighted", policy_dim=dim, outcome_dim=dim, drift=True),
        RANDOM,
        "paper",
        0,
        users=settings,
    )
    person = simulated_user(drifting)
    row = figure.subplots(1, SHOWN)
    times = np.array([0, 25, 50, 100, 200, 400])
    shades = colormaps["plasma"](np.linspace(0.05, 0.85, len(times)))
    for outcome, axes in enumerate(row[:-1]):
        for time, shade in zip(times, shades, strict=True):
            values = person.outcomes(sweep(dim, 0), int(time))[:, outcome]
            axes.plot(GRID, values, color=shade, linewidth=0.9)
        finish(axes, f"Adapting user, outcome {outcome + 1}", "policy coordinate 1")
        axes.set_ylim(0, 1)
    row[0].set_ylabel("outcome")
    style.panel_letter(row[0], "C")
    draw_transition(row[-1], person, times, shades)


def draw_transition(
    axes: Axes, person: SimulatedUser, times: FloatArray, shades: FloatArray
) -> None:
    """The adapted share after each query."""
    queries = np.arange(0, 401)
    share = np.array([person.adaptation(int(query)) for query in queries])
    axes.plot(queries, 100 * share, color=style.BLACK)
    for time, shade in zip(times, shades, strict=True):
        axes.plot([time], [100 * person.adaptation(int(time))], "o", color=shade, markersize=4)
    axes.axhline(95, color=style.GREY, linewidth=0.6, linestyle=(0, (3, 3)), zorder=0)
    axes.text(400, 82, "95 % by query 200", ha="right", va="top", fontsize=5.8)
    axes.set_title("Transition")
    axes.set_xlabel("queries")
    axes.set_ylabel("adapted (%)")


def finish(axes: Axes, title: str, label: str) -> None:
    """Unit axes with a title."""
    axes.set_title(title, fontweight="normal")
    axes.set_xlabel(label)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1])
