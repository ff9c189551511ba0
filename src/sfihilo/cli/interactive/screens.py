"""The interactive session without any input or output: stage -> screen, key -> action.

A stage follows from the record alone, except for the walk, which only the running loop has seen:
a loop that starts anew meets a started trial as "unfinished" and asks how to go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sfihilo.cli.output import LINE_WIDTH
from sfihilo.cli.session.steps import (
    NOTHING_MEASURED,
    change,
    compared,
    named_words,
    outcome_words,
    remarks,
    require_applicable,
)
from sfihilo.cli.session.values import is_missing, parse_number
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output.digits import physical, physical_unit, with_unit
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.record.answers import Answer, strength_word
from sfihilo.experiment.record.kept import certain_settings
from sfihilo.experiment.record.places import corrects
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import Trial
from sfihilo.experiment.space.measurement import accepted
from sfihilo.experiment.space.parameter import Outcome
from sfihilo.experiment.space.safety import UnsafePolicyError
from sfihilo.experiment.space.space import Space

Stage = Literal[
    "between", "ready", "unfinished", "walking", "measuring", "answering", "break", "closed"
]
Action = Literal[
    "ask", "start", "walk", "finish", "new", "previous", "same", "cannot", "undo", "veto", "abort",
    "pain", "place", "goal", "break", "resume", "advice", "help", "leave",
    "new 1", "new 2", "new 3", "previous 1", "previous 2", "previous 3",
]  # fmt: skip

ENTER, END = "\n", "\x04"  # END: Ctrl-D, or nothing more to read
COMMON: Mapping[str, Action] = {
    "u": "undo", "b": "break", "r": "advice", "q": "leave", "?": "help", END: "leave",
}  # fmt: skip
# What each answer means: the choice and its strength.
ANSWERS: Mapping[Action, Answer] = {
    "new": ("new", None), "new 1": ("new", 1), "new 2": ("new", 2), "new 3": ("new", 3),
    "previous": ("previous", None), "previous 1": ("previous", 1), "previous 2": ("previous", 2),
    "previous 3": ("previous", 3), "same": ("same", None), "cannot": (None, None),
}  # fmt: skip
# The keys of graded answers, from the one before much better to this one much better.
GRADED: Mapping[int, Mapping[str, Action]] = {
    2: {},
    5: {"1": "previous 2", "2": "previous 1", "3": "same", "4": "new 1", "5": "new 2"},
    7: {
        "1": "previous 3", "2": "previous 2", "3": "previous 1", "4": "same", "5": "new 1",
        "6": "new 2", "7": "new 3",
    },
}  # fmt: skip
KEYS: Mapping[Stage, Mapping[str, Action]] = {
    "between": {ENTER: "ask", "d": "place", "x": "pain", "g": "goal", **COMMON},
    "ready": {ENTER: "start", "v": "veto", "a": "abort", "d": "place", **COMMON},
    "unfinished": {ENTER: "finish", "w": "walk", "a": "abort", "d": "place", **COMMON},
    "walking": {ENTER: "finish", "a": "abort", **COMMON},
    "measuring": {"a": "abort", **COMMON},
    "answering": {
        "n": "new", "p": "previous", "s": "same", "c": "cannot", "a": "abort", **COMMON,
    },
    "break": {
        ENTER: "resume", "d": "place", "r": "advice", "q": "leave", "?": "help", END: "leave",
    },
    "closed": {"r": "advice", "q": "leave", "?": "help", END: "leave"},
}  # fmt: skip
WORDS: Mapping[Action, str] = {
    "ask": "next settings",
    "start": "start",
    "walk": "walk again",
    "finish": "the walk is over",
    "new": "this one",
    "previous": "the one before",
    "same": "the same",
    "cannot": "cannot say",
    "undo": "undo",
    "veto": "veto",
    "abort": "abort",
    "pain": "it hurt",
    "place": "device is at",
    "goal": "other goal",
    "break": "break",
    "resume": "the person is back",
    "advice": "advice",
    "help": "help",
    "leave": "leave",
}
HELP: Mapping[Action, str] = {
    "ask": "compute the next settings",
    "start": "the settings are applied and the walk begins; the timer runs",
    "walk": "the walk begins again, with the same settings",
    "finish": "end the walk now and enter what was measured",
    "new": "the person prefers this condition",
    "previous": "the person prefers the condition before",
    "same": "the person finds both the same",
    "cannot": "the person cannot say",
    "undo": "take the last step back, as often as needed",
    "veto": "refuse these settings before they are applied; asks for the reason",
    "abort": "end this trial early; asks for the reason",
    "pain": "the last settings caused pain: they are avoided from now on",
    "place": "state where the device is, after it was set by hand",
    "goal": "change the goal: understand this person, or find the best setting",
    "break": "the person pauses; after a long break the last condition comes again",
    "resume": "go on after the break",
    "advice": "what would be recommended now",
    "help": "this list",
    "leave": "leave; everything is stored, 'sfihilo session run' goes on from here",
}
# Seven segments in three rows.
DIGITS: Mapping[str, tuple[str, str, str]] = {
    "0": (" _ ", "| |", "|_|"), "1": ("   ", "  |", "  |"), "2": (" _ ", " _|", "|_ "),
    "3": (" _ ", " _|", " _|"), "4": ("   ", "|_|", "  |"), "5": (" _ ", "|_ ", " _|"),
    "6": (" _ ", "|_ ", "|_|"), "7": (" _ ", "  |", "  |"), "8": (" _ ", "|_|", "|_|"),
    "9": (" _ ", "|_|", " _|"), ".": (" ", " ", "."), "-": ("   ", " _ ", "   "),
}  # fmt: skip


@dataclass(frozen=True)
class Walk:
    """A walk that this loop has seen: its trial, when it began (monotonic), whether it is over."""

    trial: int
    began: float
    over: bool = False


def stage_of(record: Record, walk: Walk | None) -> Stage:
    """What the session waits for."""
    if record.closed:
        return "closed"
    if record.interrupted:
        return "break"
    trial = record.current
    if trial is None:
        return "between"
    if trial.measured:
        return "answering"
    if not trial.started and not trial.answered:
        return "ready"
    if walk is None or walk.trial != trial.number:
        return "unfinished"
    return "measuring" if walk.over else "walking"


def what_counts(record: Record) -> object:
    """What a key on a screen depends on; a note or a refused value elsewhere changes nothing."""
    status = (record.interrupted, record.closed, record.goal)
    return record.trials, record.positions, record.vetoes, status


def event_words(event: Event) -> str:
    """An event in a few words."""
    if corrects(event):
        verb = "undone" if event.kind == "withdrawn" else "redone"
        return f"{event.body['kind']} was {verb}"
    trial = event.body.get("trial")
    kind = {"chosen": "answered", "pain": "painful"}.get(event.kind, event.kind)
    return kind if trial is None else f"trial {trial} was {kind}"


def keys_of(stage: Stage, grades: int = 2) -> Mapping[str, Action]:
    """The keys of a stage; with graded answers, one number per grade first."""
    return {**GRADED[grades], **KEYS[stage]} if stage == "answering" else KEYS[stage]


def action_of(stage: Stage, key: str, grades: int = 2) -> Action:
    """What a key means at a stage; raises where it means nothing."""
    known = keys_of(stage, grades)
    key = ENTER if key == "\r" else key.lower()
    if key not in known:
        raise ValueError(f"{key_name(key)} means nothing here: expected {key_names(stage, grades)}")
    return known[key]


def key_name(key: str) -> str:
    """A key as it is written in messages."""
    return {ENTER: "Enter", " ": "Space", END: "Ctrl-D", "\x1b": "that key"}.get(key, key)


def key_names(stage: Stage, grades: int = 2) -> str:
    """The keys of a stage, for messages."""
    return ", ".join(key_name(key) for key in keys_of(stage, grades) if key != END)


def key_word(action: Action, grades: int, other: str = WORDS["previous"]) -> str:
    """What a key does, in a few words; `other` is the trial that this one is compared with."""
    choice, strength = ANSWERS.get(action, (None, None))
    word = strength_word(strength, grades)
    trial = other if choice == "previous" else WORDS["new"]
    if word is None:
        return other if action == "previous" else WORDS[action]
    better = word if word == "better" else f"{word} better"
    return f"{trial} {better}"


def other_trial(record: Record) -> str:
    """The trial that an answer compares with, as the keys call it."""
    trial = record.current
    named = trial is not None and trial.ago is not None and trial.ago > 1
    return f"trial {trial.compare_with}" if trial is not None and named else WORDS["previous"]


def hint(stage: Stage, grades: int = 2, other: str = WORDS["previous"]) -> list[str]:
    """The keys of a stage with what they do, in lines of at most 80 columns."""
    lines = [""]
    for key, action in keys_of(stage, grades).items():
        item = f"[{key_name(key)}] {key_word(action, grades, other)}"
        if key == END:
            continue
        if len(lines[-1]) + len(item) + 2 > LINE_WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]}  {item}" if lines[-1] else item
    return lines


def help_lines(stage: Stage, grades: int = 2, other: str = WORDS["previous"]) -> list[str]:
    """The keys of a stage, explained."""
    words = dict(HELP)
    if other != WORDS["previous"]:
        words["previous"] = f"the person prefers {other}"
    return [
        f"  {key_name(key):<6} {words.get(action) or key_word(action, grades, other)}"
        for key, action in keys_of(stage, grades).items()
        if key != END
    ]


def screen(record: Record, stage: Stage, large: bool = False) -> list[str]:
    """What stands above the keys at a stage."""
    trial = record.current
    if stage == "closed":
        return [f"Session {record.session} is closed: it can be read, not continued."]
    if stage == "break" and not record.interrupted:
        return [
            "Break: nothing was done here for a long time.",
            "DO NOT APPLY settings that were shown before. Press Enter when the person is back.",
        ]
    if stage == "break":
        return ["Break. Press Enter when the person is back."]
    if trial is None:
        return _between(record)
    title = f"Trial {trial.number}  participant {record.participant}  session {record.session}"
    if stage == "ready" and (unsafe := unsafe_lines(record, trial)):
        return [title, *unsafe, "Its settings:", *settings_lines(record, trial, large=False)]
    if stage == "ready":
        warnings = [f"warning: {warning}" for warning in trial.warnings]
        known = [*warnings, *remarks(record, trial), ""]
        return [title, *known, *settings_lines(record, trial, large)]
    if stage == "unfinished":
        return [
            title,
            f"Trial {trial.number} was started and has no outcome yet. Its settings:",
            *settings_lines(record, trial, large=False),
            *(
                unsafe_lines(record, trial)
                or ["Press Enter if the walk is over, w to walk it again, a to abort it."]
            ),
        ]
    if stage == "answering":
        return [
            title,
            *(f"warning: {warning}" for warning in trial.warnings),
            f"Measured: {outcome_words(record, trial)}",
            "",
            *question(record, trial),
        ]
    return []


def question(record: Record, trial: Trial) -> list[str]:
    """What to ask the person about a trial; nobody is asked for an answer that is not used."""
    if not trial.known_outcome:
        return [f"Do not ask which was better: {NOTHING_MEASURED}. Press c; u enters an outcome."]
    asked = f"Which was better: this one (trial {trial.number}) or {compared(trial)}?"
    return [*named_words(record, trial), asked]


def unsafe_lines(record: Record, trial: Trial) -> list[str]:
    """Why the settings of an open trial must not be applied now; empty if they may be."""
    try:
        require_applicable(record, trial)
    except UnsafePolicyError as error:
        return [f"DO NOT APPLY. {error}.", "Press d to state where the device is."]
    return []


def _between(record: Record) -> list[str]:
    complete = sum(trial.status == "complete" for trial in record.trials)
    newest = record.newest
    done = f"{counted(complete, 'trial')} complete"
    lines = [f"Session {record.session}: {done}. Goal: {record.goal}."]
    if newest is not None:
        lines.insert(0, f"Trial {newest.number} is {newest.status}.")
    return lines


def settings_lines(record: Record, trial: Trial, large: bool) -> list[str]:
    """The settings with their units and the change from the last ones; fixed ones in one line."""
    space = record.space
    width = max(len(name) for name in space.free)
    lines = []
    for name in space.free:
        parameter = space.policy[name]
        text = physical(trial.policy[name], parameter)
        rows = large_number(text) if large else [text]
        *above, last = (f"  {'':<{width}}  {row}" for row in rows)
        last = f"  {name:<{width}}  {rows[-1]}"
        step = change(record, trial, name)
        lines += [*above, f"{with_unit(last, parameter)}{f'   ({step})' if step else ''}"]
        lines += [""] if large else []
    fixed = [name for name in space.policy if name not in space.free]
    if fixed:
        words = (
            f"{name} {physical_unit(trial.policy[name], space.policy[name])}" for name in fixed
        )
        lines.append(f"  fixed: {', '.join(words)}")
    return lines


def large_number(text: str) -> list[str]:
    """A number in three rows; one that has other marks than digits as it is."""
    if any(mark not in DIGITS for mark in text):
        return [text]
    return [" ".join(DIGITS[mark][row] for mark in text) for row in range(3)]


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def place_prompt(record: Record, name: str) -> str:
    """What is asked for one setting of the device."""
    parameter = record.space.policy[name]
    low, high = physical(parameter.low, parameter), physical(parameter.high, parameter)
    limits = with_unit(f"{low} to {high}", parameter)
    certain = certain_settings(record).get(name)
    kept = "" if certain is None else f" (Enter: {physical(certain, parameter)})"
    return f"{name}, {limits}{kept}: "


def outcome_prompt(name: str, outcome: Outcome) -> str:
    """What is asked for one outcome."""
    low, high = outcome.accepted
    limits = with_unit(f"{physical(low, outcome)} to {physical(high, outcome)}", outcome)
    return f"{name}, {limits} (Enter: not measured): "


def read_outcome(space: Space, name: str, text: str) -> float | None:
    """A typed value; None if it was not measured; raises where it would be refused."""
    if not text.strip() or is_missing(text):
        return None
    value = parse_number(text, name)
    alone = dict.fromkeys(space.outcomes) | {name: value}
    accepted(space, alone)
    return value


def typed(values: Mapping[str, float | None]) -> str:
    """Typed outcomes in one line, so that the operator can enter them again."""
    return ", ".join(
        f"{name}={'none' if value is None else f'{value:.15g}'}" for name, value in values.items()
    )
